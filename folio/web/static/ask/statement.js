// One statement of an answer: quoted, reworded with its quotes, or left out; and the citations that open pages.

import { el, formatCount, formatPage, hideVisually, isolate, keepTogether, makeButton, makeIcon } from "../base/dom.js";
import { getTitle } from "../base/state.js";
import { formatMark, joinLines, joinSentence, REWORDED_SIGN, shortenAtWord, splitMark } from "../base/text.js";
import { splitMarked, splitStatement, withoutCitations } from "../base/text.js";
import { openPage } from "../reader/viewer.js";

const LONGEST_QUOTE = 240; // characters of the quote beneath a reworded statement; the sources have it whole
const IN_PLACE = "In place of a statement that the papers do not support:";
// Lines that are columns or code, and need letters of one width
const ALIGNED = /^(?: {2,}|\t|\||```)|\S {3,}\S/m;

const isReworded = (sentence) => sentence.outcome === "reworded";

/** Groups citations by page: each page once, with all of its quotes and the sections that they stand in. */
export function groupByPage(citations) {
  const pages = new Map();
  for (const cited of citations) {
    const key = `${cited.paper} ${cited.page}`;
    if (!pages.has(key)) pages.set(key, { ...cited, quotes: [], sections: [] });
    const { quotes, sections } = pages.get(key);
    if (cited.section && !sections.includes(cited.section)) sections.push(cited.section);
    if (!quotes.some((quote) => quote.text === cited.quote)) quotes.push({ text: cited.quote, support: cited.support });
  }
  const grouped = [...pages.values()];
  for (const cited of grouped) cited.marks = collectMarks(grouped.filter(({ paper }) => paper === cited.paper));
  return grouped;
}

/** The marks on each page of a paper: a statement may be quoted from several pages. */
const collectMarks = (pages) => new Map(pages.map(({ page, quotes }) => [page, quotes.map(({ text }) => text)]));

export const makePageOpener = (cited) => (event) =>
  openPage({
    paper: cited.paper,
    page: cited.page,
    title: cited.title,
    file: cited.file,
    marks: cited.marks,
    from: event.currentTarget,
  });

/** "Ongaro 2014, RETRACTED, p. 6" as a button. CSS shortens a long name, but neither the mark nor the page. */
export function renderChip(cited, kind = "") {
  const [key, place] = splitMark(cited.shown);
  const mark = cited.notice?.mark ?? "";
  const separator = place.startsWith(",") ? renderComma() : " ";
  const page = place.replace(/^,? /, "");
  const bare = mark && key.endsWith(`, ${mark}`) ? key.slice(0, -mark.length - 2) : key;
  const name = isolate(bare, { class: "key" });
  const flag = mark ? [renderComma(), el("strong", { class: "flag" }, mark)] : [];
  const action = hideVisually(": open the page");
  const parts = [name, ...flag, separator, keepTogether(page), action];
  const node = makeButton(`chip ${mark ? "flagged" : ""} ${kind}`, makePageOpener(cited), ...parts);
  const what = cited.notice ? `. ${cited.notice.text}` : "";
  node.title = `${getTitle(cited)}, ${formatPage(cited.page, cited.label)}${what}`;
  return node;
}

const renderComma = () => el("span", { class: "comma" }, ", ");

/** A notice about a paper, such as its retraction, as a line with a sign; null without one. */
export const renderNotice = (notice) =>
  notice ? el("p", { class: notice.mark ? "flag" : "flag mild" }, makeIcon("warning"), notice.text) : null;

/** The cited papers with a serious notice, each once: [the citation's name, the notice]. */
export function findFlagged(citations) {
  const papers = new Map();
  for (const cited of citations) {
    const { paper, notice } = cited;
    const [key] = splitMark(cited.shown);
    if (notice?.mark && !papers.has(paper)) papers.set(paper, [key.replace(`, ${notice.mark}`, ""), notice]);
  }
  return [...papers.values()];
}

/** The server's warnings, for an answer that is not complete yet. */
export const describeFlagged = (citations) =>
  findFlagged(citations).map(([name, { text }]) => `Warning: this answer cites ${joinLines(name)}: ${text}.`);

/** A statement with its citations, and what disagrees with it. tag: of each element, "p" or "li". */
export function renderStatement(sentence, tag) {
  const text = [renderText(sentence.text, sentence.marks)];
  for (const cited of groupByPage(sentence.citations)) text.push(" ", renderChip(cited));
  const nodes = [];
  if (!isReworded(sentence) && !sentence.instead_of) nodes.push(el(tag, { class: "sentence" }, text));
  else nodes.push(renderMarked(sentence, text, tag === "p" ? "div" : tag));
  for (const cited of groupByPage(sentence.against)) {
    const quote = el("q", {}, isolate(joinLines(cited.quotes[0].text)));
    const said = el("span", {}, "But ", renderChip(cited, "against"), " says otherwise: ", quote);
    nodes.push(el(tag, { class: "against" }, makeIcon("warning"), said));
  }
  return nodes;
}

/** A reworded statement above its quotes, or a quote below what it says about its place. */
function renderMarked(sentence, text, tag) {
  if (!isReworded(sentence)) {
    return el(tag, { class: "sentence" }, el("p", { class: "in-place" }, IN_PLACE), el("p", {}, text));
  }
  const quotes = [...new Set(sentence.citations.map((cited) => shortenAtWord(cited.quote, LONGEST_QUOTE)))];
  return el(
    tag,
    { class: "sentence reworded" },
    el("p", {}, renderSign(), hideVisually("Reworded: "), text),
    quotes.map((quote) => el("blockquote", {}, el("p", {}, "“", isolate(quote), "”"))),
  );
}

/** The text of a statement with its answering words marked, line by line. */
function renderText(text, marks = []) {
  const lines = splitStatement(text);
  const written = lines.length === 1 ? withoutCitations(text) : lines.join("\n");
  const node = isolate("");
  if (lines.length > 1) node.className = ALIGNED.test(written) ? "lines aligned" : "lines";
  node.append(...splitMarked(written, text, marks).map(([part, isMarked]) => (isMarked ? el("mark", {}, part) : part)));
  return node;
}

/** A short answer with its page; null without one. */
export function renderShort(sentence) {
  if (!sentence?.short) return null;
  const { answer, cited } = findShort(sentence);
  return el("p", { class: "short" }, el("strong", {}, isolate(answer)), " ", renderChip(groupByPage([cited])[0]));
}

/** A short answer and the citation that contains it. */
function findShort({ text, short: [start, end], citations }) {
  const answer = joinSentence([...text].slice(start, end).join(""));
  return { answer, cited: citations.find((one) => joinLines(one.quote).includes(answer)) ?? citations[0] };
}

/** Whether an answer's texts have this quote word for word, so that it need not be shown again. */
export const standsIn = (quote, sentences) =>
  sentences.some((sentence) => joinLines(sentence.text).includes(joinLines(quote)));

const renderSign = () => el("span", { class: "sign", "aria-hidden": "true" }, REWORDED_SIGN, " ");

/** The meaning of the sign before reworded statements; "" if there are none. */
function describeReworded(sentences) {
  const verifiers = sentences.filter(isReworded).map((sentence) => sentence.verified_by);
  if (!verifiers.length) return "";
  const unchecked = verifiers.filter((name) => !name).length;
  const names = [...new Set(verifiers.filter(Boolean))].map(joinLines).join(", ");
  let checked = `Checked by ${names}.`;
  if (unchecked === verifiers.length) checked = "Not checked by a verifier.";
  else if (unchecked) {
    checked = `${unchecked} of ${verifiers.length} not checked by a verifier, the others by ${names}.`;
  }
  return `in the model's own words; the quote stands beneath. ${checked}`;
}

/** Explains the sign of the reworded statements; an empty list if there are none. */
export function renderLegend(sentences) {
  const meaning = describeReworded(sentences);
  return meaning ? [renderSign(), hideVisually("Reworded: "), meaning] : [];
}

/** The statements that were left out, folded, each with the reason. */
export function renderLeftOut(leftOut) {
  const items = leftOut.map(({ text, reason }) =>
    el("li", {}, el("p", {}, renderText(text)), el("p", { class: "reason" }, "Reason: ", isolate(joinLines(reason)))),
  );
  return el(
    "details",
    { class: "left-out" },
    el("summary", {}, `${formatCount(leftOut.length, "statement")} left out`),
    el("p", {}, "The papers do not support these statements of the model:"),
    el("ul", {}, items),
  );
}

/** A statement as lines of plain text. */
export function formatStatement(sentence) {
  const cited = [...new Set(sentence.citations.map(formatMark))].join(" ");
  const lines = splitStatement(sentence.text);
  const sign = isReworded(sentence) ? `${REWORDED_SIGN} ` : lines.length > 1 ? "  " : "";
  const said = lines.length > 1 ? [...lines, cited] : [`${lines[0]} ${cited}`];
  const indented = said.map((line, at) => `${at ? " ".repeat(sign.length) : sign}${line}`.trimEnd());
  const quotes = isReworded(sentence) ? [...new Set(sentence.citations.map((one) => one.quote))] : [];
  return [
    ...(sentence.instead_of ? [IN_PLACE] : []),
    ...indented,
    ...quotes.map((quote) => `${" ".repeat(sign.length)}“${shortenAtWord(quote, LONGEST_QUOTE)}”`),
    ...sentence.against.map((other) => `But ${formatMark(other)} says otherwise: “${joinLines(other.quote)}”`),
  ];
}

/** A short answer as a line of plain text; null without one. */
export function formatShort(sentence) {
  if (!sentence?.short) return null;
  const { answer, cited } = findShort(sentence);
  return `${answer} ${formatMark(cited)}`;
}

/** The legend as a line of plain text; "" if no statement is reworded. */
export function formatLegend(sentences) {
  const meaning = describeReworded(sentences);
  return meaning && `${REWORDED_SIGN} ${meaning}`;
}
