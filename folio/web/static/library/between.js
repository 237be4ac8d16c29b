// Papers of the library that cite each other, as a list: a graph of more than a few would be a tangle.

import * as api from "../base/api.js";
import { el, isolate } from "../base/dom.js";
import { inTurn } from "../base/pace.js";
import { linkTo } from "../base/router.js";
import { library } from "../base/state.js";
import { t } from "../base/strings.js";
import { getName } from "./table.js";

/** @param {string} id */
function getPaperName(id) {
  const paper = library.get().papers.get(id);
  return paper ? getName(paper) : id;
}

/** @param {string} one @param {string} other */
const compareNames = (one, other) => getPaperName(one).localeCompare(getPaperName(other));

/** A link to the page of a paper of the library. @param {string} id */
export const linkToPaper = (id) =>
  el("a", { href: linkTo({ view: "paper", id }), class: "source" }, isolate(getPaperName(id)));

export class Between {
  constructor() {
    this.count = el("span", { class: "size" });
    this.list = el("ul", { class: "between-papers", "aria-label": t("between") });
    const summary = el("summary", {}, el("h2", {}, t("between"), " ", this.count));
    this.node = el("details", { class: "between", hidden: true }, summary, this.list);
  }

  /** Never throws. */
  refresh = inTurn(async () => {
    const { papers } = library.get();
    const { edges } = papers.size > 1 ? await api.listCitations().catch(() => ({ edges: [] })) : { edges: [] };
    const known = edges.filter(({ citing, cited }) => papers.has(citing) && papers.has(cited));
    const ids = [...new Set(known.flatMap(({ citing, cited }) => [cited, citing]))];
    const items = ids.map((id) => ({
      id,
      cites: known.filter(({ citing }) => citing === id).map(({ cited }) => cited),
      count: known.filter(({ cited }) => cited === id).length,
    }));
    items.sort((one, other) => other.count - one.count || compareNames(one.id, other.id));
    this.node.hidden = !items.length;
    this.count.textContent = t("library.count", { count: items.length });
    this.list.replaceChildren(...items.map(renderItem));
  });
}

/** @param {{id: string, cites: string[], count: number}} item */
function renderItem({ id, cites, count }) {
  const listed = cites.sort(compareNames).map((cited) => el("li", {}, linkToPaper(cited)));
  return el(
    "li",
    {},
    el("h3", {}, linkToPaper(id)),
    count ? el("p", { class: "about" }, t("between.cited", { count })) : null,
    listed.length
      ? el("div", { class: "cites" }, el("p", { class: "about" }, t("between.cites")), el("ul", {}, listed))
      : null,
  );
}
