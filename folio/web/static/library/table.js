// The papers as a table: a row for each in view, sorted by its header, selected with the keyboard or the mouse.

import { el, formatDate, hideVisually, isolate, makeButton, makeIcon } from "../base/dom.js";
import { WindowedList } from "../base/list.js";
import { linkTo } from "../base/router.js";
import { t } from "../base/strings.js";
import { withoutCitations } from "../base/text.js";
import { COLUMNS, isDownAtFirst, isRetracted } from "./catalog.js";
import { Selection } from "./selection.js";

/** @typedef {import("./catalog.js").Paper} Paper */
/** @typedef {import("./catalog.js").Column} Column */
/** @typedef {import("./catalog.js").Wanted} Wanted */
/** @typedef {import("../base/strings.js").Key} Key */

const ROW = 26; // pixels: 25 rows fit on a screen of 900
const CARD = 88;
const NARROW = 640; // pixels of the table, below which a paper is a card
const PAGE = 20; // rows

/** @type {Record<Column, Key>} */
export const COLUMN_NAMES = {
  title: "column.title",
  authors: "column.authors",
  year: "column.year",
  venue: "column.venue",
  tags: "column.tags",
  added: "column.added",
  state: "column.state",
};

/** The fields that may be unsure, in words. @type {Record<string, Key>} */
export const FIELD_NAMES = {
  title: "field.title",
  authors: "field.authors",
  year: "field.year",
  venue: "field.venue",
  doi: "field.doi",
};

/** @param {{title: string, file: string}} paper */
export const getName = ({ title, file }) => title || file;

/**
 * @typedef {object} TableHooks
 * @property {(column: Column, isDown: boolean) => void} sort
 * @property {(id: string) => void} open
 * @property {() => void} selected called when the selection has changed
 * @property {Record<string, () => void>} keys what other keys do to the selected papers
 */

export class Table {
  selection = new Selection();
  /** @type {Map<string, Paper>} */
  #papers = new Map();
  /** @type {string[]} */
  #shown = [];

  /** @param {HTMLElement} scroller that contains the table @param {TableHooks} hooks */
  constructor(scroller, hooks) {
    this.hooks = hooks;
    this.scroller = scroller;
    this.all = el("input", {
      type: "checkbox",
      "aria-label": t("library.select.all"),
      onchange: () => this.#pickAll(),
    });
    this.headers = COLUMNS.map((column) => this.#makeHeader(column));
    const picker = el("div", { role: "columnheader", class: "cell pick" }, this.all);
    const header = el("div", { role: "row", class: "table-row", "aria-rowindex": "1" }, picker, this.headers);
    this.head = el("div", { role: "rowgroup", class: "table-head" }, header);
    this.rows = el("div", { role: "rowgroup", class: "table-rows" });
    this.node = el(
      "div",
      { role: "grid", class: "table", "aria-label": t("library.papers"), "aria-multiselectable": "true" },
      this.head,
      this.rows,
    );
    this.node.setAttribute("aria-colcount", String(COLUMNS.length + 1));
    scroller.prepend(this.node);
    this.list = new WindowedList({
      scroller,
      root: this.rows,
      key: (/** @type {Paper} */ paper) => paper.id,
      render: (paper) => this.#renderRow(paper),
      height: () => (this.isCards ? CARD : ROW),
      cover: () => this.head.offsetHeight,
      onShown: (keys) => this.#markShown(keys),
    });
    this.isCards = false;
    new ResizeObserver(() => this.#fit()).observe(scroller);
    this.rows.addEventListener("click", (event) => this.#click(event));
    this.rows.addEventListener("focusin", (event) => this.#focus(event));
  }

  /** @param {Paper[]} papers @param {Wanted} wanted */
  show(papers, { column, isDown }) {
    this.#papers = new Map(papers.map((paper) => [paper.id, paper]));
    this.selection.setKeys(papers.map(({ id }) => id));
    this.node.setAttribute("aria-rowcount", String(papers.length + 1));
    this.node.hidden = !papers.length;
    this.headers.forEach((header, at) => {
      const isSorted = COLUMNS[at] === column;
      if (isSorted) header.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    this.sorted = { column, isDown };
    this.list.setItems(papers);
    this.hooks.selected();
  }

  /** The selected papers; without a selection the current one. */
  listChosen() {
    return this.selection.listOrCurrent().flatMap((id) => this.#papers.get(id) ?? []);
  }

  /** Gives the current row the focus. */
  focus() {
    this.list.reveal(this.selection.current)?.focus({ preventScroll: true });
  }

  /** Changes the selection, and shows it. @param {() => void} change */
  select(change) {
    change();
    this.#markShown(this.#shown);
    this.hooks.selected();
  }

  // The header

  /** @param {Column} column */
  #makeHeader(column) {
    const sort = () => {
      const isSorted = this.sorted?.column === column;
      this.hooks.sort(column, isSorted ? !this.sorted?.isDown : isDownAtFirst(column));
    };
    const button = makeButton("sort", sort, t(COLUMN_NAMES[column]));
    return el("div", { role: "columnheader", class: `cell ${column}` }, button);
  }

  #pickAll() {
    this.select(() => (this.all.checked ? this.selection.selectAll() : this.selection.clear()));
  }

  // Rows

  /** @param {Paper} paper */
  #renderRow(paper) {
    const name = getName(paper);
    const pick = el("input", {
      type: "checkbox",
      tabindex: "-1",
      "aria-label": t("library.select", { name: withoutCitations(name) }),
    });
    const link = el("a", { href: linkTo({ view: "paper", id: paper.id }), tabindex: "-1" }, isolate(name));
    const cells = {
      title: link,
      authors: isolate(paper.authors.join(", ")),
      year: paper.year ? String(paper.year) : "",
      venue: isolate(paper.venue),
      tags: isolate(paper.tags.join(" · ")),
      added: formatDate(paper.added),
      state: renderState(paper),
    };
    return el(
      "div",
      { role: "row", class: "table-row", "data-id": paper.id, tabindex: "-1" },
      el("div", { role: "gridcell", class: "cell pick" }, pick),
      COLUMNS.map((column) => el("div", { role: "gridcell", class: `cell ${column}` }, cells[column])),
    );
  }

  /** Shows which rows are selected, and which one Tab reaches. @param {string[]} keys */
  #markShown(keys) {
    this.#shown = keys;
    const { chosen, current } = this.selection;
    const reached = keys.includes(current) ? current : keys[0];
    for (const key of keys) {
      const node = this.list.getNode(key);
      if (!node) continue;
      node.setAttribute("aria-selected", String(chosen.has(key)));
      node.tabIndex = key === reached ? 0 : -1;
      const pick = node.querySelector("input");
      if (pick) pick.checked = chosen.has(key);
    }
    this.all.checked = chosen.size > 0 && chosen.size === this.list.items.length;
    this.all.indeterminate = chosen.size > 0 && !this.all.checked;
  }

  /** @param {Event} event */
  #findKey({ target }) {
    const row = target instanceof Element ? target.closest("[data-id]") : null;
    return row?.getAttribute("data-id") ?? "";
  }

  /** @param {Event} event */
  #focus(event) {
    const key = this.#findKey(event);
    if (!key || key === this.selection.current) return;
    this.selection.current = key; // a range begins where it did: a click with Shift focuses its row first
    this.#markShown(this.#shown);
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const key = this.#findKey(event);
    const { target } = event;
    if (!key || !(target instanceof Element) || target.closest("a")) return;
    if (event.shiftKey) this.select(() => this.selection.goTo(key, true));
    else if (target.closest("input") || event.ctrlKey || event.metaKey) this.select(() => this.selection.toggle(key));
    else this.select(() => this.selection.choose(key));
    this.list.getNode(key)?.focus({ preventScroll: true });
  }

  // Keys

  /** Whether it has used the key. @param {KeyboardEvent} event */
  handleKey(event) {
    if (event.altKey || !this.list.items.length) return false;
    const isCommand = event.ctrlKey || event.metaKey;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (isCommand && key !== "a") return false;
    const rows = isCommand ? undefined : this.#readStep(key);
    if (rows !== undefined) this.#go(() => this.selection.move(rows, event.shiftKey));
    else if (isCommand) this.select(() => this.selection.selectAll());
    else if (key === "x" || key === " ") this.#go(() => this.selection.toggle(this.selection.current));
    else if (key === "Escape" && this.selection.chosen.size) this.select(() => this.selection.clear());
    else if (key === "Enter") this.hooks.open(this.selection.current);
    else if (this.hooks.keys[key]) this.hooks.keys[key]();
    else return false;
    return true;
  }

  /** How many rows a key goes on; undefined for another key. @param {string} key */
  #readStep(key) {
    const all = this.list.items.length;
    /** @type {Record<string, number>} */
    const steps = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE, Home: -all, End: all };
    return steps[key];
  }

  /** @param {() => void} change */
  #go(change) {
    this.select(change);
    this.focus();
  }

  /** A paper is a card where the table has little room. */
  #fit() {
    if (!this.scroller.clientWidth) return; // another view is shown
    const isCards = this.scroller.clientWidth < NARROW;
    if (isCards === this.isCards) return;
    this.isCards = isCards;
    this.node.classList.toggle("cards", isCards);
    this.head.hidden = isCards;
    this.list.resize();
  }
}

/** What is to be known of a paper at a glance: a notice, what is not sure, and where it was read. */
/** @param {Paper} paper */
function renderState(paper) {
  const { notice, unsure, problems, read, read_page: page, pages } = paper;
  const flag = notice
    ? el("span", { class: notice.mark ? "flag" : "flag mild", title: notice.text }, notice.mark || notice.text)
    : null;
  const names = unsure.map((name) => (FIELD_NAMES[name] ? t(FIELD_NAMES[name]) : name)).join(", ");
  const doubt = unsure.length
    ? el("span", { class: "unsure", title: names }, t("library.unsure"), hideVisually(`: ${names}`))
    : null;
  const warning = problems.length
    ? el("span", { class: "warned", title: problems.join("\n") }, makeIcon("warning"), hideVisually(problems.join(" ")))
    : null;
  const place = read
    ? el("span", { class: "read" }, t("library.read", { page: String(page), of: String(pages) }))
    : el("span", { class: "unread" }, t("library.unread"));
  return isRetracted(paper) ? [flag, doubt, warning] : [flag, doubt, warning, place];
}
