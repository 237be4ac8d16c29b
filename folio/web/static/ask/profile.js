// What a deep answer rests on: how sure it is, where its papers agree and differ, what they leave open, their years.

import { el, formatCount, isolate } from "../base/dom.js";
import { groupByPage, renderChip, standsIn } from "./statement.js";
import { joinLines } from "../base/text.js";

/** The section about the evidence of a reply; null if there is none. */
export function renderProfile({ evidence_profile: profile, sentences }) {
  if (!profile) return null;
  const said = [...sentences, ...sentences.flatMap(({ against }) => against.map(({ quote }) => ({ text: quote })))];
  const list = (quotes) => quotes.map((quote) => renderQuote(quote, said));
  const isNew = ({ some, others }) => ![...some, ...others].every(({ quote }) => standsIn(quote, said));
  const renderSides = ({ some, others }) => [...list(some), el("p", { class: "but" }, "but"), ...list(others)];
  const parts = [
    ["Where the papers agree", profile.agreements.map(list)],
    ["Where they differ", profile.differences.filter(isNew).map(renderSides)],
  ];
  const open = profile.open_questions.map((quote) => list([quote]));
  return el(
    "section",
    { class: "profile" },
    el("h3", {}, "About the evidence"),
    el("p", {}, describe(profile)),
    ...parts.flatMap(([heading, items]) => renderPart(heading, items)),
    renderComparer(profile),
    ...renderPart("Open questions", open),
  );
}

/** A part below its heading; nothing without items, each a list of elements. */
function renderPart(heading, items) {
  if (!items.length) return [];
  return [
    el("h4", {}, heading),
    el(
      "ul",
      {},
      items.map((item) => el("li", {}, ...item)),
    ),
  ];
}

/** A quote with the page that it opens; only the page if the answer shows the quote already. */
function renderQuote(quote, said) {
  const chip = renderChip(groupByPage([quote])[0]);
  if (standsIn(quote.quote, said)) return el("p", {}, chip, " quoted above");
  return el("blockquote", {}, el("p", {}, "“", isolate(joinLines(quote.quote)), "” ", chip));
}

function renderComparer({ compared_by: model, agreements, differences }) {
  if (!model || !(agreements.length || differences.length)) return null;
  return el("p", { class: "about" }, isolate(joinLines(model)), " chose which quotes belong together: read them.");
}

function describe({ confidence, basis, age }) {
  const sure = confidence ? [describeConfidence(confidence)] : [];
  const { papers, relevant, scored, statements, left_out: leftOut } = basis;
  const rests = `${formatCount(statements, "statement")} from ${formatCount(papers, "paper")};`;
  const read = `${relevant.toLocaleString()} of ${formatCount(scored, "passage")} relevant.`;
  const dropped = leftOut ? [`${formatCount(leftOut, "statement")} left out.`] : [];
  return [...sure, rests, read, ...dropped, describeAge(age)].filter(Boolean).join(" ");
}

function describeConfidence({ level, value }) {
  const share = `${Math.round(100 * value)}%`;
  return `Confidence: ${level}. In tests ${share} of such answers showed what was asked for.`;
}

function describeAge({ years, unknown }) {
  const [first, last] = [years[0], years.at(-1)];
  const span = years.length ? [first === last ? `papers of ${last}` : `papers of ${first} to ${last}`] : [];
  const unsure = unknown ? [`${formatCount(unknown, "paper")} without a sure year`] : [];
  const age = [...span, ...unsure].join(", ");
  return age && `Age: ${age}.`;
}
