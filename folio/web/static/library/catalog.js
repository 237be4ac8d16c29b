// The papers as the table shows them: which fit what is wanted, in which order, and what they could be narrowed to.

import { fold } from "../base/text.js";

/** @typedef {Api.ListedPaperJson} Paper */
/** @typedef {"author" | "venue" | "tag" | "collection"} Facet */
/** @typedef {"unsure" | "retracted" | "unread"} Flag */
/** @typedef {"title" | "authors" | "year" | "venue" | "tags" | "added" | "state"} Column */

/**
 * @typedef {object} Wanted What the table is to show.
 * @property {string} words each of them stands in the paper's data
 * @property {number | null} from years, inclusive; null: no limit
 * @property {number | null} to
 * @property {Record<Facet, string[]>} values a paper has one of each facet's; none: all papers
 * @property {Flag[]} flags a paper has all of them
 * @property {Column} column by which it is sorted
 * @property {boolean} isDown from the last value to the first
 */

/** @typedef {Record<Facet, Map<string, number>> & {flags: Record<Flag, number>}} Counts */

/** @type {Facet[]} */
export const FACETS = ["author", "venue", "tag", "collection"];
/** @type {Flag[]} */
export const FLAGS = ["unsure", "retracted", "unread"];
/** @type {Column[]} */
export const COLUMNS = ["title", "authors", "year", "venue", "tags", "added", "state"];
/** @type {Column[]} */
const LATEST_FIRST = ["year", "added"]; // at the first click on their headers
const RETRACTIONS = ["retraction", "withdrawal", "removal", "partial-retraction"];

/** @param {Column} column */
export const isDownAtFirst = (column) => LATEST_FIRST.includes(column);

/** Values in one text: separated by ";", with a backslash before those in a value. @param {string[]} values */
export const joinValues = (values) => values.map((value) => value.replace(/[\\;]/g, "\\$&")).join(";");

/** @param {string} text */
export const splitValues = (text) =>
  [...text.matchAll(/(?:\\.|[^\\;])+/gs)].map(([value]) => value.replace(/\\(.)/gs, "$1"));

/** "2014", "2014-", "-2018", "2014-2018". @param {string | undefined} text @returns {[number | null, number | null]} */
function parseYears(text) {
  const [, from = "", dash = "", to = ""] = /^(\d{4})?(-)?(\d{4})?$/.exec(text ?? "") ?? [];
  return [Number(from) || null, Number(dash ? to : from) || null];
}

/** @param {number | null} from @param {number | null} to */
const formatYears = (from, to) => (from === to ? String(from ?? "") : `${from ?? ""}-${to ?? ""}`);

/** What the query of an address wants. @param {Record<string, string>} query @returns {Wanted} */
export function parseWanted(query) {
  const [from, to] = parseYears(query.year);
  const column = COLUMNS.find((name) => name === query.sort?.replace(/^-/, "")) ?? "title";
  return {
    words: query.q ?? "",
    from,
    to,
    values: mapFacets((facet) => splitValues(query[facet] ?? "")),
    flags: FLAGS.filter((flag) => query[flag] === "1"),
    column,
    isDown: query.sort?.startsWith("-") ?? false,
  };
}

/** The query of an address; what is not wanted is "". @param {Wanted} wanted @returns {Record<string, string>} */
export function formatWanted({ words, from, to, values, flags, column, isDown }) {
  return {
    q: words,
    year: formatYears(from, to),
    ...mapFacets((facet) => joinValues(values[facet])),
    ...Object.fromEntries(FLAGS.map((flag) => [flag, flags.includes(flag) ? "1" : ""])),
    sort: column === "title" && !isDown ? "" : `${isDown ? "-" : ""}${column}`,
  };
}

/** @template T @param {(facet: Facet) => T} make @returns {Record<Facet, T>} */
const mapFacets = (make) => ({
  author: make("author"),
  venue: make("venue"),
  tag: make("tag"),
  collection: make("collection"),
});

/** Whether only some papers are wanted. @param {Wanted} wanted */
export const isNarrowed = ({ words, from, to, values, flags }) =>
  Boolean(words.trim() || from || to || flags.length || FACETS.some((facet) => values[facet].length));

/** What is wanted as a rule of a project; null if words or flags are in it, which a rule does not have. */
/** @param {Wanted} wanted @returns {Api.PaperRule_Input | null} */
export function toRule({ words, from, to, values, flags }) {
  if (words.trim() || flags.length) return null;
  const years = from || to ? [formatYears(from, to)] : [];
  const rule = { year: years, ...values, section: [], cited_by: [], category: [] };
  return Object.values(rule).some((each) => each.length) ? rule : null;
}

/** @param {Paper} paper */
export const isRetracted = ({ notice }) => notice !== null && RETRACTIONS.includes(notice.kind);

/** @param {Paper} paper @param {Flag} flag */
function hasFlag(paper, flag) {
  if (flag === "unsure") return paper.unsure.length > 0;
  return flag === "retracted" ? isRetracted(paper) : !paper.read;
}

/** The collections of a paper and those above them: "Systems/Consensus", "Systems". @param {Paper} paper */
function listCollections({ collections }) {
  const paths = collections.flatMap((path) => path.split("/").map((_, at, steps) => steps.slice(0, at + 1).join("/")));
  return [...new Set(paths)];
}

/** @param {Paper} paper @returns {Record<Facet, string[]>} */
const listValues = (paper) => ({
  author: [...new Set(paper.authors)],
  venue: paper.venue ? [paper.venue] : [],
  tag: paper.tags,
  collection: listCollections(paper),
});

/** @typedef {{text: string, values: Record<Facet, string[]>}} Entry */

/** @type {WeakMap<Paper, Entry>} */
const entries = new WeakMap();

/** What is looked up of a paper; kept, for a keystroke looks at all papers. @param {Paper} paper @returns {Entry} */
function getEntry(paper) {
  const kept = entries.get(paper);
  if (kept) return kept;
  const { title, file, year, venue, doi, arxiv, authors, tags } = paper;
  const text = fold([title, file, year ?? "", venue, doi, arxiv, ...authors, ...tags].join("\n"));
  const entry = { text, values: listValues(paper) };
  entries.set(paper, entry);
  return entry;
}

/** @typedef {Facet | Flag | ""} Test "" for what is no facet: words and years */

/**
 * @param {Wanted} wanted
 * @returns {[Test, (paper: Paper, entry: Entry) => boolean][]}
 */
function makeTests({ words, from, to, values, flags }) {
  /** @type {[Test, (paper: Paper, entry: Entry) => boolean][]} */
  const tests = [];
  for (const word of fold(words).split(/\s+/).filter(Boolean)) tests.push(["", (_, { text }) => text.includes(word)]);
  if (from !== null) tests.push(["", ({ year }) => year !== null && year >= from]);
  if (to !== null) tests.push(["", ({ year }) => year !== null && year <= to]);
  for (const facet of FACETS.filter((name) => values[name].length)) {
    const chosen = new Set(values[facet]);
    tests.push([facet, (_, entry) => entry.values[facet].some((value) => chosen.has(value))]);
  }
  for (const flag of flags) tests.push([flag, (paper) => hasFlag(paper, flag)]);
  return tests;
}

/**
 * The papers that fit, in their order, and how many papers each value of a facet would leave. A value is counted as if
 * none of its facet were chosen.
 * @param {Paper[]} sorted @param {Wanted} wanted
 * @returns {{papers: Paper[], counts: Counts}}
 */
export function choosePapers(sorted, wanted) {
  const tests = makeTests(wanted);
  /** @type {Paper[]} */
  const papers = [];
  /** @type {Counts} */
  const counts = { ...mapFacets(() => new Map()), flags: { unsure: 0, retracted: 0, unread: 0 } };
  for (const paper of sorted) {
    const entry = getEntry(paper);
    const failed = tests.filter(([, fits]) => !fits(paper, entry)).map(([name]) => name);
    if (!failed.length) papers.push(paper);
    if (failed.length <= 1 && failed[0] !== "") countPaper(counts, paper, entry, failed[0]);
  }
  return { papers, counts };
}

/**
 * Counts a paper for each facet and flag, or for the only one whose choice leaves it out.
 * @param {Counts} counts @param {Paper} paper @param {Entry} entry @param {Facet | Flag | undefined} only
 */
function countPaper(counts, paper, entry, only) {
  for (const facet of FACETS) {
    if (only && only !== facet) continue;
    for (const value of entry.values[facet]) counts[facet].set(value, (counts[facet].get(value) ?? 0) + 1);
  }
  for (const flag of FLAGS) if ((!only || only === flag) && hasFlag(paper, flag)) counts.flags[flag] += 1;
}

const names = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** @param {Paper} paper */
const getName = ({ title, file }) => title || file;

/** The last word of the first author's name. @param {Paper} paper */
const getFamily = ({ authors }) => authors[0]?.split(" ").at(-1) ?? "";

/** What most needs a look comes first. @param {Paper} paper */
const getState = (paper) =>
  isRetracted(paper) ? "0" : paper.unsure.length ? "1" : paper.read ? `3${paper.read}` : "2";

/** @type {Record<Column, (paper: Paper) => string>} */
const SORTED_BY = {
  title: getName,
  authors: getFamily,
  year: ({ year }) => String(year ?? ""),
  venue: ({ venue }) => venue,
  tags: ({ tags }) => tags.join("\n"),
  added: ({ added }) => added,
  state: getState,
};

/**
 * The papers in an order. Those without a value come last either way.
 * @param {Iterable<Paper>} papers @param {Column} column @param {boolean} isDown
 */
export function sortPapers(papers, column, isDown) {
  const keyed = [...papers].map((paper) => ({ paper, key: SORTED_BY[column](paper), name: getName(paper) }));
  keyed.sort((one, other) => {
    if (!one.key !== !other.key) return one.key ? -1 : 1;
    const order = names.compare(one.key, other.key);
    return (isDown ? -order : order) || names.compare(one.name, other.name) || compareIds(one.paper, other.paper);
  });
  return keyed.map(({ paper }) => paper);
}

/** @param {Paper} one @param {Paper} other */
const compareIds = (one, other) => (one.id < other.id ? -1 : 1);

/**
 * The values of a facet with their counts: the chosen ones, then the most frequent.
 * @param {Map<string, number>} counts @param {string[]} chosen @param {number} most
 * @returns {{values: [string, number][], more: number}} more: how many are left out
 */
export function listCounts(counts, chosen, most) {
  const room = Math.max(0, most - chosen.length);
  /** @type {[string, number][]} */
  const best = []; // thousands of authors are counted with each keystroke, so they are not sorted
  for (const entry of counts) {
    if (chosen.includes(entry[0]) || (best.length === room && !isBefore(entry, best[room - 1]))) continue;
    const at = best.findIndex((other) => isBefore(entry, other));
    best.splice(at < 0 ? best.length : at, 0, entry);
    if (best.length > room) best.pop();
  }
  /** @type {[string, number][]} */
  const first = chosen.map((value) => [value, counts.get(value) ?? 0]);
  const listed = chosen.filter((value) => counts.has(value)).length + best.length;
  return { values: [...first, ...best], more: counts.size - listed };
}

/** @param {[string, number]} one @param {[string, number] | undefined} other */
const isBefore = (one, other) => !other || one[1] > other[1] || (one[1] === other[1] && one[0] < other[0]);
