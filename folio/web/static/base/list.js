// A list of which only the items in view have elements. Each item has a key; its element stays while the item stays.

import { Offsets } from "./offsets.js";
import { getScroller, onScroll } from "./scrolling.js";

const MARGIN = 600; // pixels above and below the view for which items are rendered

/**
 * @template T
 * @typedef {object} ListOptions
 * @property {HTMLElement} scroller the element that scrolls, unless the page scrolls as a whole
 * @property {HTMLElement} root the element that contains the items, in the scroller
 * @property {(item: T) => string} key
 * @property {(item: T, index: number) => HTMLElement} render
 * @property {(item: T) => number} height pixels with the space below it; a guess if `isMeasured`
 * @property {() => number} [cover] pixels at the top of the scroller that a header covers
 * @property {boolean} [isMeasured] the height of each element is measured once it is there
 * @property {(node: HTMLElement) => boolean} [isKept] whether an element stays though it is far from the view
 * @property {() => void} [onMeasured] called after heights were measured
 * @property {(keys: string[]) => void} [onShown] called with the items that have elements, after each change
 */

/** @template T */
export class WindowedList {
  /** @type {T[]} */
  items = [];
  /** @type {Map<string, number>} */
  #places = new Map();
  /** @type {Map<string, {node: HTMLElement, item: T}>} */
  #shown = new Map();
  /** @type {Map<string, number>} */
  #measured = new Map();
  #offsets = new Offsets([]);
  #frame = 0;

  /** @param {ListOptions<T>} options */
  constructor(options) {
    this.options = options;
    const { scroller, root } = options;
    root.classList.add("windowed");
    onScroll(root, () => this.#renderSoon());
    const resizes = new ResizeObserver(() => this.#renderSoon());
    for (const node of [scroller, document.body]) resizes.observe(node);
    this.sizes = options.isMeasured ? new ResizeObserver(() => this.#measure()) : null;
  }

  /** Shows these items. Elements of items that are the same objects as before stay as they are. @param {T[]} items */
  setItems(items) {
    const anchor = this.#findAnchor();
    this.items = items;
    this.#places = new Map(items.map((item, at) => [this.options.key(item), at]));
    this.#layOut();
    this.#keepAt(anchor);
    this.#render();
  }

  /** Renders an item again. @param {string} key */
  refresh(key) {
    const at = this.#places.get(key);
    if (at !== undefined && this.#shown.has(key)) this.#replace(key, at);
    this.#renderSoon();
  }

  /** Lays all items out again, as after a zoom. What is at the top of the view stays there. */
  resize() {
    const anchor = this.#findAnchor();
    this.#measured.clear();
    this.#layOut();
    this.#keepAt(anchor);
    this.#render();
  }

  /** The element of an item; null while it is far from the view. @param {string} key */
  getNode(key) {
    return this.#shown.get(key)?.node ?? null;
  }

  /** Scrolls to an item. within: pixels below its top; lead: of the view, above it. @param {string} key */
  scrollTo(key, { within = 0, lead = 0 } = {}) {
    const at = this.#places.get(key);
    if (at === undefined) return;
    this.#scroller.scrollTop = this.#getTop() + this.#offsets.tops[at] + within - lead;
    this.#render();
  }

  /** The key of the item at the middle of the view; "" without items. */
  getCurrentKey() {
    const scroller = this.#scroller;
    const at = this.#offsets.indexAt(scroller.scrollTop - this.#getTop() + scroller.clientHeight / 2);
    return this.items.length ? this.options.key(this.items[at]) : "";
  }

  /** Scrolls as little as needed to show an item, and renders it. Returns its element. @param {string} key */
  reveal(key) {
    const at = this.#places.get(key);
    if (at === undefined) return null;
    const scroller = this.#scroller;
    const [top, bottom] = [this.#offsets.tops[at], this.#offsets.tops[at + 1]].map((y) => y + this.#getTop());
    const cover = this.options.cover?.() ?? 0;
    if (top < scroller.scrollTop + cover) scroller.scrollTop = top - cover;
    else if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom - scroller.clientHeight;
    this.#render();
    return this.getNode(key);
  }

  get #scroller() {
    return getScroller(this.options.scroller);
  }

  /** Pixels from the top of what scrolls to the top of the list. */
  #getTop() {
    const scroller = this.#scroller;
    return this.options.root.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop;
  }

  #layOut() {
    const { key, height, root } = this.options;
    this.#offsets = new Offsets(this.items.map((item) => this.#measured.get(key(item)) ?? height(item)));
    root.style.setProperty("height", `${this.#offsets.total}px`);
  }

  /** The item at the top of the view, and how far it is scrolled. */
  #findAnchor() {
    if (!this.items.length) return null;
    const y = this.#scroller.scrollTop - this.#getTop();
    const at = this.#offsets.indexAt(y);
    const share = this.#offsets.heights[at] ? (y - this.#offsets.tops[at]) / this.#offsets.heights[at] : 0;
    return { key: this.options.key(this.items[at]), share };
  }

  /** @param {{key: string, share: number} | null} anchor */
  #keepAt(anchor) {
    const at = anchor ? this.#places.get(anchor.key) : undefined;
    if (!anchor || at === undefined || anchor.share < 0) return;
    const y = this.#offsets.tops[at] + Math.min(1, anchor.share) * this.#offsets.heights[at];
    this.#scroller.scrollTop = y + this.#getTop();
  }

  #renderSoon() {
    this.#frame ||= requestAnimationFrame(() => this.#render());
  }

  #render() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const { root, key } = this.options;
    const scroller = this.#scroller;
    const top = scroller.scrollTop - this.#getTop();
    const [first, end] = this.#offsets.range(top, top + scroller.clientHeight, MARGIN);
    const wanted = new Map(this.items.slice(first, end).map((item, at) => [key(item), first + at]));
    for (const [name, shown] of this.#shown) {
      const at = this.#places.get(name);
      const isKept = shown.node.contains(document.activeElement) || this.options.isKept?.(shown.node);
      if (at !== undefined && isKept) wanted.set(name, at);
      if (at === undefined || !wanted.has(name)) this.#drop(name);
      else if (this.items[at] !== shown.item) this.#replace(name, at);
    }
    let next = root.firstElementChild;
    for (const [name, at] of [...wanted].sort((one, other) => one[1] - other[1])) {
      const node = this.#shown.get(name)?.node ?? this.#make(this.items[at], at);
      this.#shown.set(name, { node, item: this.items[at] });
      this.#number(node, at);
      node.style.setProperty("top", `${this.#offsets.tops[at]}px`);
      if (node === next) next = next.nextElementSibling;
      else root.insertBefore(node, next);
    }
    this.options.onShown?.([...wanted.keys()]);
  }

  /** @param {T} item @param {number} at */
  #make(item, at) {
    const node = this.options.render(item, at);
    this.#number(node, at);
    this.sizes?.observe(node);
    return node;
  }

  /** Tells screen readers the place of an item. A row of a table counts from 2, below its header. */
  /** @param {HTMLElement} node @param {number} at */
  #number(node, at) {
    if (node.getAttribute("role") === "row") {
      node.setAttribute("aria-rowindex", String(at + 2));
      return;
    }
    node.setAttribute("aria-posinset", String(at + 1));
    node.setAttribute("aria-setsize", String(this.items.length));
  }

  /** Renders an item again in its place. @param {string} key @param {number} at */
  #replace(key, at) {
    const before = this.#shown.get(key)?.node;
    const node = this.#make(this.items[at], at);
    this.#shown.set(key, { node, item: this.items[at] });
    if (!before) return;
    const focused = document.activeElement;
    this.sizes?.unobserve(before);
    const isFocused = before.contains(focused);
    before.replaceWith(node);
    if (before === focused) node.focus({ preventScroll: true });
    else if (isFocused) focusFirst(node);
  }

  /** @param {string} key */
  #drop(key) {
    const node = this.#shown.get(key)?.node;
    this.#shown.delete(key);
    if (!node) return;
    this.sizes?.unobserve(node);
    node.remove();
  }

  /** Takes the heights of the elements that were rendered. */
  #measure() {
    /** @type {Map<number, number>} */
    const changed = new Map();
    for (const [key, { node }] of this.#shown) {
      const at = this.#places.get(key);
      const height = node.offsetHeight;
      if (at === undefined || !height || height === this.#offsets.heights[at]) continue;
      this.#measured.set(key, height);
      changed.set(at, height);
    }
    if (!changed.size) return;
    const anchor = this.#findAnchor();
    this.#offsets.change(changed);
    this.options.root.style.setProperty("height", `${this.#offsets.total}px`);
    this.#keepAt(anchor);
    this.#render();
    this.options.onMeasured?.();
  }
}

/** @param {HTMLElement} node */
function focusFirst(node) {
  const inside = /** @type {HTMLElement | null} */ (node.querySelector("button, a[href], input, [tabindex]"));
  (inside ?? node).focus({ preventScroll: true });
}
