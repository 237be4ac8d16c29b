// Words that a person selected, and where the words of a quote are among them: spans [start, end) in code points.

import { hasInk } from "../base/text.js";

/** @typedef {import("../base/state.js").Selection} Selection */
/** @typedef {{paper: string, page: number, quote: string, span?: number[] | null}} Quoted */

/**
 * Where a text has these words, however they are spaced and broken into lines; null if it has not.
 * @param {string} text @param {string} words
 * @returns {[number, number] | null}
 */
export function findSpan(text, words) {
  const places = [...text].flatMap((char, at) => (hasInk(char) ? [{ char, at }] : []));
  const wanted = [...words].filter(hasInk);
  if (!wanted.length) return null;
  for (let first = 0; first + wanted.length <= places.length; first += 1) {
    if (wanted.every((char, at) => places[first + at].char === char)) {
      return [places[first].at, places[first + wanted.length - 1].at + 1];
    }
  }
  return null;
}

/**
 * The place in a paper of words that were selected in an answer: their own, if a quote has them, else the whole first
 * quote, which they are about. null if no quote knows its place.
 * @param {string} words @param {Quoted[]} quotes
 * @returns {Selection | null}
 */
export function locate(words, quotes) {
  const placed = quotes.flatMap((quoted) => (quoted.span ? [{ ...quoted, first: quoted.span[0] }] : []));
  for (const { paper, page, quote, first } of placed) {
    const span = findSpan(quote, words);
    if (span) {
      const [start, end] = span;
      return { paper, page, start: first + start, end: first + end, text: [...quote].slice(start, end).join("") };
    }
  }
  if (!placed.length) return null;
  const { paper, page, quote, first } = placed[0];
  return { paper, page, start: first, end: first + [...quote].length, text: quote };
}
