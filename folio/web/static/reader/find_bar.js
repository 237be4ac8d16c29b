// Words to find in the open paper: a field, the number of places, and steps from one to the next.

import * as api from "../base/api.js";
import { el, makeIconButton } from "../base/dom.js";
import { t } from "../base/strings.js";

const TYPING_MS = 180;

/** @typedef {[number, number, number]} Hit start, end, page */

export class FindBar {
  /** @type {Hit[]} */
  hits = [];
  at = -1;
  #count = 0;
  #paper = "";
  #timer = 0;
  #asking = new AbortController();

  /** @param {{onHits: () => void, onHit: (hit: Hit) => void, onClose: () => void, getPage: () => number}} events */
  constructor(events) {
    this.events = events;
    this.field = el("input", {
      type: "search",
      "aria-label": t("reader.find"),
      placeholder: t("reader.find"),
      maxlength: "500",
      autocomplete: "off",
      oninput: () => this.#findSoon(),
    });
    this.status = el("p", { class: "status", role: "status" });
    this.previous = makeIconButton("previous", t("reader.find.previous"), () => this.step(-1), "Shift+Enter");
    this.next = makeIconButton("next", t("reader.find.next"), () => this.step(1), "Enter");
    const close = makeIconButton("close", t("reader.find.close"), () => this.close(), "Escape");
    const parts = [this.field, this.status, this.previous, this.next, close];
    const given = { class: "reader-find", role: "search", "aria-label": t("reader.find"), hidden: true };
    this.node = el("div", given, parts);
    this.node.addEventListener("keydown", (event) => this.#handleKey(event));
  }

  get isOpen() {
    return !this.node.hidden;
  }

  /** What is found; "" if nothing is. */
  get words() {
    return this.isOpen ? this.field.value.trim() : "";
  }

  /** Finds words where the reader is. @param {string} paper @param {string} words */
  show(paper, words) {
    this.node.hidden = false;
    this.#paper = paper;
    this.field.value = words;
    this.#find(false);
  }

  /** @param {string} paper @param {string} [words] */
  open(paper, words = "") {
    this.node.hidden = false;
    this.setPaper(paper);
    if (words) this.field.value = words;
    this.field.focus();
    this.field.select();
    if (this.field.value) this.#find();
    else this.#render();
  }

  /** Another paper is shown. @param {string} paper */
  setPaper(paper) {
    if (paper === this.#paper) return;
    this.#paper = paper;
    if (this.isOpen) this.#find();
    else this.#take([], 0);
  }

  close() {
    if (!this.isOpen) return;
    this.node.hidden = true;
    this.#take([], 0);
    this.events.onClose();
  }

  /** @param {number} by */
  step(by) {
    if (!this.hits.length) return;
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    this.#show();
  }

  #findSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#find(), TYPING_MS);
  }

  /** Finds the words again, as the text may have changed. */
  refresh() {
    if (this.isOpen) this.#find(false);
  }

  async #find(isJumping = true) {
    clearTimeout(this.#timer);
    this.#asking.abort();
    this.#asking = new AbortController();
    const words = this.field.value.trim();
    if (!words) return this.#take([], 0);
    try {
      const { hits, count } = await api.findInPaper(this.#paper, words, this.#asking.signal);
      this.#take(/** @type {Hit[]} */ (hits), count);
      if (hits.length && isJumping) this.#show();
    } catch (thrown) {
      if (api.isAbort(thrown)) return;
      this.#take([], 0);
      const { error, remedy } = api.toApiError(thrown);
      this.status.textContent = `${error} ${remedy}`;
    }
  }

  /** @param {Hit[]} hits @param {number} count */
  #take(hits, count) {
    this.hits = hits;
    this.#count = count;
    const page = this.events.getPage();
    this.at = Math.max(
      0,
      hits.findIndex((hit) => hit[2] >= page),
    );
    this.#render();
    this.events.onHits();
  }

  #show() {
    this.#render();
    this.events.onHits();
    this.events.onHit(this.hits[this.at]);
  }

  #render() {
    this.previous.disabled = this.next.disabled = !this.hits.length;
    const values = { at: this.at + 1, count: this.#count };
    const none = this.field.value.trim() ? t("reader.find.none") : "";
    this.status.textContent = this.hits.length ? t("reader.find.hits", values) : none;
  }

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter" && event.target === this.field) this.step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
