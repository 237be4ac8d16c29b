// What can be done with selected words: ask about them, highlight them, note something, copy them with their reference.

import { el, isolate, makeButton, makeIcon } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { t } from "../base/strings.js";
import { COLOURS } from "../notes/choose.js";
import { FORMATS } from "./citing.js";

/** @typedef {import("./selecting.js").Selected} Selected */
/** @typedef {"yellow" | "green" | "blue" | "pink"} Colour */
/** @typedef {import("./citing.js").Format} Format */
/**
 * @typedef {object} Actions
 * @property {(selected: Selected, question: string) => void} ask the question is "" to go on in the composer
 * @property {(selected: Selected, colour: Colour) => void} highlight
 * @property {(selected: Selected) => void} note
 * @property {(selected: Selected, format: Format) => void} copy
 */

const QUESTIONS = /** @type {const} */ (["reader.ask.meaning", "reader.ask.elsewhere", "reader.ask.disagrees"]);
export class SelectionBar {
  /** @type {Selected | null} */
  selected = null;

  /** @param {Actions} actions @param {() => void} onLeave called on Escape */
  constructor(actions, onLeave) {
    this.actions = actions;
    this.asking = el("div", { class: "selection-more", hidden: true }, this.#renderQuestions());
    this.copying = el(
      "div",
      { class: "selection-more", hidden: true },
      FORMATS.map(([format, key]) => this.#renderButton(t(key), (one) => actions.copy(one, format))),
    );
    this.ask = this.#renderToggle("reader.ask", "send", this.asking);
    this.copy = this.#renderToggle("reader.copy", "copy", this.copying);
    const note = this.#renderButton(t("reader.note"), (one) => actions.note(one));
    const tools = el("div", { class: "selection-tools" }, this.ask, this.#renderColours(), note, this.copy);
    this.node = el(
      "div",
      { class: "selection-bar", role: "toolbar", "aria-label": t("reader.selection"), hidden: true },
      tools,
      this.asking,
      this.copying,
    );
    // A press must not take the selection away.
    this.node.addEventListener("mousedown", (event) => {
      if (!(event.target instanceof HTMLInputElement)) event.preventDefault();
    });
    this.node.addEventListener("keydown", (event) => this.#handleKey(event, onLeave));
  }

  get isOpen() {
    return !this.node.hidden;
  }

  /** Shows the bar beside selected words. @param {Selected} selected @param {DOMRect} words @param {DOMRect} pane */
  show(selected, words, pane) {
    this.selected = selected;
    if (this.node.hidden) this.#fold();
    this.node.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.node;
    const below = words.bottom + 8 + height < pane.bottom;
    const top = below ? words.bottom - pane.top + 8 : Math.max(8, words.top - pane.top - height - 8);
    const left = Math.min(Math.max(8, words.left - pane.left), Math.max(8, pane.width - width - 8));
    this.node.style.setProperty("top", `${Math.min(top, pane.height - height - 8)}px`);
    this.node.style.setProperty("left", `${left}px`);
  }

  hide() {
    this.node.hidden = true;
    this.selected = null;
  }

  focus() {
    this.ask.focus();
  }

  #fold() {
    for (const [button, more] of this.#getToggles()) {
      more.hidden = true;
      button.setAttribute("aria-expanded", "false");
    }
  }

  /** @returns {[HTMLElement, HTMLElement][]} */
  #getToggles() {
    return [
      [this.ask, this.asking],
      [this.copy, this.copying],
    ];
  }

  /** @param {string} label @param {(selected: Selected) => void} action */
  #renderButton(label, action) {
    const press = () => {
      const { selected } = this;
      if (selected) action(selected);
    };
    return makeButton("button quiet", press, label);
  }

  /** @param {"reader.ask" | "reader.copy"} key @param {string} icon @param {HTMLElement} more */
  #renderToggle(key, icon, more) {
    const press = () => {
      const isOpening = more.hidden;
      this.#fold();
      more.hidden = !isOpening;
      node.setAttribute("aria-expanded", String(isOpening));
      if (isOpening) more.querySelector("button")?.focus();
    };
    const node = makeButton("button quiet", press, makeIcon(icon), t(key));
    node.setAttribute("aria-expanded", "false");
    return node;
  }

  #renderColours() {
    return COLOURS.map((colour) => {
      const label = t("reader.highlight", { colour: t(`reader.colour.${colour}`) });
      const node = this.#renderButton("", (one) => this.actions.highlight(one, colour));
      node.className = `button bare swatch ${colour}`;
      node.setAttribute("aria-label", label);
      node.title = label;
      return node;
    });
  }

  #renderQuestions() {
    const field = el("input", {
      type: "text",
      name: "question",
      "aria-label": t("reader.ask.own"),
      placeholder: t("reader.ask.own"),
      maxlength: "10000",
      autocomplete: "off",
    });
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      if (this.selected) this.actions.ask(this.selected, field.value.trim());
      field.value = "";
      draft.forget();
    };
    const form = el("form", { onsubmit: submit }, field, el("button", { type: "submit", class: "button" }, t("ask")));
    const draft = new Draft(form);
    draft.open("question about words");
    return [...QUESTIONS.map((key) => this.#renderButton(t(key), (one) => this.actions.ask(one, t(key)))), form];
  }

  /** @param {KeyboardEvent} event @param {() => void} onLeave */
  #handleKey(event, onLeave) {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.hide();
      onLeave();
    }
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    event.stopPropagation();
    const all = /** @type {HTMLElement[]} */ ([...this.node.querySelectorAll("button, input")]);
    const shown = all.filter((node) => node.offsetParent !== null);
    const at = shown.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    shown[(at + by + shown.length) % shown.length]?.focus();
  }
}

/** The words that a note is about. @param {string} text */
export const renderWordsOf = (text) => el("blockquote", {}, isolate(text));
