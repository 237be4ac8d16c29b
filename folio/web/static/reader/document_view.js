// A paper in the reader: its pages one below the other, of which those near the view are loaded.

import * as api from "../base/api.js";
import { el, recall, remember, renderProblem } from "../base/dom.js";
import { WindowedList } from "../base/list.js";
import { getScroller, onScroll } from "../base/scrolling.js";
import { t } from "../base/strings.js";
import { PageView } from "./page_view.js";
import { getPicture, getText, loadAhead, peekPaper, peekPicture, peekText } from "./pages.js";
import { getBoxes, getTextEdges } from "./spans.js";
import { ACTUAL, chooseDpi, fitPage, stepZoom, turnPoint } from "./zoom.js";

/** @typedef {{number: number, paper: string, width: number, height: number, turn: number}} Page as it is turned */
/** @typedef {import("./spans.js").Span} Span */
/**
 * @typedef {object} Events
 * @property {(page: number) => void} onPage another page is in the middle of the view
 * @property {() => void} onZoom
 * @property {(page: number) => number} getTurn degrees
 * @property {(text: Api.PageText) => import("./page_view.js").Shown[]} getMarks what is marked on a page
 * @property {(lead: import("./leads.js").Lead) => string} formatLead its address
 * @property {(lead: import("./leads.js").Lead) => void} onLead
 * @property {(lead: import("./leads.js").Lead) => Promise<import("./leads.js").Goal>} findGoal
 * @property {(note: Api.NoteJson) => void} onNote
 */

const GAP = 12; // pixels between pages, and beside them
const SCROLL_MS = 70; // a page that is only scrolled past is not loaded
const SETTLE_MS = 250; // after a zoom, before sharper pictures are asked for
const TEXT_HEIGHT = 1100; // pixels of a page of text, until it is measured
const USUAL = { width: 612, height: 792, turn: 0 };
const USUAL_EDGES = /** @type {[number, number]} */ ([0.12, 0.88]);
const FEW_WORDS = 40; // a page with fewer says little about the edges of the text
export const phone = matchMedia("(max-width: 559px)"); // text is shown there, unless a person wants pictures

/** @type {Map<string, [number, number]>} the edges of papers' text */
const edges = new Map();

export class DocumentView {
  paper = "";
  scale = 1;
  page = 0; // in view
  /** @type {Map<number, PageView>} those near the view */
  views = new Map();
  /** @type {{page: number, span: Span | null, share?: number} | null} what is scrolled to, until a person scrolls */
  #target = null;
  /** @type {import("./zoom.js").Fit | number} a size in CSS pixels of a point, or what fits */
  zoom = "text";
  textSize = Number(recall("reader-text-size")) || 1;
  isAsText = phone.matches;
  #settling = 0;
  #width = 0;
  #aborting = new AbortController();

  /** @param {Events} events */
  constructor(events) {
    this.events = events;
    this.root = el("div", { class: "reader-feed", role: "feed", "aria-label": t("reader.feed") });
    this.scroller = el(
      "div",
      { class: "reader-pages", tabindex: "0", role: "region", "aria-label": t("reader.pages"), autofocus: true },
      this.root,
    );
    this.#sizeText();
    /** @type {WindowedList<Page>} */
    this.list = new WindowedList({
      scroller: this.scroller,
      root: this.root,
      key: ({ paper, number }) => `${paper}/${number}`,
      render: (page) => this.#renderPage(page),
      height: ({ height }) => (this.isAsText ? TEXT_HEIGHT : Math.round(height * this.scale) + GAP),
      isMeasured: true,
      isKept: (node) => !getSelection()?.isCollapsed && (getSelection()?.containsNode(node, true) ?? false),
      onMeasured: () => this.#applyTarget(),
      onShown: (keys) => this.#drop(new Set(keys)),
    });
    onScroll(this.root, () => this.#track());
    const leaveTarget = (/** @type {Event} */ { target }) => {
      if (target instanceof Node && getScroller(this.scroller).contains(target)) this.#target = null;
    };
    for (const name of ["wheel", "touchmove", "pointerdown", "keydown"]) {
      document.addEventListener(name, leaveTarget, { passive: true, capture: true });
    }
    this.scroller.addEventListener("wheel", (event) => this.#zoomByWheel(event), { passive: false });
    new ResizeObserver(() => this.#fitAgain()).observe(this.scroller);
  }

  /**
   * Shows a paper. count: its pages, as far as known. page: what is scrolled to next, of another paper than before.
   * @param {string} paper @param {number} count @param {number} page
   */
  show(paper, count, page) {
    const sizes = peekPaper(paper)?.sizes ?? [];
    const isOther = paper !== this.paper;
    if (isOther) {
      this.#aborting.abort();
      this.#aborting = new AbortController();
      this.page = 0;
      this.#target = { page, span: null };
    }
    this.paper = paper;
    const pages = Array.from({ length: count }, (_, at) => {
      const [across, down] = sizes[at] ?? [USUAL.width, USUAL.height];
      const turn = this.events.getTurn(at + 1);
      const [width, height] = turn % 180 ? [down, across] : [across, down];
      const known = isOther ? null : this.list.items[at]; // the same page: its element stays
      return Object.assign(known ?? { number: at + 1, paper }, { width, height, turn });
    });
    this.scale = this.#chooseScale(pages[(this.#target?.page ?? 1) - 1] ?? USUAL);
    this.list.setItems(pages);
    for (const view of this.views.values()) view.setName(this.#nameOf(view.page));
    this.#rescale();
  }

  /**
   * Scrolls to a page, to a span on it, or past a share of its height.
   * @param {number} page @param {Span | null} span @param {number} [share]
   */
  goTo(page, span = null, share = 0) {
    const { items } = this.list;
    const { turn = 0 } = items[this.page - 1] ?? {};
    const isTurned = (items[page - 1]?.turn ?? 0) !== turn; // another size may fit it
    this.#target = { page, span, share };
    this.#setPage(page);
    if (isTurned && typeof this.zoom === "string") this.#rescale();
    else this.#applyTarget();
  }

  /** What is marked has changed. */
  refreshMarks() {
    for (const view of this.views.values()) if (view.text) view.setMarks(this.events.getMarks(view.text));
  }

  /** The texts of the paper may have changed. */
  reloadTexts() {
    for (const view of this.views.values()) this.#load(view, 0);
  }

  /** @param {import("./zoom.js").Fit | number} zoom */
  setZoom(zoom) {
    this.zoom = zoom;
    if (this.list.items.length) this.#rescale();
  }

  /** Larger or smaller pages, or letters of the text. @param {number} by */
  zoomBy(by) {
    if (!this.isAsText) return this.setZoom(stepZoom(this.scale, by));
    this.textSize = Math.min(3, Math.max(0.7, stepZoom(this.textSize * ACTUAL, by) / ACTUAL));
    remember("reader-text-size", String(this.textSize));
    this.#sizeText();
    this.list.resize();
    this.#applyTarget();
  }

  #sizeText() {
    this.root.style.setProperty("--text-size", String(this.textSize));
  }

  /** A place on the screen on a page, in points. @param {number} page @param {number} x @param {number} y */
  toPoints(page, x, y) {
    const { left, top } = this.views.get(page)?.sheet.getBoundingClientRect() ?? { left: 0, top: 0 };
    const { width, height, turn } = this.list.items[page - 1] ?? USUAL;
    const back = { turn: (360 - turn) % 360, ...(turn % 180 ? { width: height, height: width } : { width, height }) };
    return turnPoint([(x - left) / this.scale, (y - top) / this.scale], back);
  }

  /** Shows pictures or paragraphs. @param {boolean} isAsText */
  setMode(isAsText) {
    this.isAsText = isAsText;
    if (!this.list.items.length) return;
    const target = this.#target ?? { page: this.page || 1, span: null };
    this.#widen(this.list.items);
    for (const view of this.views.values()) view.setMode(isAsText);
    this.list.resize();
    this.goTo(target.page, target.span);
    for (const view of this.views.values()) this.#load(view, 0);
  }

  /**
   * Loads pages that may be opened soon, then the neighbours of the page in view.
   * @param {{paper: string, page: number}[]} pages
   */
  prefetch(pages) {
    loadAhead(pages, (paper, page) => {
      const [width, height] = paper.sizes[page - 1] ?? [USUAL.width, USUAL.height];
      const known = paper.id === this.paper ? this.scale : this.#chooseScale({ width, height, turn: 0 }, paper.id);
      return chooseDpi(known, devicePixelRatio, { width, height });
    });
  }

  /** The text of each page that a span touches, as far as they are loaded. @returns {Api.PageText[]} */
  getTexts() {
    return [...this.views.values()].flatMap(({ text }) => (text ? [text] : [])).sort((a, b) => a.page - b.page);
  }

  /** @param {number} page */
  #nameOf(page) {
    return t("reader.page", { page: String(page), pages: String(this.list.items.length) });
  }

  /** @param {Page} page */
  #renderPage(page) {
    const view = new PageView(page.number, this.#nameOf(page.number), this.events);
    view.setSize(page, this.scale);
    view.setMode(this.isAsText);
    this.views.set(page.number, view);
    this.#load(view, page.number === this.#target?.page ? 0 : SCROLL_MS);
    return view.node;
  }

  /** Forgets the pages that are far from the view. @param {Set<string>} keys */
  #drop(keys) {
    for (const [number, view] of this.views) {
      if (keys.has(`${this.paper}/${number}`)) continue;
      clearTimeout(view.timer);
      this.views.delete(number);
    }
  }

  /** Shows what is known of a page now, and loads the rest. @param {PageView} view @param {number} delay ms */
  #load(view, delay) {
    const { paper } = this;
    const page = this.list.items[view.page - 1] ?? USUAL;
    const dpi = chooseDpi(this.scale, devicePixelRatio, page);
    const text = peekText(paper, view.page);
    if (text) view.setText(text, this.events.getMarks(text));
    const picture = this.isAsText ? null : peekPicture(paper, view.page, dpi);
    if (picture) view.setPicture(picture);
    clearTimeout(view.timer);
    if (text && (this.isAsText || picture?.dpi === dpi)) return;
    view.timer = setTimeout(() => this.#loadNow(view, dpi), delay);
  }

  /** @param {PageView} view @param {number} dpi */
  async #loadNow(view, dpi) {
    const { paper } = this;
    const isShown = () => this.paper === paper && this.views.get(view.page) === view;
    const showText = async () => {
      const text = await getText(paper, view.page);
      if (isShown()) this.#showText(view, text);
    };
    const showPicture = async () => {
      if (this.isAsText) return;
      const picture = await getPicture(paper, view.page, dpi, this.#aborting);
      if (isShown() && !this.isAsText) view.setPicture(picture);
    };
    const results = await Promise.allSettled([showText(), showPicture()]);
    if (!isShown()) return;
    const failed = results.find((result) => result.status === "rejected");
    if (failed && api.isAbort(failed.reason)) return;
    view.setProblem(failed ? this.#renderFailure(view, dpi, failed.reason) : null);
    if (view.page === this.page && !failed) this.#loadNeighbours();
  }

  /** @param {PageView} view @param {number} dpi @param {unknown} thrown */
  #renderFailure(view, dpi, thrown) {
    const error = api.toApiError(thrown);
    // If the paper or its file is missing, a retry does not help.
    return renderProblem(error, api.isPermanent(error) ? null : () => this.#loadNow(view, dpi));
  }

  /** @param {PageView} view @param {Api.PageText} text */
  #showText(view, text) {
    const { paper } = this;
    if (!edges.has(paper) && text.words.length >= FEW_WORDS) {
      edges.set(paper, getTextEdges(text) ?? USUAL_EDGES);
      if (this.zoom === "text") this.#rescale();
    }
    view.setText(text, this.events.getMarks(text));
    if (this.#target?.page === view.page) this.#applyTarget();
  }

  #loadNeighbours() {
    const { paper, page } = this;
    this.prefetch([page + 1, page - 1].map((number) => ({ paper, page: number })));
  }

  #applyTarget() {
    if (!this.#target || !this.scroller.clientHeight) return;
    const { page, span, share = 0 } = this.#target;
    const key = `${this.paper}/${page}`;
    const text = peekText(this.paper, page);
    const boxes = text && span && !this.isAsText ? getBoxes(text, ...span) : [];
    const lead = span ? getScroller(this.scroller).clientHeight / 4 : 0;
    const [left, top] = boxes.length ? this.#getCorner(page, boxes[0]) : [null, 0];
    this.list.scrollTo(key, boxes.length ? { within: top * this.scale, lead } : {});
    const node = this.list.getNode(key);
    const words = span && !boxes.length && node ? findWords(node, span) : null;
    if (words && node) {
      const within = words.getBoundingClientRect().top - node.getBoundingClientRect().top;
      this.list.scrollTo(key, { within, lead });
    } else if (share && node) this.list.scrollTo(key, { within: share * node.offsetHeight });
    this.#scrollSideways(left);
  }

  /** The left and the top of a box on a page as it is turned. @param {number} page @param {number[]} box */
  #getCorner(page, [x0, y0, x1, y1]) {
    const item = this.list.items[page - 1] ?? USUAL;
    const [one, other] = [turnPoint([x0, y0], item), turnPoint([x1, y1], item)];
    return [Math.min(one[0], other[0]), Math.min(one[1], other[1])];
  }

  /** How far the page in view is scrolled, as a share of its height. */
  getShare() {
    const node = this.list.getNode(`${this.paper}/${this.page}`);
    const top = node ? getScroller(this.scroller).getBoundingClientRect().top - node.getBoundingClientRect().top : 0;
    return node ? top / node.offsetHeight : 0;
  }

  /** Shows the left edge of the text, or of the quote on a page that is much wider than the view. */
  /** @param {number | null} left points */
  #scrollSideways(left) {
    const { scroller } = this;
    const page = this.list.items[(this.#target?.page ?? 1) - 1];
    if (!page || this.isAsText || scroller.scrollWidth <= scroller.clientWidth) return;
    const [first] = edges.get(this.paper) ?? USUAL_EDGES;
    const shown = this.zoom === "text" || left === null ? first * page.width : left;
    const margin = (scroller.scrollWidth - page.width * this.scale) / 2;
    scroller.scrollLeft = margin + shown * this.scale - 0.03 * page.width * this.scale;
  }

  #track() {
    if (this.#target) return;
    const number = Number(this.list.getCurrentKey().split("/")[1]);
    if (number) this.#setPage(number);
  }

  /** @param {number} page */
  #setPage(page) {
    if (page === this.page) return;
    this.page = page;
    this.events.onPage(page);
    if (peekText(this.paper, page)) this.#loadNeighbours();
  }

  /** @param {import("./zoom.js").Turned} page @param {string} [paper] */
  #chooseScale(page, paper = this.paper) {
    if (typeof this.zoom === "number") return this.zoom;
    const { clientWidth } = this.scroller;
    const { clientHeight } = getScroller(this.scroller);
    const width = (clientWidth || innerWidth * 0.42) - 2 * GAP;
    const view = { width, height: (clientHeight || innerHeight * 0.8) - 2 * GAP };
    return fitPage(this.zoom, page, view, page.turn ? null : (edges.get(paper) ?? USUAL_EDGES));
  }

  #rescale() {
    const { scroller, list } = this;
    const page = list.items[(this.#target?.page ?? this.page) - 1];
    if (!page) return;
    const middle = (scroller.scrollLeft + scroller.clientWidth / 2) / Math.max(1, scroller.scrollWidth);
    this.scale = this.#chooseScale(page);
    for (const view of this.views.values()) view.setSize(list.items[view.page - 1] ?? USUAL, this.scale);
    this.#widen(list.items);
    list.resize();
    scroller.scrollLeft = middle * scroller.scrollWidth - scroller.clientWidth / 2;
    this.#applyTarget();
    this.events.onZoom();
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => {
      for (const view of this.views.values()) this.#load(view, 0);
    }, SETTLE_MS);
  }

  /** @param {Page[]} pages */
  #widen(pages) {
    const widest = pages.reduce((most, { width }) => Math.max(most, width), 0) * this.scale;
    this.root.style.setProperty("min-width", this.isAsText ? "0" : `${Math.floor(widest)}px`);
  }

  /** The pane was resized. */
  #fitAgain() {
    const width = this.scroller.clientWidth;
    if (!width || width === this.#width) return;
    this.#width = width;
    if (typeof this.zoom === "string" && this.list.items.length) this.#rescale();
  }

  /** @param {WheelEvent} event */
  #zoomByWheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    if (event.deltaY) this.zoomBy(event.deltaY < 0 ? 1 : -1);
  }
}

/** The words of a page as text in which a span begins. @param {HTMLElement} node @param {Span} span */
function findWords(node, [start]) {
  const pieces = /** @type {HTMLElement[]} */ ([...node.querySelectorAll(".page-text [data-start]")]);
  return pieces.findLast(({ dataset }) => Number(dataset.start) <= start) ?? pieces[0];
}
