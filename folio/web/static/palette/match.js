// What fits the words of the palette, best first.

import { fold } from "../base/text.js";

/** @template T @typedef {{item: T, text: string, title: string}} Entry text: what is searched; both are folded */

const ENOUGH = 2000; // fitting entries, after which no more are looked for

/** @template T @param {T} item @param {string} title @param {string[]} [more] @returns {Entry<T>} */
export const makeEntry = (item, title, more = []) => {
  const folded = fold(title);
  return { item, title: folded, text: [folded, ...more.map(fold)].join(" ") };
};

/** How well an entry with all the words fits: lower is better. */
/** @param {{title: string, text: string}} entry @param {string} query @param {string[]} words */
function rank({ title, text }, query, words) {
  if (title.startsWith(query)) return 0;
  if (title.includes(query)) return 1;
  if (words.every((word) => title.startsWith(word) || title.includes(` ${word}`))) return 2;
  return words.every((word) => ` ${text}`.includes(` ${word}`)) ? 3 : 4;
}

/**
 * The best entries with all the words, at most `most`. Entries that fit as well stay in their order.
 * @template T
 * @param {Entry<T>[]} entries @param {string} query @param {number} most
 * @returns {T[]}
 */
export function findEntries(entries, query, most) {
  const words = fold(query).split(/\s+/).filter(Boolean);
  if (!words.length) return entries.slice(0, most).map(({ item }) => item);
  /** @type {T[][]} */
  const ranks = [[], [], [], [], []];
  const joined = words.join(" ");
  let count = 0;
  for (const entry of entries) {
    if (!words.every((word) => entry.text.includes(word))) continue;
    ranks[rank(entry, joined, words)].push(entry.item);
    count += 1;
    if (count >= ENOUGH) break;
  }
  return ranks.flat().slice(0, most);
}
