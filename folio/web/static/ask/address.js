// The address of what is asked: the conversation, the branch of it that is shown, and the options of the next question.

import { recall } from "../base/dom.js";
import { formatOptions, parseOptions } from "../base/options.js";
import { linkTo, place } from "../base/router.js";
import { EVERYTHING, options } from "../base/state.js";
import { recallModel } from "./models.js";

/** @typedef {import("../base/options.js").Options} Options */

const ALL = "all"; // in place of papers: all of them, in a conversation whose last question asked only some

/** @param {Options} chosen */
const isEverything = ({ papers, filters }) => !papers.length && !Object.keys(filters).length;

/** The options that an address names; without any, those that this browser remembers. */
/** @param {Record<string, string>} query @returns {Options} */
function readOptions({ turn: _, ...query }) {
  const read = parseOptions(query.in === ALL ? { ...query, in: "" } : query);
  if (Object.keys(query).length) return read;
  return { ...read, deep: recall("deep") === "on", model: recallModel() };
}

/** Whether an address says what to search. @param {Record<string, string>} query */
export function namesScope(query) {
  return query.in === ALL || !isEverything(parseOptions(query));
}

/** The query of an address for options. isNarrowed: the conversation's own scope is a part of the library. */
/** @param {Options} chosen @param {boolean} [isNarrowed] @returns {Record<string, string>} */
function formatQuery(chosen, isNarrowed = false) {
  const query = formatOptions(chosen);
  return isNarrowed && isEverything(chosen) ? { ...query, in: ALL } : query;
}

/** The branch that the address names: its turn; null for the latest one. */
export function readTurn() {
  const turn = Number(place.get().query.turn);
  return Number.isInteger(turn) && turn > 0 ? turn : null;
}

/** A link to a conversation, "" for a new one, which searches in the same way as now. @param {string} id */
export function linkToConversation(id) {
  const query = formatQuery({ ...options.get(), ...EVERYTHING });
  return linkTo({ view: "ask", id, query: withoutEmpty(query) });
}

/** @param {Record<string, string>} query */
const withoutEmpty = (query) => Object.fromEntries(Object.entries(query).filter(([, value]) => value));

/**
 * The query of the conversation that is shown.
 * @param {{isNarrowed: boolean, branch: number | null}} conversation @returns {Record<string, string>}
 */
export const currentQuery = ({ isNarrowed, branch }) =>
  withoutEmpty({ ...formatQuery(options.get(), isNarrowed), turn: branch === null ? "" : String(branch) });

/**
 * Has the options follow the address. scope: what is searched if it does not say so.
 * @param {import("../base/state.js").Scope} scope
 */
export function followAddress(scope) {
  const { query } = place.get();
  const read = readOptions(query);
  const next = namesScope(query) ? read : { ...read, ...scope };
  if (JSON.stringify(formatOptions(next)) !== JSON.stringify(formatOptions(options.get()))) options.set(next);
}
