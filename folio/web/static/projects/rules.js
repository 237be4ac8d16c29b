// A rule of a project in words: "2000-2015; by Ongaro; tagged raft".

import { FIELDS, NAMES } from "../ask/scope.js";
import { t } from "../base/strings.js";

/** @param {Partial<Record<import("../ask/scope.js").Field, string[]>>} rule which names no project */
export function describeRule(rule) {
  const fields = FIELDS.filter((name) => rule[name]?.length);
  return fields.map((name) => t(NAMES[name], { values: (rule[name] ?? []).join(t("ask.or")) })).join("; ");
}
