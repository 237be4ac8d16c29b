// What a deep answer rests on: how sure it is, where its papers agree and differ, what they leave open, their years.

import { el, isolate } from "../base/dom.js";
import { parts, t } from "../base/strings.js";
import { joinLines } from "../base/text.js";
import { groupByPage, renderChip, standsIn } from "./statement.js";

/** @typedef {{text: string}[]} Texts */

/** The section about the evidence of a reply; null if there is none. @param {Api.ChatReply} reply */
export function renderProfile({ evidence_profile: profile, sentences }) {
  if (!profile) return null;
  const texts = [...sentences, ...sentences.flatMap(({ against }) => against.map(({ quote }) => ({ text: quote })))];
  /** @param {Api.QuoteJson[]} quotes */
  const list = (quotes) => quotes.map((quote) => renderQuote(quote, texts));
  /** @param {Api.DifferenceJson} difference */
  const isNew = ({ some, others }) => ![...some, ...others].every(({ quote }) => standsIn(quote, texts));
  /** @param {Api.DifferenceJson} difference */
  const renderSides = ({ some, others }) => [
    ...list(some),
    el("p", { class: "but" }, t("ask.profile.but")),
    ...list(others),
  ];
  return el(
    "section",
    { class: "profile" },
    el("h3", {}, t("ask.profile")),
    el("p", {}, describe(profile)),
    ...renderPart(t("ask.profile.agree"), profile.agreements.map(list)),
    ...renderPart(t("ask.profile.differ"), profile.differences.filter(isNew).map(renderSides)),
    renderComparer(profile),
    ...renderPart(
      t("ask.profile.open"),
      profile.open_questions.map((quote) => list([quote])),
    ),
  );
}

/** A part below its heading; nothing without items, each a list of elements. */
/** @param {string} heading @param {HTMLElement[][]} items */
function renderPart(heading, items) {
  if (!items.length) return [];
  const list = items.map((item) => el("li", {}, ...item));
  return [el("h4", {}, heading), el("ul", {}, list)];
}

/** A quote with the page that it opens; only the page if the answer shows the quote already. */
/** @param {Api.QuoteJson} quote @param {Texts} texts */
function renderQuote(quote, texts) {
  const chip = renderChip(groupByPage([quote])[0]);
  if (standsIn(quote.quote, texts)) return el("p", {}, chip, t("ask.profile.above"));
  return el("blockquote", {}, el("p", {}, "“", isolate(joinLines(quote.quote)), "” ", chip));
}

/** @param {Api.EvidenceProfileJson} profile */
function renderComparer({ compared_by: model, agreements, differences }) {
  if (!model || !(agreements.length || differences.length)) return null;
  return el("p", { class: "about" }, parts("ask.profile.compared", { model: isolate(joinLines(model)) }));
}

/** @param {Api.EvidenceProfileJson} profile */
function describe({ confidence, basis, age }) {
  const { papers, relevant, scored, statements, left_out: leftOut } = basis;
  const lines = [
    confidence ? describeConfidence(confidence) : "",
    t("ask.profile.rests", {
      statements: t("ask.statements", { count: statements }),
      papers: t("ask.papers", { count: papers }),
    }),
    t("ask.profile.read", { relevant, passages: t("ask.passages", { count: scored }) }),
    leftOut ? `${t("ask.left_out", { count: leftOut })}.` : "",
    describeAge(age),
  ];
  return lines.filter(Boolean).join(" ");
}

/** @param {Api.ConfidenceJson} confidence */
const describeConfidence = ({ level, value }) =>
  t("ask.profile.confidence", { level, share: `${Math.round(100 * value)}%` });

/** @param {Api.AgeJson} age */
function describeAge({ years, unknown }) {
  const [first, last] = [String(years[0]), String(years.at(-1))];
  let span = "";
  if (years.length) span = first === last ? t("ask.profile.year", { last }) : t("ask.profile.years", { first, last });
  const unsure = unknown ? t("ask.profile.no_year", { count: unknown }) : "";
  const age = [span, unsure].filter(Boolean).join(", ");
  return age && t("ask.profile.age", { age });
}
