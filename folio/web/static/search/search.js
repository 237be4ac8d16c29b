// Ranked passages with the words of the query marked. No language model is used.

import * as api from "../base/api.js";
import { byId, el, formatCount, formatDuration, formatPages } from "../base/dom.js";
import { isolate, keepTogether, makeButton, renderMessage, renderProblem } from "../base/dom.js";
import { buildFilter, getScope, getTitle, library, options } from "../base/state.js";
import { showTags } from "../ask/options.js";
import { renderNotice } from "../ask/statement.js";
import { joinLines } from "../base/text.js";
import { openHit } from "../reader/reader.js";

const LONG = 420; // characters of a passage shown before "Show all"
// Words too common to mark
const COMMON = new Set(
  (
    "a an and are as at by can do does for from how in is it its of on or that the this to " +
    "was what when which who why with"
  ).split(" "),
);

let asking = null;
let found = { hits: [], marks: null }; // what is shown

async function runSearch(event) {
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
  const body = { query, top_k, ...buildFilter(getScope()), use_reranker: options.get().reranker };
  try {
    const { hits, notice, elapsed_ms } = await api.search(body, signal);
    const order = hits.some(({ bm25 }) => bm25 !== null) ? ", best first" : "";
    const summary = `${formatCount(hits.length, "passage")} in ${formatDuration(elapsed_ms)}${order}.`;
    const none = [notice || "No passages found.", "Try other words."];
    status.replaceChildren(renderMessage((hits.length ? [summary, notice] : none).filter(Boolean).join(" ")));
    found = { hits, marks: buildMarkPattern(query) };
    renderHits();
  } catch (thrown) {
    if (api.isAbort(thrown)) return;
    status.textContent = "";
    found = { hits: [], marks: null };
    renderHits();
    byId("search-problem").replaceChildren(renderProblem(api.toApiError(thrown), runSearch));
  } finally {
    if (!signal.aborted) status.classList.remove("working");
  }
}

const renderHits = () => byId("hits").replaceChildren(...found.hits.map((hit) => renderPassage(hit, found.marks)));

function renderPassage(hit, marks) {
  // Join the lines of the page, but keep its paragraphs.
  const text = hit.text
    .trim()
    .replace(/(?<!\n)\n(?!\n)/g, " ")
    .replace(/\n{2,}/g, "\n");
  const body = isolate("", { class: "passage-text" });
  body.append(...markWords(text.length > LONG ? `${text.slice(0, LONG).replace(/\S*$/, "")}…` : text, marks));
  const open = (event) => openHit(hit, event.currentTarget);
  const whole = (event) => {
    body.replaceChildren(...markWords(text, marks));
    event.currentTarget.remove();
  };
  return el(
    "li",
    {},
    makeButton("source", open, isolate(getTitle(hit)), ", ", keepTogether(formatPages(hit.pages))),
    el("p", { class: "about" }, isolate(hit.file), renderSection(hit), ` · ${formatScores(hit)}`),
    renderNotice(hit.notice),
    el("p", { class: "passage" }, body),
    text.length > LONG ? makeButton("button quiet", whole, "Show all") : null,
  );
}

const renderSection = ({ section }) => (section ? [" · ", isolate(joinLines(section))] : []);

function formatScores({ score, dense, bm25 }) {
  const parts = [`score ${score.toFixed(2)}`];
  if (dense !== null) parts.push(`cosine ${dense.toFixed(2)}`);
  if (bm25 !== null) parts.push(`BM25 ${bm25.toFixed(1)}`);
  return parts.join(" · ");
}

/** A pattern for the words of a query and their other forms: "models" also marks "modelling". */
function buildMarkPattern(query) {
  const found = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const wanted = found.filter((word) => word.length > 1 && !COMMON.has(word));
  const stems = wanted.map((word) => (word.length > 4 ? word.replace(/(ing|es|ed|s)$/, "") : word));
  if (!stems.length) return null;
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${stems.join("|")})[\\p{L}]*`, "giu");
}

function markWords(text, marks) {
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
  byId("search").addEventListener("submit", runSearch);
  byId("search-count").addEventListener("change", () => runSearch());
  showTags(byId("search-chosen"), byId("query"), { forSearch: true });
  library.onChange(renderHits);
  options.onChange(() => {
    if (byId("hits").childElementCount && !byId("view-search").hidden) runSearch();
  });
}
