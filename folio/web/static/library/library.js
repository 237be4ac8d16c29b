// The library: finds, narrows, sorts, selects, edits, exports and removes papers.

import * as api from "../base/api.js";
import { el, formatPages, isolate, makeButton, makeIcon, recall, remember } from "../base/dom.js";
import { renderMessage, renderProblem } from "../base/dom.js";
import { showFailure } from "../base/failure.js";
import { goTo, linkTo, place } from "../base/router.js";
import { isLibraryLoaded, library, loadPapers } from "../base/state.js";
import { t } from "../base/strings.js";
import { askForReview } from "./ask_review.js";
import { Between } from "./between.js";
import { editFields, editTags } from "./bulk.js";
import { choosePapers, COLUMNS, formatWanted, isNarrowed, parseWanted, sortPapers, toRule } from "./catalog.js";
import { CheckQueue, listUnsure } from "./check.js";
import { editPaper } from "./edit.js";
import { Facets } from "./facets.js";
import { addPapersToProject } from "../projects/add_to_project.js";
import { followReading } from "./reading.js";
import { RemovedToday, removePapers } from "./removed.js";
import { COLUMN_NAMES, getName, Table } from "./table.js";
import { setUpUploads } from "./uploads.js";

/** @typedef {import("./catalog.js").Paper} Paper */
/** @typedef {import("./catalog.js").Wanted} Wanted */
/** @typedef {import("../base/strings.js").Key} Key */

const TYPING_MS = 250; // the server is asked when nothing was typed for so long
const WIDE = 760; // pixels of the view, with room for the filters beside the table
const MAX_QUERY = 500; // characters, as the server has it

/** @type {{path: string, name: Key, chosen: Key, id: string}[]} */
const EXPORTS = [
  { path: "papers.bib", name: "export.bibtex", chosen: "export.bibtex.of", id: "export-bibtex" },
  { path: "papers.csl.json", name: "export.csl", chosen: "export.csl.of", id: "export-csl" },
];

/** @type {LibraryView | null} */
let view = null;

/** Loads the papers, with ifChanged only if they are others. Returns whether; never throws. */
export async function refreshLibrary({ ifChanged = false } = {}) {
  try {
    const isLoaded = await loadPapers();
    if (isLoaded) view?.showProblem(null);
    return isLoaded;
  } catch (thrown) {
    if (!ifChanged) view?.showProblem(renderProblem(api.toApiError(thrown), () => refreshLibrary())); // else it stays
    return false;
  }
}

/**
 * @typedef {object} LibraryHooks
 * @property {HTMLElement} bar shows what is being added, in all views
 * @property {(...ids: string[]) => void} ask restricts questions to these papers
 * @property {(ids: string[]) => void} makeTable opens the form of a new table of these papers
 */

/** @param {HTMLElement} root @param {LibraryHooks} hooks */
export function setUpLibrary(root, hooks) {
  view = new LibraryView(root, hooks);
  followReading();
}

class LibraryView {
  /** @type {Wanted} */
  #wanted = parseWanted({});
  /** @type {{papers: Map<string, Paper> | null, order: string, sorted: Paper[]}} */
  #sorted = { papers: null, order: "", sorted: [] };
  /** @type {Paper[]} */
  #papers = []; // that the table shows
  /** @type {Api.ListedPaperJson[]} */
  #related = []; // papers that the server found, best first
  /** @type {AbortController | null} */
  #finding = null;
  #found = ""; // what the server was asked for
  isWide = false; // with room for the filters beside the table

  /** @param {HTMLElement} root @param {LibraryHooks} hooks */
  constructor(root, hooks) {
    this.root = root;
    this.hooks = hooks;
    this.changed = () => refreshLibrary();
    this.count = el("p", { id: "library-count", class: "status", role: "status" });
    this.check = makeButton("button quiet", () => this.#goToCheck("all", false), "");
    this.unread = makeButton("button quiet", () => this.failures.scrollIntoView(), "");
    this.drop = el("div", { class: "dropbox" });
    this.uploads = el("ul", { class: "uploads", id: "uploads", "aria-label": t("uploads") });
    this.problem = el("div", { class: "library-problem" });
    this.removed = new RemovedToday(this.changed);
    this.filter = this.#makeFilter();
    this.narrowing = makeButton("button", () => this.#toggleFacets(), makeIcon("options"), t("facet.all"));
    this.order = this.#makeOrder();
    this.actions = el("div", { class: "library-actions", role: "group", "aria-label": t("library.actions") });
    const tools = [this.filter, this.narrowing, this.order, this.actions];
    this.tools = el("div", { class: "library-tools", hidden: true }, tools);
    this.facets = new Facets((change) => this.#narrow(change));
    this.failures = el("div", { id: "failures" });
    this.between = new Between();
    this.related = el("ul", { id: "related-papers", "aria-label": t("related") });
    this.relatedBox = el(
      "div",
      { id: "related", hidden: true },
      el("h2", { class: "related-title" }, t("related")),
      this.related,
    );
    this.scroller = el("div", { class: "scroll library-scroll" }, this.relatedBox, this.failures, this.between.node);
    this.table = new Table(this.scroller, {
      sort: (column, isDown) => this.#narrow({ column, isDown }),
      open: (id) => goTo({ view: "paper", id, query: {} }),
      selected: () => this.#showActions(),
      keys: { t: () => this.#editTags(), e: () => this.#edit() },
    });
    this.queue = new CheckQueue({
      changed: this.changed,
      show: (id) => this.#goToCheck(id, true),
      leave: () => goTo({ query: formatWanted(this.#wanted) }),
    });
    const head = el(
      "div",
      { class: "view-head" },
      el("h1", {}, t("library")),
      this.count,
      this.check,
      this.unread,
      this.drop,
    );
    this.body = el("div", { class: "library-body" }, this.facets.node, this.scroller);
    this.main = el(
      "div",
      { class: "library" },
      head,
      this.uploads,
      this.problem,
      this.removed.node,
      this.tools,
      this.body,
    );
    root.append(this.main, this.queue.node);
    new ResizeObserver(() => this.#fit()).observe(this.main);
    setUpUploads({ drop: this.drop, list: this.uploads, bar: hooks.bar, ask: hooks.ask, added: this.changed });
    library.onChange(() => this.#takePapers());
    place.watch((_, before) => this.#follow(before.view));
    document.addEventListener("keydown", (event) => this.#handleKey(event));
  }

  /** @param {HTMLElement | null} problem */
  showProblem(problem) {
    this.problem.replaceChildren(...(problem ? [problem] : []));
    if (!problem) return;
    this.count.textContent = "";
    this.count.classList.remove("working");
  }

  #makeFilter() {
    /** @type {HTMLInputElement} */
    const filter = el("input", {
      type: "search",
      id: "filter",
      placeholder: t("library.filter"),
      "aria-label": t("library.filter.label"),
      autocomplete: "off",
      oninput: () => this.#narrow({ words: filter.value }),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#leaveFilter(event),
    });
    return filter;
  }

  /** The order, where the table has no header. */
  #makeOrder() {
    const options = COLUMNS.map((column) =>
      el("option", { value: column }, t("library.sort.by", { name: t(COLUMN_NAMES[column]) })),
    );
    return el("select", { id: "sort", "aria-label": t("library.sort"), onchange: () => this.#chooseOrder() }, options);
  }

  // The address

  /** Shows what the address wants. @param {import("../base/place.js").View} before the view that was shown */
  #follow(before) {
    const { view: shown, query } = place.get();
    if (shown !== "library") return;
    const wanted = parseWanted(query);
    if (document.activeElement !== this.filter) this.filter.value = wanted.words;
    const isSame = JSON.stringify(wanted) === JSON.stringify(this.#wanted);
    this.#wanted = wanted;
    if (!isSame || !this.#papers.length) this.#show();
    if (wanted.words.trim() !== this.#found) this.#findRelated(wanted.words.trim());
    this.#showQueue();
    if (before === "paper") queueMicrotask(() => this.#focusAgain()); // once the view is shown
  }

  /** The row that was opened has the focus again. */
  #focusAgain() {
    const focused = document.activeElement;
    const isIdle = !focused || focused === document.body || !focused.checkVisibility();
    if (isIdle && !this.main.hidden) this.table.focus();
  }

  /** @param {Partial<Wanted>} change */
  #narrow(change) {
    if (change.words === "") this.filter.value = "";
    goTo({ query: formatWanted({ ...this.#wanted, ...change }) }, { replace: true });
  }

  #chooseOrder() {
    const column = COLUMNS.find((name) => name === this.order.value) ?? "title";
    this.#narrow({ column, isDown: column === "year" || column === "added" });
  }

  /** @param {string} id @param {boolean} replace */
  #goToCheck(id, replace) {
    goTo({ query: { ...formatWanted(this.#wanted), check: id } }, { replace });
  }

  #showQueue() {
    const { check } = place.get().query;
    const isLoaded = library.get().papers.size > 0;
    this.main.hidden = Boolean(check) && isLoaded;
    if (check && isLoaded) this.queue.show(check, this.#sort());
    else if (!this.queue.node.hidden) {
      this.queue.hide();
      this.check.focus();
    }
  }

  /** The filters stand beside the table where there is room for both. */
  #fit() {
    const width = this.main.clientWidth;
    const isWide = matchMedia("(min-width: 1200px)").matches && width >= WIDE;
    if (!width || isWide === this.isWide) return; // another view is shown, or nothing has changed
    this.isWide = isWide;
    this.#openFacets(isWide && recall("facets") !== "closed");
  }

  #toggleFacets() {
    const isOpen = !this.main.classList.contains("with-facets");
    if (this.isWide) remember("facets", isOpen ? "open" : "closed");
    this.#openFacets(isOpen);
  }

  /** @param {boolean} isOpen */
  #openFacets(isOpen) {
    this.main.classList.toggle("with-facets", isOpen);
    this.narrowing.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.#showFacets();
  }

  // What is shown

  #takePapers() {
    const { papers, failures } = library.get();
    const unsure = listUnsure(papers.values()).length;
    this.check.hidden = !unsure;
    this.check.textContent = t("check.open", { count: unsure });
    this.unread.hidden = !failures.length;
    this.unread.textContent = t("failures.count", { count: failures.length });
    this.failures.replaceChildren(...renderFailures(failures));
    this.main.classList.toggle("empty", !papers.size);
    this.between.refresh();
    this.removed.refresh();
    if (place.get().view === "library") {
      this.#show();
      this.#showQueue();
    } else this.#papers = []; // shown when the view is
  }

  /** The papers in their order; sorted once, not with each keystroke. */
  #sort() {
    const { papers } = library.get();
    const { column, isDown } = this.#wanted;
    const order = `${column} ${isDown}`;
    if (this.#sorted.papers !== papers || this.#sorted.order !== order) {
      this.#sorted = { papers, order, sorted: sortPapers(papers.values(), column, isDown) };
    }
    return this.#sorted.sorted;
  }

  #show() {
    const { papers, counts } = choosePapers(this.#sort(), this.#wanted);
    this.#papers = papers;
    this.counts = counts;
    const all = library.get().papers.size;
    const isKnown = isLibraryLoaded();
    this.tools.hidden = this.body.hidden = !all && !library.get().failures.length;
    const some = t("library.some", { shown: papers.length, count: all });
    const whole = all ? t("library.count", { count: all }) : t("library.empty");
    if (isKnown) this.count.textContent = papers.length === all ? whole : some;
    else this.count.textContent = this.problem.childElementCount ? "" : t("loading");
    this.count.classList.toggle("working", !isKnown && !this.problem.childElementCount);
    this.order.value = this.#wanted.column;
    this.table.show(papers, this.#wanted);
    this.#showFacets();
    this.#showRelated();
  }

  #showFacets() {
    if (!this.counts || !this.main.classList.contains("with-facets")) return;
    this.facets.show(this.#wanted, this.counts, isNarrowed(this.#wanted));
  }

  /** Papers with the words are shown at once; those that are about them follow, as the server ranks them. */
  /** @param {string} words */
  async #findRelated(words) {
    this.#finding?.abort();
    this.#finding = new AbortController();
    const { signal } = this.#finding;
    this.#found = words;
    this.#related = [];
    this.#showRelated();
    if (!words) return;
    await new Promise((resolve) => setTimeout(resolve, TYPING_MS));
    if (signal.aborted) return;
    try {
      this.#related = (await api.findPapers(words.slice(0, MAX_QUERY), signal)).papers;
    } catch {
      return; // typed on, or no model: the papers with the words are there
    }
    this.#showRelated();
  }

  #showRelated() {
    const exact = new Set(this.#papers);
    const others = this.#related.flatMap(({ id, match }) => {
      const paper = library.get().papers.get(id);
      return paper && match && !exact.has(paper) ? [renderRelated(paper, match)] : [];
    });
    this.relatedBox.hidden = !others.length;
    this.related.replaceChildren(...others);
  }

  // Actions

  /** What can be done with the selected papers, or with all that are shown. */
  #showActions() {
    const chosen = this.table.selection.chosen.size;
    const hadFocus = this.actions.contains(document.activeElement);
    const listed = chosen ? this.table.listChosen() : this.#papers;
    const isPart = listed.length > 0 && listed.length < library.get().papers.size;
    const toTable = makeButton(
      "button quiet",
      () => this.hooks.makeTable(listed.map(({ id }) => id)),
      chosen ? t("tables.make") : t("tables.make.of", { count: listed.length }),
    );
    /** @type {HTMLElement[]} */
    const exports = listed.length ? EXPORTS.map((each) => this.#makeExport(each, listed, chosen > 0)) : [];
    if (chosen || isPart) exports.unshift(toTable);
    const review = listed.length ? [this.#makeReview(listed, chosen > 0)] : [];
    const add = isPart ? [makeButton("button quiet", () => this.#addToProject(), t("project.add"))] : [];
    const nodes = chosen
      ? [...this.#makeActions(chosen), ...review, ...exports, this.#makeRemove(), this.#makeClear()]
      : [...add, ...review, ...exports];
    this.actions.replaceChildren(...nodes);
    if (hadFocus) this.table.focus();
  }

  /** @param {number} count */
  #makeActions(count) {
    return [
      el("span", { class: "selected", role: "status" }, t("library.selected", { count })),
      makeButton("button quiet", () => this.hooks.ask(...this.table.selection.list()), t("library.ask", { count })),
      makeButton("button quiet", () => this.#addToProject(), t("project.add")),
      withKeys(
        makeButton("button quiet", () => this.#editTags(), t("library.tags")),
        "T",
      ),
      withKeys(
        makeButton("button quiet", () => this.#edit(), t("edit")),
        "E",
      ),
    ];
  }

  #makeRemove() {
    return makeButton("button quiet", () => this.#remove(), t("remove"));
  }

  #makeClear() {
    const clear = () => {
      this.table.select(() => this.table.selection.clear());
      this.table.focus();
    };
    return withKeys(makeButton("button quiet", clear, t("library.clear")), "Escape");
  }

  /** @param {(typeof EXPORTS)[number]} each @param {Paper[]} papers @param {boolean} isSelection */
  #makeExport({ path, name, chosen, id }, papers, isSelection) {
    const isWhole = !isSelection && papers.length === library.get().papers.size;
    const text = isWhole || isSelection ? t(name) : t(chosen, { count: papers.length }); // else it says how many
    const link = el("a", { class: "button quiet", id, href: path, download: true }, makeIcon("export"), text);
    if (!isWhole) link.onclick = (event) => exportPapers(event, path, papers);
    return link;
  }

  /** @param {Paper[]} papers @param {boolean} isSelection */
  #makeReview(papers, isSelection) {
    const ask = () => askForReview(this.root, { papers: papers.map(({ id }) => id) }, papers.length);
    const text = isSelection ? t("review") : t("review.of", { count: papers.length });
    return makeButton("button quiet", ask, makeIcon("text"), text);
  }

  /** The selected papers; without a selection those that are shown, or their filter as a rule. */
  async #addToProject() {
    const isChosen = this.table.selection.chosen.size > 0;
    const papers = isChosen ? this.table.listChosen() : this.#papers;
    const ids = papers.map(({ id }) => id);
    await addPapersToProject(ids, isChosen ? null : toRule(this.#wanted));
    this.table.focus();
  }

  async #editTags() {
    const papers = this.table.listChosen();
    if (papers.length) await editTags(this.root, papers, library.get(), this.changed);
    this.table.focus();
  }

  async #edit() {
    const papers = this.table.listChosen();
    try {
      if (papers.length === 1) await editPaper(this.root, papers[0].id, this.changed);
      else if (papers.length) await editFields(this.root, papers, this.changed);
      this.showProblem(null);
    } catch (thrown) {
      this.showProblem(renderProblem(api.toApiError(thrown), () => this.#edit()));
      return;
    }
    this.table.focus();
  }

  async #remove() {
    try {
      await removePapers(this.table.listChosen(), this.changed);
      this.showProblem(null);
    } catch (thrown) {
      this.showProblem(renderProblem(api.toApiError(thrown), () => this.#remove()));
      return;
    }
    this.table.focus();
  }

  // Keys

  /** @param {KeyboardEvent} event */
  #leaveFilter(event) {
    if (event.key !== "ArrowDown" || !this.#papers.length) return;
    event.preventDefault();
    this.table.focus();
  }

  /** The keys of the table work while it has the focus, and where nothing else does. @param {KeyboardEvent} event */
  #handleKey(event) {
    const { target } = event;
    if (!(target instanceof HTMLElement) || event.defaultPrevented || place.get().view !== "library") return;
    if (this.main.hidden || document.querySelector("dialog:modal, :popover-open")) return;
    const isIdle = target === document.body || target.id === "main";
    if (!isIdle && !this.table.rows.contains(target)) return;
    if (target.matches("a") && event.key === "Enter") return;
    if (this.table.handleKey(event)) event.preventDefault();
  }
}

/** @template {HTMLElement} T @param {T} button @param {string} keys */
function withKeys(button, keys) {
  button.setAttribute("aria-keyshortcuts", keys);
  button.title = keys;
  return button;
}

/** @param {MouseEvent} event @param {string} path @param {Paper[]} papers */
async function exportPapers(event, path, papers) {
  event.preventDefault();
  try {
    const ids = papers.map(({ id }) => id);
    const href = URL.createObjectURL(await api.exportPapers(path, ids));
    el("a", { href, download: path.replace("papers", "folio").replace(".csl", "") }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  } catch (thrown) {
    showFailure(thrown);
  }
}

/** Why a paper was found, in words. @param {Api.PaperMatchJson} match */
function describeMatch({ words, pages, section }) {
  const reasons = words.length ? [t("related.words", { words: words.join(", ") })] : [];
  if (pages) reasons.push(t("related.text", { place: [section, formatPages(pages)].filter(Boolean).join(", ") }));
  return reasons.join(" · ") || t("related.similar");
}

/** @param {Paper} paper @param {Api.PaperMatchJson} match */
const renderRelated = (paper, match) =>
  el(
    "li",
    {},
    el("a", { class: "source", href: linkTo({ view: "paper", id: paper.id }) }, isolate(getName(paper))),
    el("p", { class: "note" }, isolate(describeMatch(match))),
  );

/** @param {Api.FailureJson[]} failures */
function renderFailures(failures) {
  if (!failures.length) return [];
  const items = failures.map(({ file, error, remedy }) =>
    el(
      "li",
      {},
      el("p", { class: "file" }, isolate(file)),
      el("p", {}, renderMessage(error)),
      el("p", {}, renderMessage(remedy)),
    ),
  );
  return [el("h2", {}, t("failures")), el("ul", { class: "failed" }, items)];
}
