// Sizes of pages: how large they are shown, and the picture that this needs.

/** @typedef {"width" | "page" | "text"} Fit */
/** @typedef {{width: number, height: number}} Size */

/** @typedef {Size & {turn: number}} Turned a page as a person has turned it: 0, 90, 180 or 270 degrees */

export const ACTUAL = 96 / 72; // CSS pixels of a point at 100%
const STEPS = [0.25, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5].map((step) => step * ACTUAL);
const DPIS = [72, 96, 120, 150, 200, 250, 300, 400]; // few, so that pictures are used again
const MOST_PIXELS = 16e6; // of a picture; the server draws no larger ones
const MARGIN = 0.06; // of the width, beside the text of a page
const MAX_TEXT = 2; // the text is shown at most this many times as large as when the page fits the width

/**
 * CSS pixels of a point, so that a page fits.
 * @param {Fit} fit @param {Size} page points @param {Size} view CSS pixels
 * @param {[number, number] | null} edges of the text, as shares of the width
 */
export function fitPage(fit, page, view, edges) {
  const width = Math.max(view.width, 50) / page.width;
  if (fit === "page") return Math.min(width, Math.max(view.height, 50) / page.height);
  if (fit === "width" || !edges) return width;
  return width * Math.min(MAX_TEXT, Math.max(1, 1 / (edges[1] - edges[0] + MARGIN)));
}

/** A size as an address has it: "page", "125" percent; "" for what fits the text. @param {Fit | number} zoom */
export const formatZoom = (zoom) =>
  typeof zoom === "number" ? String(Math.round((zoom / ACTUAL) * 100)) : zoom === "text" ? "" : zoom;

/** @param {string} text @returns {Fit | number} */
export function parseZoom(text) {
  if (text === "width" || text === "page") return text;
  return Number(text) ? (Number(text) / 100) * ACTUAL : "text";
}

/**
 * A place of a page where it is once the page is turned.
 * @param {[number, number]} place left and top, in points @param {Turned} page as it is turned
 * @returns {[number, number]}
 */
export function turnPoint([x, y], { width, height, turn }) {
  if (turn === 90) return [width - y, x];
  if (turn === 180) return [width - x, height - y];
  return turn === 270 ? [y, height - x] : [x, y];
}

/** The next larger (by: 1) or smaller (-1) size. @param {number} scale @param {number} by */
export function stepZoom(scale, by) {
  const steps = by > 0 ? STEPS : STEPS.toReversed();
  return steps.find((step) => (step / scale - 1) * by > 0.01) ?? scale;
}

/**
 * The dots per inch that a screen needs.
 * @param {number} scale CSS pixels of a point @param {number} ratio pixels of a CSS pixel @param {Size} page points
 */
export function chooseDpi(scale, ratio, page) {
  const wanted = scale * 72 * ratio;
  const most = 72 * Math.sqrt(MOST_PIXELS / (page.width * page.height));
  const fitting = DPIS.filter((dpi) => dpi <= most);
  return fitting.find((dpi) => dpi >= wanted - 1) ?? fitting.at(-1) ?? 36;
}
