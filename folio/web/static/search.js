// Passages, ranked, with the words of the query marked. No language model is asked.

import * as api from "./api.js";
import { at, button, byId, count, el, pagesName, problem, seconds, words } from "./dom.js";
import { nameOf, onChange, options } from "./shared.js";
import { openPassage } from "./viewer.js";

const LONG = 420; // characters of a passage that are shown at once
// Too common to be marked
const COMMON = new Set(
  ("a an and are as at by can do does for from how in is it its of on or that the this to " +
    "was what when which who why with").split(" "),
);

let asking = null;

async function search(event) {
  event?.preventDefault();
  const query = byId("query").value.trim();
  if (!query) return;
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const status = byId("search-status");
  status.textContent = "Searching";
  status.classList.add("working");
  byId("search-problem").replaceChildren();
  const top_k = Number(byId("search-count").value);
  const body = { query, top_k, papers: [...options.papers], use_reranker: options.reranker };
  try {
    const { hits, elapsed_ms } = await api.search(body, signal);
    const said = `${count(hits.length, "passage")} in ${seconds(elapsed_ms)}, best first.`;
    status.textContent = hits.length ? said : "No passage was found. Other words may find one.";
    const marks = marking(query);
    byId("hits").replaceChildren(...hits.map((hit) => passage(hit, marks)));
  } catch (thrown) {
    if (api.isAbort(thrown)) return;
    status.textContent = "";
    byId("hits").replaceChildren();
    byId("search-problem").replaceChildren(problem(api.shown(thrown), search));
  } finally {
    if (!signal.aborted) status.classList.remove("working");
  }
}

function passage(hit, marks) {
  // The lines of the page are not those of this column; its paragraphs are kept.
  const text = hit.text.trim().replace(/(?<!\n)\n(?!\n)/g, " ").replace(/\n{2,}/g, "\n");
  const body = words("", { class: "passage-text" });
  body.append(...marked(text.length > LONG ? `${text.slice(0, LONG).replace(/\S*$/, "")}…` : text, marks));
  const open = (event) => openPassage(hit, event.currentTarget);
  const whole = (event) => {
    body.replaceChildren(...marked(text, marks));
    event.currentTarget.remove();
  };
  return el(
    "li",
    {},
    button("source", open, words(nameOf(hit)), ", ", at(pagesName(hit.pages))),
    el("p", { class: "about" }, words(hit.file), ` · ${scores(hit)}`),
    el("p", { class: "passage" }, body),
    text.length > LONG ? button("button quiet", whole, "Show all of it") : null,
  );
}

function scores({ score, dense, bm25 }) {
  const parts = [`score ${score.toFixed(2)}`];
  if (dense !== null) parts.push(`cosine ${dense.toFixed(2)}`);
  if (bm25 !== null) parts.push(`BM25 ${bm25.toFixed(1)}`);
  return parts.join(" · ");
}

/** What finds the words of a query in a text, in other forms too: "models" marks "modelling". */
function marking(query) {
  const found = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const told = found.filter((word) => word.length > 1 && !COMMON.has(word));
  const stems = told.map((word) => (word.length > 4 ? word.replace(/(ing|es|ed|s)$/, "") : word));
  if (!stems.length) return null;
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${stems.join("|")})[\\p{L}]*`, "giu");
}

function marked(text, marks) {
  if (!marks) return [text];
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(marks)) {
    parts.push(text.slice(end, match.index), el("mark", {}, match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

export function setUpSearch() {
  byId("search").addEventListener("submit", search);
  byId("search-count").addEventListener("change", () => search());
  onChange("options", () => {
    if (byId("hits").childElementCount && !byId("view-search").hidden) search();
  });
}
