// A column of numbers as a small plot: how many values lie where.

import { el } from "../base/dom.js";
import { formatNumber, t } from "../base/strings.js";

const BARS = 16; // at most
const SKEWED = 50; // times the middle value: beyond that the scale is logarithmic
const WIDTH = 160; // units of the drawing
const HEIGHT = 22;
const GAP = 1;
const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {object} Plot
 * @property {number[]} counts of the values in each bar, from the smallest
 * @property {number} from the smallest value
 * @property {number} to the largest value
 * @property {number} middle the median
 * @property {number} count of values
 * @property {boolean} isLog whether the bars are equally wide on a logarithmic scale
 */

/** How values spread; null for fewer than two different ones. @param {number[]} values @returns {Plot | null} */
export function makePlot(values) {
  const sorted = values.filter(Number.isFinite).sort((one, other) => one - other);
  const count = sorted.length;
  const [from, to] = [sorted[0], sorted[count - 1]];
  if (count < 2 || from === to) return null;
  const middle = (sorted[(count - 1) >> 1] + sorted[count >> 1]) / 2;
  const isLog = from > 0 && to > SKEWED * middle;
  const scale = isLog ? Math.log : (/** @type {number} */ value) => value;
  const bars = countBars(sorted);
  const counts = new Array(bars).fill(0);
  const [low, high] = [scale(from), scale(to)];
  for (const value of sorted) counts[Math.min(bars - 1, Math.floor(((scale(value) - low) / (high - low)) * bars))] += 1;
  return { counts, from, to, middle, count, isLog };
}

/** As many bars as values can fill; whole numbers, such as years, have one each where that is possible. */
/** @param {number[]} sorted */
function countBars(sorted) {
  const span = sorted[sorted.length - 1] - sorted[0] + 1;
  if (sorted.every(Number.isInteger) && span <= BARS) return span;
  return Math.max(4, Math.min(BARS, Math.ceil(Math.sqrt(sorted.length) * 1.5)));
}

const short = new Intl.NumberFormat([], { maximumSignificantDigits: 4 });

/** @param {number} value @param {boolean} isYear */
const format = (value, isYear) =>
  isYear ? String(value) : Number.isInteger(value) ? formatNumber(value) : short.format(value);

/** The plot in words. @param {Plot} plot @param {{isYear?: boolean, unit?: string}} [of] */
export function describePlot({ count, from, to, middle, isLog }, { isYear = false, unit = "" } = {}) {
  const values = { count, from: format(from, isYear), to: format(to, isYear), middle: format(middle, isYear) };
  return [t("tables.plot", values), unit, isLog ? t("tables.plot.log") : ""].filter(Boolean).join(", ");
}

/** @param {string} name @param {Record<string, string | number>} attributes */
function makeSvg(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  return node;
}

/** The plot, with its smallest and largest value below it. @param {Plot} plot @param {{isYear?: boolean, unit?: string}} [of] */
export function renderPlot(plot, of = {}) {
  const { counts } = plot;
  const most = Math.max(...counts);
  const step = WIDTH / counts.length;
  const text = describePlot(plot, of);
  const svg = makeSvg("svg", {
    class: "tables-plot",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    preserveAspectRatio: "none",
  });
  svg.setAttribute("aria-label", text);
  const title = makeSvg("title", {});
  title.textContent = text;
  svg.append(title);
  counts.forEach((count, at) => {
    const height = count ? Math.max(2, (count / most) * (HEIGHT - 1)) : 0;
    const place = { x: at * step, y: HEIGHT - 1 - height, width: Math.max(1, step - GAP), height };
    if (count) svg.append(makeSvg("rect", place));
  });
  svg.append(makeSvg("rect", { class: "tables-plot-line", x: 0, y: HEIGHT - 1, width: WIDTH, height: 1 }));
  const ends = [plot.from, plot.to].map((value) => el("span", {}, format(value, of.isYear ?? false)));
  return el("div", {}, svg, el("div", { class: "tables-range", "aria-hidden": "true" }, ends));
}
