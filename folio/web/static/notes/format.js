// A note as it is copied and dragged: its quotes with their citations, and the person's own words.

import { t } from "../base/strings.js";
import { formatMark, joinLines } from "../base/text.js";

/** @typedef {Api.NoteJson} Note */
/** @typedef {(quote: Api.NoteQuoteJson) => string} GetKey the name of its paper in citations, such as "Otter 2014" */

/** @type {Record<string, string>} */
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** @param {string} text */
const escapeHtml = (text) => text.replace(/[&<>"]/g, (char) => ENTITIES[char]);

/** The paragraphs of what a person wrote. @param {string} text */
const splitLines = (text) =>
  text
    .split(/\r\n?|\n/)
    .map(joinLines)
    .filter(Boolean);

/** The words of a place, or what it is without words. @param {{quote: string, page: number, area: number[] | null}} place */
export const namePlace = ({ quote, page, area }) =>
  quote || t(page ? (area ? "notes.on.area" : "notes.on.page") : "notes.on.paper", { page: String(page) });

/** "[Otter 2014, p. 3]", and whether the words are there no more. @param {Api.NoteQuoteJson} quote @param {GetKey} getKey */
function formatCitation(quote, getKey) {
  const { page, place } = quote;
  const mark = page ? formatMark({ shown: `[${getKey(quote)}, p. ${page}]`, page }) : `[${joinLines(getKey(quote))}]`;
  return place === "lost" || place === "removed" ? `${mark} (${t(`notes.${place}`)})` : mark;
}

/** @param {Note} note @param {GetKey} getKey */
function listLines({ statement, quotes, text }, getKey) {
  return [
    ...splitLines(statement).map((line) => ({ line, cited: "" })),
    ...quotes.map((quote) => ({
      line: quote.quote && `“${joinLines(quote.quote)}”`,
      cited: formatCitation(quote, getKey),
    })),
    ...splitLines(text).map((line) => ({ line, cited: "" })),
  ];
}

/** @param {Note} note @param {GetKey} getKey */
export const formatNoteText = (note, getKey) =>
  listLines(note, getKey)
    .map(({ line, cited }) => [line, cited].filter(Boolean).join(" "))
    .join("\n");

/** @param {Note} note @param {GetKey} getKey */
export const formatNoteHtml = (note, getKey) =>
  listLines(note, getKey)
    .map(({ line, cited }) =>
      cited ? `<blockquote>${escapeHtml(line)} ${escapeHtml(cited)}</blockquote>` : `<p>${escapeHtml(line)}</p>`,
    )
    .join("");
