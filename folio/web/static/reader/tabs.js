// The papers that are open in the reader. They stay open over a reload, as long as the browser's tab does.

import { el, isolate, keepInTab, makeButton, makeIcon, readInTab } from "../base/dom.js";
import { getTitle } from "../base/state.js";
import { t } from "../base/strings.js";
import { joinLines, shorten } from "../base/text.js";

const KEPT = "reader-tabs";
const MOST = 12;

/** @typedef {import("./spans.js").Mark} Mark */
/**
 * @typedef {object} Tab
 * @property {string} paper
 * @property {string} title
 * @property {string} file
 * @property {number} page in view
 * @property {Mark} mark the quote; a page without words and span if nothing is marked
 * @property {Mark[]} others other quotes, or the pieces of a passage
 * @property {boolean} isPassage
 * @property {Record<number, number>} [turns] degrees by which pages are turned; 0: those of the others
 */

export class Tabs {
  /** @type {Tab[]} */
  all = read();
  node = el("ul", { class: "reader-tabs", "aria-label": t("reader.tabs") });
  #current = "";

  /** @param {{onChoose: (tab: Tab) => void, onClose: (paper: string) => void}} events */
  constructor(events) {
    this.events = events;
    this.node.addEventListener("keydown", (event) => this.#handleKey(event));
  }

  /** @param {string} paper */
  get(paper) {
    return this.all.find((tab) => tab.paper === paper) ?? null;
  }

  /** Adds a tab, or changes that of its paper. @param {Tab} tab */
  put(tab) {
    const at = this.all.findIndex(({ paper }) => paper === tab.paper);
    if (at >= 0) this.all[at] = Object.assign(tab, { turns: tab.turns ?? this.all[at].turns });
    else this.all = [...this.all, tab].slice(-MOST);
    this.#keep();
  }

  /** @param {string} paper */
  remove(paper) {
    this.all = this.all.filter((tab) => tab.paper !== paper);
    this.#keep();
    this.render(this.#current);
  }

  clear() {
    this.all = [];
    this.#keep();
  }

  /** @param {string} current the paper that is shown */
  render(current) {
    this.#current = current;
    this.node.hidden = this.all.length < 2;
    const focused = this.node.contains(document.activeElement);
    this.node.replaceChildren(...this.all.map((tab) => this.#renderTab(tab)));
    if (focused) this.node.querySelector("[aria-current]")?.closest("button")?.focus();
  }

  /** @param {Tab} tab */
  #renderTab(tab) {
    const title = shorten(joinLines(getTitle(tab)));
    const open = makeButton("tab", () => this.events.onChoose(tab), isolate(title, { class: "tab-title" }));
    open.title = title;
    open.setAttribute("aria-keyshortcuts", "Delete");
    if (tab.paper === this.#current) open.setAttribute("aria-current", "true");
    const close = makeButton("tab-close", () => this.events.onClose(tab.paper), makeIcon("close"));
    close.setAttribute("aria-label", t("reader.tab.close", { title }));
    const node = el("li", { class: tab.paper === this.#current ? "current" : null }, open, close);
    node.dataset.paper = tab.paper;
    return node;
  }

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    const item = event.target instanceof Element ? event.target.closest("li") : null;
    const at = this.all.findIndex(({ paper }) => paper === item?.dataset.paper);
    if (at < 0) return;
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) {
      const next = this.node.children[(at + by + this.all.length) % this.all.length];
      next.querySelector("button")?.focus();
    } else if (event.key === "Delete") this.events.onClose(this.all[at].paper);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #keep() {
    keepInTab(KEPT, this.all); // where storage is blocked or full, they last until a reload
  }
}

/** @returns {Tab[]} */
function read() {
  const kept = readInTab(KEPT);
  return Array.isArray(kept) ? kept.filter((tab) => typeof tab?.paper === "string" && tab.mark && tab.others) : [];
}
