// What the words of an answer stand for: the statement and the quotes behind them, to select, note and copy.

/** @typedef {Api.QuoteJson & {span?: number[] | null, support?: number}} Quote a quote of a paper with its page */

/** @typedef {{conversation: string | null, turn: number | null}} Answered which answer it is, once that is stored */

/**
 * @typedef {object} Origin
 * @property {string} statement the statement that they are a part of; "" for a quote
 * @property {Quote[]} quotes
 * @property {Answered} answered
 */

/** @type {WeakMap<Element, Origin>} */
const origins = new WeakMap();
export const WITH_ORIGIN = "[data-quoted]"; // the elements that have an origin

/** @param {Element} node */
export const getOrigin = (node) => origins.get(node) ?? null;

/** @template {HTMLElement} T @param {T} node @param {Origin} origin */
export function setOrigin(node, origin) {
  node.dataset.quoted = "";
  origins.set(node, origin);
  return node;
}
