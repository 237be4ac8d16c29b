// Every text of the page, by its key. A language is another table with the same keys.

/**
 * "{name}" stands for a value. A text that depends on a number has two forms.
 * @typedef {string | {one: string, other: string}} Text
 */

export const TEXTS = Object.freeze({
  again: "Try again",
  copied: "{what} copied.",
  "copy.refused": "The browser does not allow copying from this page.",
  page: "p. {page}",
  "page.printed": "p. {page} (printed {label})",
  pages: "pp. {first}–{last}",
  "error.connection": "Folio is not responding.",
  "error.connection.remedy": "Check that Folio is still running in its terminal, then try again.",
  "error.page": "Something went wrong in this page.",
  "error.page.remedy": "Reload it. If this happens again, please report it.",
  "error.status": "The server responded with status {status}.",
  "error.status.remedy": "The terminal that Folio runs in shows details.",
});

/** @typedef {keyof typeof TEXTS} Key */
/** @typedef {Record<string, string | number | Node>} Values */

/** @type {Record<string, Text>} */
const texts = TEXTS;
const numbers = new Intl.PluralRules("en");

/** @param {Key} key @param {Values} values */
function choose(key, values) {
  const text = texts[key];
  if (typeof text === "string") return text;
  return text[numbers.select(Number(values.count)) === "one" ? "one" : "other"];
}

/**
 * The text with its values. `count` chooses between the two forms of a text that has them.
 * @param {Key} key @param {Record<string, string | number>} [values]
 */
export const t = (key, values = {}) =>
  choose(key, values).replace(/\{(\w+)\}/g, (_, name) => formatValue(values[name] ?? ""));

/** @param {string | number} value */
const formatValue = (value) => (typeof value === "number" ? value.toLocaleString() : value);

/**
 * The text in parts, as children of an element: its values may be elements.
 * @param {Key} key @param {Values} values
 * @returns {(string | Node)[]}
 */
export function parts(key, values) {
  return choose(key, values)
    .split(/\{(\w+)\}/)
    .map((part, at) => {
      if (at % 2 === 0) return part;
      const value = values[part] ?? "";
      return typeof value === "object" ? value : formatValue(value);
    })
    .filter((part) => part !== "");
}
