// A table's rows: what their cells say, which rows are shown, and in which order.

import { fold } from "../base/text.js";

/** @typedef {Api.CellJson & {rest?: Api.CellJson["state"]}} Cell rest: of a cell that is being asked, its state before */
/** @typedef {Api.ColumnJson} Column */
/** @typedef {Api.FindingJson} Finding */
/** @typedef {Api.RowJson & {cells: Map<string, Cell>}} Row a paper; its cells by their columns */

/** @typedef {"found" | "not_found" | "differ" | "model" | "edited" | "open"} State */

/**
 * @typedef {object} Wanted What the table is to show.
 * @property {string} q words that stand in a row
 * @property {State | ""} state that one of its cells has
 * @property {string} column where both are looked for; "" for all
 * @property {string} sort a column's id, TITLE or YEAR
 * @property {boolean} isDown from the last value to the first
 */

export const TITLE = "title";
export const YEAR = "year";
/** @type {State[]} */
export const STATES = ["found", "not_found", "differ", "model", "edited", "open"];

/** @param {Pick<Api.TableJson, "rows" | "cells">} table @returns {Row[]} */
export function makeRows({ rows, cells }) {
  const made = rows.map((row) => ({ ...row, cells: new Map() }));
  applyCells(made, cells);
  return made;
}

/**
 * Takes new cells. Returns those that are others than before, with their rows.
 * @param {Row[]} rows @param {Cell[]} cells @returns {{row: Row, cell: Cell}[]}
 */
export function applyCells(rows, cells) {
  const known = new Map(rows.map((row) => [row.paper, row]));
  return cells.flatMap((given) => {
    const row = known.get(given.paper);
    const before = row?.cells.get(given.column);
    const cell = given.state === "running" ? asRunning(given, before) : given;
    if (!row || isSame(before, cell)) return [];
    row.cells.set(cell.column, cell);
    searched.delete(row);
    return [{ row, cell }];
  });
}

/** @param {Cell} cell @param {Cell} [before] @returns {Cell} */
const asRunning = (cell, before) => ({ ...cell, state: "running", rest: before?.rest ?? before?.state ?? "waiting" });

/**
 * Shows which cells are being asked: those that wait in the rows of some papers, and `asked`. No others are any more.
 * @param {Row[]} rows @param {string[]} running ids of papers @param {Cell[]} [asked]
 * @returns {{row: Row, cell: Cell}[]} the cells that changed by that
 */
export function markRunning(rows, running, asked = []) {
  const papers = new Set(running);
  const kept = new Set(
    asked.filter(({ state }) => state === "running").map(({ paper, column }) => `${paper} ${column}`),
  );
  return rows.flatMap((row) => {
    const changed = [...row.cells.values()].flatMap((cell) => {
      const isAsked = papers.has(row.paper);
      if (cell.state === "waiting" && isAsked) return [asRunning(cell, cell)];
      if (cell.state !== "running" || isAsked || kept.has(`${cell.paper} ${cell.column}`)) return [];
      return [{ ...cell, state: cell.rest ?? "waiting", rest: undefined }];
    });
    for (const cell of changed) row.cells.set(cell.column, cell);
    return changed.map((cell) => ({ row, cell }));
  });
}

/** @param {Cell | undefined} one @param {Cell} other */
const isSame = (one, other) => one !== undefined && JSON.stringify(one) === JSON.stringify(other);

/** What a finding says first: a value, or the words of the paper. @param {Finding} finding */
export const getShown = ({ value, quote }) => value || quote;

/** What a cell says; "" for nothing. @param {Cell | undefined} cell */
export function getText(cell) {
  if (!cell) return "";
  return cell.edit || cell.findings.map(getShown).join("\n");
}

/** The number of a cell, in its column's unit; null without one. @param {Cell | undefined} cell */
export const getNumber = (cell) => (cell?.edit ? cell.edit_number : (cell?.findings[0]?.number ?? null));

/** @param {Cell | undefined} cell @param {State} state */
export function hasState(cell, state) {
  if (state === "open") return !cell || ["waiting", "running", "failed"].includes(cell.state);
  if (!cell) return false;
  if (cell.edit) return state === "edited" || state === "found";
  if (state === "found") return cell.findings.length > 0;
  if (state === "differ") return cell.findings.length > 1;
  if (state === "model") return cell.findings.some(({ by_model }) => by_model);
  return state === "not_found" && cell.state === "not_found";
}

/** What the address says about the rows. @param {Record<string, string>} query @returns {Wanted} */
export function parseWanted({ q = "", state = "", in: column = "", sort = "" }) {
  return {
    q,
    state: STATES.find((each) => each === state) ?? "",
    column,
    sort: sort.replace(/^-/, ""),
    isDown: sort.startsWith("-"),
  };
}

/** The query of an address; what is not wanted is "". @param {Wanted} wanted @returns {Record<string, string>} */
export const formatWanted = ({ q, state, column, sort, isDown }) => ({
  q,
  state,
  in: column,
  sort: sort ? `${isDown ? "-" : ""}${sort}` : "",
});

/** @type {WeakMap<Row, Map<string, string>>} */
const searched = new WeakMap(); // a row is folded once

/** The words of a row, or of one of its cells. @param {Row} row @param {string} column */
function getSearched(row, column) {
  const texts = searched.get(row) ?? new Map();
  searched.set(row, texts);
  let text = texts.get(column);
  if (text === undefined) {
    const cells = column ? [row.cells.get(column)] : [...row.cells.values()];
    const name = column ? [] : [row.label, row.title, row.file, String(row.year ?? "")];
    text = fold([...name, ...cells.map((cell) => listWords(cell).join("\n"))].join("\n"));
    texts.set(column, text);
  }
  return text;
}

/** @param {Cell | undefined} cell */
const listWords = (cell) => (cell ? [cell.edit, ...cell.findings.flatMap(({ value, quote }) => [value, quote])] : []);

/** The rows that fit, in the order that they have. @param {Row[]} rows @param {Wanted} wanted */
export function chooseRows(rows, { q, state, column }) {
  const words = fold(q).split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const cells = column ? [row.cells.get(column)] : [...row.cells.values()];
    if (state && !cells.some((cell) => hasState(cell, state))) return false;
    return words.every((word) => getSearched(row, column).includes(word));
  });
}

const names = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** @typedef {number | string | null} SortKey null: nothing to sort by */

/** @param {Row} row @param {string} sort @param {Column | undefined} column @returns {SortKey} */
function getSortKey(row, sort, column) {
  if (sort === YEAR) return row.year;
  if (!column) return row.title || row.file;
  const cell = row.cells.get(column.id);
  const text = getText(cell);
  if (column.kind === "number") return getNumber(cell) ?? (text || null);
  const place = column.kind === "choice" ? column.choices.findIndex((choice) => fold(choice) === fold(text)) : -1;
  if (place >= 0) return place;
  if (column.kind === "yes_no" && /^(yes|no)$/i.test(text)) return /^y/i.test(text) ? 0 : 1;
  return text || null;
}

/** Numbers come first, then words, and last what has neither. @param {SortKey} key */
const rank = (key) => (key === null ? 2 : typeof key === "number" ? 0 : 1);

/**
 * The rows in an order; those without a value come last either way.
 * @param {Row[]} rows @param {Column[]} columns @param {Wanted} wanted
 */
export function sortRows(rows, columns, { sort, isDown }) {
  if (!sort) return rows;
  const column = columns.find(({ id }) => id === sort);
  if (!column && sort !== TITLE && sort !== YEAR) return rows;
  const keyed = rows.map((row, at) => ({ row, at, key: getSortKey(row, sort, column) }));
  keyed.sort((one, other) => {
    if (rank(one.key) !== rank(other.key)) return rank(one.key) - rank(other.key);
    const order = compareKeys(one.key, other.key);
    return (isDown ? -order : order) || one.at - other.at;
  });
  return keyed.map(({ row }) => row);
}

/** @param {SortKey} one @param {SortKey} other */
function compareKeys(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return names.compare(String(one ?? ""), String(other ?? ""));
}
