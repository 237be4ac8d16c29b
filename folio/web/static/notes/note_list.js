// Notes as a list: each with its quotes, to open, edit, copy, drag, select and delete.

import * as api from "../base/api.js";
import { copyText, el, formatDate, formatPage, hideVisually, isolate, keepTogether } from "../base/dom.js";
import { makeButton, makeIcon, renderProblem } from "../base/dom.js";
import { Draft, listDrafts, listLeft } from "../base/drafts.js";
import { WindowedList } from "../base/list.js";
import { showFailure } from "../base/failure.js";
import { oneAtATime } from "../base/pace.js";
import { linkTo } from "../base/router.js";
import { getTitle, library } from "../base/state.js";
import { t } from "../base/strings.js";
import { checkZoteroLink, joinLines, shorten, shortenAtWord } from "../base/text.js";
import { offerRestoring } from "../library/removed.js";
import { addToProject } from "../projects/add_to_project.js";
import { makePageLink } from "../reader/reader.js";
import { addShade, COLOURS } from "./choose.js";
import { formatNoteHtml, formatNoteText, namePlace } from "./format.js";
import { deleteNotes, leaving } from "./removal.js";
import { makeSaver } from "./save.js";

/** @typedef {Api.NoteJson} Note */

const HEIGHT = 180; // pixels of a note, until it is measured
const LONGEST_NAME = 60; // characters of a note, where it is named

/** @type {Record<Exclude<Api.NoteQuoteJson["place"], "here">, import("../base/strings.js").Key>} */
const PLACES = { moved: "notes.moved", lost: "notes.lost", removed: "notes.removed" };

/** The name of a quote's paper in citations; its title if it was removed. @param {Api.NoteQuoteJson} quote */
const getKey = ({ paper, title, file }) => library.get().papers.get(paper)?.key || title || file;

/** @param {Note} note */
export const nameNote = ({ quotes, statement, text }) =>
  shortenAtWord(quotes[0]?.quote || statement || text || (quotes[0] ? namePlace(quotes[0]) : ""), LONGEST_NAME);

/** What is shown of the papers of a note. @param {Note} note */
const nameSources = ({ quotes }) => quotes.map(getTitle).join("\n");

/** Copies a note with its citations. @param {Note[]} notes */
export function copyNotes(notes) {
  const text = notes.map((note) => formatNoteText(note, getKey)).join("\n\n");
  const html = notes.map((note) => formatNoteHtml(note, getKey)).join("");
  return copyText(text, t("notes.what", { count: notes.length }), html);
}

/** @param {Note[]} notes */
export const addNotesToProject = (notes) =>
  addToProject(t("project.add.notes", { count: notes.length }), { notes: notes.map(({ id }) => id) });

/** @param {DragEvent} event @param {Note} note */
function carry(event, note) {
  const { dataTransfer, currentTarget } = event;
  if (!dataTransfer) return;
  dataTransfer.setData("text/plain", formatNoteText(note, getKey));
  dataTransfer.setData("text/html", formatNoteHtml(note, getKey));
  dataTransfer.effectAllowed = "copy";
  const item = /** @type {HTMLElement} */ (currentTarget).closest("li");
  if (item) dataTransfer.setDragImage(item, 0, 0);
}

/**
 * @typedef {object} Hooks
 * @property {() => void} onSelect the selection has changed
 * @property {(note: Note) => void} onChange a note was edited, or made of one that was deleted meanwhile
 * @property {(note: Note) => boolean} belongs whether a note is one of those that are listed
 */

export class NoteList {
  /** @type {Set<string>} ids */
  selected = new Set();
  /** @type {Note[]} */
  notes = [];
  /** @type {Note | null} the note that is being edited, as it was then: what is typed stays when another tab changes it */
  edited = null;
  #editedAt = 0; // its place in the list
  /** @type {{isChanged: () => boolean, save: () => Promise<boolean>, draft: Draft} | null} of its form */
  #form = null;
  /** @type {Map<string, string>} what the papers of a note were named when it was rendered, by its id */
  #names = new Map();

  /** @param {HTMLElement} scroller @param {Hooks} hooks */
  constructor(scroller, hooks) {
    this.hooks = hooks;
    this.root = el("ul", { class: "notes", "aria-label": t("notes") });
    scroller.append(this.root);
    this.list = new WindowedList({
      scroller,
      root: this.root,
      key: (/** @type {Note} */ { id }) => id,
      render: (note) => this.#render(note),
      height: () => HEIGHT,
      isMeasured: true,
      isKept: (node) => node.querySelector("form") !== null,
    });
  }

  /** @param {Note[]} notes */
  show(notes) {
    this.notes = notes;
    this.edited ??= listLeft("note ").find(this.hooks.belongs) ?? null; // it was being edited when the page was left
    const shown = new Set(notes.map(({ id }) => id));
    this.selected = new Set([...this.selected].filter((id) => shown.has(id)));
    this.#setItems();
    this.hooks.onSelect();
  }

  /** The note that is being edited stays in its place, also if it is deleted elsewhere or no longer chosen. */
  #setItems() {
    if (this.edited && leaving.get().has(this.edited.id)) {
      this.#form?.draft.forget();
      this.edited = this.#form = null;
    }
    const { edited } = this;
    const items = this.notes.map((note) => (edited?.id === note.id ? edited : note));
    if (edited && !items.includes(edited)) items.splice(this.#editedAt, 0, edited);
    this.#editedAt = edited ? items.indexOf(edited) : 0;
    this.list.setItems(items);
  }

  /** The selected notes, or all if none is, as they are shown. */
  listChosen() {
    return this.selected.size ? this.notes.filter(({ id }) => this.selected.has(id)) : this.notes;
  }

  /** @param {boolean} isSelected */
  selectAll(isSelected) {
    this.selected = new Set(isSelected ? this.notes.map(({ id }) => id) : []);
    for (const { id } of this.notes) if (id !== this.edited?.id) this.list.refresh(id);
    this.hooks.onSelect();
  }

  /** Renders the notes again whose papers have other names than before. */
  refresh() {
    for (const note of this.notes) {
      if (note.id !== this.edited?.id && this.#names.get(note.id) !== nameSources(note)) this.list.refresh(note.id);
    }
  }

  /** @param {Note} note */
  #render(note) {
    this.#names.set(note.id, nameSources(note));
    const item = addShade(el("li", { class: `note-item ${note.colour || "plain"}`, "data-id": note.id }), note);
    if (note.id === this.edited?.id) item.append(this.#buildForm(note));
    else item.append(this.#buildTools(note), this.#buildBody(note));
    return item;
  }

  /** @param {Note} note */
  #buildTools(note) {
    const select = (/** @type {Event} */ { currentTarget }) => {
      const { checked } = /** @type {HTMLInputElement} */ (currentTarget);
      if (checked) this.selected.add(note.id);
      else this.selected.delete(note.id);
      this.hooks.onSelect();
    };
    const label = t("notes.select", { name: nameNote(note) });
    const checked = this.selected.has(note.id);
    const box = el("input", { type: "checkbox", "aria-label": label, checked, onchange: select, autocomplete: "off" });
    const ondragstart = (/** @type {DragEvent} */ event) => carry(event, note);
    const handle = el("span", { class: "note-handle", draggable: "true", title: t("notes.drag"), ondragstart }, "⠿");
    handle.setAttribute("aria-hidden", "true"); // "Copy" does the same by keyboard
    return el("div", { class: "note-tools" }, el("label", { class: "note-select" }, box), handle);
  }

  /** @param {Note} note */
  #buildBody(note) {
    const { statement, text, quotes } = note;
    return el(
      "div",
      { class: "note-body" },
      statement ? el("p", { class: "note-statement" }, isolate(statement)) : null,
      quotes.map(renderQuote),
      text ? el("p", { class: "note-text" }, isolate(text)) : null,
      this.#buildFoot(note),
    );
  }

  /** @param {Note} note */
  #buildFoot(note) {
    const which = () => hideVisually(`: ${nameNote(note)}`);
    const button = (/** @type {() => void} */ run, /** @type {import("../base/strings.js").Key} */ text) =>
      makeButton("button quiet", run, t(text), which());
    const colour = note.colour ? t(`reader.colour.${note.colour}`) : "";
    const origin = note.is_annotation ? t("notes.annotation") : "";
    const facts = [origin, colour, t("notes.date", { date: formatDate(note.updated) })].filter(Boolean).join(" · ");
    const conversation = note.conversation
      ? el("a", { href: linkTo({ view: "ask", id: note.conversation }) }, t("notes.conversation"))
      : null;
    const zotero = checkZoteroLink(note.zotero);
    return el(
      "div",
      { class: "facts" },
      el("p", { class: "about" }, facts, conversation ? [" · ", conversation] : null),
      note.is_annotation ? null : button(() => this.#startEditing(note.id), "notes.edit"),
      button(() => copyNotes([note]), "notes.copy"),
      button(() => addNotesToProject([note]), "project.add"),
      zotero ? el("a", { class: "button quiet", href: zotero }, t("reader.zotero"), which()) : null,
      note.is_annotation ? null : button(() => this.#delete(note), "notes.delete"),
    );
  }

  /** The focus goes to the note that takes the place of the deleted one. @param {Note} note */
  #delete(note) {
    const at = this.notes.indexOf(note);
    const next = this.notes[at + 1] ?? this.notes[at - 1];
    deleteNotes([note.id]);
    if (next) this.focus(next.id);
  }

  /** @param {string} id */
  focus(id) {
    const node = this.list.reveal(id);
    const target = node?.querySelector("textarea") ?? node?.querySelector("button");
    target?.focus();
  }

  /** Saves a note that is being edited and was changed. Returns false if that fails. */
  async saveChanges() {
    return this.#form?.isChanged() ? this.#form.save() : true;
  }

  /** Ends the editing of a note. What was changed is saved first; if that fails, the note stays being edited. */
  async leave() {
    const isSaved = await this.saveChanges();
    if (isSaved && this.edited) this.edit("");
    return isSaved;
  }

  /** Lets the person change a note. @param {string} id */
  async #startEditing(id) {
    if (await this.saveChanges()) this.edit(id);
    else if (this.edited) this.focus(this.edited.id);
  }

  /** Shows the form of a note. What was typed in another one is given up. @param {string} id "" for none */
  edit(id) {
    this.#form?.draft.forget();
    const before = this.edited?.id ?? "";
    this.edited = this.notes.find((note) => note.id === id) ?? null;
    if (this.edited) this.edited = listDrafts(`note ${id}`)[0] ?? this.edited; // as it was when its editing began
    this.#form = null;
    this.#setItems();
    for (const each of [before, id]) if (each) this.list.refresh(each);
    this.focus(id || before);
  }

  /** @param {Note} note */
  #buildForm(note) {
    const label = t("reader.note.words");
    const words = el("textarea", { name: "words", rows: "4", maxlength: "20000", "aria-label": label });
    words.defaultValue = note.text;
    const colours = renderColours(note);
    const problem = el("div", {});
    const save = makeSaver(note);
    const getColour = () =>
      /** @type {Note["colour"]} */ (colours.querySelector("input:checked")?.getAttribute("value") ?? "");
    const submit = async (/** @type {Event} */ event) => {
      event.preventDefault();
      await form.save();
    };
    const onkeydown = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      this.leave();
    };
    const cancel = makeButton("button", () => this.edit(""), t("cancel"));
    const button = el("button", { type: "submit", class: "button primary" }, t("reader.note.save"));
    const row = el("div", { class: "row" }, colours, el("span", { class: "gap" }), cancel, button);
    const attributes = { class: "note-form", onsubmit: submit, onkeydown };
    const node = el("form", attributes, note.quotes.map(renderQuote), words, problem, row);
    const draft = new Draft(node);
    draft.open(`note ${note.id}`, note);
    const form = {
      draft,
      isChanged: () => words.value !== note.text || getColour() !== note.colour,
      save: oneAtATime(async () => {
        try {
          const edited = await save(words.value, getColour());
          draft.forget();
          const isOpen = this.#form === form; // else another note is being edited by now
          if (isOpen) this.edited = this.#form = null;
          this.hooks.onChange(edited);
          if (isOpen) this.focus(edited.id);
          return true;
        } catch (thrown) {
          const error = api.toApiError(thrown);
          problem.replaceChildren(renderProblem(error));
          if (!problem.checkVisibility()) showFailure(error);
          return false;
        }
      }),
    };
    this.#form = form;
    return node;
  }
}

/** @param {Note} note */
function renderColours({ id, colour }) {
  const choices = ["", ...COLOURS].map((value) => {
    const input = el("input", { type: "radio", name: `colour-${id}`, value, checked: value === colour });
    const label = value ? t(`reader.colour.${/** @type {(typeof COLOURS)[number]} */ (value)}`) : t("notes.uncoloured");
    return el("label", { class: `swatch ${value || "plain"}`, title: label }, input, hideVisually(label));
  });
  return el("fieldset", { class: "colours" }, el("legend", { class: "unseen" }, t("reader.note.colour")), choices);
}

/** @param {Api.NoteQuoteJson} quoted */
function renderQuote(quoted) {
  const { paper, title, file, start, end, page, label, quote, area, place } = quoted;
  const name = shorten(joinLines(getTitle({ paper, title, file })));
  const isThere = place === "here" || place === "moved";
  const span = isThere && quote ? { from: start, to: end } : { from: null, to: null };
  const target = { paper, page: page || 1, ...span, quote, area, title, file };
  const where = [isolate(name), ", ", keepTogether(quote ? formatPage(page, label) : namePlace(quoted))];
  const source = place !== "removed" ? makePageLink(target, { class: "source" }, where) : el("span", {}, where);
  const warning = place === "here" ? null : el("p", { class: "note" }, makeIcon("warning"), t(PLACES[place]));
  if (warning && place === "removed") offerRestoring(warning, paper);
  return el(
    "figure",
    { class: "note-quote" },
    quote ? el("blockquote", {}, isolate(joinLines(quote))) : null,
    el("figcaption", {}, source),
    warning,
  );
}
