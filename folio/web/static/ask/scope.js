// What a question was restricted to: in words beside its answer, and as the filter of its conversation.

import { el, isolate, makeButton } from "../base/dom.js";
import { getTitle, library, projects } from "../base/state.js";
import { parts, t } from "../base/strings.js";

/** @typedef {"year" | "author" | "venue" | "section" | "collection" | "tag" | "category" | "cited_by" | "project"} Field */

const MOST = 3; // papers that are named
/** @type {Record<Field, import("../base/strings.js").Key>} */
export const NAMES = {
  year: "ask.scope.year",
  author: "ask.scope.author",
  venue: "ask.scope.venue",
  section: "ask.scope.section",
  collection: "ask.scope.collection",
  tag: "ask.scope.tag",
  category: "ask.scope.category",
  cited_by: "ask.scope.cited_by",
  project: "ask.scope.project",
};
export const FIELDS = /** @type {Field[]} */ (Object.keys(NAMES));

/** @param {Api.ScopeJson} scope */
const getFields = (scope) => FIELDS.filter((name) => scope[name].length);

/** Whether a question asked only a part of the library. @param {Api.ScopeJson} scope */
export const isRestricted = (scope) => scope.papers.length > 0 || getFields(scope).length > 0;

/** The papers and sections that were asked, as children of an element. @param {Api.ScopeJson} scope */
export function renderScope(scope) {
  /** @type {(string | Node)[][]} */
  const papers = scope.papers.slice(0, MOST).map((paper) => ["“", isolate(getTitle(paper)), "”"]);
  const more = scope.papers.length - MOST;
  if (more > 0) papers.push([t("ask.papers.more", { count: more })]);
  const fields = getFields(scope).map((name) => parts(NAMES[name], { values: isolate(scope[name].join(t("ask.or"))) }));
  return join([...(papers.length ? [join(papers, ", ")] : []), ...fields], "; ");
}

/** @param {(string | Node)[][]} lists @param {string} mark @returns {(string | Node)[]} */
const join = (lists, mark) => lists.flatMap((part, at) => (at ? [mark, ...part] : part));

/** The filter that asks the same again. @param {Api.ScopeJson} scope @returns {import("../base/state.js").Scope} */
export function toScope(scope) {
  const known = projects.get();
  const filters = getFields(scope)
    .filter((name) => name !== "project" || !known || scope.project.every((id) => known.has(id)))
    .map((name) => [name, scope[name].join("; ")]);
  const papers = scope.papers.map(({ paper }) => paper).filter((id) => library.get().papers.has(id));
  return { papers, filters: Object.fromEntries(filters) };
}

/** What a question asked, if that was a part of the library, with a button that asks all. */
/** @param {Api.ChatReply} reply @param {() => void} onAskAll */
export function renderSearched({ scope, searched }, onAskAll) {
  const all = makeButton("button quiet", onAskAll, t("ask.all"));
  if (!searched) return [t("ask.scope"), ...renderScope(scope), " ", all];
  return [...parts("ask.searched", { papers: isolate(searched) }), " ", all];
}

/** Below a refusal: that only these were asked, unless the refusal says so, and a button that asks all. */
/** @param {Api.ChatReply} reply @param {HTMLElement | null} button */
export function renderOnlyThese({ scope, searched }, button) {
  const text = searched ? null : el("p", {}, t("ask.only_these"), renderScope(scope), ".");
  return el("div", { class: "only-these" }, text, button);
}
