// The citations of a paper: its references and the works that cite it; and citations between papers of the library.

import * as api from "../base/api.js";
import { byId, el, formatCommands, formatCount, isolate, makeButton, renderProblem } from "../base/dom.js";
import { enterPanel, leavePanel } from "../base/panels.js";
import { getTitle, health, library } from "../base/state.js";
import { renderWork } from "../find/works.js";

let shown = ""; // the paper
let opener = null; // what opened the list, and has the focus afterwards
let asking = null; // aborts the request

/** Opens the list of a paper's citations. from: the element that gets the focus when it is closed. */
export function showCitations(id, from) {
  shown = id;
  opener = from;
  byId("citations-title").replaceChildren("Citations of ", isolate(getTitle({ id, title: "", file: id })));
  showLists(null);
  byId("citations").showModal();
  enterPanel(byId("citations"), () => byId("citations").close());
  load(api.getCitations, "Loading");
}

async function load(request, doing) {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const status = byId("citations-status");
  const button = byId("citations-look-up");
  status.textContent = doing;
  status.classList.add("working");
  button.disabled = true;
  byId("citations-problem").replaceChildren();
  try {
    showLists(await request(shown, signal));
    if (request === api.lookUpCitations) refreshBetween();
  } catch (thrown) {
    if (api.isAbort(thrown)) return;
    status.textContent = "";
    byId("citations-problem").replaceChildren(renderProblem(api.toApiError(thrown), () => load(request, doing)));
  } finally {
    if (!signal.aborted) {
      status.classList.remove("working");
      button.disabled = false;
    }
  }
}

/** found: as the server replies; null before it has. */
function showLists(found) {
  const { online } = health.get() ?? {};
  const lists = found
    ? [
        ["References", found.references],
        ["Cited by", found.cited_by],
      ]
    : [];
  byId("citations-lists").replaceChildren(...lists.flatMap(([name, works]) => renderList(name, works)));
  byId("citations-look-up").hidden = !found || !online;
  byId("citations-look-up").textContent = found?.known ? "Look up again" : "Look up references";
  if (found) byId("citations-status").replaceChildren(...formatCommands(describe(found, online)));
}

function describe({ known, reference_count: cites, cited_by_count: citing }, online) {
  const why = online ? "" : ` ${health.get()?.network ?? ""}`;
  if (!known) return `What this paper cites has not been looked up yet.${why}`;
  return `${formatCount(cites, "reference")}, cited by ${formatCount(citing, "work")}, among the works looked up.`;
}

function renderList(name, works) {
  if (!works.length) return [];
  const [named, unnamed] = [works.filter((work) => work.title), works.filter((work) => !work.title)];
  const render = (work) => renderWork(work, { canAdd: health.get()?.online, leave });
  const more = el(
    "details",
    { class: "unnamed" },
    el("summary", {}, `${formatCount(unnamed.length, "work")} known only by identifier`),
    el("ol", { class: "works" }, unnamed.map(render)),
  );
  return [
    el("h3", {}, `${name} `, el("span", { class: "size" }, String(works.length))),
    el("ol", { class: "works" }, named.map(render)),
    unnamed.length ? more : null,
  ].filter(Boolean);
}

/** Closes the list; returns the element that then has the focus. */
function leave() {
  byId("citations").close();
  return opener;
}

// Papers of the library that cite each other, as a list: a graph of more than a few would be a tangle.

async function refreshBetween() {
  const { edges } =
    library.get().papers.size > 1 ? await api.listCitations().catch(() => ({ edges: [] })) : { edges: [] };
  const known = edges.filter(
    ({ citing, cited }) => library.get().papers.has(citing) && library.get().papers.has(cited),
  );
  const papers = [...new Set(known.flatMap(({ citing, cited }) => [cited, citing]))].map((id) => ({
    id,
    cites: known
      .filter(({ citing }) => citing === id)
      .map(({ cited }) => cited)
      .sort(compareTitles),
    count: known.filter(({ cited }) => cited === id).length,
  }));
  papers.sort((a, b) => b.count - a.count || compareTitles(a.id, b.id));
  byId("between").hidden = !papers.length;
  byId("between-count").textContent = formatCount(papers.length, "paper");
  byId("between-papers").replaceChildren(...papers.map(renderBetween));
}

const compareTitles = (a, b) => getTitle({ id: a }).localeCompare(getTitle({ id: b }));

function renderBetween({ id, cites, count }) {
  const listed = cites.map((cited) => el("li", {}, makeOpener(cited)));
  return el(
    "li",
    {},
    el("h3", {}, makeOpener(id)),
    count ? el("p", { class: "about" }, `cited by ${formatCount(count, "paper")} here`) : null,
    listed.length ? el("div", { class: "cites" }, el("p", { class: "about" }, "cites"), el("ul", {}, listed)) : null,
  );
}

function makeOpener(id) {
  const open = (event) => showCitations(id, event.currentTarget);
  return makeButton("source", open, isolate(getTitle({ id, title: "", file: id })));
}

export function setUpCitations() {
  const dialog = byId("citations");
  byId("citations-close").onclick = () => dialog.close();
  byId("citations-look-up").onclick = () => load(api.lookUpCitations, "Looking up references and citing works");
  dialog.addEventListener("close", () => {
    leavePanel(dialog);
    asking?.abort();
    opener?.focus();
  });
  library.onChange(refreshBetween);
}
