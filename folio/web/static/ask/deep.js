// A deep search, live and afterwards: the papers, the scored passages, and each further search with its reason.

import { el, formatCount, formatPages, hideVisually, isolate, keepTogether, makeButton } from "../base/dom.js";
import { getTitle } from "../base/state.js";
import { joinLines, REWORDED_SIGN, shortenAtWord } from "../base/text.js";
import { openPage, openPassage } from "../reader/viewer.js";

const RELEVANT = 5; // of 10: a passage with this score counts as evidence, as in folio/deep/types.py
const LONGEST = 300; // characters of a query, a summary or a passage
const AGAIN = {
  reformulate: "Searched again in other words",
  expand: "Read what the best papers cite",
  offset: "Searched again for the papers that come next",
};

export class DeepSearch {
  /** live: its events are still to come, and it is open until the answer begins. */
  constructor({ live = false } = {}) {
    this.began = live ? performance.now() : null;
    this.count = { passages: 0, relevant: 0, round: 0 };
    this.size = el("span", { class: "size" });
    this.steps = el("ol", {});
    this.closing = el("p", { class: "about" });
    const summary = el("summary", {}, el("h3", {}, "Deep search"), this.size);
    this.root = el("details", { class: "deep", open: live }, summary, this.steps, this.closing);
    this.isTouched = false; // whether the person opened or closed it, or something in it
    this.root.addEventListener("click", () => (this.isTouched = true));
    this.step = null; // the item of the round that the next event belongs to
    this.part = null; // the part of the question that the last passage was read for
  }

  /** Shows a step of the search; returns the text for screen readers, or "". */
  add(event) {
    const said = this.show(event);
    if (this.began !== null) {
      const seconds = Math.round((performance.now() - this.began) / 1000);
      const round = this.count.round > 1 ? `round ${this.count.round}, ` : "";
      this.size.textContent = `${round}${this.describeCount()} · ${seconds} s`;
    }
    return said;
  }

  show(event) {
    if (event.event === "papers") return this.showPapers(event);
    if (event.event === "evidence") return this.showPassage(event);
    if (event.event === "search_again") return this.showAgain(event);
    this.startStep("Search ended", event.why);
    return "Writing the answer";
  }

  /** Shows the totals of the search. trace: from the server's reply. */
  finish({ assessor, rounds, calls, seconds }) {
    this.began = null;
    const asked = calls ? `${formatCount(calls, "model call")} · ` : "";
    this.size.textContent = `${this.describeCount()} · ${asked}${formatSeconds(seconds)}`;
    const took = `${formatCount(rounds, "round")}. Scores: `;
    const unchecked = `${REWORDED_SIGN} is the model's own summary: it is not checked, and no answer quotes it.`;
    const note = this.root.querySelector(".summed") ? [". ", unchecked] : ["."];
    this.closing.replaceChildren(took, isolate(joinLines(assessor)), ...note);
  }

  /** Folds it, unless the person used it or has the focus in it. */
  fold() {
    const focused = this.steps.contains(document.activeElement);
    if (!this.isTouched && !focused) this.root.open = false;
  }

  describeCount() {
    const { passages, relevant } = this.count;
    return `${formatCount(passages, "passage")} read, ${relevant.toLocaleString()} relevant`;
  }

  startStep(name, why = "") {
    const reason = why ? [": ", isolate(joinLines(why))] : [];
    const title = el("p", { class: "step" }, el("strong", {}, name), ...reason);
    this.step = el("li", {}, title);
    this.steps.append(this.step);
    this.part = null;
    this.queried = new Map(); // where the papers of each query of this round are
  }

  startRound(name, why) {
    this.count.round += 1;
    this.startStep(name, why);
  }

  showPapers({ query, papers }) {
    if (!this.step) this.startRound("Searched");
    const items = papers.map((paper) => el("li", {}, makePaperOpener(paper)));
    const found = keepTogether(formatCount(papers.length, "paper"));
    const summary = el("summary", {}, isolate(`“${shortenAtWord(query, LONGEST)}”`), ": ", found);
    const block = el("div", { class: "block" }, el("details", { class: "queried" }, summary, el("ul", {}, items)));
    this.queried.set(query, block);
    this.step.append(block);
    return "Scoring passages";
  }

  showPassage(event) {
    if (!this.step) this.startRound("Searched");
    if (event.part !== this.part) this.startPart(event.part);
    const { relevance } = event;
    this.count.passages += 1;
    this.count.relevant += relevance >= RELEVANT;
    this.passages.add(event);
    return "";
  }

  /** Begins the list of passages for a part of the question; below that part, if its own words were searched. */
  startPart(part) {
    this.part = part;
    this.passages = new Passages();
    const block = this.queried.get(part);
    const title = el("p", {}, "For ", isolate(`“${shortenAtWord(part, LONGEST)}”`));
    if (block) block.append(...this.passages.lists);
    else this.step.append(el("div", { class: "block" }, title, ...this.passages.lists));
  }

  showAgain({ how, why, queries }) {
    this.startRound(AGAIN[how], why);
    if (how === "expand") {
      const titles = queries.map((title) => el("li", {}, isolate(shortenAtWord(title, LONGEST))));
      const summary = el("summary", {}, formatCount(queries.length, "cited paper"));
      this.step.append(el("details", { class: "queried" }, summary, el("ul", {}, titles)));
    }
    return AGAIN[how];
  }
}

/** The passages of one search: the relevant ones, then the others, folded. */
class Passages {
  constructor() {
    this.list = el("ol", { class: "read" });
    this.others = el("ol", { class: "read" });
    this.name = el("summary", {});
    this.folded = el("details", { class: "queried", hidden: true }, this.name, this.others);
    this.lists = [this.list, this.folded];
  }

  add(event) {
    const isLow = event.relevance !== null && event.relevance < RELEVANT;
    const list = isLow ? this.others : this.list;
    const score = event.relevance ?? RELEVANT - 0.5; // as the search ranks it
    const behind = [...list.children].find((item) => Number(item.dataset.score) < score) ?? null;
    list.insertBefore(renderPassage(event, score), behind);
    this.folded.hidden = !this.others.childElementCount;
    const count = formatCount(this.others.childElementCount, "passage");
    this.name.textContent = `${count} with a score below ${RELEVANT}`;
  }
}

function renderPassage(event, score) {
  const { relevance, summary, text, pages } = event;
  const open = (pressed) => openPassage(event, pressed.currentTarget);
  const shown = relevance === null ? "no score" : `${relevance}/10`;
  const sign = [el("span", { "aria-hidden": "true" }, REWORDED_SIGN, " "), hideVisually("Model's summary: ")];
  const summed = summary
    ? el("p", { class: "summed" }, ...sign, isolate(shortenAtWord(summary, 2 * LONGEST)))
    : el("p", { class: "snippet" }, isolate(shortenAtWord(text, LONGEST)));
  return el(
    "li",
    { "data-score": score },
    el("span", { class: relevance >= RELEVANT ? "score good" : "score" }, hideVisually("Score "), shown),
    el("div", {}, makeButton("source", open, isolate(getTitle(event)), ", ", keepTogether(formatPages(pages))), summed),
  );
}

function makePaperOpener(paper) {
  const open = (event) => openPage({ ...paper, page: 1, from: event.currentTarget });
  return makeButton("source", open, isolate(getTitle(paper)));
}

const formatSeconds = (seconds) => (seconds < 10 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`);

/** The deep search of a stored reply. */
export function renderTrace(trace) {
  const search = new DeepSearch();
  for (const event of trace.events) search.add(event);
  search.finish(trace);
  return search;
}
