// What stands below the statements of an answer: its sources, the papers that a report cites, a refusal.

import { el, formatPage, isolate, keepTogether, makeButton, makeIcon } from "../base/dom.js";
import { getTitle, library } from "../base/state.js";
import { t } from "../base/strings.js";
import { checkZoteroLink, joinLines, shorten } from "../base/text.js";
import { renderNotice } from "../paper/notice.js";
import { makeHitLink, makePageLink } from "../reader/reader.js";
import { setOrigin } from "./origin.js";
import { isRestricted, renderOnlyThese } from "./scope.js";
import { describeFlagged, formatLegend, formatShort, formatStatement, groupByPage } from "./statement.js";
import { standsIn, toCitedTarget } from "./statement.js";

const CLOSEST = 4; // passages shown with a refusal
const LONGEST_WORDS = 300; // characters of selected words
export const CLOSEST_PASSAGES = "Closest passages"; // the headings of folio/answer_types.py
export const ALSO = "Also";

/** The number of statements that an older Folio left out; it did not store them. @param {Api.ChatReply} reply */
export function describeDropped({ dropped_sentences: count, left_out: kept }) {
  return count && !kept.length ? t("ask.dropped", { count }) : "";
}

/** @param {Api.ChatReply} reply @param {(() => void) | null} onAskAll */
export function renderRefusal(reply, onAskAll) {
  const box = el("div", { class: "refusal" }, el("p", { class: "refused" }, reply.answer));
  if (isRestricted(reply.scope)) {
    const all = onAskAll ? makeButton("button", onAskAll, makeIcon("again"), t("ask.all")) : null;
    box.append(renderOnlyThese(reply, all));
  }
  if (!reply.hits.length) return box;
  box.append(el("p", {}, t("ask.closest")));
  const items = reply.hits.slice(0, CLOSEST).map((hit) => {
    return el(
      "li",
      {},
      makeHitLink(hit),
      hit.section ? renderFact(joinLines(hit.section)) : null,
      el("p", { class: "snippet" }, isolate(joinLines(hit.text))),
    );
  });
  box.append(el("ol", { class: "closest" }, items));
  return box;
}

/** A line below a source: its section, its venue, its file. @param {string} text */
const renderFact = (text) => el("p", { class: "file" }, isolate(text));

/** A numbered list of the cited pages, with the quotes that are not in the answer. */
/** @param {Api.ChatReply} reply @param {boolean} open */
export function renderSources(reply, open) {
  const pages = groupByPage(reply.citations);
  const papers = new Set(pages.map((cited) => cited.paper)).size;
  const heading = el("h3", {}, t("ask.sources"));
  const size = t("ask.sources.size", {
    pages: t("ask.pages", { count: pages.length }),
    papers: t("ask.papers", { count: papers }),
  });
  const summary = el("summary", {}, heading, el("span", { class: "size" }, size));
  const items = pages.map((cited) => renderSource(cited, reply));
  return el("details", { class: "sources", open }, summary, el("ol", {}, items));
}

/** @param {import("./statement.js").CitedPage} cited @param {Api.ChatReply} reply */
function renderSource(cited, { citations, sentences, conversation, turn }) {
  const where = keepTogether(formatPage(cited.page, cited.label));
  const link = checkZoteroLink(cited.zotero);
  const item = el(
    "li",
    {},
    makePageLink(toCitedTarget(cited), { class: "source" }, isolate(getTitle(cited)), ", ", where),
    cited.sections.length ? renderFact(joinLines(cited.sections.join("; "))) : null,
    cited.venue ? renderFact(joinLines([cited.venue, cited.year].filter(Boolean).join(", "))) : null,
    cited.title ? renderFact(cited.file) : null,
    cited.notice ? renderNotice(cited.notice) : null,
    link ? el("a", { class: "file", href: link }, t("ask.zotero.open")) : null,
  );
  for (const { text, support } of cited.quotes.filter((quote) => !standsIn(quote.text, sentences))) {
    const match = support === 1 ? t("ask.verbatim") : t("ask.support", { support: support.toFixed(2) });
    const quotes = citations.filter(
      ({ paper, page, quote }) => paper === cited.paper && page === cited.page && quote === text,
    );
    const quote = el("blockquote", {}, el("p", {}, isolate(joinLines(text)), el("span", { class: "held" }, match)));
    item.append(setOrigin(quote, { statement: "", quotes, answered: { conversation, turn } }));
  }
  return item;
}

/** The papers that a report cites, each with its cited pages. @param {Api.CitationJson[]} citations */
export function renderReferences(citations) {
  /** @type {Map<string, {cited: Api.CitationJson, numbers: Set<number>}>} */
  const pages = new Map();
  for (const cited of citations) {
    const paper = pages.get(cited.paper) ?? { cited, numbers: new Set() };
    pages.set(cited.paper, paper);
    paper.numbers.add(cited.page);
  }
  const lines = [...pages.values()].map(({ cited, numbers }) => {
    const sorted = [...numbers].sort((a, b) => a - b).join(", ");
    const list = t(numbers.size === 1 ? "ask.page_list.one" : "ask.page_list", { pages: sorted });
    return el(
      "li",
      {},
      isolate(`${formatReference(cited)}, ${list}`),
      cited.notice ? renderNotice(cited.notice) : null,
    );
  });
  return el("section", { class: "references" }, el("h3", {}, t("ask.references")), el("ul", {}, lines));
}

/** "A. Otter and B. Seal (2021). On Sea Otters. Sea Life. otters.pdf" @param {Api.CitationJson} cited */
function formatReference(cited) {
  const paper = library.get().papers.get(cited.paper);
  const { title = cited.title, authors = [], year = null, arxiv = "" } = paper ?? {};
  let who = authors.join(", ");
  if (authors.length > 3) who = t("ask.authors.many", { first: authors[0] });
  else if (authors.length > 1) {
    who = t("ask.authors", { others: authors.slice(0, -1).join(", "), last: authors[authors.length - 1] });
  }
  const line = [[who, year ? `(${year})` : ""].filter(Boolean).join(" "), title, cited.venue];
  const place = arxiv ? `arXiv:${arxiv}` : cited.file;
  return joinLines([...line.filter(Boolean).map((part) => part.replace(/\.$/, "")), place].join(". "));
}

/** The answer with its citations as plain text. @param {Api.ChatReply} reply */
export function formatAnswer(reply) {
  const lines = [...describeFlagged(reply.citations), formatShort(reply.sentences[0]) ?? ""].filter(Boolean);
  let section = "";
  for (const sentence of reply.sentences) {
    if (sentence.section !== section) lines.push("", joinLines(sentence.section.split("/").pop() ?? ""));
    if (sentence.section !== section && sentence.section === CLOSEST_PASSAGES) lines.push(t("ask.may_not_answer"));
    section = sentence.section;
    lines.push(...formatStatement(sentence));
  }
  const legend = formatLegend(reply.sentences);
  if (legend) lines.push("", legend);
  lines.push("", t("ask.sources"));
  groupByPage(reply.citations).forEach((cited, index) => {
    const names = [getTitle(cited), cited.file].map((name) => shorten(joinLines(name))).join(", ");
    const place = [formatPage(cited.page, cited.label), ...cited.sections].join(", ");
    lines.push(`${index + 1}. ${names}, ${joinLines(place)}`);
    if (cited.notice) lines.push(`   ${cited.notice.text}`);
    const others = cited.quotes.filter((quote) => !standsIn(quote.text, reply.sentences));
    for (const quote of others) lines.push(`   “${joinLines(quote.text)}”`);
  });
  return lines.join("\n").trim();
}

/** The words of a paper that a question is about, and where they are. */
/** @param {import("../base/state.js").Selection} selection */
export function renderSelection({ paper, page, text }) {
  const words = isolate(`“${shorten(joinLines(text), LONGEST_WORDS)}”`, { class: "words" });
  const known = library.get().papers.get(paper);
  const title = known ? [isolate(getTitle(known)), ", "] : [];
  return [words, " ", el("span", { class: "about" }, title, keepTogether(formatPage(page)))];
}
