// A note on words of a paper: its colour and a person's own words, to write, change or delete.

import * as api from "../base/api.js";
import { el, isolate, makeButton, makeIconButton, renderProblem } from "../base/dom.js";
import { showFailure } from "../base/failure.js";
import { Draft, listDrafts, listLeft } from "../base/drafts.js";
import { oneAtATime } from "../base/pace.js";
import { t } from "../base/strings.js";
import { checkZoteroLink, shortenAtWord } from "../base/text.js";
import { COLOURS } from "../notes/choose.js";
import { namePlace } from "../notes/format.js";
import { deleteNotes } from "../notes/removal.js";
import { makeSaver, toPlace } from "../notes/save.js";
import { renderWordsOf } from "./selection_bar.js";

const LONGEST_QUOTE = 240; // characters that are shown

/** @typedef {Api.NoteJson["colour"]} Colour */
/** @typedef {Parameters<typeof toPlace>[0]} Place */
/** @typedef {[string, {note?: Api.NoteJson, place?: Place}]} Drafted the key of a draft, and what it is written about */

export class NoteCard {
  /** @type {() => boolean} */
  #isChanged = () => false;
  /** @type {() => void} */
  #submit = () => {};
  #key = ""; // of the draft

  /** @param {{onChange: () => void, onClose: () => void}} events onChange: a note was added, changed or deleted */
  constructor(events) {
    this.events = events;
    this.node = el("section", { class: "note-card", "aria-label": t("reader.note"), hidden: true });
    this.node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      this.close();
    });
  }

  get isOpen() {
    return !this.node.hidden;
  }

  /** Closes it once changes are saved: no words of a person are lost. */
  close() {
    if (this.node.hidden) return;
    if (this.#isChanged()) this.#submit();
    else this.#hide();
  }

  #hide() {
    this.#isChanged = () => false;
    this.node.hidden = true;
    this.node.replaceChildren();
    this.events.onClose();
  }

  /** A new note. @param {Place} place */
  write(place) {
    const { paper, start, end, page, area } = place;
    const save = (/** @type {string} */ words, /** @type {Colour} */ colour) =>
      api.addNote({ quotes: [toPlace(place)], text: words, colour });
    this.#show(namePlace(place), "", "yellow", save, null, [`${paper} ${[start, end, page, area]}`, { place }]);
  }

  /** @param {Api.NoteJson} loaded */
  edit(loaded) {
    const key = `${loaded.quotes[0]?.paper} ${loaded.id}`;
    if (this.isOpen && this.#key === key) return;
    if (loaded.is_annotation) return this.#showAnnotation(loaded, key);
    const note = listDrafts(`card ${key}`)[0]?.note ?? loaded; // as it was when its editing began
    const remove = () => deleteNotes([note.id]);
    const draft = /** @type {Drafted} */ ([key, { note }]);
    this.#show(note.quotes.map(namePlace)[0] ?? "", note.text, note.colour, makeSaver(note), remove, draft);
  }

  /** An annotation of Zotero, to read. @param {Api.NoteJson} note @param {string} key */
  #showAnnotation({ quotes, text, zotero }, key) {
    if (this.#isChanged()) this.#submit();
    this.#isChanged = () => false;
    this.#key = key;
    const close = makeIconButton("close", t("reader.note.close"), () => this.close());
    const quote = shortenAtWord(quotes.map(namePlace)[0] ?? "", LONGEST_QUOTE);
    const link = checkZoteroLink(zotero);
    this.node.replaceChildren(
      el("div", { class: "note-head" }, renderWordsOf(quote), close),
      el("p", { class: "note-text" }, isolate(text)),
      el("p", { class: "about" }, t("notes.annotation")),
      link ? el("a", { class: "button quiet", href: link }, t("reader.zotero")) : "",
    );
    this.node.hidden = false;
    close.focus();
  }

  /** Goes on with a note on a paper that was being written. @param {string} paper its id */
  restore(paper) {
    const [written] = listLeft(`card ${paper}`);
    if (written?.note) this.edit(written.note);
    else if (written?.place) this.write(written.place);
  }

  /**
   * @param {string} quote @param {string} text @param {Colour} colour
   * @param {(text: string, colour: Colour) => Promise<unknown>} save @param {(() => Promise<unknown>) | null} remove
   * @param {Drafted} drafted
   */
  #show(quote, text, colour, save, remove, [key, about]) {
    const label = t("reader.note.words");
    const words = el("textarea", { name: "words", rows: "3", maxlength: "20000", "aria-label": label });
    words.defaultValue = text;
    const colours = el("fieldset", { class: "colours" }, el("legend", { class: "unseen" }, t("reader.note.colour")));
    for (const each of COLOURS) {
      const input = el("input", { type: "radio", name: "note-colour", value: each, checked: each === colour });
      const title = t(`reader.colour.${each}`);
      colours.append(el("label", { class: `swatch ${each}`, title }, input, el("span", { class: "unseen" }, title)));
    }
    const problem = el("div", {});
    const getColour = () => /** @type {Colour} */ (colours.querySelector("input:checked")?.getAttribute("value") ?? "");
    if (this.#isChanged()) this.#submit();
    const isNewColour = () => remove !== null && getColour() !== colour;
    this.#isChanged = () => words.value !== text || isNewColour();
    const run = oneAtATime((/** @type {() => Promise<unknown>} */ action) => this.#run(action, problem));
    this.#submit = () => run(() => save(words.value, getColour()).then(() => draft.forget()));
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#submit();
    };
    const buttons = [el("button", { type: "submit", class: "button primary" }, t("reader.note.save"))];
    if (remove) {
      const removeAll = () => remove().then(() => draft.forget());
      buttons.push(makeButton("button quiet", () => run(removeAll), t("reader.note.delete")));
    }
    const close = makeIconButton("close", t("reader.note.close"), () => this.close());
    const foot = el("div", { class: "row" }, colours, buttons);
    const head = el("div", { class: "note-head" }, renderWordsOf(shortenAtWord(quote, LONGEST_QUOTE)), close);
    const form = el("form", { onsubmit: submit }, head, words, problem, foot);
    const draft = new Draft(form);
    draft.open(`card ${key}`, about);
    this.#key = key;
    this.node.replaceChildren(form);
    this.node.hidden = false;
    words.focus();
  }

  /** @param {() => Promise<unknown>} action @param {HTMLElement} problem */
  async #run(action, problem) {
    problem.replaceChildren();
    try {
      await action();
    } catch (thrown) {
      problem.replaceChildren(renderProblem(api.toApiError(thrown)));
      if (!problem.checkVisibility()) showFailure(thrown); // the reader was closed; the words are still in the card
      return;
    }
    if (problem.isConnected) this.#hide(); // another note may have been opened meanwhile
    this.events.onChange();
  }
}
