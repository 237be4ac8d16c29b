// The options of a question, as an address has them: a link or a reload asks in the same way.

/**
 * @typedef {object} Options What a question is asked with.
 * @property {string[]} papers ids; empty: all papers
 * @property {Record<string, string>} filters year, author, venue, section, collection, tag, category, cited_by as typed; project: an id
 * @property {number | null} topK null: the server's setting
 * @property {boolean} reranker
 * @property {"plain" | "report"} style
 * @property {string | null} model null: the server's setting
 * @property {boolean} deep search in rounds
 * @property {string | null} instruction the id of one for the wording; null: none
 */

const FILTERS = ["year", "author", "venue", "section", "collection", "tag", "category", "cited_by", "project"];
const YEARS = /^(\d{4}( ?[-–—]( ?\d{4})?)?|[-–—] ?\d{4})$/; // as the server has them

/** Several values are separated by ";", years by "," too. @param {string} name @param {string} typed */
export function splitFilter(name, typed) {
  const parts = typed.split(name === "year" ? /[;,]/ : ";");
  return parts.map((part) => part.trim()).filter(Boolean);
}

/** Whether a filter can be what was typed. @param {string} name @param {string} typed */
export const isFilter = (name, typed) => name !== "year" || splitFilter(name, typed).every((part) => YEARS.test(part));

/** The options in the query of an address. @param {Record<string, string>} query @returns {Options} */
export function parseOptions(query) {
  const given = FILTERS.filter((name) => query[name] && isFilter(name, query[name]));
  const filters = Object.fromEntries(given.map((name) => [name, query[name]]));
  const count = Number(query.k);
  return {
    papers: query.in ? query.in.split(",").filter(Boolean) : [],
    filters,
    topK: Number.isInteger(count) && count >= 1 && count <= 50 ? count : null,
    reranker: query.reranker !== "off",
    style: query.style === "report" ? "report" : "plain",
    model: query.model || null,
    deep: query.deep === "on",
    instruction: query.wording || null,
  };
}

/** The options that a search without an answer has too, for its address. @param {Options} options */
export const formatScope = ({ papers, filters, reranker }) =>
  formatOptions({ ...parseOptions({}), papers, filters, reranker });

/** The query of an address for options; those that are the default are "". @param {Options} options */
export function formatOptions(options) {
  return {
    ...Object.fromEntries(FILTERS.map((name) => [name, options.filters[name] ?? ""])),
    in: options.papers.join(","),
    k: options.topK ? String(options.topK) : "",
    reranker: options.reranker ? "" : "off",
    style: options.style === "plain" ? "" : options.style,
    model: options.model ?? "",
    deep: options.deep ? "on" : "",
    wording: options.instruction ?? "",
  };
}
