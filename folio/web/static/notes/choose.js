// Which notes are shown, and in which order.

import { fold } from "../base/text.js";

/** @typedef {Api.NoteJson} Note */
/** @typedef {(note: Note) => string} GetTitle */

/**
 * @typedef {object} Wanted
 * @property {string} q words that a note has, in any order
 * @property {string} paper its id; "" for all
 * @property {string} colour "" for all; "none" for notes without one
 * @property {string} order one of ORDERS
 */

export const ORDERS = /** @type {const} */ (["place", "created", "updated"]);
export const COLOURS = /** @type {const} */ (["yellow", "green", "blue", "pink"]);

/** Gives what shows an annotation of Zotero its colour there. @template {HTMLElement} Node @param {Node} node */
export function addShade(node, /** @type {Api.NoteJson | undefined} */ note) {
  if (!note?.shade) return node;
  node.classList.add("shaded");
  node.style.setProperty("--shade", note.shade);
  return node;
}

/** @type {WeakMap<Note, string>} */
const searched = new WeakMap(); // a note is folded once

/** @param {Note} note @param {GetTitle} getTitle */
function getSearched(note, getTitle) {
  let text = searched.get(note);
  if (text === undefined) {
    const { quotes, statement, file } = note;
    text = fold([getTitle(note), file, note.text, statement, ...quotes.map(({ quote }) => quote)].join("\n"));
    searched.set(note, text);
  }
  return text;
}

/** What the address says about the notes. @param {Record<string, string>} query @returns {Wanted} */
export function parseWanted({ q = "", paper = "", colour = "", order = "" }) {
  const isColour = colour === "none" || COLOURS.some((each) => each === colour);
  return {
    q,
    paper,
    colour: isColour ? colour : "",
    order: ORDERS.find((each) => each === order) ?? ORDERS[0],
  };
}

/** @param {Note[]} notes @param {Wanted} wanted @param {GetTitle} getTitle */
export function chooseNotes(notes, { q, paper, colour, order }, getTitle) {
  const words = fold(q).split(/\s+/).filter(Boolean);
  const fits = (/** @type {Note} */ note) =>
    (!paper || note.quotes.some((quote) => quote.paper === paper)) &&
    (!colour || note.colour === (colour === "none" ? "" : colour)) &&
    words.every((word) => getSearched(note, getTitle).includes(word));
  return notes.filter(fits).sort((one, other) => compare(one, other, order, getTitle));
}

/** @param {Note} one @param {Note} other @param {string} order @param {GetTitle} getTitle */
function compare(one, other, order, getTitle) {
  if (order === "created" || order === "updated") return other[order].localeCompare(one[order]);
  const start = (/** @type {Note} */ { quotes }) => quotes[0]?.start ?? 0;
  return (
    getTitle(one).localeCompare(getTitle(other)) || one.paper.localeCompare(other.paper) || start(one) - start(other)
  );
}
