// One page in the reader: its picture, the marks on it, and its text over it, which can be selected and read aloud.

import { attachCard, hideCard } from "../base/card.js";
import { el, isolate, makeButton, makeIcon, makeLink } from "../base/dom.js";
import { t } from "../base/strings.js";
import { shortenAtWord, withoutCitations } from "../base/text.js";
import { addShade } from "../notes/choose.js";
import { namePlace } from "../notes/format.js";
import { listLeads } from "./leads.js";
import { cut, findMargin, getBoxes, getText } from "./spans.js";

/** @typedef {import("./spans.js").Span} Span */
/**
 * @typedef {object} Shown What is marked on a page.
 * @property {Span} span
 * @property {"quote" | "other" | "hit" | "current" | "noted"} kind
 * @property {string} [colour] of a note
 * @property {Api.NoteJson} [note]
 * @property {number[][]} [area] of a note without words: its area; [[]] for the page or the whole paper
 */

const LONGEST = 400; // characters of a preview
const MEASURED = 20; // pixels of the letters that are measured
const context = /** @type {CanvasRenderingContext2D} */ (el("canvas").getContext("2d"));
context.font = `${MEASURED}px sans-serif`;
/** @type {Map<string, number>} the widths of words, in heights of their letters */
const widths = new Map();

/** @param {string} word */
function measure(word) {
  let width = widths.get(word);
  if (width === undefined) {
    if (widths.size > 20_000) widths.clear();
    width = context.measureText(word).width / MEASURED || 1;
    widths.set(word, width);
  }
  return width;
}

/** @param {HTMLElement} node @param {Record<string, string>} values */
function place(node, values) {
  for (const [name, value] of Object.entries(values)) node.style.setProperty(name, value);
}

/** @param {number} points */
const px = (points) => `${points.toFixed(2)}px`;

export class PageView {
  /** @type {Api.PageText | null} */
  text = null;
  /** @type {Shown[]} */
  marks = [];
  isAsText = false;
  timer = 0; // until it is loaded

  /**
   * @param {number} page @param {string} name read aloud, "Page 3 of 10"
   * @param {import("./document_view.js").Events} events
   */
  constructor(page, name, events) {
    this.page = page;
    this.events = events;
    this.over = el("div", { class: "page-over" });
    this.markers = el("div", { class: "page-marks", "aria-hidden": "true" });
    this.words = el("div", { class: "page-words" });
    this.links = el("div", { class: "page-links" });
    this.noteButtons = el("div", { class: "page-notes" });
    this.over.append(this.words, this.links, this.noteButtons);
    this.picture = el("div", { class: "page-picture", "aria-hidden": "true" });
    this.turned = el("div", { class: "page-turned" }, this.picture, this.markers, this.over);
    this.sheet = el("div", { class: "page-sheet" }, this.turned);
    this.waiting = el("p", { class: "page-waiting" }, t("loading"));
    this.problem = el("div", { class: "page-problem" });
    this.reading = el("div", { class: "page-text", hidden: true });
    this.head = el("p", { class: "page-number", dir: "ltr" }, name);
    this.node = el(
      "article",
      { class: "page", "aria-label": name },
      this.sheet,
      this.problem,
      this.reading,
      this.waiting,
    );
    this.node.dataset.page = String(page);
  }

  /** @param {string} name read aloud */
  setName(name) {
    this.node.setAttribute("aria-label", name);
    this.head.textContent = name;
  }

  /** @param {import("./zoom.js").Turned} size points, as it is turned @param {number} scale CSS pixels of a point */
  setSize({ width: across, height: down, turn }, scale) {
    place(this.sheet, { width: px(across * scale), height: `${Math.round(down * scale)}px` });
    const [width, height] = turn % 180 ? [down, across] : [across, down];
    const to = { 90: [across, 0], 180: [across, down], 270: [0, down] }[turn] ?? [0, 0];
    const move = turn ? `translate(${px(to[0] * scale)}, ${px(to[1] * scale)}) rotate(${turn}deg)` : "none";
    place(this.turned, { width: px(width * scale), height: px(height * scale), transform: move });
    for (const layer of [this.markers, this.over]) {
      place(layer, { width: px(width), height: px(height), transform: `scale(${scale})` });
    }
    place(this.node, { "--scale": String(scale) });
  }

  /** Shows the page as a picture, or as paragraphs. @param {boolean} isAsText */
  setMode(isAsText) {
    this.isAsText = isAsText;
    this.sheet.hidden = isAsText;
    this.#renderReading();
    this.#showWaiting();
    this.#renderWordsSoon();
  }

  /** @param {import("./pages.js").Picture | null} picture */
  setPicture(picture) {
    if (picture && picture.image.parentNode !== this.picture) this.picture.replaceChildren(picture.image);
    this.#showWaiting();
  }

  /** Says that the page is being loaded, until something of it is there. */
  #showWaiting() {
    const isThere = this.isAsText ? this.text : this.picture.childElementCount;
    this.waiting.hidden = Boolean(isThere) || this.problem.childElementCount > 0;
  }

  /** @param {HTMLElement | null} problem */
  setProblem(problem) {
    this.problem.replaceChildren(...(problem ? [problem] : []));
    this.#showWaiting();
  }

  /** @param {Api.PageText} text @param {Shown[]} marks */
  setText(text, marks) {
    if (this.text === text) return this.setMarks(marks);
    // A text that was loaded again is mostly the same, and a person may have selected some of its words.
    const isSame = JSON.stringify(this.text) === JSON.stringify(text);
    this.text = text;
    this.#showWaiting();
    if (isSame) return this.setMarks(marks);
    this.words.replaceChildren();
    this.marks = marks;
    this.#renderMarks();
    this.#renderReading();
    this.#renderWordsSoon();
  }

  /** The quote is marked first; the words, which are many, follow once that is painted. */
  #renderWordsSoon() {
    requestAnimationFrame(() => setTimeout(() => this.#renderWords()));
  }

  #renderWords() {
    const { text, isAsText } = this;
    if (!text || isAsText || this.words.childElementCount) return;
    this.words.replaceChildren(...(text.placed ? renderWords(text) : []));
    this.words.dir = text.direction;
    this.links.replaceChildren(
      ...listLeads(text).flatMap((lead) => lead.boxes.map((box) => placeBox(renderLead(lead, this.events), box))),
    );
    this.node.classList.add("ready");
  }

  /** @param {Shown[]} marks */
  setMarks(marks) {
    const isSame = marks.length === this.marks.length && marks.every((mark, at) => isEqual(mark, this.marks[at]));
    this.marks = marks;
    if (isSame) return;
    this.#renderMarks();
    this.#renderReading();
  }

  #renderMarks() {
    const { text } = this;
    if (!text) return;
    /** @type {number[][]} */
    const dots = [];
    /** @type {HTMLElement[]} */
    const buttons = [];
    const nodes = this.marks.flatMap((mark) => {
      const { note, area } = mark;
      const boxes = area ? area.filter((box) => box.length) : getBoxes(text, ...mark.span);
      if (note && (area || (boxes.length && text.start <= mark.span[0]))) {
        dots.push(findMargin(text, boxes[0] ?? [text.width, 0, text.width], dots));
        const node = addShade(this.#renderNote(note, `page-note ${note.colour}`), note);
        const [left, top] = dots[dots.length - 1];
        place(node, { left: px(left), top: px(top) });
        buttons.push(node);
      }
      const kind = `${markClass(mark)} ${area ? "area" : ""}`.trim();
      return boxes.map((box) => placeBox(addShade(el("span", { class: kind, "data-note": note?.id }), note), box));
    });
    this.markers.replaceChildren(...nodes);
    this.noteButtons.replaceChildren(...buttons);
  }

  /** A button beside what a note is on, for keyboard and touch. */
  /** @param {Api.NoteJson} note @param {string} classes @param {...Node} children */
  #renderNote(note, classes, ...children) {
    const node = makeButton(classes, () => this.events.onNote(note), ...children);
    const words = note.text || note.quotes.map(namePlace)[0] || "";
    node.setAttribute("aria-label", t("reader.note.open", { words }));
    return node;
  }

  /** The paragraphs of the page as text: in place of its picture, or beneath it if its words have no places. */
  #renderReading() {
    const { text } = this;
    this.reading.hidden = !(this.isAsText || (text && !text.placed));
    if (this.reading.hidden || !text) return this.reading.replaceChildren();
    this.reading.dir = text.direction;
    const note = text.placed ? null : el("p", { class: "note", dir: "ltr" }, makeIcon("warning"), t("reader.unplaced"));
    this.reading.replaceChildren(
      this.head,
      ...this.marks.flatMap((mark) =>
        mark.note && mark.area
          ? [this.#renderNote(mark.note, "button page-text-note", makeIcon("note"), isolate(nameNote(mark.note)))]
          : [],
      ),
      ...(note && !this.isAsText ? [note] : []),
      ...renderParagraphs(text, this.marks, this.events),
    );
    this.node.classList.add("ready");
  }
}

/** @param {Shown} one @param {Shown | undefined} other */
const isEqual = (one, other) =>
  other !== undefined &&
  one.span[0] === other.span[0] &&
  one.span[1] === other.span[1] &&
  one.kind === other.kind &&
  one.colour === other.colour &&
  one.note?.id === other.note?.id &&
  one.note?.updated === other.note?.updated;

/** @param {Api.NoteJson} note */
const nameNote = ({ text, quotes }) => shortenAtWord(text || quotes.map(namePlace)[0] || "", 60);

/** @param {Shown} mark */
const markClass = ({ kind, colour }) => `page-mark ${kind} ${colour ?? ""}`.trim();

/** @template {HTMLElement} Node @param {Node} node @param {number[]} box @returns {Node} */
function placeBox(node, [x0, y0, x1, y1]) {
  place(node, { left: px(x0), top: px(y0), width: px(x1 - x0), height: px(y1 - y0) });
  return node;
}

/**
 * The paragraphs and headings of a page, [start, end, level of a heading or 0].
 * @param {Api.PageText} text
 */
function listBlocks({ paragraphs, headings, start, end }) {
  const levels = new Map(headings.map((heading) => [heading.start, heading.level]));
  /** @type {[number, number, number][]} */
  const blocks = (paragraphs.length ? paragraphs : [[start, end]]).map(([from, to]) => [
    from,
    to,
    levels.get(from) ?? 0,
  ]);
  return blocks;
}

/** @param {number} level of a section @param {Node[]} children */
function makeBlock(level, children) {
  if (!level) return el("p", {}, children);
  return el("div", { role: "heading", "aria-level": Math.min(6, level + 2) }, children);
}

/** The words of a page over its picture. Words without a place are read aloud only. @param {Api.PageText} text */
function renderWords(text) {
  const { words } = text;
  let at = 0;
  return listBlocks(text).map(([start, end, level]) => {
    /** @type {Node[]} */
    const nodes = [];
    let shown = start;
    while (at < words.length && words[at][1] <= start) at += 1;
    for (; at < words.length && words[at][0] < end; at += 1) {
      const [from, to] = words[at];
      if (from > shown) nodes.push(renderBetween(text, shown, from));
      nodes.push(renderWord(text, words[at]));
      shown = Math.max(shown, to);
    }
    if (end > shown) nodes.push(renderBetween(text, shown, end));
    return makeBlock(level, nodes);
  });
}

/** @param {Api.PageText} text @param {number} start @param {number} end */
function renderBetween(text, start, end) {
  const between = getText(text, start, end);
  if (!between.trim()) return document.createTextNode(" ");
  return el("span", { class: "unplaced", "data-start": start }, between);
}

/** @param {Api.PageText} text @param {Api.PageText["words"][number]} word */
function renderWord(text, [start, end, x0, y0, x1, y1]) {
  const written = getText(text, start, end);
  const [width, height] = [x1 - x0, y1 - y0];
  const isUpright = height <= 2 * width || end - start < 3;
  const size = Math.max(1, isUpright ? height : width);
  const stretch = (isUpright ? width : height) / (measure(written) * size);
  const turn = isUpright ? "" : `translateY(${px(height)}) rotate(-90deg) `;
  const node = el("span", { class: "word", "data-start": start }, written);
  place(node, { left: px(x0), top: px(y0), "font-size": px(size), transform: `${turn}scaleX(${stretch.toFixed(3)})` });
  return node;
}

/**
 * A link to where a lead leads, with a card that shows what stands there. Without a child it is named after its page.
 * @param {import("./leads.js").Lead} lead @param {import("./document_view.js").Events} events @param {...Node} children
 */
function renderLead(lead, { formatLead, onLead, findGoal }, ...children) {
  const { page, uri, words: name } = lead;
  const go = () => {
    hideCard();
    onLead(lead);
  };
  if (page === null) {
    const label = t("reader.link.web", { address: uri });
    const node = makeButton("page-link", go, ...children);
    node.title = label;
    node.setAttribute("aria-label", label);
    return node;
  }
  const label = t("reader.link.page", { page: String(page) });
  const named = children.length ? null : `${name} ${label}`.trim();
  const node = makeLink(formatLead(lead), go, { class: "page-link", "aria-label": named }, ...children);
  attachCard(node, label, async () => {
    const { words } = await findGoal(lead).catch(() => ({ words: "" }));
    const quote = words ? [el("blockquote", { tabindex: "0" }, isolate(shortenAtWord(words, LONGEST)))] : [];
    return [...quote, el("div", { class: "row" }, makeButton("button quiet", go, makeIcon("next"), label))];
  });
  return node;
}

/** @param {Api.PageText} text @param {Shown[]} marks @param {import("./document_view.js").Events} events */
function renderParagraphs(text, marks, events) {
  const leads = listLeads(text);
  return listBlocks(text).map(([start, end, level]) => {
    const pieces = cut(start, end, [...marks, ...leads]).map(({ start: from, end: to, marks: covering }) => {
      const written = withoutCitations(getText(text, from, to));
      const mark = covering.findLast((each) => "kind" in each);
      const lead = covering.find((each) => "boxes" in each);
      const classes = { class: mark ? markClass(mark) : null, "data-start": from };
      const node = addShade(el(mark ? "mark" : "span", classes, written), mark?.note);
      return lead ? renderLead(lead, events, node) : node;
    });
    return makeBlock(level, pieces);
  });
}
