// Beside the pages: the outline of the paper, or small pictures of its pages.

import { el, isolate, makeButton } from "../base/dom.js";
import { WindowedList } from "../base/list.js";
import { t } from "../base/strings.js";
import { joinLines, shorten } from "../base/text.js";
import { getPicture } from "./pages.js";

/** @typedef {"outline" | "pages"} Kind */
/** @typedef {{paper: string, number: number, height: number}} Thumbnail */

const WIDTH = 112; // pixels of a small picture
const BELOW = 34; // and of its number and the space below
const DPI = 36;
const KINDS = /** @type {const} */ ([
  ["outline", "reader.contents.outline"],
  ["pages", "reader.contents.pages"],
]);

export class Contents {
  /** @type {Kind} */
  #kind = "outline";
  #page = 1;
  #chosen = ""; // where the section begins that was chosen last
  /** @type {Api.PaperDetails | null} */
  #paper = null;
  #aborting = new AbortController();

  /**
   * @param {(page: number, heading: import("./spans.js").Span | null) => void} onChoose
   * @param {() => void} onPane another pane is open, or none
   */
  constructor(onChoose, onPane) {
    this.onChoose = onChoose;
    this.onPane = onPane;
    this.outline = el("ol", { class: "contents-outline" });
    this.thumbnails = el("div", { class: "thumbnails", role: "feed", "aria-label": t("reader.thumbnails") });
    this.scroller = el(
      "div",
      { class: "contents-list", tabindex: "0", role: "region", "aria-label": t("reader.contents") },
      this.outline,
      this.thumbnails,
    );
    this.kinds = KINDS.map(([kind, key]) => {
      const node = makeButton("button quiet", () => this.#choose(kind), t(key));
      node.dataset.kind = kind;
      return node;
    });
    const head = el("div", { class: "contents-head", role: "group", "aria-label": t("reader.contents") }, this.kinds);
    this.node = el("aside", { class: "contents", "aria-label": t("reader.contents") }, head, this.scroller);
    this.node.hidden = true;
    /** @type {WindowedList<Thumbnail>} */
    this.list = new WindowedList({
      scroller: this.scroller,
      root: this.thumbnails,
      key: ({ paper, number }) => `${paper}/${number}`,
      render: (item) => this.#renderThumbnail(item),
      height: ({ height }) => height,
    });
  }

  get isOpen() {
    return !this.node.hidden;
  }

  toggle() {
    this.setPane(this.isOpen ? "" : this.#kind);
    this.onPane();
  }

  /** What is open; "" if nothing is. @returns {Kind | ""} */
  get pane() {
    return this.isOpen ? this.#kind : "";
  }

  /** @param {Kind | ""} pane */
  setPane(pane) {
    this.node.hidden = !pane;
    this.#kind = pane || this.#kind;
    this.#render();
  }

  /** @param {Api.PaperDetails | null} paper */
  show(paper) {
    if (paper?.id !== this.#paper?.id) {
      this.#aborting.abort();
      this.#aborting = new AbortController();
    }
    this.#paper = paper;
    this.#render();
  }

  /** @param {number} page */
  setPage(page) {
    this.#page = page;
    if (this.isOpen) this.#markCurrent();
  }

  /** @param {Kind} kind */
  #choose(kind) {
    this.setPane(kind);
    this.onPane();
  }

  #render() {
    for (const node of this.kinds) node.setAttribute("aria-pressed", String(node.dataset.kind === this.#kind));
    this.outline.hidden = this.#kind !== "outline";
    this.thumbnails.hidden = this.#kind !== "pages";
    if (!this.isOpen || !this.#paper) return;
    if (this.#kind === "outline") this.#renderOutline(this.#paper);
    else this.#renderPages(this.#paper);
    this.#markCurrent();
  }

  /** @param {Api.PaperDetails} paper */
  #renderOutline({ outline }) {
    const items = outline.map(({ title, level, page, start, end }) => {
      const open = () => {
        this.#chosen = String(start);
        this.onChoose(page, [start, Math.min(end, start + [...title].length)]);
        this.#markCurrent();
      };
      const name = isolate(shorten(joinLines(title)));
      const node = makeButton("section-link", open, name, el("span", { class: "at" }, String(page)));
      Object.assign(node.dataset, { page, start });
      return el("li", { class: `level-${Math.min(4, level)}` }, node);
    });
    this.outline.replaceChildren(...(items.length ? items : [el("li", { class: "none" }, t("reader.no_outline"))]));
  }

  /** @param {Api.PaperDetails} paper */
  #renderPages({ id, pages, sizes }) {
    const items = Array.from({ length: pages }, (_, at) => {
      const [width, height] = sizes[at] ?? [612, 792];
      return { paper: id, number: at + 1, height: Math.round((WIDTH * height) / width) + BELOW };
    });
    if (this.list.items[0]?.paper !== id || this.list.items.length !== pages) this.list.setItems(items);
    else this.list.resize();
    this.#revealCurrent();
  }

  #revealCurrent() {
    if (this.#kind === "pages" && this.#paper) this.list.reveal(`${this.#paper.id}/${this.#page}`);
  }

  /** @param {Thumbnail} item */
  #renderThumbnail({ paper, number, height }) {
    const picture = el("span", { class: "thumbnail-picture" });
    picture.style.setProperty("height", `${height - BELOW}px`);
    const button = makeButton("thumbnail", () => this.onChoose(number, null), picture, String(number));
    button.setAttribute("aria-label", t("page", { page: String(number) }));
    button.dataset.page = String(number);
    if (number === this.#page) button.setAttribute("aria-current", "true");
    const node = el("article", { "aria-label": t("page", { page: String(number) }) }, button);
    getPicture(paper, number, DPI, this.#aborting).then(
      ({ image }) => picture.append(image.cloneNode()),
      () => {}, // the page itself shows why it cannot be drawn
    );
    return node;
  }

  #markCurrent() {
    const links = /** @type {HTMLElement[]} */ ([...this.outline.querySelectorAll("button")]);
    const before = links.filter((node) => Number(node.dataset.page) <= this.#page);
    const chosen = before.find(({ dataset }) => dataset.start === this.#chosen && dataset.page === String(this.#page));
    for (const node of links) node.removeAttribute("aria-current");
    (chosen ?? before.at(-1))?.setAttribute("aria-current", "true");
    for (const node of this.thumbnails.querySelectorAll("button")) {
      if (node.dataset.page === String(this.#page)) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    }
    if (!this.scroller.contains(document.activeElement)) this.#revealCurrent();
  }
}
