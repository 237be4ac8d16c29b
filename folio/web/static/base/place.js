// The address of each state of the page: what is shown, and the page of a paper that is open beside it.

/**
 * @typedef {object} Reading A page that is open in the reader.
 * @property {string} paper its id
 * @property {number} page from 1
 * @property {number | null} from where the marked words begin and end: offsets in the paper's text, in code points
 * @property {number | null} to
 * @property {string} [words] a checksum of the marked words: after a rebuild others may stand there
 */

/** @typedef {Partial<Record<keyof typeof LOOK, string>>} Look how the reader shows it; "": as it does by itself */

/**
 * @typedef {object} Place
 * @property {View} view
 * @property {string} id of the conversation ("ask"), the table ("tables"), the paper ("paper") or the review ("review");
 * "" without one
 * @property {Record<string, string>} query what else the view shows: words, filters, options
 * @property {Reading & Look | null} reading
 */

/** @typedef {"ask" | "search" | "library" | "find" | "notes" | "settings" | "projects" | "tables" | "paper" | "review"} View */

/** @type {View[]} */
const VIEWS = ["ask", "search", "library", "find", "notes", "settings", "projects", "tables", "paper", "review"];
const LOOK = {
  as: /^(text|picture)$/,
  zoom: /^(width|page|\d{2,3})$/, // what fits, or percent
  pane: /^(outline|pages)$/, // beside the pages
  find: /^.{1,500}$/s, // words
  note: /^[\w-]{1,64}$/, // that is open
};
const LOOKS = /** @type {(keyof typeof LOOK)[]} */ (Object.keys(LOOK));
const READING = ["read", "p", "from", "to", "w", ...LOOKS];
const PAPER = /^[0-9a-f]{64}$/;
const REVIEW = /^[0-9a-f]{16}$/;
const CONVERSATION = /^[\w-]{1,64}$/;
const TABLE = /^[0-9a-f]{16}$/;

/**
 * The place that an address names: "#paper/<id>/p/10?from=5&to=9", "#search?q=otters", "#c/<id>?read=<paper>&p=10".
 * What it does not understand is left out.
 * @param {string} hash
 * @returns {Place}
 */
export function parsePlace(hash) {
  const [path, search = ""] = hash.replace(/^#/, "").split(/\?(.*)/s, 2);
  const given = Object.fromEntries(new URLSearchParams(search));
  const query = Object.fromEntries(Object.entries(given).filter(([name, value]) => value && !READING.includes(name)));
  const [first = "", id = "", mark, number] = path.split("/");
  if (first === "paper" && PAPER.test(id)) {
    const reading = mark === "p" ? parseReading({ ...given, read: id, p: number ?? "" }) : parseReading(given);
    return { view: "paper", id, query, reading };
  }
  const reading = parseReading(given);
  if (first === "c" && CONVERSATION.test(id)) return { view: "ask", id, query, reading };
  if (first === "tables" && TABLE.test(id)) return { view: "tables", id, query, reading };
  if (first === "review" && REVIEW.test(id)) return { view: "review", id, query, reading };
  const view = VIEWS.find((name) => name === first && name !== "paper" && name !== "review") ?? "ask";
  return { view, id: "", query, reading };
}

/** The parts of a look that can be. @param {Record<string, string>} given @returns {Look} */
export const parseLook = (given) =>
  Object.fromEntries(LOOKS.filter((name) => LOOK[name].test(given[name] ?? "")).map((name) => [name, given[name]]));

/** @param {Record<string, string>} given @returns {Reading & Look | null} */
function parseReading({ read, p, from, to, w, ...given }) {
  if (!read || !PAPER.test(read)) return null;
  const [start, end] = [parseNumber(from), parseNumber(to)];
  const isSpan = start !== null && end !== null && start < end;
  const words = isSpan && /^[0-9a-z]{1,7}$/.test(w ?? "") ? { words: w } : {};
  return {
    paper: read,
    page: parseNumber(p) || 1,
    from: isSpan ? start : null,
    to: isSpan ? end : null,
    ...words,
    ...parseLook(given),
  };
}

/** @param {string | undefined} text */
const parseNumber = (text) => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : null);

/** The address of a place; it begins with "#". @param {Place} place */
export function formatPlace({ view, id, query, reading }) {
  const isReader = view === "paper" && reading?.paper === id;
  const isNamed = view === "paper" || view === "review" || (view === "tables" && id);
  let path = view === "ask" && id ? `c/${id}` : isNamed ? `${view}/${id}` : view;
  /** @type {[string, string][]} */
  const given = Object.entries(query).filter(([, value]) => value);
  if (reading && isReader) path += `/p/${reading.page}`;
  else if (reading) given.push(["read", reading.paper], ["p", String(reading.page)]);
  if (reading?.from != null && reading.to != null) {
    given.push(["from", String(reading.from)], ["to", String(reading.to)]);
    if (reading.words) given.push(["w", reading.words]);
  }
  for (const name of LOOKS) if (reading?.[name]) given.push([name, reading[name]]);
  return `#${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

/** @param {Place} one @param {Place} other */
export const isSamePlace = (one, other) => formatPlace(one) === formatPlace(other);
