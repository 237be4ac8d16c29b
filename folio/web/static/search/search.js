// Ranked passages with the words of the query marked. No language model is used. The address has the query.

import { showTags } from "../ask/options.js";
import * as api from "../base/api.js";
import { el, formatDuration, isolate, makeButton } from "../base/dom.js";
import { renderMessage, renderProblem } from "../base/dom.js";
import { WindowedList } from "../base/list.js";
import { formatScope, parseOptions } from "../base/options.js";
import { linkTo, place, setQuery } from "../base/router.js";
import { buildFilter, getScope, getTitle, library, options, setOptions } from "../base/state.js";
import { t } from "../base/strings.js";
import { joinLines, shortenAtWord } from "../base/text.js";
import { renderNotice } from "../paper/notice.js";
import { makeHitLink } from "../reader/reader.js";
import { buildMarkPattern, joinPassage, shortenPassage, splitMarks } from "./marks.js";

const COUNTS = ["10", "20", "50"]; // passages that a person may ask for
const HIT_HEIGHT = 220; // pixels, until it is measured

/** @typedef {{hit: Api.SearchHitJson, number: number, key: string}} Item */

class SearchView {
  /** @type {AbortController | null} */
  asking = null;
  asked = ""; // what was searched last, to know whether the address has changed
  /** @type {RegExp | null} */
  marks = null;
  /** @type {Set<string>} keys of passages that are shown whole */
  whole = new Set();
  /** @type {Map<string, string>} titles as they are shown, by the keys of passages */
  titles = new Map();
  /** @type {Item[]} */
  items = [];

  /** @param {HTMLElement} root @param {HTMLAnchorElement} link of the header to this view */
  constructor(root, link) {
    this.link = link;
    this.query = el("input", {
      type: "search",
      id: "query",
      maxlength: "10000",
      placeholder: t("search.query"),
      autocomplete: "off",
      "aria-keyshortcuts": "/",
    });
    const counts = COUNTS.map((count) => el("option", {}, count));
    this.count = el("select", { id: "search-count", onchange: () => this.#ask() }, counts);
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#ask();
    };
    const form = el(
      "form",
      { class: "searching", id: "search", role: "search", "aria-label": t("search"), onsubmit: submit },
      el("label", { class: "unseen", for: "query" }, t("search.query")),
      this.query,
      el("label", { class: "inline" }, `${t("search.show")} `, this.count),
      el("button", { type: "submit", class: "button primary" }, t("search")),
    );
    this.chosen = el("div", { class: "chosen", id: "search-chosen", hidden: true });
    showTags(this.chosen, this.query, { forSearch: true });
    this.status = el("p", { class: "status", id: "search-status", role: "status" });
    this.problem = el("div", { id: "search-problem" });
    const hits = el("ol", { class: "hits", id: "hits" });
    const heading = [el("h1", {}, t("search.title")), el("p", { class: "lead" }, t("search.lead"))];
    const reading = el("div", { class: "reading" }, heading, this.chosen, form, this.status, this.problem, hits);
    const scroller = el("div", { class: "scroll" }, reading);
    root.append(scroller);
    this.list = new WindowedList({
      scroller,
      root: hits,
      key: (/** @type {Item} */ { key }) => key,
      render: (item) => this.#renderHit(item),
      height: () => HIT_HEIGHT,
      isMeasured: true,
    });
  }

  /** Shows what the address asks for. */
  follow() {
    const { view, query } = place.get();
    if (view !== "search") return;
    const { q = "", n = COUNTS[0] } = query;
    const { papers, filters, reranker } = parseOptions(query);
    if (JSON.stringify([papers, filters, reranker]) !== JSON.stringify(readScope())) {
      setOptions({ papers, filters, reranker });
    }
    if (q !== this.query.defaultValue && document.activeElement !== this.query) this.query.value = q;
    this.query.defaultValue = q; // of the address: what is typed meanwhile stays when another scope is chosen
    this.count.value = COUNTS.includes(n) ? n : COUNTS[0];
    this.repeat();
  }

  /** Another scope was chosen: the address has it. */
  keepScope() {
    const scope = formatScope(options.get());
    if (place.get().view === "search") setQuery(scope);
    this.link.href = linkTo({ view: "search", query: scope });
    this.repeat();
  }

  /** Searches again after another scope was chosen. What is typed stays. */
  repeat() {
    const { view, query } = place.get();
    if (view !== "search") return;
    const { q = "" } = query;
    const wanted = JSON.stringify([q, this.count.value, readScope()]);
    if (wanted === this.asked) return;
    this.asked = wanted;
    this.#search(q);
  }

  /** Renders the passages of papers that have another title than before. */
  refresh() {
    for (const { hit, key } of this.items) if (this.titles.get(key) !== getTitle(hit)) this.list.refresh(key);
  }

  #ask() {
    const q = this.query.value.trim();
    if (!q) return;
    this.asked = ""; // Enter searches again
    const n = this.count.value === COUNTS[0] ? "" : this.count.value;
    setQuery({ q, n }, { replace: !place.get().query.q });
    this.follow();
  }

  /** @param {string} query */
  async #search(query) {
    this.asking?.abort();
    this.problem.replaceChildren();
    if (!query) {
      this.status.replaceChildren();
      this.status.classList.remove("working");
      this.#show([], "");
      return;
    }
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.status.textContent = t("search.working");
    this.status.classList.add("working");
    const body = { query, top_k: Number(this.count.value), ...buildFilter(getScope()) };
    try {
      const { hits, notice, elapsed_ms } = await api.search({ ...body, use_reranker: options.get().reranker }, signal);
      const isRanked = hits.some(({ bm25 }) => bm25 !== null);
      const values = { count: hits.length, time: formatDuration(elapsed_ms) };
      const summary = t(isRanked ? "search.count.ranked" : "search.count", values);
      const shown = hits.length ? [summary, notice] : [notice || t("search.none"), t("search.none.remedy")];
      this.status.replaceChildren(renderMessage(shown.filter(Boolean).join(" ")));
      this.#show(hits, query);
    } catch (thrown) {
      if (api.isAbort(thrown)) return;
      this.status.textContent = "";
      this.#show([], "");
      this.problem.replaceChildren(renderProblem(api.toApiError(thrown), () => this.#search(query)));
    } finally {
      if (!signal.aborted) this.status.classList.remove("working");
    }
  }

  /** @param {Api.SearchHitJson[]} hits @param {string} query */
  #show(hits, query) {
    this.marks = buildMarkPattern(query);
    this.whole.clear();
    this.titles.clear();
    this.items = hits.map((hit, at) => ({ hit, number: at + 1, key: `${query} ${at}` }));
    this.list.setItems(this.items);
  }

  /** @param {Item} item */
  #renderHit({ hit, number, key }) {
    this.titles.set(key, getTitle(hit));
    const text = joinPassage(hit.text);
    const short = this.whole.has(key) ? text : shortenPassage(text);
    const words = splitMarks(short, this.marks).map(([part, isMarked]) => (isMarked ? el("mark", {}, part) : part));
    const body = isolate("", { class: "passage-text" });
    body.append(...words);
    const showWhole = () => {
      this.whole.add(key);
      this.list.refresh(key);
    };
    const letters = hit.noted.length ? Array.from(hit.text) : []; // code points
    const noted = hit.noted.map(([start, end]) => shortenAtWord(joinLines(letters.slice(start, end).join("")), 120));
    const section = hit.section ? [" · ", isolate(joinLines(hit.section))] : [];
    return el(
      "li",
      { class: "hit" },
      el("span", { class: "hit-number", "aria-hidden": "true" }, number.toLocaleString()),
      makeHitLink(hit),
      el("p", { class: "about" }, isolate(hit.file), section, ` · ${formatScores(hit)}`),
      hit.notice ? renderNotice(hit.notice) : null,
      noted.length ? el("p", { class: "about" }, t("search.noted"), isolate(` “${noted.join("”, “")}”`)) : null,
      el("p", { class: "passage" }, body),
      short === text ? null : makeButton("button quiet", showWhole, t("search.whole")),
    );
  }
}

/** @param {Api.HitJson} hit */
function formatScores({ score, dense, bm25 }) {
  const shown = [t("search.score", { score: score.toFixed(2) })];
  if (dense !== null) shown.push(t("search.cosine", { score: dense.toFixed(2) }));
  if (bm25 !== null) shown.push(t("search.bm25", { score: bm25.toFixed(1) }));
  return shown.join(" · ");
}

const readScope = () => [options.get().papers, options.get().filters, options.get().reranker];

/** @param {HTMLElement} root @param {HTMLAnchorElement} link of the header to this view */
export function setUpSearch(root, link) {
  const view = new SearchView(root, link);
  place.watch(() => view.follow());
  library.onChange(() => view.refresh());
  options.watch(() => view.keepScope());
}
