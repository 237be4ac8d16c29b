// The words of a query in a passage, and how a passage is shown.

const LONG = 420; // characters of a passage that are shown at first
// Words too common to mark
const COMMON = new Set(
  (
    "a an and are as at by can do does for from how in is it its of on or that the this to " +
    "was what when which who why with"
  ).split(" "),
);

/** The lines of a passage joined; its paragraphs stay. @param {string} text */
export const joinPassage = (text) =>
  text
    .trim()
    .replace(/(?<!\n)\n(?!\n)/g, " ")
    .replace(/\n{2,}/g, "\n");

/** The beginning of a long passage. @param {string} text */
export const shortenPassage = (text) => (text.length > LONG ? `${text.slice(0, LONG).replace(/\S*$/, "")}…` : text);

/** A pattern for the words of a query and their other forms: "models" also marks "modelling". @param {string} query */
export function buildMarkPattern(query) {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const wanted = words.filter((word) => word.length > 1 && !COMMON.has(word));
  const stems = wanted.map((word) => (word.length > 4 ? word.replace(/(ing|es|ed|s)$/, "") : word));
  if (!stems.length) return null;
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${stems.join("|")})[\\p{L}]*`, "giu");
}

/**
 * A text in parts, each with whether the pattern marks it.
 * @param {string} text @param {RegExp | null} pattern
 * @returns {[string, boolean][]}
 */
export function splitMarks(text, pattern) {
  if (!pattern) return [[text, false]];
  /** @type {[string, boolean][]} */
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    parts.push([text.slice(end, match.index), false], [match[0], true]);
    end = match.index + match[0].length;
  }
  parts.push([text.slice(end), false]);
  return parts.filter(([part]) => part);
}
