// What a question was restricted to: in words beside its answer, and as the filter of its conversation.

import { el, formatCount, isolate } from "../base/dom.js";
import { getTitle, library } from "../base/state.js";

const MOST = 3; // papers that are named
const NAMES = {
  year: "years",
  author: "author",
  venue: "venue",
  section: "section",
  collection: "collection",
  tag: "tag",
  cited_by: "cited by",
};

const getFields = (scope) => Object.keys(NAMES).filter((name) => scope[name].length);

/** Whether a question asked only a part of the library. */
export const isRestricted = (scope) => scope.papers.length > 0 || getFields(scope).length > 0;

/** The papers and sections that were asked, as children of an element. */
export function renderScope(scope) {
  const papers = scope.papers.slice(0, MOST).map((paper) => ["“", isolate(getTitle(paper)), "”"]);
  const more = scope.papers.length - MOST;
  if (more > 0) papers.push([formatCount(more, "more paper")]);
  const fields = getFields(scope).map((name) => [`${NAMES[name]} `, isolate(scope[name].join(" or "))]);
  const join = (parts, mark) => parts.flatMap((part, at) => (at ? [mark, ...part] : part));
  return join([...(papers.length ? [join(papers, ", ")] : []), ...fields], "; ");
}

/** The filter that asks the same again. */
export function toScope(scope) {
  const filters = getFields(scope).map((name) => [name, scope[name].join("; ")]);
  const papers = scope.papers.map(({ paper }) => paper).filter((id) => library.get().papers.has(id));
  return { papers, filters: Object.fromEntries(filters) };
}

/** Below a refusal: that only these were asked, and a button that asks all. */
export const renderOnlyThese = (scope, button) =>
  el("div", { class: "only-these" }, el("p", {}, "Only these were searched: ", renderScope(scope), "."), button);
