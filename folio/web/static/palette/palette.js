// The palette: one field that finds papers, passages, conversations and commands.

import * as api from "../base/api.js";
import { el, formatDate, formatPages, isolate, keepTogether } from "../base/dom.js";
import { enterPanel, leavePanel } from "../base/panels.js";
import { goTo } from "../base/router.js";
import { buildFilter, EVERYTHING, getTitle, health, library } from "../base/state.js";
import { t } from "../base/strings.js";
import { joinLines, shorten, shortenAtWord } from "../base/text.js";
import { openAt, toTarget } from "../reader/reader.js";
import { renderKeys } from "../shell/keys.js";
import { findEntries, makeEntry } from "./match.js";

/** @typedef {import("../base/strings.js").Key} Key */
/** @typedef {{text: string, keys?: string, run: () => unknown}} Command */
/** @typedef {{title: (string | Node)[], about?: (string | Node)[], run: () => unknown}} Option */
/** @typedef {{name: Key, options: Option[]}} Group */
/** @template T @typedef {import("./match.js").Entry<T>} Entry */

const MOST = 6; // options of a group
const MOST_PASSAGES = 5;
const PAUSE_MS = 400; // after the last keystroke, passages are searched
const SHORTEST = 3; // characters of a query for passages
const LONGEST = 500; // characters that may be typed
const SNIPPET = 120; // characters of a passage

/** A paper by its title, people, year, venue and file. @param {Api.ListedPaperJson} paper */
const enterPaper = (paper) =>
  makeEntry(paper, getTitle(paper), [...paper.authors, String(paper.year ?? ""), paper.venue, paper.file]);

export class Palette {
  /** @type {Entry<Api.ListedPaperJson>[]} */
  papers = [];
  /** @type {Entry<Api.ConversationSummary>[]} */
  conversations = [];
  /** @type {Entry<Command>[]} */
  commands = [];
  /** @type {Group} */
  passages = { name: "palette.passages", options: [] };
  /** @type {Option[]} all that are shown */
  options = [];
  at = 0; // the option that Enter chooses
  isOld = true; // papers have changed
  isSearching = false; // passages are still to come
  /** @type {AbortController | null} */
  asking = null;
  /** @type {number | undefined} */
  timer;
  opener = /** @type {HTMLElement} */ (document.body);

  /** @param {() => Command[]} listCommands */
  constructor(listCommands) {
    this.listCommands = listCommands;
    this.field = el("input", {
      type: "text",
      role: "combobox",
      class: "palette-field",
      "aria-label": t("palette"),
      "aria-controls": "palette-options",
      "aria-expanded": "true",
      "aria-autocomplete": "list",
      placeholder: t("palette.hint"),
      maxlength: LONGEST,
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => this.#type(),
    });
    this.list = el("div", {
      class: "palette-options",
      id: "palette-options",
      role: "listbox",
      "aria-label": t("palette"),
    });
    this.status = el("p", { class: "palette-status status", role: "status" });
    this.dialog = el("dialog", { class: "palette", "aria-label": t("palette") }, this.field, this.list, this.status);
    this.dialog.addEventListener("keydown", (event) => this.#handleKey(event));
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.close(); // beside it
    });
    this.dialog.onclose = () => this.#leave();
    document.body.append(this.dialog);
    library.onChange(() => {
      this.isOld = true;
      if (this.isOpen) this.#takePapers();
    });
  }

  get isOpen() {
    return this.dialog.open;
  }

  open() {
    if (document.activeElement instanceof HTMLElement) this.opener = document.activeElement;
    this.commands = this.listCommands().map((command) => makeEntry(command, command.text));
    this.field.value = "";
    this.passages.options = [];
    this.isSearching = false;
    this.at = 0;
    this.dialog.showModal();
    enterPanel(this.dialog, () => this.close());
    this.#takePapers();
    this.#loadConversations();
  }

  /** Shows what the library has now. */
  #takePapers() {
    if (this.isOld) this.papers = [...library.get().papers.values()].map(enterPaper);
    this.isOld = false;
    this.#render();
  }

  close() {
    this.dialog.close();
  }

  toggle() {
    if (this.isOpen) this.close();
    else this.open();
  }

  #leave() {
    this.asking?.abort();
    clearTimeout(this.timer);
    leavePanel(this.dialog);
  }

  async #loadConversations() {
    try {
      const { conversations } = await api.listConversations();
      this.conversations = conversations.map((each) => makeEntry(each, each.title));
    } catch {
      return; // the list beside the page says why
    }
    if (this.isOpen) this.#render();
  }

  #type() {
    this.at = 0;
    this.passages.options = [];
    this.asking?.abort();
    clearTimeout(this.timer);
    const query = this.field.value.trim();
    const isEmpty = health.get()?.store === null; // while the page starts, that is not known
    this.isSearching = query.length >= SHORTEST && !isEmpty;
    if (this.isSearching) this.timer = setTimeout(() => this.#searchPassages(query), PAUSE_MS);
    this.#render();
  }

  /** @param {string} query */
  async #searchPassages(query) {
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      const { hits } = await api.search({ query, top_k: MOST_PASSAGES, ...buildFilter(EVERYTHING) }, signal);
      this.passages.options = hits.map((hit) => this.#makePassage(hit));
    } catch {
      if (signal.aborted) return; // typed on
      this.passages.options = []; // the search view says why it fails
    }
    this.isSearching = false;
    if (this.isOpen) this.#render();
  }

  /** @param {Api.HitJson} hit @returns {Option} */
  #makePassage(hit) {
    const where = [isolate(shorten(joinLines(getTitle(hit)), 80)), ", ", keepTogether(formatPages(hit.pages))];
    return {
      title: [isolate(shortenAtWord(hit.text, SNIPPET))],
      about: where,
      run: () => openAt({ ...toTarget(hit), opener: this.opener }),
    };
  }

  /** @param {Api.ListedPaperJson} paper @returns {Option} */
  #makePaper(paper) {
    const about = [paper.authors.slice(0, 3).join(", "), paper.year ? String(paper.year) : ""].filter(Boolean);
    return {
      title: [isolate(shorten(joinLines(getTitle(paper)), 120))],
      about: [isolate(shorten(joinLines(about.join(" · ")), 100))],
      run: () => goTo({ view: "paper", id: paper.id, query: {} }),
    };
  }

  /** @param {Api.ConversationSummary} conversation @returns {Option} */
  #makeConversation({ id, title, updated }) {
    const run = () => goTo({ view: "ask", id, query: {} });
    return { title: [isolate(shorten(joinLines(title), 120))], about: [formatDate(updated)], run };
  }

  /** @returns {Group[]} */
  #listGroups() {
    const query = this.field.value;
    const commands = findEntries(this.commands, query, query.trim() ? MOST : this.commands.length);
    const papers = query.trim() ? findEntries(this.papers, query, MOST) : [];
    const conversations = findEntries(this.conversations, query, MOST);
    const commandOptions = commands.map(({ text, keys, run }) => ({
      title: [text],
      about: keys ? renderKeys(keys) : [],
      run,
    }));
    return [
      { name: "palette.papers", options: papers.map((paper) => this.#makePaper(paper)) },
      { name: "palette.commands", options: commandOptions },
      { name: "palette.conversations", options: conversations.map((each) => this.#makeConversation(each)) },
      this.passages,
    ];
  }

  #render() {
    const groups = this.#listGroups().filter(({ options }) => options.length);
    this.options = groups.flatMap(({ options }) => options);
    this.at = Math.min(this.at, Math.max(0, this.options.length - 1));
    let number = 0;
    this.list.replaceChildren(
      ...groups.map(({ name, options }) => {
        const id = `palette-${name.replace("palette.", "")}`;
        const heading = el("p", { class: "palette-group", id, role: "presentation" }, t(name));
        const nodes = options.map((option) => this.#renderOption(option, number++));
        return el("div", { role: "group", "aria-labelledby": id }, heading, nodes);
      }),
    );
    const none = this.options.length ? "" : t("palette.none");
    this.status.textContent = this.isSearching ? t("palette.searching") : none;
    this.#mark();
  }

  /** @param {Option} option @param {number} number */
  #renderOption(option, number) {
    const onpointermove = () => {
      if (this.at === number) return;
      this.at = number;
      this.#mark();
    };
    return el(
      "div",
      {
        class: "palette-option",
        role: "option",
        id: `palette-${number}`,
        onclick: () => this.#choose(option),
        onpointermove,
      },
      el("span", { class: "palette-title" }, option.title),
      option.about?.length ? el("span", { class: "about" }, option.about) : null,
    );
  }

  /** Marks the option that Enter chooses. */
  #mark() {
    for (const [at, node] of this.list.querySelectorAll('[role="option"]').entries()) {
      node.setAttribute("aria-selected", String(at === this.at));
      if (at === this.at) node.scrollIntoView({ block: "nearest" });
    }
    if (this.options.length) this.field.setAttribute("aria-activedescendant", `palette-${this.at}`);
    else this.field.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    const { length } = this.options;
    const to = {
      ArrowDown: (this.at + 1) % length,
      ArrowUp: (this.at - 1 + length) % length,
      PageDown: Math.min(length - 1, this.at + MOST),
      PageUp: Math.max(0, this.at - MOST),
    }[event.key];
    if (to !== undefined && length) {
      this.at = to;
      this.#mark();
    } else if (event.key === "Enter" && length) this.#choose(this.options[this.at]);
    else if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) this.close();
    else return;
    event.preventDefault();
  }

  /** @param {Option} option */
  #choose({ run }) {
    this.close();
    run();
  }
}
