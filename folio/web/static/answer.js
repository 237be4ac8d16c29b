// One turn of a conversation: the question, its answer as it arrives, what the answer stands on.

import * as api from "./api.js";
import { at, button, copy, count, el, icon, oneLine, pageName, pagesName } from "./dom.js";
import { problem, seconds, toast, unseen, words } from "./dom.js";
import { nameOf, shared } from "./shared.js";
import { openPage, openPassage } from "./viewer.js";

const CLOSEST = 4; // passages that a refusal offers

export class Turn {
  /** onRetry: asks the same again. live: its sentences are still to come, and are read out as they do. */
  constructor(message, { onRetry, live = false }) {
    this.message = message;
    this.onRetry = onRetry;
    this.status = el("p", { class: "working" }, live ? "Searching the papers" : "");
    this.sentences = el("div", { class: "sentences", "aria-live": live ? "polite" : null });
    this.rest = el("div", { class: "rest" });
    this.understood = el("p", { class: "understood", hidden: true });
    this.root = el(
      "article",
      { class: "turn" },
      el("h2", { class: "asked" }, words(message)),
      this.understood,
      this.sentences,
      this.status,
      this.rest,
    );
    this.status.hidden = !live;
    this.section = null;
    this.into = this.sentences;
  }

  /** The passages are found, and the answer is being made of them. */
  reading(hits) {
    const files = [...new Set(hits.map((hit) => hit.title || hit.file))];
    const where = files.length === 1 ? words(oneLine(files[0])) : count(files.length, "paper");
    this.status.replaceChildren("Reading ", count(hits.length, "passage"), " of ", where);
  }

  add(sentence) {
    this.place(sentence.section);
    const node = el(this.into.tagName === "UL" ? "li" : "p", { class: "sentence" }, words(sentence.text));
    for (const cited of byPage(sentence.citations)) node.append(" ", chip(cited));
    this.into.append(node);
    for (const cited of byPage(sentence.against)) {
      const quote = el("q", {}, words(oneLine(cited.quotes[0].text)));
      const said = el("span", {}, "but ", chip(cited, "against"), " says otherwise: ", quote);
      const other = el(this.into.tagName === "UL" ? "li" : "p", { class: "against" }, icon("warning"), said);
      this.into.append(other);
    }
  }

  /** Begins the heading of a report wherever the section changes: "Analysis/Melt" is Melt under Analysis. */
  place(section) {
    if (section === this.section) return;
    const [heading, ...below] = section.split("/");
    if (heading && heading !== this.section?.split("/")[0]) this.sentences.append(el("h3", {}, words(heading)));
    if (below.length) this.sentences.append(el("h4", {}, words(below.join("/"))));
    this.section = section;
    this.into = el(section === "Summary" ? "ul" : "div", { class: "part" });
    this.sentences.append(this.into);
  }

  /** The whole reply is here. Its sentences are shown already where it was streamed. */
  finish(reply, { whole = false, open = true } = {}) {
    if (whole) reply.sentences.forEach((sentence) => this.add(sentence));
    this.status.hidden = true;
    this.sentences.removeAttribute("aria-live");
    if (oneLine(reply.standalone_question) !== oneLine(reply.message)) {
      this.understood.replaceChildren("Understood as: ", words(reply.standalone_question));
      this.understood.hidden = false;
    }
    if (reply.refused) this.rest.append(refusal(reply));
    const notes = [reply.notice, dropped(reply.dropped_sentences)].filter(Boolean).join(" ");
    if (notes) this.rest.append(el("p", { class: "note" }, notes));
    if (reply.citations.length) this.rest.append(sources(reply.citations, open));
    if (reply.style === "report" && reply.citations.length) this.rest.append(references(reply.citations));
    this.rest.append(actions(reply));
  }

  fail(error) {
    this.end(problem(error, this.onRetry, "Ask again"));
  }

  stopped() {
    this.end(
      el("p", { class: "note" }, "You stopped this answer; the conversation goes on without it."),
      button("button quiet", this.onRetry, icon("again"), "Ask again"),
    );
  }

  end(...nodes) {
    this.status.hidden = true;
    this.sentences.removeAttribute("aria-live");
    this.rest.append(...nodes);
  }

  /** An earlier answer needs less room. */
  fold() {
    const list = this.rest.querySelector("details.sources");
    if (list) list.open = false;
  }
}

/** Citations of one sentence by page: each page once, with all of its quotes. */
function byPage(citations) {
  const pages = new Map();
  for (const cited of citations) {
    const key = `${cited.paper} ${cited.page}`;
    if (!pages.has(key)) pages.set(key, { ...cited, quotes: [] });
    const { quotes } = pages.get(key);
    if (!quotes.some((quote) => quote.text === cited.quote)) quotes.push({ text: cited.quote, support: cited.support });
  }
  return [...pages.values()];
}

const opened = (cited) => (event) =>
  openPage({
    paper: cited.paper,
    page: cited.page,
    title: cited.title,
    file: cited.file,
    quotes: cited.quotes.map((quote) => quote.text),
    from: event.currentTarget,
  });

/** "otters p.7" as a button; a long name is cut where it is drawn, its page never. */
function chip(cited, kind = "") {
  const [, key, page] = /^\[?(.*?) (p\.\d+)\]?$/s.exec(cited.shown) ?? [null, cited.shown, ""];
  const name = words(key, { class: "key" });
  const node = button(`chip ${kind}`, opened(cited), name, " ", at(page), unseen(": open the page"));
  node.title = `${nameOf(cited)}, ${pageName(cited.page, cited.label)}`;
  return node;
}

function dropped(number) {
  if (!number) return "";
  return `${count(number, "sentence")} that no passage supports ${number === 1 ? "was" : "were"} left out.`;
}

function refusal(reply) {
  const box = el("div", { class: "refusal" }, el("p", { class: "refused" }, reply.answer));
  if (!reply.hits.length) return box;
  box.append(el("p", {}, "Nothing in them answers this well enough to be quoted. These passages come closest:"));
  const list = el("ol", { class: "closest" });
  for (const hit of reply.hits.slice(0, CLOSEST)) {
    const open = (event) => openPassage(hit, event.currentTarget);
    list.append(
      el(
        "li",
        {},
        button("source", open, words(nameOf(hit)), ", ", at(pagesName(hit.pages))),
        el("p", { class: "snippet" }, words(oneLine(hit.text))),
      ),
    );
  }
  box.append(list);
  return box;
}

/** Every cited page with its quotes, numbered. */
function sources(citations, open) {
  const pages = byPage(citations);
  const papers = new Set(pages.map((cited) => cited.paper)).size;
  const list = el("ol", {});
  for (const cited of pages) {
    const where = at(pageName(cited.page, cited.label));
    const item = el(
      "li",
      {},
      button("source", opened(cited), words(nameOf(cited)), ", ", where),
      cited.title ? el("span", { class: "file" }, words(cited.file)) : null,
    );
    for (const { text, support } of cited.quotes) {
      const held = support === 1 ? "word for word" : `support ${support.toFixed(2)}`;
      item.append(el("blockquote", {}, el("p", {}, words(oneLine(text)), el("span", { class: "held" }, held))));
    }
    list.append(item);
  }
  const heading = el("h3", {}, "Sources");
  const size = `${count(pages.length, "page")} in ${count(papers, "paper")}`;
  const summary = el("summary", {}, heading, el("span", { class: "size" }, size));
  return el("details", { class: "sources", open }, summary, list);
}

/** The papers that a report cites, one a line, with the pages cited. */
function references(citations) {
  const pages = new Map();
  for (const cited of citations) {
    if (!pages.has(cited.paper)) pages.set(cited.paper, { cited, numbers: new Set() });
    pages.get(cited.paper).numbers.add(cited.page);
  }
  const lines = [...pages.values()].map(({ cited, numbers }) => {
    const sorted = [...numbers].sort((a, b) => a - b);
    return el("li", {}, words(`${reference(cited)}, ${sorted.length === 1 ? "p." : "pp."} ${sorted.join(", ")}`));
  });
  return el("section", { class: "references" }, el("h3", {}, "Key references"), el("ul", {}, lines));
}

/** "A. Otter and B. Seal (2021). On Sea Otters. otters.pdf" */
function reference(cited) {
  const { authors = [], year = null, arxiv = "" } = shared.papers.get(cited.paper) ?? {};
  let who = authors.join(", ");
  if (authors.length > 3) who = `${authors[0]} et al.`;
  else if (authors.length > 1) who = `${authors.slice(0, -1).join(", ")} and ${authors.at(-1)}`;
  const said = [[who, year ? `(${year})` : ""].filter(Boolean).join(" "), cited.title];
  const place = arxiv ? `arXiv:${arxiv}` : cited.file;
  return oneLine([...said.filter(Boolean).map((part) => part.replace(/\.$/, "")), place].join(". "));
}

function actions(reply) {
  const row = el("div", { class: "actions" });
  const asText = () => copy(answerText(reply), "Answer");
  if (!reply.refused) row.append(button("button quiet", asText, icon("copy"), "Copy"));
  row.append(mark(reply, "good", row), mark(reply, "bad", row));
  const made = [seconds(reply.elapsed_ms), reply.models?.llm].filter(Boolean).join(" · ");
  row.append(el("span", { class: "made" }, made));
  return row;
}

function mark(reply, feedback, row) {
  const press = async () => {
    try {
      await api.feedback({ conversation: reply.conversation, turn: reply.turn, feedback });
    } catch (thrown) {
      const error = api.shown(thrown);
      return toast(`${error.error} ${error.remedy}`);
    }
    for (const other of row.querySelectorAll("[aria-pressed]")) {
      other.setAttribute("aria-pressed", String(other === node));
    }
    toast(`Marked as a ${feedback} answer.`);
  };
  const name = feedback === "good" ? "Good" : "Bad";
  const node = button("button quiet mark", press, icon(feedback), name, unseen(" answer"));
  node.setAttribute("aria-pressed", String(reply.feedback === feedback));
  return node;
}

/** The answer with its citations as plain text. */
function answerText(reply) {
  const lines = [];
  let section = "";
  for (const sentence of reply.sentences) {
    if (sentence.section !== section) lines.push("", ...sentence.section.split("/").slice(-1));
    section = sentence.section;
    const cited = [...new Set(sentence.citations.map((citation) => citation.shown))].join(" ");
    lines.push(`${sentence.text} ${cited}`);
    for (const { shown, quote } of sentence.against) lines.push(`But ${shown} says otherwise: “${oneLine(quote)}”`);
  }
  lines.push("", "Sources");
  byPage(reply.citations).forEach((cited, index) => {
    lines.push(`${index + 1}. ${nameOf(cited)}, ${cited.file}, ${pageName(cited.page, cited.label)}`);
    for (const quote of cited.quotes) lines.push(`   “${oneLine(quote.text)}”`);
  });
  return lines.join("\n").trim();
}
