// All of a cell beside it: its quotes in full, where they stand, and what can be done with it. Menus of rows and columns
// are shown in the same place.

import * as api from "../base/api.js";
import { el, hideVisually, isolate, makeButton, makeIcon, renderMessage, renderProblem } from "../base/dom.js";
import { Draft, listDrafts } from "../base/drafts.js";
import { showFailure } from "../base/failure.js";
import { placeBeside } from "../base/floating.js";
import { oneAtATime } from "../base/pace.js";
import { t } from "../base/strings.js";
import { joinLines, REWORDED_SIGN } from "../base/text.js";
import { offerUndo } from "../base/undo.js";
import { getName, makeFindingLink, renderState } from "./cell.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("./rows.js").Cell} Cell */
/** @typedef {import("./rows.js").Column} Column */
/** @typedef {import("./rows.js").Finding} Finding */
/** @typedef {{table: string, row: Row, column: Column}} Shown a cell, by what it is in */

/**
 * @typedef {object} DetailHooks
 * @property {(cell: Cell) => void} changed a cell is another one now
 * @property {() => void} left it was closed, and the focus was in it
 */

export class Detail {
  /** @type {Shown | null} */
  #shown = null;
  /** @type {Draft | null} of the form, while a person edits */
  #draft = null;

  /** @param {DetailHooks} hooks */
  constructor(hooks) {
    this.hooks = hooks;
    this.node = el("div", { class: "tables-detail", popover: "auto", role: "dialog", id: "tables-detail" });
    let isInside = false;
    this.node.addEventListener("beforetoggle", ({ newState }) => {
      if (newState === "closed") isInside = this.node.contains(document.activeElement);
    });
    this.node.addEventListener("toggle", ({ newState }) => {
      if (newState === "open") return;
      this.#shown = this.#draft = null;
      this.node.replaceChildren();
      if (isInside) hooks.left();
    });
    this.node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault(); // what is below it stays open
      event.stopPropagation();
      this.close();
    });
  }

  close() {
    this.node.hidePopover();
  }

  /** @param {HTMLElement} beside @param {HTMLElement[]} nodes @param {string} label */
  #open(beside, nodes, label) {
    if (this.node.matches(":popover-open")) this.node.hidePopover();
    this.node.setAttribute("aria-label", label);
    this.node.replaceChildren(...nodes);
    this.node.showPopover();
    placeBeside(this.node, beside.getBoundingClientRect());
    this.#focusFirst();
  }

  #focusFirst() {
    /** @type {HTMLElement | null} */
    const first = this.node.querySelector("textarea, a, button");
    first?.focus({ preventScroll: true });
  }

  /**
   * Shows a menu. @param {HTMLElement} beside @param {string} title
   * @param {{icon: string, text: string, run: () => void}[]} choices
   */
  openMenu(beside, title, choices) {
    const buttons = choices.map(({ icon, text, run }) => {
      const act = () => {
        this.close();
        run();
      };
      return makeButton("button quiet", act, makeIcon(icon), text);
    });
    const name = el("p", { class: "card-title" }, isolate(joinLines(title)));
    this.#open(beside, [name, el("div", { class: "tables-menu" }, buttons)], title);
  }

  /** @param {string} table its id @param {Row} row @param {Column} column @param {HTMLElement} beside */
  openCell(table, row, column, beside) {
    const label = `${column.name}: ${getName(row)}`;
    this.#open(beside, [], label);
    this.#shown = { table, row, column };
    if (listDrafts(this.#draftKey).length) this.#edit();
    else this.#render();
    placeBeside(this.node, beside.getBoundingClientRect());
    this.#focusFirst();
  }

  /** A cell has changed elsewhere. What a person types stays. @param {Cell} cell */
  refresh({ paper, column }) {
    const isShown = this.#shown?.row.paper === paper && this.#shown.column.id === column;
    if (!isShown || this.#draft) return;
    const isInside = this.node.contains(document.activeElement);
    this.#render();
    if (isInside) this.#focusFirst();
  }

  get #draftKey() {
    const { table = "", row, column } = this.#shown ?? {};
    return `cell ${table} ${column?.id} ${row?.paper}`;
  }

  /** @returns {Cell} */
  get #cell() {
    const { row, column } = /** @type {Shown} */ (this.#shown);
    return /** @type {Cell} */ (row.cells.get(column.id));
  }

  #renderTitle() {
    const { row, column } = /** @type {Shown} */ (this.#shown);
    const question = column.question && column.question !== column.name ? column.question : "";
    return [
      el("p", { class: "card-title" }, isolate(joinLines(column.name))),
      el("p", { class: "about" }, isolate(joinLines(getName(row)))),
      ...(question ? [el("p", { class: "about" }, isolate(joinLines(question)))] : []),
    ];
  }

  #render() {
    const { row } = /** @type {Shown} */ (this.#shown);
    const cell = this.#cell;
    this.#draft = null;
    const { edit, findings, error } = cell;
    const own = edit
      ? [
          el("p", { class: "tables-by" }, makeIcon("edit"), t("tables.edited")),
          el("p", { class: "tables-own" }, isolate(edit)),
          ...(findings.length ? [el("p", { class: "about" }, t("tables.was_found"))] : []),
        ]
      : [];
    const failed = error ? [el("div", { class: "problem" }, renderMessage(`${error.error} ${error.remedy}`))] : [];
    const state = edit ? null : renderState(cell);
    const quotes = findings.map((finding) => renderFinding(row, finding));
    const list = quotes.length ? [el("div", { class: "tables-quotes" }, quotes)] : [];
    const closest = state && cell.state === "not_found" ? renderClosest(row, cell) : [];
    this.node.replaceChildren(
      ...this.#renderTitle(),
      ...own,
      ...(state ? [state] : []),
      ...failed,
      ...list,
      ...closest,
      this.#renderActions(cell),
    );
  }

  /** @param {Cell} cell */
  #renderActions(cell) {
    const { row, table } = /** @type {Shown} */ (this.#shown);
    const isOpen = cell.state !== "running" && row.state === "here";
    const ask = oneAtATime(async () => {
      try {
        await api.askCell(table, cell);
        this.hooks.changed({ ...cell, state: "running" });
      } catch (thrown) {
        showFailure(thrown);
      }
    });
    const drop = oneAtATime(async () => {
      const key = api.makeKey();
      try {
        this.hooks.changed(await api.dropEdit(table, cell, key));
        offerUndo(t("tables.edit.dropped"), key);
      } catch (thrown) {
        showFailure(thrown);
      }
    });
    return el(
      "div",
      { class: "row" },
      makeButton(
        "button quiet",
        () => this.#startEditing(),
        makeIcon("edit"),
        t(cell.edit ? "tables.edit.again" : "tables.edit"),
      ),
      cell.edit ? makeButton("button quiet", drop, makeIcon("again"), t("tables.edit.drop")) : null,
      isOpen && !cell.edit ? makeButton("button quiet", ask, makeIcon("again"), t("tables.ask")) : null,
    );
  }

  #startEditing() {
    this.#edit();
    this.node.querySelector("textarea")?.focus();
  }

  /** Lets a person write in the cell. */
  #edit() {
    const { table } = /** @type {Shown} */ (this.#shown);
    const cell = this.#cell;
    const words = el("textarea", {
      name: "words",
      rows: "4",
      maxlength: "10000",
      "aria-label": t("tables.edit.words"),
    });
    words.defaultValue = cell.edit || cell.findings.map(({ value, quote }) => value || joinLines(quote)).join("; ");
    const problem = el("div");
    /** @type {string | null} */
    let before = cell.edit;
    const save = oneAtATime(async () => {
      if (!words.value.trim()) return words.focus();
      const key = api.makeKey();
      try {
        const edited = await api.editCell(table, cell, words.value.trim(), before, key);
        draft.forget();
        this.#draft = null;
        this.hooks.changed(edited);
        this.close();
        offerUndo(t("tables.edit.saved"), key);
      } catch (thrown) {
        const error = api.toApiError(thrown);
        if (error.status === 409) before = null; // saved again, it takes the place of the other one
        problem.replaceChildren(renderProblem(error));
      }
    });
    const onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      save();
    };
    const onkeydown = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onsubmit(event);
    };
    const row = el("div", { class: "row" });
    const form = el("form", { class: "edit-form", onsubmit, onkeydown }, words, problem, row);
    const draft = new Draft(form);
    draft.open(this.#draftKey, cell.edit);
    const cancel = draft.makeCancel(() => {
      this.#render();
      this.#focusFirst();
    });
    row.append(cancel, el("button", { type: "submit", class: "button primary" }, t("tables.edit.save")));
    this.node.replaceChildren(...this.#renderTitle(), form);
    this.#draft = draft;
  }
}

/** The closest place of a cell that was not found: it is no answer. @param {Row} row @param {Cell} cell */
function renderClosest(row, { closest }) {
  if (!closest) return [];
  return [
    el("p", { class: "about" }, t("tables.closest")),
    el("div", { class: "tables-quotes tables-closest" }, renderFinding(row, closest)),
  ];
}

/** A finding in full. @param {Row} row @param {Finding} finding */
function renderFinding(row, finding) {
  const { value, quote, by_model: isReworded, section } = finding;
  const sign = isReworded ? [el("span", { class: "tables-sign" }, REWORDED_SIGN), " "] : null;
  const by = isReworded ? el("p", { class: "tables-by" }, t("tables.model.long")) : null;
  const link =
    row.state === "here"
      ? makeFindingLink(row, finding, t("tables.open"))
      : el("span", {}, t("page", { page: finding.page }));
  return el(
    "figure",
    {},
    value
      ? el(
          "p",
          { class: isReworded ? "tables-value tables-reworded" : "tables-value" },
          sign,
          isolate(joinLines(value)),
        )
      : null,
    by,
    el("blockquote", {}, hideVisually(t("tables.quote")), isolate(joinLines(quote))),
    el("figcaption", { class: "about" }, link, section ? [" · ", isolate(joinLines(section))] : null),
  );
}
