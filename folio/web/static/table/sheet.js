// One table: its papers by its questions, filled while it is read.

import * as api from "../base/api.js";
import { announce, el, isolate, makeButton, makeIcon, renderProblem } from "../base/dom.js";
import { showFailure } from "../base/failure.js";
import { addMenu } from "../base/menu.js";
import { atMostEvery, inTurn, oneAtATime } from "../base/pace.js";
import { goTo, place, setQuery } from "../base/router.js";
import { t } from "../base/strings.js";
import { joinLines, shorten } from "../base/text.js";
import { offerUndo } from "../base/undo.js";
import { makeField, moveColumn, openColumnForm, openColumns, removeColumn } from "./columns.js";
import { askForReview } from "../library/ask_review.js";
import { addToProject } from "../projects/add_to_project.js";
import { openDialog } from "../library/edit.js";
import { getName } from "./cell.js";
import { Detail } from "./detail.js";
import { Grid } from "./grid.js";
import { choosePapersToAdd } from "./more_papers.js";
import { applyCells, chooseRows, formatWanted, makeRows, markRunning, parseWanted, sortRows, STATES } from "./rows.js";
import { TITLE, YEAR } from "./rows.js";
import { deleteTable, describeProgress } from "./table_list.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("./rows.js").Cell} Cell */
/** @typedef {import("./rows.js").Column} Column */

const CELLS_MS = 400; // between two requests for changed cells
const ROWS_MS = 1000; // between two choices of the rows while cells come
const FORMATS = /** @type {const} */ (["csv", "markdown", "docx", "bibtex", "json"]);

export class Sheet {
  id = "";
  /** @type {Api.TableJson | null} */
  table = null;
  /** @type {Row[]} */
  rows = [];
  /** @type {Row[]} in the order that the address asks for */
  #sorted = [];
  /** @type {string | null} what they were sorted for; null: they have to be sorted again */
  #order = null;
  #changed = 0; // the last change of the table that is shown
  #isWhole = false; // the whole table is wanted, not only the cells that have changed

  /** @param {HTMLElement} root of the view, which gets the dialogs */
  constructor(root) {
    this.root = root;
    this.title = el("h1", {});
    this.scope = el("p", { class: "about" });
    this.progress = el("progress", { "aria-label": t("tables.progress"), hidden: true });
    this.state = el("p", { class: "status" });
    this.problem = el("div");
    this.fillButton = makeButton("button primary", () => this.fill(), makeIcon("again"), t("tables.fill"));
    this.stopButton = makeButton("button", () => this.#stop(), makeIcon("stop"), t("tables.stop"));
    this.actions = this.#buildActions();
    const narrow = (/** @type {Record<string, string>} */ change) => setQuery(change);
    this.query = el("input", {
      type: "search",
      placeholder: t("tables.query"),
      "aria-label": t("tables.query"),
      autocomplete: "off",
      "aria-keyshortcuts": "/",
      oninput: () => narrow({ q: this.query.value }),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "ArrowDown") return;
        event.preventDefault();
        this.grid.focus();
      },
    });
    this.show = el(
      "select",
      { "aria-label": t("tables.show"), onchange: () => narrow({ state: this.show.value }) },
      el("option", { value: "" }, t("tables.show.all")),
      STATES.map((state) => el("option", { value: state }, t(`tables.show.${state}`))),
    );
    this.within = el("select", { "aria-label": t("tables.within"), onchange: () => narrow({ in: this.within.value }) });
    this.order = el("select", { "aria-label": t("library.sort"), onchange: () => narrow({ sort: this.order.value }) });
    this.count = el("p", { class: "status", role: "status" });
    const tools = [this.query, this.show, this.within, this.order, this.count];
    this.tools = el("div", { class: "tables-tools" }, tools);
    this.empty = el("div", { class: "tables-empty" });
    const back = el("a", { href: "#tables", class: "tables-back" }, makeIcon("previous"), t("tables.all"));
    back.onclick = (event) => {
      event.preventDefault();
      goTo({ view: "tables", id: "", query: {} });
    };
    const head = el("div", { class: "view-head" }, back, this.title, this.scope);
    const bar = el("div", { class: "tables-bar" }, this.state, this.progress, this.actions);
    this.scroller = el("div", { class: "scroll tables-scroll" });
    this.node = el("div", { class: "tables-sheet" }, head, bar, this.problem, this.tools, this.empty, this.scroller);
    this.detail = new Detail({ changed: (cell) => this.#take([cell]), left: () => this.grid.focus() });
    root.append(this.detail.node);
    this.hooks = {
      changed: (/** @type {Api.TableJson} */ table) => this.take(table),
      asked: () => void this.fill(),
    };
    this.grid = new Grid(this.scroller, {
      sort: (sort) => this.#sort(sort),
      open: (row, column, node) => this.#open(row, column, node),
      openRow: (row, node) => this.#openRow(row, node),
      openColumn: (column, node) => this.#openColumn(column, node),
    });
    this.loadCellsSoon = atMostEvery(CELLS_MS, () => void this.loadCells());
    this.chooseSoon = atMostEvery(ROWS_MS, () => this.#choose());
  }

  // What can be done with the table

  #buildActions() {
    const add = makeButton("button", () => this.#addColumn(), makeIcon("plus"), t("tables.column.add"));
    const out = makeButton("button quiet", () => {}, makeIcon("export"), t("tables.export"));
    const more = makeButton("button quiet", () => {}, makeIcon("more"), t("tables.more"));
    const exports = addMenu(out, t("tables.export"), (close) =>
      FORMATS.map((format) =>
        el(
          "a",
          {
            class: "button quiet",
            href: api.tableUrl(this.id, format),
            download: true,
            onclick: () => setTimeout(close),
          },
          t(`tables.export.${format}`),
        ),
      ),
    );
    const others = addMenu(more, t("tables.more"), (close) => this.#listMore(close));
    return el(
      "div",
      { class: "tables-actions", role: "group", "aria-label": t("tables.actions") },
      this.fillButton,
      this.stopButton,
      add,
      exports,
      others,
    );
  }

  /** @param {() => void} close */
  #listMore(close) {
    const choice = (/** @type {string} */ icon, /** @type {string} */ text, /** @type {() => void} */ run) =>
      makeButton(
        "button quiet",
        () => {
          close();
          run();
        },
        makeIcon(icon),
        text,
      );
    const { not_found, failed, filling } = /** @type {Api.TableJson} */ (this.table);
    return [
      choice("edit", t("tables.rename"), () => this.#rename()),
      choice("options", t("tables.columns"), () =>
        openColumns(this.root, () => /** @type {Api.TableJson} */ (this.table), this.hooks),
      ),
      choice("plus", t("tables.rows.add"), () => this.#addRows()),
      ...(this.#listHere().length ? [choice("text", t("review"), () => this.#review())] : []),
      ...(not_found && !filling
        ? [choice("again", t("tables.again.not_found"), () => this.fill(["not_found", "failed"]))]
        : []),
      ...(failed && !filling ? [choice("again", t("tables.again.failed"), () => this.fill(["failed"]))] : []),
      ...(this.#hasStale() && !filling ? [choice("again", t("tables.again.stale"), () => this.fill(["stale"]))] : []),
      choice("plus", t("project.add"), () => addToProject(t("project.add.table"), { tables: [this.id] })),
      choice("delete", t("tables.delete"), () => this.#delete()),
    ];
  }

  #hasStale() {
    return this.rows.some(({ cells }) => [...cells.values()].some(({ stale }) => stale));
  }

  // Loading

  /** Shows a table. @param {string} id */
  open(id) {
    if (id === this.id && this.table) return this.#choose();
    this.close();
    this.id = id;
    this.title.textContent = "";
    this.title.classList.add("working");
    this.load();
  }

  close() {
    this.id = "";
    this.table = null;
    this.rows = this.#sorted = [];
    this.#order = null;
    this.problem.replaceChildren();
    this.#showParts();
  }

  /** The table was deleted, here or elsewhere. */
  end() {
    this.close();
    const back = () => goTo({ view: "tables", id: "", query: {} });
    const error = new api.ApiError(t("tables.gone"), t("tables.gone.remedy"));
    this.problem.replaceChildren(renderProblem(error, back, t("tables.all")));
  }

  /** Loads the whole table. */
  load() {
    this.#isWhole = true;
    return this.loadCells();
  }

  /** Loads the cells that have changed, or all if that is wanted. One request at a time: none overtakes another. */
  loadCells = inTurn(async () => {
    const { id, table } = this;
    if (!id) return;
    try {
      if (this.#isWhole || !table) {
        this.#isWhole = false;
        const loaded = await api.getTable(id);
        if (id === this.id) this.take(loaded);
        return;
      }
      const changed = await api.getChangedCells(id, this.#changed);
      if (table === this.table) this.#takeChanges(table, changed);
      else this.loadCells(); // after this: the table was changed meanwhile
    } catch (thrown) {
      if (id === this.id) this.#showProblem(thrown);
    }
  });

  /** @param {Api.TableJson} table @param {Api.ChangedCells} changed */
  #takeChanges(table, { cells, running, reload, changed, ...counts }) {
    if (reload) return void this.load();
    this.#changed = changed;
    const wasFilling = table.filling;
    Object.assign(table, counts);
    this.#take(cells, running);
    this.#showProgress();
    if (wasFilling && !table.filling) this.#finish();
  }

  /** @param {unknown} thrown */
  #showProblem(thrown) {
    const error = api.toApiError(thrown);
    this.title.classList.remove("working");
    if (error.status === 404) return this.end();
    this.problem.replaceChildren(renderProblem(error, api.isPermanent(error) ? null : () => this.load()));
  }

  /** Shows the table as the server has it. @param {Api.TableJson} table */
  take(table) {
    if (table.id !== this.id) return;
    const before = this.table;
    this.table = table;
    this.#changed = table.changed;
    this.rows = makeRows(table);
    this.#order = null;
    this.title.classList.remove("working");
    this.title.replaceChildren(isolate(joinLines(table.name)));
    this.scope.replaceChildren(isolate(joinLines(table.scope)));
    document.title = `${shorten(joinLines(table.name), 60)} · ${t("tables")} · Folio`;
    if (JSON.stringify(before?.columns) !== JSON.stringify(table.columns) || before?.id !== table.id)
      this.#showColumns(table);
    this.#showParts();
    this.#showProgress();
    this.#choose();
  }

  /** @param {Api.TableJson} table */
  #showColumns({ columns, name }) {
    this.grid.setColumns(columns, joinLines(name));
    const named = columns.map(({ id, name: text }) => ({ id, text: shorten(joinLines(text), 60) }));
    this.within.replaceChildren(
      el("option", { value: "" }, t("tables.within.all")),
      ...named.map(({ id, text }) => el("option", { value: id }, t("tables.within.column", { name: text }))),
    );
    const orders = [
      { id: "", text: t("tables.order.table") },
      { id: TITLE, text: t("column.title") },
      { id: YEAR, text: t("column.year") },
      ...named,
    ];
    this.order.replaceChildren(
      ...orders.flatMap(({ id, text }) => {
        const up = el("option", { value: id }, id ? t("library.sort.by", { name: text }) : text);
        return id ? [up, el("option", { value: `-${id}` }, t("tables.order.down", { name: text }))] : [up];
      }),
    );
  }

  #showParts() {
    const { table } = this;
    this.actions.hidden = this.state.hidden = !table;
    this.tools.hidden = this.scroller.hidden = !table?.columns.length || !table.rows.length;
    this.scope.hidden = !table;
    this.empty.replaceChildren(...(table ? this.#renderEmpty(table) : []));
  }

  /** @param {Api.TableJson} table */
  #renderEmpty({ columns, rows }) {
    if (!rows.length) {
      const add = makeButton("button", () => this.#addRows(), makeIcon("plus"), t("tables.rows.add"));
      return [el("p", { class: "lead" }, t("tables.rows.none")), add];
    }
    if (columns.length) return [];
    const add = makeButton("button primary", () => this.#addColumn(), makeIcon("plus"), t("tables.column.add"));
    return [el("p", { class: "lead" }, t("tables.columns.none")), add];
  }

  /** @param {Cell[]} cells @param {string[]} [running] papers that are being asked */
  #take(cells, running) {
    const changed = applyCells(this.rows, cells);
    if (running) changed.push(...markRunning(this.rows, running, cells));
    if (!changed.length) return;
    this.grid.refresh(changed);
    for (const { cell } of changed) this.detail.refresh(cell);
    this.chooseSoon();
  }

  /** All cells have been asked, or a person has stopped it. */
  #finish() {
    this.#order = null;
    this.#choose();
    announce(describeProgress(/** @type {Api.TableJson} */ (this.table)));
  }

  #showProgress() {
    const { table } = this;
    if (!table) return;
    const { problem } = table;
    const shown =
      problem && !table.filling ? [renderProblem(api.errorOf(problem), () => this.fill(), t("tables.fill"))] : [];
    this.problem.replaceChildren(...shown);
    const all = table.found + table.not_found + table.waiting + table.failed;
    const hadFocus = [this.fillButton, this.stopButton].find((node) => node === document.activeElement);
    this.state.textContent = table.columns.length ? describeProgress(table) : "";
    this.progress.hidden = !table.filling;
    this.progress.max = all || 1;
    this.progress.value = all - table.waiting;
    this.fillButton.hidden = table.filling || !(table.waiting + table.failed);
    this.stopButton.hidden = !table.filling;
    /** @type {HTMLElement | null} */
    const next = hadFocus?.hidden ? this.actions.querySelector("button:not([hidden])") : null;
    next?.focus();
  }

  // What is shown

  /** Shows the rows that the address asks for. While cells come, the order stays. */
  #choose() {
    const { table } = this;
    if (!table) return;
    const wanted = parseWanted(place.get().query);
    if (document.activeElement !== this.query) this.query.value = wanted.q;
    this.show.value = wanted.state;
    this.within.value = wanted.column;
    this.order.value = formatWanted(wanted).sort;
    const order = formatWanted(wanted).sort;
    if (this.#order !== order) {
      this.#sorted = sortRows(this.rows, table.columns, wanted);
      this.#order = order;
    }
    const shown = chooseRows(this.#sorted, wanted);
    this.grid.show(shown, this.rows, wanted);
    const values = { shown: shown.length, count: this.rows.length };
    const text = shown.length === this.rows.length ? "" : t("library.some", values);
    if (this.count.textContent !== text) this.count.textContent = text;
  }

  /** @param {string} sort */
  #sort(sort) {
    const wanted = parseWanted(place.get().query);
    const isSame = wanted.sort === sort;
    this.#order = null; // what has come since is sorted too
    if (isSame && wanted.isDown) setQuery({ sort: "" });
    else setQuery({ sort: isSame ? `-${sort}` : sort });
  }

  // Cells, rows and columns

  /** @param {Row} row @param {string} column @param {HTMLElement} node */
  #open(row, column, node) {
    const asked = this.table?.columns.find(({ id }) => id === column);
    if (asked && row.cells.has(column)) this.detail.openCell(this.id, row, asked, node);
    else if (row.state === "here") goTo({ view: "paper", id: row.paper, query: {} });
  }

  /** @param {Row} row @param {HTMLElement} node */
  #openRow(row, node) {
    const open = {
      icon: "out",
      text: t("tables.row.open"),
      run: () => goTo({ view: "paper", id: row.paper, query: {} }),
    };
    const remove = { icon: "delete", text: t("tables.row.remove"), run: () => this.#removeRow(row) };
    this.detail.openMenu(node, getName(row), row.state === "here" ? [open, remove] : [remove]);
  }

  /** @param {Column} column @param {HTMLElement} node */
  #openColumn(column, node) {
    const table = /** @type {Api.TableJson} */ (this.table);
    const at = table.columns.findIndex(({ id }) => id === column.id);
    const move = (/** @type {number} */ places) => moveColumn(table, column.id, places, this.hooks);
    const sort = (/** @type {string} */ sign) => {
      this.#order = null;
      setQuery({ sort: sign + column.id });
    };
    this.detail.openMenu(node, column.name, [
      {
        icon: "edit",
        text: t("tables.column.change"),
        run: () => openColumnForm(this.root, this.id, column, this.hooks),
      },
      { icon: "options", text: t("tables.sort.up"), run: () => sort("") },
      { icon: "options", text: t("tables.sort.down"), run: () => sort("-") },
      ...(at > 0 ? [{ icon: "previous", text: t("tables.column.left"), run: () => move(-1) }] : []),
      ...(at < table.columns.length - 1 ? [{ icon: "next", text: t("tables.column.right"), run: () => move(1) }] : []),
      { icon: "delete", text: t("tables.column.remove"), run: () => removeColumn(this.id, column, this.hooks) },
    ]);
  }

  #addColumn() {
    openColumnForm(this.root, this.id, null, this.hooks);
  }

  async #addRows() {
    const table = /** @type {Api.TableJson} */ (this.table);
    const papers = await choosePapersToAdd(this.root, new Set(table.rows.map(({ paper }) => paper)));
    if (!papers.length) return;
    try {
      this.take(await api.addRows(this.id, papers));
      if (table.columns.length) await this.fill();
    } catch (thrown) {
      showFailure(thrown);
    }
  }

  /** @param {Row} row */
  async #removeRow(row) {
    const key = api.makeKey();
    try {
      this.take(await api.removeRow(this.id, row.paper, key));
      offerUndo(t("tables.row.removed", { name: shorten(getName(row), 60) }), key);
    } catch (thrown) {
      showFailure(thrown);
    }
  }

  // The table as a whole

  fill = oneAtATime(async (/** @type {("failed" | "not_found" | "stale")[]} */ again = ["failed"]) => {
    try {
      const { filling } = await api.fillTable(this.id, again);
      if (this.table) this.table.filling = filling;
      this.#showProgress();
      await this.loadCells();
    } catch (thrown) {
      showFailure(thrown);
    }
  });

  #stop = oneAtATime(async () => {
    try {
      await api.stopFilling(this.id);
      await this.loadCells();
    } catch (thrown) {
      showFailure(thrown);
    }
  });

  /** Its papers that are in the library. */
  #listHere() {
    const { rows } = /** @type {Api.TableJson} */ (this.table);
    return rows.filter(({ state }) => state === "here").map(({ paper }) => paper);
  }

  /** Asks for a review of its papers, with the questions of its columns. */
  #review() {
    const papers = this.#listHere();
    const { columns } = /** @type {Api.TableJson} */ (this.table);
    const questions = columns.map(({ name, question }) => (question || name).replace(/\s+/g, " "));
    askForReview(this.root, { papers, questions }, papers.length);
  }

  async #rename() {
    const table = /** @type {Api.TableJson} */ (this.table);
    const name = el("input", {
      type: "text",
      id: "tables-rename",
      name: "name",
      required: true,
      maxlength: "200",
      dir: "auto",
      value: table.name,
    });
    const dialog = el("dialog", { class: "edit", "aria-labelledby": "tables-rename-title" });
    const problem = el("div");
    const onsubmit = async (/** @type {Event} */ event) => {
      event.preventDefault();
      const key = api.makeKey();
      try {
        this.take(await api.changeTable(table.id, { name: name.value.trim() }, key));
        dialog.close();
        offerUndo(t("tables.renamed"), key);
      } catch (thrown) {
        problem.replaceChildren(renderProblem(api.toApiError(thrown)));
      }
    };
    const row = el(
      "div",
      { class: "row" },
      makeButton("button", () => dialog.close(), t("cancel")),
      el("button", { type: "submit", class: "button primary" }, t("edit.save")),
    );
    const form = el("form", { class: "edit-form", onsubmit }, makeField(name, t("tables.name")), problem, row);
    dialog.append(el("h2", { id: "tables-rename-title" }, t("tables.rename")), form);
    const closed = openDialog(this.root, dialog);
    name.select();
    await closed;
  }

  async #delete() {
    const table = /** @type {Api.TableJson} */ (this.table);
    try {
      await deleteTable(table);
    } catch (thrown) {
      showFailure(thrown);
      return;
    }
    goTo({ view: "tables", id: "", query: {} });
  }
}
