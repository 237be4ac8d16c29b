// The columns of a table: a question each, added, changed, ordered and removed in dialogs.

import * as api from "../base/api.js";
import { el, hideVisually, isolate, makeButton, makeIcon, renderProblem } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { showFailure } from "../base/failure.js";
import { oneAtATime } from "../base/pace.js";
import { t } from "../base/strings.js";
import { joinLines } from "../base/text.js";
import { offerUndo } from "../base/undo.js";
import { openDialog } from "../library/edit.js";

/** @typedef {import("./rows.js").Column} Column */
/** @typedef {Required<Api.NewColumn>} NewColumn */

/**
 * @typedef {object} ColumnHooks
 * @property {(table: Api.TableJson) => void} changed called with the table as it is now
 * @property {() => void} asked called when a question is new: its cells wait
 */

/** @type {NewColumn["kind"][]} */
const KINDS = ["text", "number", "yes_no", "choice"];

/** What a column may hold, in words. @param {NewColumn} column */
export function describeKind({ kind, unit, choices }) {
  if (kind === "number" && unit) return t("tables.kind.number.unit", { unit });
  if (kind === "choice") return choices.join(", ");
  return t(`tables.kind.${kind}`);
}

/** Suggested columns as buttons. @param {NewColumn[]} columns @param {(column: NewColumn, node: HTMLButtonElement) => void} choose */
export function renderSuggestions(columns, choose) {
  const chips = columns.map((column) => {
    const node = makeButton(
      "button quiet tables-chip",
      () => choose(column, node),
      makeIcon("plus"),
      isolate(joinLines(column.name)),
    );
    node.title = column.question || describeKind(column);
    return el("li", {}, node);
  });
  return el("ul", { class: "tables-chips", "aria-label": t("tables.suggested") }, chips);
}

/** @param {NewColumn} column */
const toNewColumn = ({ name, question, kind, unit, choices }) => ({ name, question, kind, unit, choices });

let made = 0; // forms, whose fields have ids

class ColumnForm {
  /** @param {NewColumn | null} column that is changed; null: a new one */
  constructor(column) {
    made += 1;
    const id = (/** @type {string} */ name) => `tables-column-${made}-${name}`;
    const { name = "", question = "", kind = "text", unit = "", choices = [] } = column ?? {};
    this.name = el("input", {
      type: "text",
      id: id("name"),
      name: "name",
      required: true,
      maxlength: "200",
      autocomplete: "off",
      dir: "auto",
    });
    this.name.defaultValue = name;
    this.question = el("textarea", { id: id("question"), name: "question", rows: "2", maxlength: "2000", dir: "auto" });
    this.question.defaultValue = question;
    this.kinds = KINDS.map((each) =>
      el("input", { type: "radio", name: "kind", value: each, checked: each === kind, onchange: () => this.show() }),
    );
    this.unit = el("input", { type: "text", id: id("unit"), name: "unit", maxlength: "50", autocomplete: "off" });
    this.unit.defaultValue = unit;
    this.choices = el("textarea", { id: id("choices"), name: "choices", rows: "3", dir: "auto" });
    this.choices.defaultValue = choices.join("\n");
    const radios = this.kinds.map((input, at) =>
      el("label", { class: "check tables-kind" }, input, t(`tables.kind.${KINDS[at]}`)),
    );
    this.unitField = makeField(this.unit, t("tables.column.unit"), t("tables.column.unit.hint"));
    this.choicesField = makeField(this.choices, t("tables.column.choices"), t("tables.column.choices.hint"));
    this.node = el(
      "div",
      { class: "fields" },
      makeField(this.name, t("tables.column.name"), t("tables.column.name.hint")),
      makeField(this.question, t("tables.column.question"), t("tables.column.question.hint")),
      el("fieldset", { class: "field tables-kinds" }, el("legend", {}, t("tables.column.kind")), radios),
      this.unitField,
      this.choicesField,
    );
  }

  /** Shows the fields of the kind that is chosen. */
  show() {
    this.unitField.hidden = this.kind !== "number";
    this.choicesField.hidden = this.kind !== "choice";
    this.choices.required = this.kind === "choice";
  }

  get kind() {
    return KINDS[
      Math.max(
        0,
        this.kinds.findIndex(({ checked }) => checked),
      )
    ];
  }

  /** @returns {NewColumn} */
  read() {
    const choices = this.kind === "choice" ? this.choices.value.split("\n").map((line) => line.trim()) : [];
    return {
      name: this.name.value.trim(),
      question: this.question.value.trim(),
      kind: this.kind,
      unit: this.kind === "number" ? this.unit.value.trim() : "",
      choices: [...new Set(choices.filter(Boolean))],
    };
  }
}

/** @param {HTMLElement} input @param {string} label @param {string} hint */
export function makeField(input, label, hint = "") {
  const note = hint ? el("p", { id: `${input.id}-hint` }, hint) : null;
  if (note) input.setAttribute("aria-describedby", note.id);
  return el("div", { class: "field" }, el("label", { for: input.id }, label), input, note);
}

/** Whether cells have to be asked again after a change. @param {NewColumn} one @param {NewColumn} other */
const isOtherQuestion = (one, other) =>
  JSON.stringify({ ...toNewColumn(one), name: "" }) !== JSON.stringify({ ...toNewColumn(other), name: "" }) ||
  (!other.question && one.name !== other.name);

/**
 * A dialog that adds a column to a table, or changes one. Resolves when it is closed.
 * @param {HTMLElement} root @param {string} table its id @param {Column | null} column @param {ColumnHooks} hooks
 */
export async function openColumnForm(root, table, column, hooks) {
  const dialog = el("dialog", { class: "edit", "aria-labelledby": "tables-column-title" });
  const fields = new ColumnForm(column);
  const problem = el("div");
  const suggestions = el("div");
  /** @param {NewColumn} wanted */
  const add = async (wanted) => {
    hooks.changed(await api.addColumn(table, toNewColumn(wanted)));
    dialog.close();
    hooks.asked();
  };
  /** @param {Column} before */
  const change = async (before) => {
    const key = api.makeKey();
    const wanted = fields.read();
    hooks.changed(await api.changeColumn(table, before.id, wanted, key));
    dialog.close();
    offerUndo(t("tables.column.changed"), key);
    if (isOtherQuestion(before, wanted)) hooks.asked();
  };
  const submit = oneAtATime(async (/** @type {NewColumn | null} */ chosen) => {
    try {
      if (chosen) await add(chosen);
      else {
        await (column ? change(column) : add(fields.read()));
        draft.forget();
      }
    } catch (thrown) {
      problem.replaceChildren(renderProblem(api.toApiError(thrown)));
    }
  });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    submit(null);
  };
  const row = el("div", { class: "row" });
  const form = el("form", { class: "edit-form", onsubmit }, fields.node, problem, row);
  const draft = new Draft(form);
  draft.open(`column ${table} ${column?.id ?? ""}`);
  fields.show();
  const text = t(column ? "tables.column.save" : "tables.column.add");
  row.append(
    draft.makeCancel(() => dialog.close()),
    el("button", { type: "submit", class: "button primary" }, text),
  );
  const title = t(column ? "tables.column.change" : "tables.column.new");
  dialog.append(el("h2", { id: "tables-column-title" }, title), suggestions, form);
  if (!column) suggest(suggestions, table, submit);
  const closed = openDialog(root, dialog);
  fields.name.focus();
  await closed;
}

/** Shows columns that would suit a table. @param {HTMLElement} box @param {string} table @param {(column: NewColumn) => void} choose */
async function suggest(box, table, choose) {
  try {
    const { columns } = await api.suggestColumns(table);
    if (!columns.length) return;
    box.append(el("p", { class: "about" }, t("tables.suggested.text")), renderSuggestions(columns, choose));
  } catch {
    // without suggestions a column is written by hand
  }
}

/** @param {string} table its id @param {Column} column @param {ColumnHooks} hooks */
export async function removeColumn(table, column, hooks) {
  const key = api.makeKey();
  try {
    hooks.changed(await api.removeColumn(table, column.id, key));
    offerUndo(t("tables.column.removed", { name: column.name }), key);
  } catch (thrown) {
    showFailure(thrown);
  }
}

/** Moves a column some places on. @param {Api.TableJson} table @param {string} id @param {number} places @param {ColumnHooks} hooks */
export async function moveColumn(table, id, places, hooks) {
  const ids = table.columns.map((column) => column.id);
  const at = ids.indexOf(id);
  const to = at + places;
  if (at < 0 || to < 0 || to >= ids.length) return;
  ids.splice(to, 0, ...ids.splice(at, 1));
  try {
    hooks.changed(await api.changeTable(table.id, { columns: ids }, ""));
  } catch (thrown) {
    showFailure(thrown);
  }
}

/**
 * A dialog with all columns, to order, change and remove them: the heads of the grid are not there on a phone.
 * @param {HTMLElement} root @param {() => Api.TableJson} getTable as it is now @param {ColumnHooks} hooks
 */
export async function openColumns(root, getTable, hooks) {
  const dialog = el("dialog", { class: "edit tables-columns", "aria-labelledby": "tables-columns-title" });
  const list = el("ol", {});
  const own = {
    ...hooks,
    changed: (/** @type {Api.TableJson} */ table) => {
      hooks.changed(table);
      render();
    },
  };
  const leaveFor = (/** @type {Column | null} */ column) => {
    dialog.close();
    openColumnForm(root, getTable().id, column, hooks);
  };
  const render = (/** @type {string} */ id = "", /** @type {string} */ button = "") => {
    const { columns } = getTable();
    list.replaceChildren(...columns.map((column, at) => renderItem(column, at, columns.length)));
    /** @type {HTMLElement | null} */
    const again =
      list.querySelector(`[data-id="${id}"] .${button || "up"}:not(:disabled)`) ??
      list.querySelector(`[data-id="${id}"] button:not(:disabled)`);
    if (id) again?.focus();
  };
  /** @param {Column} column @param {number} at @param {number} count */
  const renderItem = (column, at, count) => {
    const name = joinLines(column.name);
    const which = () => hideVisually(`: ${name}`);
    const step = async (/** @type {number} */ places, /** @type {string} */ button) => {
      await moveColumn(getTable(), column.id, places, own);
      render(column.id, button);
    };
    const up = makeButton("button quiet up", () => step(-1, "up"), t("tables.column.up"), which());
    const down = makeButton("button quiet down", () => step(1, "down"), t("tables.column.down"), which());
    up.disabled = at === 0;
    down.disabled = at === count - 1;
    return el(
      "li",
      { "data-id": column.id },
      el("p", {}, el("strong", {}, isolate(name)), " ", el("span", { class: "about" }, isolate(describeKind(column)))),
      el(
        "div",
        { class: "row" },
        up,
        down,
        makeButton("button quiet", () => leaveFor(column), t("edit"), which()),
        makeButton("button quiet", () => removeColumn(getTable().id, column, own), t("remove"), which()),
      ),
    );
  };
  render();
  const close = makeButton("button", () => dialog.close(), t("close"));
  const add = makeButton("button primary", () => leaveFor(null), makeIcon("plus"), t("tables.column.add"));
  dialog.append(
    el("h2", { id: "tables-columns-title" }, t("tables.columns")),
    list,
    el("div", { class: "row" }, close, add),
  );
  await openDialog(root, dialog);
}
