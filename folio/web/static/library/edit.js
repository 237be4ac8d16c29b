// The form that corrects what is known about a paper: in a dialog, on the paper's page and beside its first page.

import * as api from "../base/api.js";
import { el, hideVisually, isolate, makeButton, renderProblem } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { enterPanel, leavePanel } from "../base/panels.js";
import { t } from "../base/strings.js";
import { offerUndo } from "../base/undo.js";

/** @typedef {"kind" | "volume" | "issue" | "pages" | "publisher" | "abstract"} Published */
/** @typedef {"title" | "authors" | "year" | "venue" | "doi" | "citation_key" | "tags" | Published} Field */
/** @typedef {import("../base/strings.js").Key} Key */
/** @typedef {{name: Key, tag: "input" | "textarea", attributes: Record<string, string>, hint?: Key}} Control */

/** @type {Record<Field, Control>} */
const CONTROLS = {
  title: { name: "edit.title", tag: "textarea", attributes: {} },
  authors: { name: "edit.authors", tag: "textarea", attributes: {}, hint: "edit.authors.hint" },
  year: { name: "edit.year", tag: "input", attributes: { inputmode: "numeric", pattern: "[0-9]{4}", size: "6" } },
  venue: { name: "edit.venue", tag: "input", attributes: {} },
  doi: { name: "edit.doi", tag: "input", attributes: {} },
  citation_key: { name: "edit.key", tag: "input", attributes: {} },
  tags: { name: "edit.tags", tag: "textarea", attributes: {}, hint: "edit.tags.hint" },
  kind: { name: "edit.kind", tag: "input", attributes: {} },
  volume: { name: "edit.volume", tag: "input", attributes: {} },
  issue: { name: "edit.issue", tag: "input", attributes: {} },
  pages: { name: "edit.pages", tag: "input", attributes: {} },
  publisher: { name: "edit.publisher", tag: "input", attributes: {} },
  abstract: { name: "edit.abstract", tag: "textarea", attributes: {} },
};
/** @type {Field[]} what only a bibliography has, below the others */
const PUBLISHED = ["kind", "volume", "issue", "pages", "publisher", "abstract"];
/** @type {Record<string, Key>} as the server names them, and as people do */
const KINDS = {
  "article-journal": "kind.article",
  "paper-conference": "kind.conference",
  article: "kind.preprint",
  book: "kind.book",
  chapter: "kind.chapter",
  thesis: "kind.thesis",
  report: "kind.report",
};
const FIELDS = /** @type {Field[]} */ (Object.keys(CONTROLS));

/** @type {Record<Api.TextFieldJson["origin"], Key>} */
const ORIGINS = {
  "": "origin.none",
  page: "origin.page",
  "pdf metadata": "origin.pdf",
  identifier: "origin.identifier",
  "file date": "origin.date",
  "cited works": "origin.cited",
  "file name": "origin.name",
  arxiv: "origin.arxiv",
  openalex: "origin.openalex",
  crossref: "origin.crossref",
  semanticscholar: "origin.semanticscholar",
  europepmc: "origin.europepmc",
  bibliography: "origin.bibliography",
  zotero: "origin.zotero",
  person: "origin.person",
};

/** What is typed for a field. @param {Field} name @param {Api.PaperDetails} paper */
function toText(name, { fields, citation_key }) {
  if (name === "citation_key") return citation_key;
  if (name === "authors") return fields.authors.value.map(formatPerson).join("\n");
  if (name === "kind" && KINDS[fields.kind.value]) return t(KINDS[fields.kind.value]);
  return name === "tags" ? fields.tags.value.join("\n") : String(fields[name].value ?? "");
}

/** @param {Api.PersonJson_Output} person */
const formatPerson = ({ family, given }) =>
  given ? `${family}, ${given}` : /\s/.test(family) ? `{${family}}` : family;

/** A field's value for the server. @param {Field} name @param {string} text */
function toValue(name, text) {
  if (name === "authors" || name === "tags") {
    return text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  }
  if (name === "kind") return Object.keys(KINDS).find((kind) => t(KINDS[kind]) === text.trim()) ?? text.trim();
  return name === "year" && text.trim() ? Number(text) : text.trim();
}

let made = 0; // forms; the ids of fields are those of one form

/**
 * @typedef {object} FormHooks
 * @property {() => unknown} changed called after each change that the server has made
 * @property {() => void} saved called when what was typed is saved
 * @property {Key} [save] the name of the button
 * @property {HTMLButtonElement[]} [buttons] before that one
 * @property {() => void} [close] called when what was typed is given up
 * @property {boolean} [confirms] to save confirms the fields that are not sure, too
 */

export class EditForm {
  #id = "";

  /** @param {Api.PaperDetails} paper as the server knows it @param {FormHooks} hooks */
  constructor(paper, hooks) {
    made += 1;
    this.#id = `edit-${made}`;
    this.paper = paper;
    this.hooks = hooks;
    const render = (/** @type {Field} */ name) => this.#renderField(name);
    this.published = el(
      "details",
      { class: "published" },
      el("summary", {}, t("edit.published")),
      el("div", { class: "fields" }, PUBLISHED.map(render)),
      el(
        "datalist",
        { id: `${this.#id}-kinds` },
        Object.values(KINDS).map((key) => el("option", { value: t(key) })),
      ),
    );
    const first = FIELDS.filter((name) => !PUBLISHED.includes(name));
    this.fields = el("div", { class: "fields" }, first.map(render), this.published);
    this.problem = el("div");
    const save = el("button", { type: "submit", class: "button primary" }, t(hooks.save ?? "edit.save"));
    this.node = el(
      "form",
      { class: "edit-form", onsubmit: (/** @type {Event} */ event) => this.#submit(event), onkeydown: submitWithKeys },
      this.fields,
      this.problem,
      el("div", { class: "row" }, hooks.buttons ?? [], save),
    );
    this.draft = new Draft(this.node);
    this.draft.open(`paper ${paper.id}`);
    this.published.open = PUBLISHED.some((name) => this.draft.typed[name] !== undefined);
    if (hooks.close) save.before(this.draft.makeCancel(hooks.close));
  }

  /** Gives the focus to the first field; to the first that is not sure if the form is to confirm those. */
  focus() {
    const doubted = FIELDS.find((name) => this.hooks.confirms && this.paper.unsure.includes(name));
    this.#control(doubted ?? FIELDS[0]).focus();
  }

  /** @param {Field} name */
  #control(name) {
    const control = this.node.querySelector(`#${this.#id}-${name}`);
    return /** @type {HTMLInputElement | HTMLTextAreaElement} */ (control);
  }

  /** @param {Field} name */
  #renderField(name) {
    const { name: label, tag, attributes } = CONTROLS[name];
    const id = `${this.#id}-${name}`;
    const how = { autocomplete: "off", dir: "auto", ...attributes };
    const control = el(tag, { id, name, "aria-describedby": `${id}-note`, ...how });
    if (control instanceof HTMLTextAreaElement) control.rows = this.#countRows(name);
    else control.type = "text";
    if (name === "year") control.title = t("edit.year.hint");
    if (name === "kind") control.setAttribute("list", `${this.#id}-kinds`);
    control.defaultValue = toText(name, this.paper);
    const { origin, sure } = this.paper.fields[name];
    const doubt = control.value && origin && !sure ? "doubted" : "";
    const text = el("label", { for: id }, t(label));
    return el("div", { class: `field ${doubt}` }, text, control, this.#renderNote(name));
  }

  /** @param {Field} name */
  #countRows(name) {
    if (name === "title") return 2;
    if (name === "abstract") return 4;
    return Math.min(6, Math.max(2, this.paper.fields[name === "tags" ? "tags" : "authors"].value.length));
  }

  /** @param {Field} name */
  #renderNote(name) {
    const { origin, sure } = this.paper.fields[name];
    const { hint } = CONTROLS[name];
    const isMade = name === "citation_key" && !origin;
    const known = origin && !sure ? t("edit.unsure", { origin: t(ORIGINS[origin]) }) : `${t(ORIGINS[origin])}.`;
    const source = isMade ? t("edit.key.made") : known;
    const text = [source, hint ? t(hint) : ""].filter(Boolean).join(" ");
    const which = hideVisually(`: ${t(CONTROLS[name].name)}`);
    const reset = makeButton("button quiet", () => this.#reset(name), t("edit.reset"), which);
    const note = el("p", { id: `${this.#id}-${name}-note` }, text);
    return el("div", { class: "edit-note" }, note, origin === "person" ? reset : null);
  }

  /** @param {Field} name */
  async #reset(name) {
    if (!(await this.#change({ [name]: null }))) return;
    this.#control(name).closest(".field")?.replaceWith(this.#renderField(name));
    this.#control(name).focus();
  }

  /** @param {Event} event */
  async #submit(event) {
    event.preventDefault();
    const edits = this.#collect();
    if (Object.keys(edits).length && !(await this.#change(edits))) return;
    this.draft.forget();
    this.hooks.saved();
  }

  /** What was typed, and what is confirmed. @returns {Api.PaperEdits} */
  #collect() {
    const typed = FIELDS.map((name) => ({ name, text: this.#control(name).value }));
    const { paper, hooks } = this;
    const isDoubted = (/** @type {Field} */ name) => Boolean(hooks.confirms) && paper.unsure.includes(name);
    const changed = typed.filter(({ name, text }) => text !== toText(name, paper) || isDoubted(name));
    return Object.fromEntries(changed.map(({ name, text }) => [name, toValue(name, text)]));
  }

  /** Sends a change; returns whether it was made. @param {Api.PaperEdits} edits */
  async #change(edits) {
    const buttons = this.node.querySelectorAll("button");
    for (const button of buttons) button.disabled = true;
    const key = api.makeKey();
    try {
      this.paper = await api.editPaper(this.paper.id, edits, key);
      this.problem.replaceChildren();
    } catch (thrown) {
      this.problem.replaceChildren(renderProblem(api.toApiError(thrown)));
      this.problem.scrollIntoView({ block: "nearest" });
      return false;
    } finally {
      for (const button of buttons) button.disabled = false;
    }
    await this.hooks.changed();
    offerUndo(t("edit.saved"), key);
    return true;
  }
}

/** Ctrl+Enter saves from a field of several lines, too. @param {KeyboardEvent} event */
function submitWithKeys(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  if (event.currentTarget instanceof HTMLFormElement) event.currentTarget.requestSubmit();
}

/**
 * Opens a dialog, which is removed when it closes. Resolves then.
 * @param {HTMLElement} root @param {HTMLDialogElement} dialog
 */
export function openDialog(root, dialog) {
  root.append(dialog);
  dialog.showModal();
  enterPanel(dialog, () => dialog.close());
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      leavePanel(dialog);
      dialog.remove();
      resolve(undefined);
    });
  });
}

/**
 * Lets a person correct a paper in a dialog. Resolves when that is closed. Throws ApiError.
 * @param {HTMLElement} root that gets the dialog @param {string} id @param {() => unknown} changed
 */
export async function editPaper(root, id, changed) {
  const paper = await api.getPaper(id);
  const dialog = el("dialog", { class: "edit", id: "edit", "aria-labelledby": "edit-title" });
  const form = new EditForm(paper, {
    changed,
    saved: () => dialog.close(),
    close: () => dialog.close(),
  });
  dialog.append(el("h2", { id: "edit-title" }, `${t("edit")} `, isolate(paper.file)), form.node);
  const closed = openDialog(root, dialog);
  form.focus();
  await closed;
}
