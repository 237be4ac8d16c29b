// What leads to another place: the links of a PDF, and the words of its text that cite an entry of its references.

import { getBoxes, getText as getSpanText } from "./spans.js";

/** @typedef {import("./spans.js").Span} Span */
/** @typedef {import("./spans.js").Box} Box */
/**
 * @typedef {object} Lead
 * @property {Box[]} boxes
 * @property {Span} span of its words; an empty one if they are not known
 * @property {string} words
 * @property {number | null} page that it leads to; null: an address
 * @property {string} uri
 * @property {number[] | null} at left and top on that page, in points
 * @property {Span | null} entry of the references
 */
/** @typedef {{page: number, span: Span | null, words: string, top: number | null}} Goal top: points */

const LABEL = 12; // characters of the number before an entry
const FEW = 20; // a paragraph with fewer is a part of a figure
const LINE = 80; // characters that are marked of what is no entry

/** What leads elsewhere from a page. What a PDF's links cover is no second time a citation. */
/** @param {Api.PageText} text @returns {Lead[]} */
export function listLeads(text) {
  const links = text.links.map((link) => ({
    ...link,
    boxes: [/** @type {Box} */ (link.box)],
    span: getSpanOf(text, link.box),
    entry: null,
  }));
  const cited = text.citations.map(({ start, end, page, entry }) => ({
    boxes: getBoxes(text, start, end),
    span: /** @type {Span} */ ([start, end]),
    page,
    uri: "",
    at: null,
    entry: /** @type {Span} */ (entry),
  }));
  const isLinked = (/** @type {{span: Span}} */ { span: [start, end] }) =>
    links.some(({ span }) => span[0] < end && start < span[1]);
  const leads = [...links, ...cited.filter((each) => !isLinked(each))];
  return leads.map((each) => ({ ...each, words: getSpanText(text, ...each.span) }));
}

/** The words in a box on a page. @param {Api.PageText} text @param {number[]} box @returns {Span} */
function getSpanOf({ words }, [left, top, right, bottom]) {
  /** @type {Span} */
  let span = [0, 0];
  for (const [first, last, x0, y0, x1, y1] of words) {
    const middle = (y0 + y1) / 2;
    const width = (x1 - x0) / Math.max(1, last - first);
    const [from, to] = [left, right].map((x) => Math.min(last, Math.max(first, first + Math.round((x - x0) / width))));
    if (middle > top && middle < bottom && from < to)
      span = [span[1] ? Math.min(span[0], from) : from, Math.max(span[1], to)];
  }
  return span;
}

/** Where a lead leads on a page: to an entry of the references, or a line. @param {Api.PageText} text @param {Lead} lead */
export function findGoal(text, { entry, at }) {
  const start = entry ? entry[0] : at && findWord(text, at);
  const unknown = { page: text.page, span: null, words: "", top: at?.[1] ?? null };
  if (start === null) return unknown;
  const listed = text.references.find(([from, to]) => from - start < LABEL && start < to);
  const whole = entry ?? listed;
  const [, end] = whole ?? text.paragraphs.find(([from, to]) => from <= start && start < to) ?? [0, start + LINE];
  const words = getSpanText(text, whole?.[0] ?? start, end);
  if (!whole && words.length < FEW) return unknown;
  const span = /** @type {Span} */ (whole ?? [start, Math.min(end, start + LINE)]);
  return { page: text.page, span, words, top: at?.[1] ?? null };
}

/** The offset of the first word at a place of a page or below; null without one. */
/** @param {Api.PageText} text @param {number[]} place left and top */
function findWord({ words }, [left, top]) {
  const cost = (/** @type {number[]} */ [, , x0, y0]) => Math.max(0, y0 - top) + 0.1 * Math.abs(x0 - left);
  const below = words.filter(([, , , y0, x1, y1]) => (y0 + y1) / 2 >= top && x1 > left);
  return below.length ? below.reduce((one, other) => (cost(other) < cost(one) ? other : one))[0] : null;
}
