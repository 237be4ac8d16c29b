// The options of a question, as an address has them: a link or a reload asks in the same way.

/**
 * @typedef {object} Options What a question is asked with.
 * @property {string[]} papers ids; empty: all papers
 * @property {Record<string, string>} filters year, author, venue, section, collection, tag, cited_by as typed
 * @property {number | null} topK null: the server's setting
 * @property {boolean} reranker
 * @property {"plain" | "report"} style
 * @property {string | null} model null: the server's setting
 * @property {boolean} deep search in rounds
 */

const FILTERS = ["year", "author", "venue", "section", "collection", "tag", "cited_by"];

/** The options in the query of an address. @param {Record<string, string>} query @returns {Options} */
export function parseOptions(query) {
  const filters = Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, query[name]]));
  const count = Number(query.k);
  return {
    papers: query.in ? query.in.split(",").filter(Boolean) : [],
    filters,
    topK: Number.isInteger(count) && count >= 1 && count <= 50 ? count : null,
    reranker: query.reranker !== "off",
    style: query.style === "report" ? "report" : "plain",
    model: query.model || null,
    deep: query.deep === "on",
  };
}

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
  };
}
