// Spans of a paper's text on its pages: their text, their boxes, and where words stand.

/** @typedef {[number, number, number, number]} Box left, top, right, bottom, in points */
/** @typedef {[number, number]} Span start and end in the text of the paper, in code points */
/**
 * @typedef {object} Mark What is marked in a paper: a span, or words to look for on a page.
 * @property {number} page
 * @property {number | null} [from]
 * @property {number | null} [to]
 * @property {string} [words] a checksum of the quote, as an address has it in place of the quote
 * @property {string} [quote]
 */

const OVERLAP = 0.5; // of a letter's height: boxes of one line have it in common
const WORD_SPACE = 1.2; // of a letter's height: boxes of a line that are farther apart are not joined

const DOT = 7; // points: half of a dot in the margin
const BESIDE = 11; // from its middle to the text

/** @type {WeakMap<Api.PageText, {chars: string[], letters: string, offsets: number[]}>} */
const prepared = new WeakMap();

/** @param {string} char */
const foldChar = (char) =>
  char
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, "");

/** Only letters and digits, without case and accents. @param {string} text */
export const fold = (text) => foldChar(text);

/** @param {Api.PageText} page */
function prepare(page) {
  let known = prepared.get(page);
  if (!known) {
    const chars = [...page.text];
    /** @type {string[]} */
    const letters = [];
    /** @type {number[]} */
    const offsets = [];
    chars.forEach((char, at) => {
      const folded = foldChar(char);
      if (folded) letters.push(folded);
      for (let unit = 0; unit < folded.length; unit += 1) offsets.push(at);
    });
    known = { chars, letters: letters.join(""), offsets };
    prepared.set(page, known);
  }
  return known;
}

/**
 * The text of a span as far as it is on a page.
 * @param {Api.PageText} page @param {number} start @param {number} end
 */
export const getText = (page, start, end) =>
  prepare(page)
    .chars.slice(Math.max(0, start - page.start), Math.max(0, end - page.start))
    .join("");

/**
 * The span of words on a page, without regard to spaces, signs, case and accents; null if it does not have them.
 * @param {Api.PageText} page @param {string} quote
 * @returns {Span | null}
 */
export function findQuote(page, quote) {
  const { letters, offsets } = prepare(page);
  const wanted = fold(quote);
  const at = wanted ? letters.indexOf(wanted) : -1;
  return at < 0 ? null : [page.start + offsets[at], page.start + offsets[at + wanted.length - 1] + 1];
}

/** A checksum of the words of a quote (FNV-1a, 32 bits). @param {string} quote */
export function checksum(quote) {
  let sum = 0x811c9dc5;
  for (const char of fold(quote)) sum = Math.imul(sum ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return sum.toString(36);
}

/** Whether a span has these words, as far as it is on a page. */
/** @param {Api.PageText} page @param {number} from @param {number} to @param {string} words folded */
function hasWords(page, from, to, words) {
  const here = fold(getText(page, from, to));
  return from >= page.start && to <= page.end ? words === here : words.includes(here);
}

/**
 * Where a mark stands on a page; null if it is not there. A span whose words changed since is looked for by its words.
 * @param {Api.PageText} page @param {Mark} mark
 * @returns {Span | null}
 */
export function locate(page, { page: number, from, to, quote, words }) {
  if (from != null && to != null && to > page.start && from < page.end) {
    const isEarlier = number === page.page && from < page.start; // than its own page: the text has changed
    const isWhole = from >= page.start && to <= page.end;
    if (!quote && words && isWhole && checksum(getText(page, from, to)) !== words) return null;
    if (!quote || (!isEarlier && hasWords(page, from, to, fold(quote)))) return [from, to];
  }
  return quote && number === page.page ? findQuote(page, quote) : null;
}

/**
 * The span without the white space at its ends.
 * @param {Api.PageText} page @param {number} start @param {number} end
 */
export function trim(page, start, end) {
  const { chars } = prepare(page);
  let [first, last] = [start - page.start, end - page.start];
  while (first < last && /\s/.test(chars[first] ?? "")) first += 1;
  while (last > first && /\s/.test(chars[last - 1] ?? "")) last -= 1;
  return /** @type {Span} */ ([first + page.start, last + page.start]);
}

/**
 * The boxes of a span on a page, one for each line of each column.
 * @param {Api.PageText} page @param {number} start @param {number} end
 * @returns {Box[]}
 */
export function getBoxes(page, start, end) {
  /** @type {Box[]} */
  const boxes = [];
  for (const word of page.words) {
    if (word[1] <= start || word[0] >= end) continue;
    const box = cropWord(word, start, end, page.direction === "rtl");
    const last = boxes.at(-1);
    if (last && isBeside(last, box)) boxes[boxes.length - 1] = join(last, box);
    else boxes.push(box);
  }
  return boxes;
}

/**
 * The part of a word's box that a span covers, as if its letters were equally wide.
 * @param {number[]} word @param {number} start @param {number} end @param {boolean} isFromRight
 * @returns {Box}
 */
function cropWord([first, last, x0, y0, x1, y1], start, end, isFromRight) {
  const [before, after] = [Math.max(0, start - first), Math.max(0, last - end)];
  const width = (x1 - x0) / Math.max(1, last - first);
  const [left, right] = isFromRight ? [after, before] : [before, after];
  return [x0 + left * width, y0, x1 - right * width, y1];
}

/** Whether a box goes on in the line of another. @param {Box} one @param {Box} other */
function isBeside(one, other) {
  const height = Math.min(one[3] - one[1], other[3] - other[1]);
  const overlap = Math.min(one[3], other[3]) - Math.max(one[1], other[1]);
  const gap = Math.max(other[0] - one[2], one[0] - other[2]);
  return overlap > height * OVERLAP && gap < height * WORD_SPACE;
}

/** @param {Box} one @param {Box} other @returns {Box} */
const join = (one, other) => [
  Math.min(one[0], other[0]),
  Math.min(one[1], other[1]),
  Math.max(one[2], other[2]),
  Math.max(one[3], other[3]),
];

/**
 * Where the text of a page begins and ends, as shares of its width; null without words.
 * @param {Api.PageText} page
 * @returns {[number, number] | null}
 */
export function getTextEdges({ words, width }) {
  if (!words.length) return null;
  // A stamp in the margin is no text: the outermost words on each side do not count.
  const few = Math.floor(words.length / 100);
  const lefts = words.map((word) => word[2]).sort((one, other) => one - other);
  const rights = words.map((word) => word[4]).sort((one, other) => one - other);
  return [lefts[few] / width, rights[rights.length - 1 - few] / width];
}

/**
 * Where a dot in the margin beside a box hides no word and no other dot: its middle, in points.
 * @param {Api.PageText} page @param {number[]} box @param {number[][]} taken the middles of other dots
 */
export function findMargin(page, [left, top, right], taken) {
  const { words, width, height } = page;
  const [first, last] = (getTextEdges(page) ?? [0.08, 0.92]).map((edge) => edge * width);
  const sides = left - first <= last - right ? [first - BESIDE, last + BESIDE] : [last + BESIDE, first - BESIDE];
  const spots = [...sides, width - BESIDE, BESIDE].map((x) => Math.min(Math.max(x, DOT), width - DOT));
  const isFree = (/** @type {number} */ x, /** @type {number} */ y) =>
    !taken.some(([otherX, otherY]) => Math.hypot(otherX - x, otherY - y) < 2 * DOT) &&
    !words.some(([, , x0, y0, x1, y1]) => x0 < x + DOT && x1 > x - DOT && y0 < y + DOT && y1 > y - DOT);
  for (let y = top + DOT; y < height - DOT; y += DOT) {
    const x = spots.find((spot) => isFree(spot, y));
    if (x !== undefined) return [x, y];
  }
  return [spots[0], top];
}

/**
 * A text in pieces, each with the marks that cover it. marks may overlap.
 * @template {{span: Span}} M
 * @param {number} start @param {number} end @param {M[]} marks
 * @returns {{start: number, end: number, marks: M[]}[]}
 */
export function cut(start, end, marks) {
  const edges = new Set([start, end]);
  for (const { span } of marks) for (const edge of span) if (edge > start && edge < end) edges.add(edge);
  const sorted = [...edges].sort((one, other) => one - other);
  return sorted.slice(0, -1).map((from, at) => {
    const to = sorted[at + 1];
    return { start: from, end: to, marks: marks.filter(({ span }) => span[0] < to && span[1] > from) };
  });
}
