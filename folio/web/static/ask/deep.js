// A deep search, live and afterwards: the papers, the scored passages, and each further search with its reason.

import { el, hideVisually, isolate, keepTogether } from "../base/dom.js";
import { getTitle } from "../base/state.js";
import { parts, t } from "../base/strings.js";
import { joinLines, REWORDED_SIGN, shortenAtWord } from "../base/text.js";
import { makeHitLink, makePageLink } from "../reader/reader.js";

const RELEVANT = 5; // of 10: a passage with this score counts as evidence, as in folio/deep/types.py
const LONGEST = 300; // characters of a query, a summary or a passage
/** @type {Record<Api.SearchAgainEventJson["how"], import("../base/strings.js").Key>} */
const AGAIN = { reformulate: "ask.deep.reformulate", expand: "ask.deep.expand", offset: "ask.deep.offset" };

/** @typedef {Api.PapersEventJson | Api.EvidenceEventJson | Api.SearchAgainEventJson | Api.SearchEndedEventJson} Step */

export class DeepSearch {
  /** live: its events are still to come, and it is open until the answer begins. */
  constructor({ live = false } = {}) {
    /** @type {number | null} */
    this.began = live ? performance.now() : null;
    this.count = { passages: 0, relevant: 0, round: 0 };
    this.size = el("span", { class: "size" });
    this.steps = el("ol", {});
    this.closing = el("p", { class: "about" });
    const summary = el("summary", {}, el("h3", {}, t("ask.deep")), this.size);
    this.root = el("details", { class: "deep", open: live }, summary, this.steps, this.closing);
    this.isTouched = false; // whether the person opened or closed it, or something in it
    this.root.addEventListener("click", () => (this.isTouched = true));
    this.step = /** @type {HTMLElement | null} */ (null); // the item of the round that the next event belongs to
    this.part = /** @type {string | null} */ (null); // the part of the question that the last passage was read for
    this.queried = /** @type {Map<string, HTMLElement>} */ (new Map()); // where the papers of each query are
    this.passages = new Passages();
  }

  /** Shows a step of the search; returns the text for screen readers, or "". @param {Step} event */
  add(event) {
    const status = this.show(event);
    if (this.began !== null) {
      const seconds = t("ask.seconds", { seconds: Math.round((performance.now() - this.began) / 1000) });
      const round = this.count.round > 1 ? t("ask.deep.round", { round: this.count.round }) : "";
      this.size.textContent = `${round}${this.describeCount()} · ${seconds}`;
    }
    return status;
  }

  /** @param {Step} event */
  show(event) {
    if (event.event === "papers") return this.showPapers(event);
    if (event.event === "evidence") return this.showPassage(event);
    if (event.event === "search_again") return this.showAgain(event);
    this.startStep(t("ask.deep.ended"), event.why);
    return t("ask.deep.writing");
  }

  /** Shows the totals of the search. @param {Api.TraceJson} trace from the server's reply */
  finish({ assessor, rounds, calls, seconds }) {
    this.began = null;
    const counts = [this.describeCount(), calls ? t("ask.deep.calls", { count: calls }) : "", formatSeconds(seconds)];
    this.size.textContent = counts.filter(Boolean).join(" · ");
    const scored = parts("ask.deep.scores", {
      rounds: t("ask.deep.rounds", { count: rounds }),
      assessor: isolate(joinLines(assessor)),
    });
    const hasSummaries = this.root.querySelector(".summed");
    this.closing.replaceChildren(...scored, hasSummaries ? t("ask.deep.unchecked", { sign: REWORDED_SIGN }) : ".");
  }

  /** Folds it, unless the person used it or has the focus in it. */
  fold() {
    const focused = this.steps.contains(document.activeElement);
    if (!this.isTouched && !focused) this.root.open = false;
  }

  describeCount() {
    const { passages, relevant } = this.count;
    return t("ask.deep.read", { passages: t("ask.passages", { count: passages }), relevant });
  }

  /** @param {string} name */
  startStep(name, why = "") {
    const reason = why ? [": ", isolate(joinLines(why))] : [];
    this.step = el("li", {}, el("p", { class: "step" }, el("strong", {}, name), ...reason));
    this.steps.append(this.step);
    this.part = null;
    this.queried = new Map();
    return this.step;
  }

  /** @param {string} name */
  startRound(name, why = "") {
    this.count.round += 1;
    return this.startStep(name, why);
  }

  /** @param {Api.PapersEventJson} event */
  showPapers({ query, papers }) {
    const step = this.step ?? this.startRound(t("ask.deep.searched"));
    const items = papers.map((paper) =>
      el("li", {}, makePageLink({ ...paper, page: 1 }, { class: "source" }, isolate(getTitle(paper)))),
    );
    const count = keepTogether(t("ask.papers", { count: papers.length }));
    const summary = el("summary", {}, isolate(`“${shortenAtWord(query, LONGEST)}”`), ": ", count);
    const block = el("div", { class: "block" }, el("details", { class: "queried" }, summary, el("ul", {}, items)));
    this.queried.set(query, block);
    step.append(block);
    return t("ask.deep.scoring");
  }

  /** @param {Api.EvidenceEventJson} event */
  showPassage(event) {
    const step = this.step ?? this.startRound(t("ask.deep.searched"));
    if (event.part !== this.part) this.startPart(step, event.part);
    this.count.passages += 1;
    this.count.relevant += Number((event.relevance ?? 0) >= RELEVANT);
    this.passages.add(event);
    return "";
  }

  /** Begins the list of passages for a part of the question; below that part, if its own words were searched. */
  /** @param {HTMLElement} step @param {string} part */
  startPart(step, part) {
    this.part = part;
    this.passages = new Passages();
    const block = this.queried.get(part);
    const title = el("p", {}, parts("ask.deep.for", { part: isolate(`“${shortenAtWord(part, LONGEST)}”`) }));
    if (block) block.append(...this.passages.lists);
    else step.append(el("div", { class: "block" }, title, ...this.passages.lists));
  }

  /** @param {Api.SearchAgainEventJson} event */
  showAgain({ how, why, queries }) {
    const step = this.startRound(t(AGAIN[how]), why);
    if (how === "expand") {
      const titles = queries.map((title) => el("li", {}, isolate(shortenAtWord(title, LONGEST))));
      const summary = el("summary", {}, t("ask.deep.cited", { count: queries.length }));
      step.append(el("details", { class: "queried" }, summary, el("ul", {}, titles)));
    }
    return t(AGAIN[how]);
  }
}

/** The passages of one search: the relevant ones, then the others, folded. */
class Passages {
  constructor() {
    this.list = el("ol", { class: "read-passages" });
    this.others = el("ol", { class: "read-passages" });
    this.name = el("summary", {});
    this.folded = el("details", { class: "queried", hidden: true }, this.name, this.others);
    this.lists = [this.list, this.folded];
  }

  /** @param {Api.EvidenceEventJson} event */
  add(event) {
    const isLow = event.relevance !== null && event.relevance < RELEVANT;
    const list = isLow ? this.others : this.list;
    const score = event.relevance ?? RELEVANT - 0.5; // as the search ranks it
    const items = /** @type {HTMLElement[]} */ ([...list.children]);
    const behind = items.find((item) => Number(item.dataset.score) < score) ?? null;
    list.insertBefore(renderPassage(event, score), behind);
    this.folded.hidden = !this.others.childElementCount;
    this.name.textContent = t("ask.deep.low", { count: this.others.childElementCount, score: RELEVANT });
  }
}

/** @param {Api.EvidenceEventJson} event @param {number} score */
function renderPassage(event, score) {
  const { relevance, summary, text } = event;
  const shown = relevance === null ? t("ask.deep.no_score") : `${relevance}/10`;
  const sign = [el("span", { "aria-hidden": "true" }, REWORDED_SIGN, " "), hideVisually(t("ask.deep.summary"))];
  const summed = summary
    ? el("p", { class: "summed" }, ...sign, isolate(shortenAtWord(summary, 2 * LONGEST)))
    : el("p", { class: "snippet" }, isolate(shortenAtWord(text, LONGEST)));
  const isGood = (relevance ?? 0) >= RELEVANT;
  return el(
    "li",
    { "data-score": score },
    el("span", { class: isGood ? "score good" : "score" }, hideVisually(t("ask.deep.score")), shown),
    el("div", {}, makeHitLink(event), summed),
  );
}

/** @param {number} seconds */
const formatSeconds = (seconds) =>
  t("ask.seconds", { seconds: seconds < 10 ? seconds.toFixed(1) : Math.round(seconds) });

/** The deep search of a stored reply. @param {Api.TraceJson} trace */
export function renderTrace(trace) {
  const search = new DeepSearch();
  for (const event of trace.events) search.add(event);
  search.finish(trace);
  return search;
}
