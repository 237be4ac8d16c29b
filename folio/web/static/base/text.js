// Text of papers and models as it is shown and copied, like folio/shown_text.py: it cannot pass for a citation.

const ZOTERO_LINK = /^zotero:\/\/open-pdf\/(library|groups\/[1-9]\d{0,9})\/items\/[A-Z0-9]{8}\?page=[1-9]\d{0,6}$/;

/** The link if it opens a page in Zotero, else "". @param {string | null | undefined} link */
export const checkZoteroLink = (link) => (ZOTERO_LINK.test(link ?? "") ? link : "");

export const REWORDED_SIGN = "≈"; // before a statement in a model's own words
const TAB = 4; // columns
const OPENING = "[［〔【〖〘〚❲⟦⟬⁅﹝⦋⦍⦏";
const CLOSING = "]］〕】〗〙〛❳⟧⟭⁆﹞⦌⦎⦐";
const DOT = "[.․．｡。·‧∙⋅•…]";
// "p.7", "pp. 3-4" or "Section 3" before a closing bracket, and " р.l" in letters that look like these
const LETTER = "[\\p{L}\\p{M}]";
const WORD = "[\\p{L}\\p{M}\\p{N}_]";
const PAGE = new RegExp(
  `(?:${LETTER}(?:\\s|${DOT}){1,3}\\p{Nd}+|(?<!${WORD})pp?\\p{Nd}+|\\s${LETTER}\\s?${DOT}\\s?${WORD}{1,8})` +
    `(?:\\s?[,;–-]\\s?\\p{Nd}+)*[^\\p{L}\\p{M}\\p{N}_]{0,3}$`,
  "u",
);
const REACH = 40;
const CLOSED = new RegExp(`[${CLOSING.replace("]", "\\]")}]`, "u");
// Control characters and those without a width, which hide something or change the direction of reading
const HIDDEN = /[\p{Cc}\p{Cf}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/gu;

// Zero-width joiners, which some scripts need, but not beside ASCII or at an end
const STRAY_JOINERS = /(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])/gu;

/** Letters without case and accents, to search. @param {string} text */
export const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** Text on one line. @param {string} text */
export const joinLines = (text) =>
  withoutCitations(text.replace(/\s+/g, " ").trim().replace(STRAY_JOINERS, "").replace(HIDDEN, showHidden));

/** @param {string} char */
const showHidden = (char) => (char === "\u200c" || char === "\u200d" ? char : "\ufffd");

/**
 * A sentence on a line of its own: "1. x" becomes "1) x", for the sources are numbered so, and our sign "~".
 * @param {string} text
 */
export const joinSentence = (text) =>
  joinLines(text)
    .replace(/^\[(\p{Nd}+)\](?=\s|$)/u, "($1)")
    .replace(new RegExp(`^(\\p{Nd}+)${DOT}(?=\\s|$)`, "u"), "$1)")
    .replace(new RegExp(`^${REWORDED_SIGN}`), "~");

/**
 * A statement line by line: a list, code or a table keeps its line breaks, indents and columns.
 * @param {string} text @returns {string[]}
 */
export function splitStatement(text) {
  const lines = text.split(/\r\n?|\n/).map((line) => showSpaces(line).trimEnd());
  const visible = lines
    .join("\n")
    .replace(/\n\s*\n/g, "\n\n")
    .replace(/^\n+|\n+$/g, "");
  if (!visible.includes("\n")) return [joinSentence(text)];
  // A citation is looked for as if the text were on one line, so that no spaces hide it.
  const flat = [...visible.replace(/\s+/g, " ").trim()];
  const other = [...withoutCitations(flat.join(""))];
  const shown = other.filter((_, at) => isBracket(flat[at]))[Symbol.iterator]();
  return [...visible]
    .map((char) => (isBracket(char) ? (shown.next().value ?? char) : char))
    .join("")
    .split("\n");
}

/** @param {string} char */
const isBracket = (char) => OPENING.includes(char) || CLOSING.includes(char);

/** A line whose tabs are spaces up to the next column, and every other white space one space. @param {string} line */
function showSpaces(line) {
  let shown = "";
  for (const char of line) shown += char === "\t" ? " ".repeat(TAB - ([...shown].length % TAB)) : char;
  return shown.replace(/\s/g, " ").replace(STRAY_JOINERS, "").replace(HIDDEN, showHidden);
}

/**
 * What is shown of a text in parts, each with whether it is marked. marks: spans [start, end) of the text, in code
 * points. They are found by counting what is neither a space nor a joiner, as in folio/shown_text.py.
 * @param {string} shown @param {string} text @param {number[][]} marks
 * @returns {[string, boolean][]}
 */
export function splitMarked(shown, text, marks = []) {
  const [written, visible] = [[...text], [...shown]];
  const ink = visible.flatMap((char, at) => (hasInk(char) ? [at] : []));
  /** @type {[string, boolean][]} */
  const parts = [];
  let at = 0;
  for (const span of marks) {
    const [first, last] = span.map((offset) => written.slice(0, offset).filter(hasInk).length);
    if (last <= first || last > ink.length) continue;
    const end = ink[last - 1] + 1;
    parts.push([visible.slice(at, ink[first]).join(""), false], [visible.slice(ink[first], end).join(""), true]);
    at = end;
  }
  parts.push([visible.slice(at).join(""), false]);
  return parts.filter(([part]) => part);
}

/** Whether a character is neither white space nor a joiner. @param {string} char */
export const hasInk = (char) => !/[\s\u200c\u200d]/.test(char);

/** Text on one line, cut at the end of a word. @param {string} text @param {number} longest */
export function shortenAtWord(text, longest) {
  const line = [...joinLines(text)];
  if (line.length <= longest) return line.join("");
  const cut = line.slice(0, longest - 2).join("");
  const end = cut.lastIndexOf(" ");
  return withoutCitations(`${end > 0 ? cut.slice(0, end) : cut} …`);
}

/** A title, a person or a file: without the middle of a very long one. @param {string} line */
export function shorten(line, longest = 200) {
  const tail = Math.floor(longest / 3);
  return line.length > longest ? withoutCitations(`${line.slice(0, longest - tail - 1)}…${line.slice(-tail)}`) : line;
}

/**
 * A citation's name and its page: "Ongaro 2014" and ", p. 6"; "otters" and " p.7".
 * @param {string} shown @returns {[string, string]}
 */
export function splitMark(shown) {
  const [, key, place] = /^\[?(.*?)(, p\. \d+| p\.\d+)\]?$/s.exec(shown) ?? ["", shown, ""];
  return [key, place];
}

/**
 * "[Ongaro 2014, p. 6]". The server writes it so; an older one may have left brackets in the name.
 * @param {{shown: string, page: number}} cited
 */
export function formatMark({ shown, page }) {
  const [key, place] = splitMark(shown);
  const separator = place.startsWith(",") ? ", p. " : " p.";
  const bare = [...key].map((char) => (OPENING.includes(char) ? "(" : CLOSING.includes(char) ? ")" : char)).join("");
  return `[${shorten(joinLines(bare), 100)}${separator}${page}]`;
}

/** Text with round brackets for the square ones around a page reference. @param {string} text */
export function withoutCitations(text) {
  if (!CLOSED.test(text)) return text; // most texts; a table has hundreds
  /** @type {number[]} */
  const opened = [];
  const characters = [...text];
  characters.forEach((char, at) => {
    if (OPENING.includes(char)) opened.push(at);
    if (!CLOSING.includes(char)) return;
    const start = opened.pop();
    if (!PAGE.test(characters.slice(Math.max(0, at - REACH), at).join(""))) return;
    characters[at] = ")";
    if (start !== undefined) characters[start] = "(";
  });
  return characters.join("");
}
