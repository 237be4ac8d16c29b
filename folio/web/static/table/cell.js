// What stands in a cell of a table, and in the head of a row.

import { el, formatPage, hideVisually, isolate, keepTogether, makeIcon } from "../base/dom.js";
import { linkTo } from "../base/router.js";
import { t } from "../base/strings.js";
import { joinLines, REWORDED_SIGN, shorten, shortenAtWord } from "../base/text.js";
import { makePageLink } from "../reader/reader.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("./rows.js").Cell} Cell */
/** @typedef {import("./rows.js").Finding} Finding */

const SHOWN = 3; // places that disagree, in a cell
const LONGEST = 260; // characters of a quote in a cell

/** @param {Row} row */
export const getName = ({ title, label, file }) => title || label || file;

/** A link to the page of a finding, where its quote is marked. @param {Row} row @param {Finding} finding @param {string} [text] */
export function makeFindingLink({ paper, title, file }, { page, label, span: [from, to], quote }, text = "") {
  const where = keepTogether(formatPage(page, label));
  const target = { paper, page, from, to, quote, title, file };
  return makePageLink(target, { class: "source" }, text ? [makeIcon("out"), `${text} `, where] : where);
}

/** @type {WeakMap<Finding, string>} */
const shortened = new WeakMap(); // a quote is shortened once, not each time that its row comes into view

/** @param {Finding} finding */
function shortenQuote(finding) {
  const short = shortened.get(finding) ?? shortenAtWord(finding.quote, LONGEST);
  shortened.set(finding, short);
  return short;
}

/** The words of a finding; those of a model are marked so, with the paper's below them. @param {Finding} finding */
function renderWords(finding) {
  const { value, by_model: isReworded } = finding;
  const words = el("bdi", {}, shortenQuote(finding));
  if (!value) return [el("p", { class: "tables-quote" }, words)];
  const sign = isReworded
    ? [el("span", { class: "tables-sign" }, REWORDED_SIGN), " ", hideVisually(t("tables.model"))]
    : null;
  return [
    el("p", { class: isReworded ? "tables-value tables-reworded" : "tables-value" }, sign, isolate(joinLines(value))),
    el("p", { class: "tables-quote" }, words),
  ];
}

/**
 * A finding in a cell. isOne: alone in its cell; else it is one line, for there are others.
 * @param {Row} row @param {Finding} finding @param {boolean} isOne
 */
function renderFinding(row, finding, isOne) {
  const { value, page, label, by_model: isReworded } = finding;
  const named = isOne ? finding : { ...finding, label: "" }; // there is little room beside the others
  const place = row.state === "removed" ? keepTogether(formatPage(page, label)) : makeFindingLink(row, named);
  if (place instanceof HTMLAnchorElement) place.tabIndex = -1;
  const by = isReworded ? el("span", { class: "tables-by" }, t("tables.model.short")) : null;
  const words = isOne || isReworded || !value ? renderWords(finding) : renderWords(finding).slice(0, 1);
  const kind = isOne ? "tables-finding" : "tables-finding tables-place";
  return el("div", { class: kind }, words, el("p", { class: "tables-where" }, place, by));
}

/** What is said of a cell besides its findings; null for nothing. @param {Cell} cell */
export function renderState({ state, stale, findings }) {
  if (state === "waiting")
    return el(
      "p",
      { class: "tables-quiet" },
      el("span", { "aria-hidden": "true" }, "·"),
      hideVisually(t("tables.waiting")),
    );
  if (state === "running") return el("p", { class: "tables-quiet working" }, t("tables.running"));
  if (state === "not_found") return el("p", { class: "tables-quiet" }, t("tables.not_found"));
  if (state === "failed") return el("p", { class: "warned" }, makeIcon("warning"), " ", t("tables.failed"));
  if (stale) return el("p", { class: "warned" }, makeIcon("warning"), " ", t("tables.stale"));
  if (state === "found" && findings.length > 1)
    return el("p", { class: "tables-by" }, t("tables.differ", { count: findings.length }));
  return null;
}

/** The children of a cell. @param {Row} row @param {Cell | undefined} cell @returns {HTMLElement[]} */
export function renderCell(row, cell) {
  if (!cell) return [];
  const state = renderState(cell);
  const said = state ? [state] : [];
  if (cell.edit) {
    const by = el(
      "p",
      { class: "tables-where" },
      el("span", { class: "tables-by" }, makeIcon("edit"), t("tables.edited")),
    );
    return [
      ...said,
      el("div", { class: "tables-finding" }, el("p", { class: "tables-value" }, isolate(joinLines(cell.edit))), by),
    ];
  }
  return [
    ...said,
    ...cell.findings.slice(0, SHOWN).map((finding) => renderFinding(row, finding, cell.findings.length === 1)),
  ];
}

/** The children of the head of a row. @param {Row} row @returns {HTMLElement[]} */
export function renderRowHead(row) {
  const { paper, label, year, state } = row;
  const name = isolate(shorten(joinLines(getName(row))));
  const isHere = state === "here";
  const link = isHere
    ? el("a", { href: linkTo({ view: "paper", id: paper }), class: "tables-paper", tabindex: "-1" }, name)
    : el("span", { class: "tables-paper" }, name);
  const facts = [label ? isolate(label) : null, label.includes(String(year)) || !year ? null : String(year)].filter(
    Boolean,
  );
  return [
    link,
    el(
      "p",
      { class: "tables-by" },
      facts.flatMap((fact, at) => [at ? " · " : null, fact]),
    ),
    ...(isHere ? [] : [el("p", { class: "warned" }, makeIcon("warning"), " ", t("tables.removed"))]),
  ];
}
