// A rule of a project in words: "2000-2015; by Ongaro; tagged raft".

import { t } from "../base/strings.js";

/** @typedef {"year" | "author" | "venue" | "section" | "collection" | "tag" | "category" | "cited_by"} Field */

/** @type {Record<Field, import("../base/strings.js").Key>} */
const NAMES = {
  year: "ask.scope.year",
  author: "ask.scope.author",
  venue: "ask.scope.venue",
  section: "ask.scope.section",
  collection: "ask.scope.collection",
  tag: "ask.scope.tag",
  category: "ask.scope.category",
  cited_by: "ask.scope.cited_by",
};

/** @param {Partial<Api.PaperRule_Input>} rule */
export function describeRule(rule) {
  const fields = /** @type {Field[]} */ (Object.keys(NAMES)).filter((name) => rule[name]?.length);
  return fields.map((name) => t(NAMES[name], { values: (rule[name] ?? []).join(t("ask.or")) })).join("; ");
}
