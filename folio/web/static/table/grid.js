// The grid of a table: a row for each paper in view, a column for each question. It is used with the keyboard as
// the grid pattern of the ARIA Authoring Practices describes; where there is little room a paper is a card.

import { el, makeButton, makeIcon } from "../base/dom.js";
import { WindowedList } from "../base/list.js";
import { onScroll } from "../base/scrolling.js";
import { t } from "../base/strings.js";
import { withoutCitations } from "../base/text.js";
import { getName, renderCell, renderRowHead } from "./cell.js";
import { findMove } from "./moves.js";
import { makePlot, renderPlot } from "./plot.js";
import { getNumber, TITLE } from "./rows.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("./rows.js").Cell} Cell */
/** @typedef {import("./rows.js").Column} Column */

const ROW = 112; // pixels
const CARD = 320; // pixels of a card, until it is measured
const LATER_MS = 8; // of a frame, for cells that are not in view
const NARROW = 640; // pixels of the grid, below which a paper is a card
const [FIRST, WORDS, SHORT] = [240, 288, 176]; // pixels: the papers, columns of text, other columns
const low = matchMedia("(max-height: 499px)");

/**
 * @typedef {object} GridHooks
 * @property {(sort: string) => void} sort
 * @property {(row: Row, column: string, node: HTMLElement) => void} open shows all of a cell; column "": the paper
 * @property {(column: Column, node: HTMLElement) => void} openColumn shows what can be done with a column
 * @property {(row: Row, node: HTMLElement) => void} openRow shows what can be done with a row
 */

/** @param {Column} column */
const getWidth = ({ kind }) => (kind === "text" ? WORDS : SHORT);

export class Grid {
  /** @type {Row[]} */
  rows = [];
  /** @type {Column[]} */
  columns = [];
  isCards = false;
  /** @type {{paper: string, column: number}} the cell that Tab reaches; paper "": the header; column 0: the papers */
  active = { paper: "", column: 0 };
  /** @type {string[]} */
  #shown = [];
  /** @type {{node: HTMLElement, row: Row, column: string}[]} cells beside the view, which are rendered in later frames */
  #later = [];
  #end = 0; // of the time for cells in this frame
  #view = { left: 0, right: 0 }; // pixels of the grid that are in view, from its left
  /** @type {Set<string>} papers whose rows are rendered again in the next frame */
  #changed = new Set();

  /** @param {HTMLElement} scroller @param {GridHooks} hooks */
  constructor(scroller, hooks) {
    this.scroller = scroller;
    this.hooks = hooks;
    this.header = el("div", { role: "row", class: "tables-row", "aria-rowindex": "1" });
    this.head = el("div", { role: "rowgroup", class: "tables-head" }, this.header);
    this.body = el("div", { role: "rowgroup", class: "tables-rows" });
    this.node = el("div", { role: "grid", class: "tables-grid", "aria-label": t("tables.grid") }, this.head, this.body);
    scroller.append(this.node);
    this.list = new WindowedList({
      scroller,
      root: this.body,
      key: (/** @type {Row} */ { paper }) => paper,
      render: (row) => this.#renderRow(row),
      height: () => (this.isCards ? CARD : ROW),
      cover: () => (this.isCards ? 0 : this.head.offsetHeight),
      isMeasured: true,
      onShown: (keys) => this.#markShown(keys),
    });
    new ResizeObserver(() => this.#fit()).observe(scroller);
    low.addEventListener("change", () => this.#fit());
    onScroll(this.node, () => this.#look());
    this.node.addEventListener("focusin", ({ target }) => this.#follow(target));
    this.node.addEventListener("keydown", (event) => this.#handleKey(event));
    this.body.addEventListener("click", (event) => this.#click(event));
  }

  /** Shows a table with other columns. @param {Column[]} columns @param {string} name */
  setColumns(columns, name) {
    this.columns = columns;
    this.node.setAttribute("aria-label", name);
    this.node.setAttribute("aria-colcount", String(columns.length + 1));
    const tracks = columns.map((column) => `minmax(${getWidth(column)}px, ${getWidth(column)}fr)`);
    const width = columns.reduce((sum, column) => sum + getWidth(column), FIRST);
    this.node.style.setProperty("--tables-columns", [`${FIRST}px`, ...tracks].join(" "));
    this.node.style.setProperty("--tables-width", `${width}px`);
    this.active.column = Math.min(this.active.column, columns.length);
    this.list.setItems([]);
  }

  /** @param {Row[]} rows as they are shown @param {Row[]} all of the table @param {{sort: string, isDown: boolean}} order */
  show(rows, all, order) {
    const hadFocus = this.body.contains(document.activeElement);
    this.rows = rows;
    this.node.setAttribute("aria-rowcount", String(rows.length + 1));
    this.showHeader(all, order);
    this.list.setItems(rows);
    if (hadFocus && !this.body.contains(document.activeElement)) this.focus();
  }

  /** @param {Row[]} all @param {{sort: string, isDown: boolean}} order */
  showHeader(all, { sort, isDown }) {
    const focused = this.header.contains(document.activeElement) ? this.active.column : -1;
    const isMenu = document.activeElement?.classList.contains("tables-more");
    const years = all.flatMap(({ year }) => (year ? [year] : []));
    const cells = [
      this.#makeHeader(TITLE, t("paper"), makePlot(years), { isYear: true }, null),
      ...this.columns.map((column) => {
        const numbers = column.kind === "number" ? all.map((row) => getNumber(row.cells.get(column.id))) : [];
        const plot = makePlot(numbers.filter((number) => number !== null));
        return this.#makeHeader(column.id, column.name, plot, { unit: column.unit }, column);
      }),
    ];
    cells.forEach((cell, at) => {
      cell.setAttribute("aria-colindex", String(at + 1));
      if ([TITLE, ...this.columns.map(({ id }) => id)][at] !== sort) return;
      cell.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    });
    this.header.replaceChildren(...cells);
    this.#mark();
    if (focused < 0) return;
    /** @type {HTMLElement | null | undefined} */
    const again = this.header.children[focused]?.querySelector(isMenu ? ".tables-more" : ".tables-sort");
    again?.focus({ preventScroll: true });
  }

  /**
   * @param {string} sort @param {string} name @param {import("./plot.js").Plot | null} plot
   * @param {{isYear?: boolean, unit?: string}} of @param {Column | null} column
   */
  #makeHeader(sort, name, plot, of, column) {
    const unit = of.unit ? el("span", { class: "tables-by" }, " ", of.unit) : null;
    const button = makeButton("tables-sort", () => this.hooks.sort(sort), el("bdi", {}, name), unit);
    const node = el(
      "div",
      { role: "columnheader", class: "tables-cell" },
      el("div", { class: "tables-title" }, button),
    );
    if (column) {
      if (column.question) button.title = column.question;
      const more = makeMore(t("tables.column.more", { name }), () => this.hooks.openColumn(column, more));
      node.firstElementChild?.append(more);
    }
    if (plot) node.append(renderPlot(plot, of));
    return node;
  }

  /** Cells have changed: they are rendered again in the next frame. @param {{row: Row}[]} changed */
  refresh(changed) {
    if (!this.#changed.size && changed.length) requestAnimationFrame(() => this.#renderChanged());
    for (const { row } of changed) this.#changed.add(row.paper);
  }

  #renderChanged() {
    const changed = [...this.#changed];
    this.#changed.clear();
    for (const paper of changed) {
      const node = this.list.getNode(paper);
      const row = node ? this.rows.find((each) => each.paper === paper) : null;
      if (node && row) this.#updateRow(node, row);
    }
  }

  /** Renders only the cells of a row that have changed: what has the focus, or is selected, stays. @param {HTMLElement} node @param {Row} row */
  #updateRow(node, row) {
    this.columns.forEach(({ id }, at) => {
      const cell = /** @type {HTMLElement} */ (node.children[at + 1]);
      const now = row.cells.get(id);
      if (cell.dataset.changed === stamp(now)) return;
      const isInside = cell !== document.activeElement && cell.contains(document.activeElement);
      fillCell(cell, row, now);
      if (isInside) cell.focus({ preventScroll: true });
    });
    this.#mark();
  }

  /** @param {Row} row */
  #renderRow(row) {
    const head = el("div", { role: "rowheader", class: "tables-cell first", "aria-colindex": "1", tabindex: "-1" });
    const more = makeMore(t("tables.row.more", { name: getName(row) }), () => this.hooks.openRow(row, more));
    more.tabIndex = -1;
    head.append(...renderRowHead(row), more);
    const cells = this.columns.map(({ id, name }, at) => {
      const node = el("div", {
        role: "gridcell",
        class: "tables-cell",
        "aria-colindex": at + 2,
        "data-name": name,
        tabindex: "-1",
      });
      if (this.isCards || (this.#isInView(at) && this.#hasTime())) fillCell(node, row, row.cells.get(id));
      else this.#fillLater({ node, row, column: id });
      return node;
    });
    return el("div", { role: "row", class: "tables-row", "data-paper": row.paper }, head, cells);
  }

  #look() {
    const { scrollLeft, clientWidth } = this.scroller;
    this.#view = { left: scrollLeft, right: scrollLeft + clientWidth };
  }

  /** Whether a column is in view, or nearly. @param {number} at */
  #isInView(at) {
    const left = this.columns.slice(0, at).reduce((sum, column) => sum + getWidth(column), FIRST);
    return left < this.#view.right + SHORT && left + getWidth(this.columns[at]) > this.#view.left;
  }

  /** Whether cells can still be rendered in this frame. */
  #hasTime() {
    if (!this.#end) {
      this.#end = performance.now() + LATER_MS;
      requestAnimationFrame(() => (this.#end = 0));
    }
    return performance.now() < this.#end;
  }

  /** @param {{node: HTMLElement, row: Row, column: string}} cell */
  #fillLater(cell) {
    if (!this.#later.length) requestAnimationFrame(() => this.#fillSome());
    this.#later.push(cell);
  }

  /** Renders cells for some milliseconds, and the others in the next frame. */
  #fillSome() {
    const end = performance.now() + LATER_MS;
    while (this.#later.length && performance.now() < end) {
      const cell = this.#later.pop();
      if (!cell) return;
      const { node, row, column } = cell;
      if (node.isConnected && node.dataset.changed === undefined) fillCell(node, row, row.cells.get(column));
    }
    if (this.#later.length) requestAnimationFrame(() => this.#fillSome());
  }

  // The cell that Tab reaches

  /** @param {string[]} keys */
  #markShown(keys) {
    this.#shown = keys;
    this.#mark();
  }

  /** The row of the active cell; the first that is rendered where that is not. */
  get #reached() {
    if (!this.active.paper && !this.isCards) return "";
    return this.#shown.includes(this.active.paper) ? this.active.paper : (this.#shown[0] ?? "");
  }

  #mark() {
    const reached = this.#reached;
    for (const node of this.node.querySelectorAll('[tabindex="0"], .tables-head button:not([tabindex])')) {
      node.setAttribute("tabindex", "-1");
    }
    const row = reached ? this.list.getNode(reached) : this.header;
    const cell = row?.children[this.active.column];
    if (!cell) return;
    if (reached) cell.setAttribute("tabindex", "0");
    for (const node of cell.querySelectorAll("a, button")) node.setAttribute("tabindex", "0");
  }

  /** @param {EventTarget | null} target */
  #follow(target) {
    const found = this.#findAt(target);
    if (!found) return;
    this.active = found;
    this.#mark();
  }

  /** @param {EventTarget | null} target @returns {{paper: string, column: number} | null} */
  #findAt(target) {
    const cell = target instanceof Element ? target.closest(".tables-cell") : null;
    const row = cell?.parentElement;
    if (!cell || !row) return null;
    return { paper: row.dataset.paper ?? "", column: [...row.children].indexOf(cell) };
  }

  /** Gives the active cell the focus, and shows it. */
  focus() {
    const { paper, column } = this.active;
    const isKnown = this.rows.some((row) => row.paper === paper);
    if (!isKnown) this.active.paper = this.isCards || paper ? (this.rows[0]?.paper ?? "") : "";
    const row = this.active.paper ? this.list.reveal(this.active.paper) : this.header;
    const cell = /** @type {HTMLElement | undefined} */ (row?.children[column]);
    if (!cell) return;
    this.#reveal(cell, column);
    const stop = this.active.paper ? cell : cell.querySelector("button");
    stop?.focus({ preventScroll: true });
  }

  /** Scrolls a cell out from under the column of papers. @param {HTMLElement} cell @param {number} column */
  #reveal(cell, column) {
    if (this.isCards) return cell.scrollIntoView({ block: "nearest" });
    const { scroller } = this;
    if (!column) return;
    const [left, right] = [cell.offsetLeft, cell.offsetLeft + cell.offsetWidth];
    if (left < scroller.scrollLeft + FIRST) scroller.scrollLeft = left - FIRST;
    else if (right > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = right - scroller.clientWidth;
  }

  // Keys and clicks

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    if (event.defaultPrevented || event.altKey || event.shiftKey || !this.#findAt(event.target)) return;
    const { paper, column } = this.active;
    const row = this.rows.findIndex((each) => each.paper === paper);
    const isMenu = event.key === "ContextMenu";
    const isCell = event.target instanceof HTMLElement && event.target.matches(".tables-rows .tables-cell");
    if (isCell && (event.key === "Enter" || event.key === " " || isMenu)) {
      event.preventDefault();
      this.#open(this.rows[row], event.target);
      return;
    }
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
    const grid = { rows: this.rows.length, columns: this.columns.length + 1, page, hasHead: !this.isCards };
    const to = findMove({ row, column }, event, grid);
    if (!to) return;
    event.preventDefault();
    this.active = { paper: this.rows[to.row]?.paper ?? "", column: to.column };
    this.focus();
  }

  /** @param {Row | undefined} row @param {EventTarget | null} cell */
  #open(row, cell) {
    if (!row || !(cell instanceof HTMLElement)) return;
    const { column } = this.active;
    this.hooks.open(row, column ? this.columns[column - 1].id : "", cell);
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const { target } = event;
    const at = this.#findAt(target);
    if (!at || !(target instanceof Element) || target.closest("a, button")) return;
    if (getSelection()?.toString()) return; // words were selected
    const cell = /** @type {HTMLElement} */ (target.closest(".tables-cell"));
    cell.focus({ preventScroll: true });
    this.active = at;
    this.#open(
      this.rows.find(({ paper }) => paper === at.paper),
      cell,
    );
  }

  #fit() {
    if (!this.scroller.clientWidth) return; // another view is shown
    this.#look();
    const isCards = this.scroller.clientWidth < NARROW || low.matches;
    if (isCards === this.isCards) return;
    this.isCards = isCards;
    this.node.classList.toggle("tables-cards", isCards);
    this.head.hidden = isCards;
    this.list.resize();
    this.#mark();
  }
}

/** @param {string} label @param {() => void} open */
function makeMore(label, open) {
  const node = makeButton("button bare tables-more", open, makeIcon("more"));
  node.setAttribute("aria-label", withoutCitations(label));
  node.setAttribute("aria-haspopup", "dialog");
  return node;
}

/** What a cell was rendered from. @param {Cell | undefined} cell */
const stamp = (cell) => (cell ? `${cell.changed} ${cell.state}` : "");

/** @param {HTMLElement} node @param {Row} row @param {Cell | undefined} cell */
function fillCell(node, row, cell) {
  node.dataset.changed = stamp(cell);
  node.dataset.state = cell?.state ?? "";
  node.replaceChildren(...renderCell(row, cell));
}
