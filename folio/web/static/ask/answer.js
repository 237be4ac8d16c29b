// One turn of a conversation: the question, its answer as it arrives, and its sources.

import * as api from "../base/api.js";
import { DeepSearch, renderTrace } from "./deep.js";
import { copyText, el, formatCount, formatDuration, formatPage, formatPages, hideVisually } from "../base/dom.js";
import { isolate, keepTogether, makeButton, makeIcon, renderMessage, renderProblem, showToast } from "../base/dom.js";
import { renderProfile } from "./profile.js";
import { isRestricted, renderOnlyThese, renderScope } from "./scope.js";
import { getTitle, library } from "../base/state.js";
import { describeFlagged, formatLegend, formatShort, formatStatement, groupByPage } from "./statement.js";
import { makePageOpener, renderLeftOut, renderLegend, renderNotice, renderShort } from "./statement.js";
import { renderStatement, standsIn } from "./statement.js";
import { checkZoteroLink, joinLines, shorten } from "../base/text.js";
import { openPassage, replaceOpener } from "../reader/viewer.js";

const CLOSEST = 4; // passages shown with a refusal
const CLOSEST_PASSAGES = "Closest passages"; // the headings of folio/answer_types.py
const ALSO = "Also";
const MAY_NOT_ANSWER = "These are about the topic, and may not answer the question."; // folio/shown_text.py

export class Turn {
  /**
   * onRetry: asks the question again. onAskAll: asks all papers. live: the sentences will be streamed, and screen
   * readers announce them.
   */
  constructor(message, { onRetry, onAskAll, live = false }) {
    this.message = message;
    this.onRetry = onRetry;
    this.onAskAll = onAskAll;
    this.reply = null; // once it is whole
    this.number = 0; // in its conversation, once the server has begun
    /** @type {number | null} */
    this.stored = null; // its number, if the server keeps what was shown before it was stopped
    this.status = el("p", { class: "working" }, live ? "Searching your papers" : "");
    this.sentences = el("div", { class: "sentences", "aria-live": live ? "polite" : null });
    this.legend = el("p", { class: "legend", hidden: true });
    this.rest = el("div", { class: "rest" });
    this.search = null; // how a deep search found the passages
    this.understood = el("p", { class: "understood", hidden: true });
    this.scope = el("p", { class: "asked-only", hidden: true });
    this.warnings = el("div", { class: "warnings", role: "status" });
    this.root = el(
      "article",
      { class: "turn" },
      el("h2", { class: "asked" }, isolate(message)),
      this.understood,
      this.scope,
      this.warnings,
      this.sentences,
      this.legend,
      this.status,
      this.rest,
    );
    this.status.hidden = !live;
    this.section = null;
    this.into = this.sentences;
    this.shown = []; // sentences
    this.reading = [...this.status.childNodes];
  }

  /** Shows a step of a deep search; returns what screen readers should hear. */
  showSearch(event) {
    if (!this.search) this.insertSearch(new DeepSearch({ live: true }));
    const said = this.search.add(event);
    if (said) this.status.replaceChildren(said);
    return said;
  }

  insertSearch(search) {
    this.search = search;
    this.scope.after(search.root);
  }

  /** Shows which passages the answer is being made from. */
  showHits(hits) {
    this.search?.fold();
    const files = [...new Set(hits.map((hit) => hit.title || hit.file))];
    const where = files.length === 1 ? isolate(joinLines(files[0])) : formatCount(files.length, "paper");
    this.reading = ["Reading ", formatCount(hits.length, "passage"), " of ", where];
    this.status.replaceChildren(...this.reading);
  }

  /** Shows that the model thinks before it writes. */
  showThinking(model) {
    this.status.replaceChildren(`${model} is thinking`);
  }

  /** Shows how many statements wait for their verifier. */
  showChecking(count) {
    this.status.replaceChildren(...(count ? [`Checking ${formatCount(count, "more statement")}`] : this.reading));
  }

  addSentence(sentence) {
    const short = this.shown.length ? null : renderShort(sentence);
    if (short) this.sentences.append(short);
    this.startSection(sentence.section);
    this.into.append(...renderStatement(sentence, this.into.tagName === "UL" ? "li" : "p"));
    this.shown.push(sentence);
    const cited = this.shown.flatMap(({ citations, against }) => [...citations, ...against]);
    this.showWarnings(describeFlagged(cited));
    const legend = renderLegend(this.shown);
    this.legend.replaceChildren(...legend);
    this.legend.hidden = !legend.length;
  }

  /** Shows above the answer that papers it cites were retracted. */
  showWarnings(warnings) {
    if (this.warnings.childElementCount === warnings.length) return;
    this.warnings.replaceChildren(...warnings.map((text) => el("p", { class: "flag" }, makeIcon("warning"), text)));
  }

  /** Adds the headings when the section changes: "Analysis/Melt" is Melt under Analysis. Other places are folded. */
  startSection(section) {
    if (section === this.section) return;
    const [heading, ...subheading] = section.split("/");
    const isNew = heading && heading !== this.section?.split("/")[0];
    this.section = section;
    this.into = el(section === "Summary" ? "ul" : "div", { class: "part" });
    if (section === ALSO) {
      const summary = el("summary", {}, el("h3", {}, heading));
      this.sentences.append(el("details", { class: "also" }, summary, this.into));
      return;
    }
    if (isNew) this.sentences.append(el("h3", {}, isolate(heading)));
    if (isNew && heading === CLOSEST_PASSAGES) this.sentences.append(el("p", {}, MAY_NOT_ANSWER));
    if (subheading.length) this.sentences.append(el("h4", {}, isolate(subheading.join("/"))));
    this.sentences.append(this.into);
  }

  /** Shows the rest of a reply. whole: also its sentences, which were not streamed. open: unfolds the sources. */
  finish(reply, { whole = false, open = true } = {}) {
    this.reply = reply;
    if (whole) for (const sentence of reply.sentences) this.addSentence(sentence);
    this.showWarnings(reply.warnings);
    this.status.hidden = true;
    this.sentences.removeAttribute("aria-live");
    if (reply.trace && this.search) this.search.finish(reply.trace);
    else if (reply.trace) this.insertSearch(renderTrace(reply.trace));
    if (joinLines(reply.standalone_question) !== joinLines(reply.message)) {
      this.understood.replaceChildren("Understood as: ", isolate(reply.standalone_question));
      this.understood.hidden = false;
    }
    if (isRestricted(reply.scope) && !reply.refused) {
      this.scope.replaceChildren("Asked only: ", ...renderScope(reply.scope));
      this.scope.hidden = false;
    }
    if (reply.refused) this.rest.append(renderRefusal(reply, this.onAskAll));
    const profile = renderProfile(reply);
    if (profile) this.rest.append(profile);
    if (reply.remark) this.rest.append(el("p", { class: "remark" }, isolate(reply.remark)));
    const notes = [reply.notice, describeDropped(reply)].filter(Boolean).join(" ");
    if (notes) this.rest.append(el("p", { class: "note" }, renderMessage(notes)));
    if (reply.left_out.length) this.rest.append(renderLeftOut(reply.left_out));
    if (reply.citations.length) this.rest.append(renderSources(reply, open));
    if (reply.style === "report" && reply.citations.length) this.rest.append(renderReferences(reply.citations));
    this.rest.append(renderActions(reply));
  }

  /** Renders the reply again after papers were renamed. Open parts stay open. */
  refresh(reply) {
    const { message, onRetry, onAskAll, root } = this;
    const made = new Turn(message, { onRetry, onAskAll });
    made.finish(reply, { whole: true });
    const before = [...root.querySelectorAll("details, button")];
    const after = [...made.root.querySelectorAll("details, button")];
    const focused = before.length === after.length ? before.indexOf(document.activeElement) : -1;
    root.replaceChildren(...made.root.childNodes);
    Object.assign(this, made, { root });
    if (before.length !== after.length) return;
    before.forEach((node, at) => {
      if (node.tagName === "DETAILS") after[at].open = node.open;
      else replaceOpener(node, after[at]);
    });
    after[focused]?.focus({ preventScroll: true });
  }

  showError(error) {
    this.endWith(renderProblem(error, this.onRetry, "Ask again"));
  }

  showStopped() {
    this.endWith(
      el("p", { class: "note" }, "You stopped this answer."),
      makeButton("button quiet", this.onRetry, makeIcon("again"), "Ask again"),
    );
  }

  endWith(...nodes) {
    this.status.hidden = true;
    this.sentences.removeAttribute("aria-live");
    this.rest.append(...nodes);
  }

  /** Folds the sources, to save space once a later question is asked. */
  fold() {
    const list = this.rest.querySelector("details.sources");
    if (list) list.open = false;
  }
}

/** The number of statements that an older Folio left out; it did not store them. */
function describeDropped({ dropped_sentences: number, left_out: kept }) {
  if (!number || kept.length) return "";
  return `${formatCount(number, "unsupported sentence")} ${number === 1 ? "was" : "were"} left out.`;
}

function renderRefusal(reply, onAskAll) {
  const box = el("div", { class: "refusal" }, el("p", { class: "refused" }, reply.answer));
  if (isRestricted(reply.scope)) {
    const all = onAskAll ? makeButton("button", onAskAll, makeIcon("again"), "Ask all papers") : null;
    box.append(renderOnlyThese(reply.scope, all));
  }
  if (!reply.hits.length) return box;
  box.append(el("p", {}, "No passage answers this well enough to be quoted. These come closest:"));
  const list = el("ol", { class: "closest" });
  for (const hit of reply.hits.slice(0, CLOSEST)) {
    const open = (event) => openPassage(hit, event.currentTarget);
    list.append(
      el(
        "li",
        {},
        makeButton("source", open, isolate(getTitle(hit)), ", ", keepTogether(formatPages(hit.pages))),
        hit.section ? renderFact(joinLines(hit.section)) : null,
        el("p", { class: "snippet" }, isolate(joinLines(hit.text))),
      ),
    );
  }
  box.append(list);
  return box;
}

/** A line below a source: its section, its venue, its file. */
const renderFact = (text) => el("p", { class: "file" }, isolate(text));

/** A numbered list of the cited pages, with the quotes that are not in the answer. */
function renderSources({ citations, sentences }, open) {
  const pages = groupByPage(citations);
  const papers = new Set(pages.map((cited) => cited.paper)).size;
  const list = el("ol", {});
  for (const cited of pages) {
    const where = keepTogether(formatPage(cited.page, cited.label));
    const item = el(
      "li",
      {},
      makeButton("source", makePageOpener(cited), isolate(getTitle(cited)), ", ", where),
      cited.sections.length ? renderFact(joinLines(cited.sections.join("; "))) : null,
      cited.venue ? renderFact(formatPublished(cited)) : null,
      cited.title ? renderFact(cited.file) : null,
      renderNotice(cited.notice),
      checkZoteroLink(cited.zotero) ? el("a", { class: "file", href: cited.zotero }, "Open in Zotero") : null,
    );
    for (const { text, support } of cited.quotes.filter((quote) => !standsIn(quote.text, sentences))) {
      const match = support === 1 ? "word for word" : `support ${support.toFixed(2)}`;
      item.append(el("blockquote", {}, el("p", {}, isolate(joinLines(text)), el("span", { class: "held" }, match))));
    }
    list.append(item);
  }
  const heading = el("h3", {}, "Sources");
  const size = `${formatCount(pages.length, "page")} in ${formatCount(papers, "paper")}`;
  const summary = el("summary", {}, heading, el("span", { class: "size" }, size));
  return el("details", { class: "sources", open }, summary, list);
}

/** The papers that a report cites, each with its cited pages. */
function renderReferences(citations) {
  const pages = new Map();
  for (const cited of citations) {
    if (!pages.has(cited.paper)) pages.set(cited.paper, { cited, numbers: new Set() });
    pages.get(cited.paper).numbers.add(cited.page);
  }
  const lines = [...pages.values()].map(({ cited, numbers }) => {
    const sorted = [...numbers].sort((a, b) => a - b);
    const list = `${sorted.length === 1 ? "p." : "pp."} ${sorted.join(", ")}`;
    return el("li", {}, isolate(`${formatReference(cited)}, ${list}`), renderNotice(cited.notice));
  });
  return el("section", { class: "references" }, el("h3", {}, "Key references"), el("ul", {}, lines));
}

/** "Sea Life, 2021" */
const formatPublished = ({ venue, year }) => joinLines([venue, year].filter(Boolean).join(", "));

/** "A. Otter and B. Seal (2021). On Sea Otters. Sea Life. otters.pdf" */
function formatReference(cited) {
  const { title = cited.title, authors = [], year = null, arxiv = "" } = library.get().papers.get(cited.paper) ?? {};
  let who = authors.join(", ");
  if (authors.length > 3) who = `${authors[0]} et al.`;
  else if (authors.length > 1) who = `${authors.slice(0, -1).join(", ")} and ${authors.at(-1)}`;
  const parts = [[who, year ? `(${year})` : ""].filter(Boolean).join(" "), title, cited.venue];
  const place = arxiv ? `arXiv:${arxiv}` : cited.file;
  return joinLines([...parts.filter(Boolean).map((part) => part.replace(/\.$/, "")), place].join(". "));
}

function renderActions(reply) {
  const row = el("div", { class: "actions" });
  const copyAnswer = () => copyText(formatAnswer(reply), "Answer");
  if (reply.sentences.length) row.append(makeButton("button quiet", copyAnswer, makeIcon("copy"), "Copy"));
  if (reply.citations.some((cited) => checkZoteroLink(cited.zotero))) {
    row.append(makeButton("button quiet", () => copyZoteroNote(reply), makeIcon("copy"), "Copy Zotero note"));
  }
  row.append(renderFeedbackButton(reply, "good", row), renderFeedbackButton(reply, "bad", row));
  const made = [formatDuration(reply.elapsed_ms), reply.models?.llm].filter(Boolean).join(" · ");
  row.append(el("span", { class: "made" }, made));
  return row;
}

async function copyZoteroNote(reply) {
  try {
    await copyText(formatAnswer(reply), "Zotero note", await api.getZoteroNote(reply.conversation, reply.turn));
  } catch (thrown) {
    const error = api.toApiError(thrown);
    showToast(`${error.error} ${error.remedy}`);
  }
}

function renderFeedbackButton(reply, feedback, row) {
  const press = async () => {
    try {
      await api.sendFeedback({ conversation: reply.conversation, turn: reply.turn, feedback });
    } catch (thrown) {
      const error = api.toApiError(thrown);
      return showToast(`${error.error} ${error.remedy}`);
    }
    for (const other of row.querySelectorAll("[aria-pressed]")) {
      other.setAttribute("aria-pressed", String(other === node));
    }
    showToast(`Rated as a ${feedback} answer.`);
  };
  const name = feedback === "good" ? "Good" : "Bad";
  const node = makeButton("button quiet mark", press, makeIcon(feedback), name, hideVisually(" answer"));
  node.setAttribute("aria-pressed", String(reply.feedback === feedback));
  return node;
}

/** The answer with its citations as plain text. */
function formatAnswer(reply) {
  const lines = [...describeFlagged(reply.citations), formatShort(reply.sentences[0])].filter(Boolean);
  let section = "";
  for (const sentence of reply.sentences) {
    if (sentence.section !== section) lines.push("", joinLines(sentence.section.split("/").pop()));
    if (sentence.section !== section && sentence.section === CLOSEST_PASSAGES) lines.push(MAY_NOT_ANSWER);
    section = sentence.section;
    lines.push(...formatStatement(sentence));
  }
  const legend = formatLegend(reply.sentences);
  if (legend) lines.push("", legend);
  lines.push("", "Sources");
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
