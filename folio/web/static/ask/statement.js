// One statement of an answer: quoted, reworded with its quotes, or left out; and the citations that open pages.

import { attachCard } from "../base/card.js";
import { el, formatPage, hideVisually, isolate, keepTogether, makeIcon } from "../base/dom.js";
import { getTitle } from "../base/state.js";
import { parts, t } from "../base/strings.js";
import { formatMark, joinLines, joinSentence, REWORDED_SIGN, splitMark } from "../base/text.js";
import { splitMarked, splitStatement, withoutCitations } from "../base/text.js";
import { makePageLink, moveOpener, openAt, prefetch } from "../reader/reader.js";
import { renderCard } from "./card.js";
import { setOrigin } from "./origin.js";

// Lines that are columns or code, and need letters of one width
const ALIGNED = /^(?: {2,}|\t|\||```)|\S {3,}\S/m;

/** @typedef {import("./origin.js").Quote} Quote */
/** @typedef {import("./origin.js").Answered} Answered */
/** @typedef {{text: string, support: number, span: number[] | null}} PageQuote */
/** @typedef {Omit<Quote, "quote"> & {quotes: PageQuote[], sections: string[]}} PageQuotes */
/** @typedef {{page: number, from?: number | null, to?: number | null, quote?: string}} Mark as the reader marks it */
/** @typedef {PageQuotes & {marks: Mark[]}} CitedPage a cited page, and the marks of all pages of its paper */

/**
 * @typedef {object} Shown How a statement is shown.
 * @property {Answered} answered
 * @property {boolean} prose as a part of a text: its quotes are in a card beside each citation
 */

/** @param {Api.SentenceJson} sentence */
const isReworded = (sentence) => sentence.outcome === "reworded";

/** Groups citations by page: each page once, with all of its quotes and the sections that they stand in. */
/** @param {Quote[]} citations @returns {CitedPage[]} */
export function groupByPage(citations) {
  /** @type {Map<string, PageQuotes>} */
  const pages = new Map();
  for (const cited of citations) {
    const key = `${cited.paper} ${cited.page}`;
    const page = pages.get(key) ?? { ...cited, quotes: [], sections: [] };
    pages.set(key, page);
    if (cited.section && !page.sections.includes(cited.section)) page.sections.push(cited.section);
    if (!page.quotes.some((quote) => quote.text === cited.quote)) {
      page.quotes.push({ text: cited.quote, support: cited.support ?? 1, span: cited.span ?? null });
    }
  }
  const grouped = [...pages.values()];
  return grouped.map((cited) => ({
    ...cited,
    marks: collectMarks(grouped.filter(({ paper }) => paper === cited.paper)),
  }));
}

/** The quotes on all pages of a paper: a statement may be quoted from several pages. @param {PageQuotes[]} pages */
const collectMarks = (pages) => pages.flatMap(({ page, quotes }) => quotes.map((quote) => toMark(page, quote)));

/** @param {number} page @param {PageQuote} quote @returns {Mark} */
const toMark = (page, { text, span }) => ({ page, from: span?.[0] ?? null, to: span?.[1] ?? null, quote: text });

/** @param {Mark} one @param {Mark} other */
const isSameMark = (one, other) => one.page === other.page && one.quote === other.quote;

// What opens the reader

/** A cited page, with the quotes of its paper marked. @param {CitedPage} cited */
export function toCitedTarget({ paper, page, title, file, quotes, marks }) {
  const mark = quotes.length ? toMark(page, quotes[0]) : { page };
  return { paper, title, file, ...mark, marks: marks.filter((other) => !isSameMark(other, mark)) };
}

/** Has the pages loaded that are likely to be opened. @param {{paper: string, page: number}[]} citations */
export const prepareCitations = (citations) => prefetch(citations);

/** Tells that what opened the reader was rendered again. @param {HTMLElement} before @param {HTMLElement} after */
export const replaceOpener = (before, after) => moveOpener(before, after);

// Citations

/**
 * "Ongaro 2014, RETRACTED, p. 6" as a link. CSS shortens a long name, but neither the mark nor the page. card: its
 * quotes are shown in a card beside it.
 * @param {CitedPage} cited @param {string} [kind] @param {import("./origin.js").Origin | null} [card]
 */
export function renderChip(cited, kind = "", card = null) {
  const [key, place] = splitMark(cited.shown);
  const mark = cited.notice?.mark ?? "";
  const separator = place.startsWith(",") ? renderComma() : " ";
  const page = place.replace(/^,? /, "");
  const bare = mark && key.endsWith(`, ${mark}`) ? key.slice(0, -mark.length - 2) : key;
  const name = isolate(bare, { class: "key" });
  const flag = mark ? [renderComma(), el("strong", { class: "flag" }, mark)] : [];
  const action = hideVisually(t("ask.cited.open"));
  const children = [name, ...flag, separator, keepTogether(page), action];
  const node = makePageLink(toCitedTarget(cited), { class: `chip ${mark ? "flagged" : ""} ${kind}` }, ...children);
  const open = (/** @type {HTMLElement} */ opener) => openAt({ ...toCitedTarget(cited), opener });
  if (card) attachCard(node, t("ask.card"), () => renderCard(node, cited, card, open));
  else node.title = describePage(cited);
  return node;
}

/** @param {CitedPage} cited */
const describePage = (cited) =>
  [`${getTitle(cited)}, ${formatPage(cited.page, cited.label)}`, cited.notice?.text].filter(Boolean).join(". ");

const renderComma = () => el("span", { class: "comma" }, ", ");

/** The server's warnings, for an answer that is not complete yet. @param {Quote[]} citations */
export function describeFlagged(citations) {
  /** @type {Map<string, string>} */
  const papers = new Map();
  for (const { paper, notice, shown } of citations) {
    if (!notice?.mark || papers.has(paper)) continue;
    const name = joinLines(splitMark(shown)[0].replace(`, ${notice.mark}`, ""));
    papers.set(paper, t("ask.flagged", { name, notice: notice.text }));
  }
  return [...papers.values()];
}

// Statements

/**
 * A statement with its citations, and what disagrees with it. tag: of each element.
 * @param {Api.SentenceJson} sentence @param {"p" | "li" | "span"} tag @param {Shown} shown
 * @returns {HTMLElement[]}
 */
export function renderStatement(sentence, tag, { answered, prose }) {
  const origin = { statement: sentence.text, quotes: sentence.citations, answered };
  /** @type {(Node | string)[]} */
  const text = [renderText(sentence.text, sentence.marks)];
  for (const cited of groupByPage(sentence.citations)) text.push(" ", renderChip(cited, "", prose ? origin : null));
  let node;
  if (sentence.instead_of) node = renderInPlace(text, blockOf(tag));
  else if (!isReworded(sentence)) node = el(tag, { class: "sentence" }, text);
  else if (prose) node = el(tag, { class: "sentence flowing" }, renderRewordedSign(), text);
  else node = renderReworded(sentence, text, blockOf(tag), answered);
  return [setOrigin(node, origin), ...renderAgainst(sentence, tag === "li" ? "li" : "p", { answered, prose })];
}

/** @param {"p" | "li" | "span"} tag */
const blockOf = (tag) => (tag === "li" ? "li" : "div");

/** @param {Api.SentenceJson} sentence @param {"p" | "li"} tag @param {Shown} shown */
const renderAgainst = (sentence, tag, { answered, prose }) =>
  groupByPage(sentence.against).map((cited) => {
    const quotes = sentence.against.filter(({ paper, page }) => paper === cited.paper && page === cited.page);
    const origin = { statement: "", quotes, answered };
    const chip = renderChip(cited, "against", prose ? origin : null);
    const [{ quote, marks = [], differs }] = quotes;
    const shown = renderMarked(withoutCitations(joinLines(quote)), quote, marks);
    const words = setOrigin(el("q", {}, el("bdi", {}, shown)), origin);
    const said = parts(`ask.against.${differs || "denial"}`, { chip, words });
    return el(tag, { class: "against" }, makeIcon("warning"), el("span", {}, said));
  });

/** A quote below what it says about its place. @param {(Node | string)[]} text @param {"li" | "div"} tag */
const renderInPlace = (text, tag) =>
  el(tag, { class: "sentence" }, el("p", { class: "in-place" }, t("ask.in_place")), el("p", {}, text));

/** A reworded statement above its quotes. */
/**
 * @param {Api.SentenceJson} sentence @param {(Node | string)[]} text @param {"li" | "div"} tag
 * @param {Answered} answered
 */
function renderReworded(sentence, text, tag, answered) {
  const shown = new Map(sentence.citations.map((cited) => [cited.quote, cited]));
  const quotes = [...shown.values()].map((cited) => renderQuote(cited, { statement: "", quotes: [cited], answered }));
  return el(tag, { class: "sentence reworded" }, el("p", {}, renderRewordedSign(), text), quotes);
}

/** Words of a paper as a block, those that decide marked. */
/** @param {Api.CitationJson} cited @param {import("./origin.js").Origin} origin */
function renderQuote({ quote, marks = [] }, origin) {
  const words = isolate("");
  words.append(...renderMarked(joinLines(quote), quote, marks));
  return setOrigin(el("blockquote", {}, el("p", {}, "“", words, "”")), origin);
}

/** The text of a statement with its answering words marked, line by line. */
/** @param {string} text @param {number[][]} [marks] */
function renderText(text, marks = []) {
  const lines = splitStatement(text);
  const written = lines.length === 1 ? withoutCitations(text) : lines.join("\n");
  const node = isolate("");
  if (lines.length > 1) node.className = ALIGNED.test(written) ? "lines aligned" : "lines";
  node.append(...renderMarked(written, text, marks));
  return node;
}

/** A shown text in parts, the marked ones in marks. @param {string} shown @param {string} text @param {number[][]} marks */
const renderMarked = (shown, text, marks) =>
  splitMarked(shown, text, marks).map(([part, isMarked]) => (isMarked ? el("mark", {}, part) : part));

/** Whether a statement is a block of its own in a text: a list, code, a table, or a quote in place of a statement. */
/** @param {Api.SentenceJson} sentence */
export const isBlock = ({ text, instead_of }) => instead_of !== "" || splitStatement(text).length > 1;

/** A short answer with its page; null without one. @param {Api.SentenceJson} sentence @param {Shown} shown */
export function renderShort(sentence, { answered, prose }) {
  const found = findShort(sentence);
  if (!found) return null;
  const origin = { statement: sentence.text, quotes: sentence.citations, answered };
  const chip = renderChip(groupByPage([found.cited])[0], "", prose ? origin : null);
  return el("p", { class: "short" }, el("strong", {}, isolate(found.answer)), " ", chip);
}

/** A short answer and the citation that contains it; null without one. */
/** @param {Api.SentenceJson | undefined} sentence */
function findShort(sentence) {
  if (!sentence?.short) return null;
  const [start, end] = sentence.short;
  const answer = joinSentence([...sentence.text].slice(start, end).join(""));
  const { citations } = sentence;
  return { answer, cited: citations.find((one) => joinLines(one.quote).includes(answer)) ?? citations[0] };
}

/** Whether an answer's texts have this quote word for word, so that it need not be shown again. */
/** @param {string} quote @param {{text: string}[]} sentences */
export const standsIn = (quote, sentences) =>
  sentences.some((sentence) => joinLines(sentence.text).includes(joinLines(quote)));

const renderSign = () => el("span", { class: "sign", "aria-hidden": "true" }, REWORDED_SIGN, " ");

const renderRewordedSign = () => [renderSign(), hideVisually(t("ask.reworded"))];

/** The meaning of the sign before reworded statements; "" if there are none. */
/** @param {Api.SentenceJson[]} sentences @param {boolean} [prose] */
function describeReworded(sentences, prose = false) {
  const verifiers = sentences.filter(isReworded).map((sentence) => sentence.verified_by);
  if (!verifiers.length) return "";
  const unchecked = verifiers.filter((name) => !name).length;
  const names = [...new Set(verifiers.filter(Boolean))].map(joinLines).join(", ");
  let checked = t("ask.checked", { names });
  if (unchecked === verifiers.length) checked = t("ask.checked.none");
  else if (unchecked) checked = t("ask.checked.some", { unchecked, all: verifiers.length, names });
  return t(prose ? "ask.reworded.prose" : "ask.reworded.means", { checked });
}

/** Explains the sign of the reworded statements; an empty list if there are none. */
/** @param {Api.SentenceJson[]} sentences @param {boolean} prose */
export function renderLegend(sentences, prose) {
  const meaning = describeReworded(sentences, prose);
  return meaning ? [...renderRewordedSign(), meaning] : [];
}

/** The statements that were left out, folded, each with the reason. @param {Api.LeftOutJson[]} leftOut */
export function renderLeftOut(leftOut) {
  const items = leftOut.map(({ text, reason }) => {
    const why = parts("ask.left_out.reason", { reason: isolate(joinLines(reason)) });
    return el("li", {}, el("p", {}, renderText(text)), el("p", { class: "reason" }, why));
  });
  return el(
    "details",
    { class: "left-out" },
    el("summary", {}, t("ask.left_out", { count: leftOut.length })),
    el("p", {}, t("ask.left_out.means")),
    el("ul", {}, items),
  );
}

// As plain text

/** A statement as lines of plain text. @param {Api.SentenceJson} sentence */
export function formatStatement(sentence) {
  const cited = [...new Set(sentence.citations.map(formatMark))].join(" ");
  const lines = splitStatement(sentence.text);
  const sign = isReworded(sentence) ? `${REWORDED_SIGN} ` : lines.length > 1 ? "  " : "";
  const written = lines.length > 1 ? [...lines, cited] : [`${lines[0]} ${cited}`];
  const indented = written.map((line, at) => `${at ? " ".repeat(sign.length) : sign}${line}`.trimEnd());
  const quotes = isReworded(sentence) ? [...new Set(sentence.citations.map((one) => one.quote))] : [];
  return [
    ...(sentence.instead_of ? [t("ask.in_place")] : []),
    ...indented,
    ...quotes.map((quote) => `${" ".repeat(sign.length)}“${joinLines(quote)}”`),
    ...sentence.against.map((other) =>
      t(`ask.against.${other.differs || "denial"}`, { chip: formatMark(other), words: `“${joinLines(other.quote)}”` }),
    ),
  ];
}

/** A short answer as a line of plain text; null without one. @param {Api.SentenceJson | undefined} sentence */
export function formatShort(sentence) {
  const found = findShort(sentence);
  return found && `${found.answer} ${formatMark(found.cited)}`;
}

/** The legend as a line of plain text; "" if no statement is reworded. @param {Api.SentenceJson[]} sentences */
export function formatLegend(sentences) {
  const meaning = describeReworded(sentences);
  return meaning && `${REWORDED_SIGN} ${meaning}`;
}
