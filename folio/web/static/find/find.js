// Finding papers at services on the internet, where the server may ask them.

import * as api from "../base/api.js";
import { byId, el, formatCommands, formatCount, renderMessage, renderProblem } from "../base/dom.js";
import { health } from "../base/state.js";
import { addAll, countAddable, renderWork } from "./works.js";

let asking = null; // aborts the search

const buildQuery = () => ({
  query: byId("find-query").value.trim(),
  source: byId("find-source").value,
  since: byId("find-since").value,
  open_access: byId("find-open").checked,
  min_cited: byId("find-cited").value,
  max: byId("find-max").value,
  sort: byId("find-sort").value,
});

async function findWorks(event) {
  event?.preventDefault();
  const query = buildQuery();
  if (!query.query || !byId("find").reportValidity()) return;
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const status = byId("find-status");
  status.textContent = "Searching";
  status.classList.add("working");
  showWorks([]);
  byId("find-notices").replaceChildren();
  byId("find-problem").replaceChildren();
  try {
    const { works, notices } = await api.discover(query, signal);
    const here = works.filter((work) => work.paper).length;
    const found = `${formatCount(works.length, "work")}${here ? `, ${here} in your library` : ""}.`;
    status.textContent = works.length ? found : "No works found. Try other words, or fewer filters.";
    byId("find-notices").replaceChildren(...notices.map((text) => el("li", { class: "note" }, renderMessage(text))));
    showWorks(works);
  } catch (thrown) {
    if (api.isAbort(thrown)) return;
    status.textContent = "";
    byId("find-problem").replaceChildren(renderProblem(api.toApiError(thrown), findWorks));
  } finally {
    if (!signal.aborted) status.classList.remove("working");
  }
}

function showWorks(works) {
  const list = byId("found");
  list.replaceChildren(...works.map((work) => renderWork(work, { canAdd: true })));
  const count = countAddable(list);
  byId("add-all").hidden = count < 2;
  byId("add-all").textContent = `Add all ${count} that are free to read`;
}

/** arXiv does not count citations. */
function adaptFilters() {
  const isCounted = byId("find-source").value !== "arxiv";
  byId("find-cited").disabled = !isCounted;
  byId("find-sort").querySelector('[value="citations"]').disabled = !isCounted;
  if (isCounted) return;
  byId("find-cited").value = "";
  if (byId("find-sort").value === "citations") byId("find-sort").value = "relevance";
}

export function setUpFind() {
  byId("find").addEventListener("submit", findWorks);
  byId("find").addEventListener("change", (event) => {
    adaptFilters();
    if (event.target.id !== "find-query" && byId("found").childElementCount) findWorks();
  });
  byId("add-all").onclick = () => {
    addAll(byId("found"));
    byId("add-all").hidden = true;
    byId("find-query").focus();
  };
  health.onChange((now) => {
    if (!now) return;
    byId("find-note").replaceChildren(...formatCommands(now.network));
    byId("find").hidden = !now.online;
  });
}
