// What a person has typed and not sent yet. Each keystroke is kept in the browser's tab, so the words are there again
// after a reload, a crash, Escape, Back or another view. They go once they are sent, or dropped on purpose.

import { keepInTab, listInTab, makeButton, readInTab } from "./dom.js";
import { t } from "./strings.js";

/**
 * @typedef {object} Kept
 * @property {Record<string, string>} typed by the names of the fields
 * @property {any} [about] what was written about, such as a note as it was before its editing began
 */
/** @typedef {HTMLInputElement} Field or a text area, which has no `checked` */

/** @type {Map<string, Kept>} drafts that the browser does not keep, as storage is full or forbidden */
const unkept = new Map();

/** The keys of drafts that were left when the page was loaded, and were not opened since. */
const left = new Set(listInTab("draft ").map((name) => name.slice(6)));

addEventListener("beforeunload", (event) => {
  if (unkept.size) event.preventDefault(); // the browser asks whether to leave
});

/** @param {string} key @returns {Kept | null} */
const read = (key) => unkept.get(key) ?? readInTab(`draft ${key}`);

/** @param {string} key @param {Kept | null} kept */
function write(key, kept) {
  const isKept = keepInTab(`draft ${key}`, kept);
  if (kept && !isKept) unkept.set(key, kept);
  else unkept.delete(key);
}

/**
 * What the drafts were written about whose keys begin like this.
 * @param {string} start @param {(key: string) => boolean} [fits] @returns {any[]}
 */
export const listDrafts = (start, fits = () => true) =>
  [...new Set([...listInTab(`draft ${start}`).map((name) => name.slice(6)), ...unkept.keys()])]
    .filter((key) => key.startsWith(start) && fits(key))
    .map((key) => read(key)?.about);

/** The same of those that were left when the page was closed, reloaded or crashed. @param {string} start @returns {any[]} */
export const listLeft = (start) => listDrafts(start, (key) => left.has(key));

/** A radio button is changed by choosing it, a field by typing. @param {Field} field */
const isChanged = (field) =>
  field.type === "radio" ? field.checked && !field.defaultChecked : field.value !== field.defaultValue;

export class Draft {
  #key = "";

  /** @param {HTMLFormElement} form what has a name in it is kept */
  constructor(form) {
    this.form = form;
    form.addEventListener("input", () => this.keep());
  }

  #listFields() {
    return /** @type {Field[]} */ ([...this.form.elements]).filter(({ name }) => name);
  }

  /** The changed fields. Without a draft, a field has its `defaultValue`. */
  get typed() {
    return Object.fromEntries(
      this.#listFields()
        .filter(isChanged)
        .map(({ name, value }) => [name, value]),
    );
  }

  /**
   * Shows what was kept under a key, and keeps what is typed from now on there. Returns whether there was anything.
   * @param {string} key
   * @param {any} [about] see Kept
   */
  open(key, about) {
    if (key === this.#key) return false;
    this.#key = key;
    left.delete(key);
    const kept = read(key);
    this.about = kept?.about ?? about;
    for (const field of this.#listFields()) {
      const typed = kept?.typed[field.name];
      if (field.type === "radio") field.checked = typed === undefined ? field.defaultChecked : typed === field.value;
      else field.value = typed ?? field.defaultValue;
    }
    return kept !== null;
  }

  /** What is typed belongs to another key from now on, unless something is kept under that. @param {string} key */
  move(key) {
    if (key === this.#key || !Object.keys(this.typed).length || read(key)) return this.open(key, this.about);
    this.forget();
    this.#key = key;
    return this.keep();
  }

  keep() {
    const { typed, about } = this;
    write(this.#key, Object.keys(typed).length ? { typed, about } : null);
    return true;
  }

  /** The words were sent, or dropped on purpose. */
  forget() {
    write(this.#key, null);
  }

  /** The button that drops the words. @param {() => void} close */
  makeCancel(close) {
    const drop = () => {
      this.forget();
      close();
    };
    return makeButton("button", drop, t("cancel"));
  }
}
