// One turn of a conversation: the question, its answer as it arrives, and its sources.

import * as api from "../base/api.js";
import { copyText, el, formatDuration, hideVisually, isolate, makeButton, makeIcon } from "../base/dom.js";
import { makeIconButton, renderMessage, renderProblem, showToast } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { parts, t } from "../base/strings.js";
import { checkZoteroLink, joinLines } from "../base/text.js";
import { DeepSearch, renderTrace } from "./deep.js";
import { showFailure } from "../base/failure.js";
import { addMenu } from "../base/menu.js";
import { health } from "../base/state.js";
import { MissingPapers } from "../find/missing.js";
import { mode } from "./mode.js";
import { BUILTIN, renderModelButtons, wasWritten } from "./models.js";
import { renderProfile } from "./profile.js";
import { isRestricted, renderSearched } from "./scope.js";
import { ALSO, CLOSEST_PASSAGES, describeDropped, formatAnswer, renderReferences } from "./sources.js";
import { renderRefusal, renderSelection, renderSources } from "./sources.js";
import { describeFlagged, isBlock, renderLeftOut, renderLegend, renderShort, renderStatement } from "./statement.js";
import { prepareCitations, replaceOpener } from "./statement.js";

const SUMMARY = "Summary"; // the heading of folio/answer_types.py

/**
 * @typedef {object} Actions What can be done with a turn.
 * @property {(model: string | null) => void} onRetry asks a question again that got no answer; null: with its model
 * @property {() => void} onDrop forgets a question that was not sent
 * @property {() => void} onAskAll asks all papers
 * @property {(message: string) => void} onEdit asks another question in its place
 * @property {(model: string | null) => void} onAskAgain asks it again with a model; null: the default one
 * @property {(turn: number) => void} onBranch shows another branch, through this turn
 */

/**
 * @typedef {object} TurnOptions
 * @property {Actions} actions
 * @property {boolean} [live] the sentences will be streamed, and screen readers announce them
 * @property {boolean} [written] whether a model writes the answer, which then is shown as a text
 * @property {import("../base/state.js").Selection | null} [selection] the words that the question is about
 */

export class Turn {
  root = el("article", { class: "turn" });
  /** @type {Api.ChatReply | null} once it is whole */
  reply = null;
  /** @type {import("./origin.js").Answered} */
  answered = { conversation: null, turn: null };
  isSourcesOpen = true;
  /** @type {import("./conversation.js").Question | null} as it was asked, to send it again if it was not stored */
  question = null;
  key = api.makeKey(); // by which the server knows it if it is sent again
  asked = Date.now();
  unanswered = ""; // why there is no answer, as it is shown
  isStopped = false;
  /** @type {number | null} the turn that it was asked in the place of */
  replaced = null;

  prose = false; // whether it is shown as a text
  /** @type {Api.SentenceJson[]} */
  shown = [];
  /** @type {DeepSearch | null} how a deep search found the passages */
  search = null;
  /** @type {MissingPapers | null} the search for papers that are not here, which stays when it is rendered again */
  missing = null;
  /** @type {string | null} */
  section = null;
  /** @type {HTMLElement | null} the paragraph that the next statement may join */
  paragraph = null;
  head = el("div", { class: "turn-head" });
  understood = el("p", { class: "understood" });
  scope = el("p", { class: "asked-only" });
  wording = el("p", { class: "asked-only" });
  warnings = el("div", { class: "warnings", role: "status" });
  sentences = el("div", { class: "sentences" });
  into = /** @type {HTMLElement} */ (this.sentences);
  legend = el("p", { class: "legend" });
  status = el("p", { class: "working" });
  rest = el("div", { class: "rest" });
  /** @type {(string | Node)[]} */
  reading = [];

  /** @param {string} message @param {TurnOptions} options */
  constructor(message, { actions, live = false, written = false, selection = null }) {
    this.message = message;
    this.actions = actions;
    const { head, understood, scope, wording, warnings, sentences, legend, status, rest } = this;
    const about = selection ? [el("p", { class: "about-words" }, renderSelection(selection))] : [];
    this.root.append(head, ...about, understood, scope, wording, warnings, sentences, legend, status, rest);
    this.#start(live, mode.get() === "prose" || (mode.get() === "" && written));
  }

  /** Its number in the conversation; null until the server has stored it. */
  get number() {
    return this.answered.turn;
  }

  /** Shows the question while it is answered, again. */
  restart() {
    this.#start(true, this.prose);
  }

  /** The server has stored the question. @param {{conversation: string, turn: number}} stored */
  setStored({ conversation, turn }) {
    this.answered = { conversation, turn };
  }

  /** Shows the question alone. @param {boolean} live @param {boolean} prose */
  #start(live, prose) {
    this.prose = prose;
    this.unanswered = "";
    this.isStopped = false;
    this.shown = [];
    this.search?.root.remove();
    this.search = null;
    if (live) this.missing = null;
    this.section = null;
    this.paragraph = null;
    this.into = this.sentences;
    this.head.replaceChildren(el("h2", { class: "asked" }, isolate(this.message)));
    for (const node of [this.warnings, this.sentences, this.rest]) node.replaceChildren();
    for (const node of [this.understood, this.scope, this.wording, this.legend]) node.hidden = true;
    if (live) this.sentences.setAttribute("aria-live", "polite");
    this.status.hidden = !live;
    this.reading = live ? [t("ask.searching")] : [];
    this.status.replaceChildren(...this.reading);
  }

  /** Shows a step of a deep search; returns what screen readers should hear. */
  /** @param {import("./deep.js").Step} event */
  showSearch(event) {
    this.search ??= this.#insertSearch(new DeepSearch({ live: true }));
    const status = this.search.add(event);
    if (status) this.status.replaceChildren(status);
    return status;
  }

  /** @param {DeepSearch} search */
  #insertSearch(search) {
    this.wording.after(search.root);
    return search;
  }

  /** Shows which passages the answer is being made from. @param {Api.RetrievedEvent} event */
  showHits({ hits }) {
    this.search?.fold();
    prepareCitations(hits.map(({ paper, pages: [page] }) => ({ paper, page })));
    const titles = [...new Set(hits.map((hit) => hit.title || hit.file))];
    const passages = t("ask.passages", { count: hits.length });
    const where = titles.length === 1 ? isolate(joinLines(titles[0])) : t("ask.papers", { count: titles.length });
    this.reading = parts("ask.reading", { passages, where });
    this.status.replaceChildren(...this.reading);
  }

  /** Shows that the model thinks before it writes. @param {string} model */
  showThinking(model) {
    this.status.replaceChildren(t("ask.thinking", { model }));
  }

  /** Shows how many statements wait for their verifier. @param {number} count */
  showChecking(count) {
    this.status.replaceChildren(...(count ? [t("ask.checking", { count })] : this.reading));
  }

  /** @param {Api.SentenceJson} sentence */
  addSentence(sentence) {
    const shown = { answered: this.answered, prose: this.prose };
    const short = this.shown.length ? null : renderShort(sentence, shown);
    if (short) this.sentences.append(short);
    this.#startSection(sentence.section);
    const isApart = [ALSO, CLOSEST_PASSAGES].includes(sentence.section); // not a part of the text
    if (this.into.tagName === "UL") this.into.append(...renderStatement(sentence, "li", shown));
    else if (!this.prose || isApart) this.into.append(...renderStatement(sentence, "p", { ...shown, prose: false }));
    else this.#addToText(sentence);
    this.shown.push(sentence);
    const cited = this.shown.flatMap(({ citations, against }) => [...citations, ...against]);
    this.showWarnings(describeFlagged(cited));
    const legend = renderLegend(this.shown, this.prose);
    this.legend.replaceChildren(...legend);
    this.legend.hidden = !legend.length;
  }

  /** Adds a statement to the paragraph; one that is a block, or that papers disagree with, ends it. */
  /** @param {Api.SentenceJson} sentence */
  #addToText(sentence) {
    const shown = { answered: this.answered, prose: true };
    if (isBlock(sentence)) {
      this.paragraph = null;
      this.into.append(...renderStatement(sentence, "p", shown));
      return;
    }
    const [statement, ...against] = renderStatement(sentence, "span", shown);
    if (this.paragraph) this.paragraph.append(" ", statement);
    else {
      this.paragraph = el("p", { class: "prose" }, statement);
      this.into.append(this.paragraph);
    }
    this.into.append(...against);
    if (against.length) this.paragraph = null;
  }

  /** Shows above the answer that papers it cites were retracted. @param {string[]} warnings */
  showWarnings(warnings) {
    if (this.warnings.childElementCount === warnings.length) return;
    this.warnings.replaceChildren(...warnings.map((text) => el("p", { class: "flag" }, makeIcon("warning"), text)));
  }

  /** Adds the headings when the section changes: "Analysis/Melt" is Melt under Analysis. Other places are folded. */
  /** @param {string} section */
  #startSection(section) {
    if (section === this.section) return;
    const [heading, ...subheading] = section.split("/");
    const isNew = heading && heading !== this.section?.split("/")[0];
    this.section = section;
    this.paragraph = null;
    this.into = el(section === SUMMARY ? "ul" : "div", { class: "part" });
    if (section === ALSO) {
      const summary = el("summary", {}, el("h3", {}, heading));
      this.sentences.append(el("details", { class: "also" }, summary, this.into));
      return;
    }
    if (isNew) this.sentences.append(el("h3", {}, isolate(heading)));
    if (isNew && heading === CLOSEST_PASSAGES) this.sentences.append(el("p", {}, t("ask.may_not_answer")));
    if (subheading.length) this.sentences.append(el("h4", {}, isolate(subheading.join("/"))));
    this.sentences.append(this.into);
  }

  /**
   * Shows the rest of a reply. whole: also its sentences, which were not streamed. open: unfolds the sources.
   * @param {Api.ChatReply} reply
   */
  finish(reply, { whole = false, open = true } = {}) {
    this.reply = reply;
    if (!whole && this.prose !== this.#prefersProse(reply)) return this.refresh(reply);
    if (whole) for (const sentence of reply.sentences) this.addSentence(sentence);
    this.isSourcesOpen = open;
    this.showWarnings(reply.warnings);
    this.status.hidden = true;
    this.sentences.removeAttribute("aria-live");
    if (reply.trace && this.search) this.search.finish(reply.trace);
    else if (reply.trace) this.search = this.#insertSearch(renderTrace(reply.trace));
    this.#showQuestion(reply);
    this.#showRest(reply);
    if (open) prepareCitations(reply.citations);
  }

  /** How it is shown: as a person has chosen, else as a text if a model wrote it. @param {Api.ChatReply} reply */
  #prefersProse(reply) {
    return mode.get() === "prose" || (mode.get() === "" && wasWritten(reply.models));
  }

  /** What can be done with the question, how it was understood, and what was searched. @param {Api.ChatReply} reply */
  #showQuestion(reply) {
    const message = joinLines(reply.message);
    const standalone = joinLines(reply.standalone_question);
    const isWithWords = reply.selection && standalone.startsWith(`${message} “`); // which stand above it
    if (standalone !== message && !isWithWords) {
      this.understood.replaceChildren(...parts("ask.understood", { question: isolate(reply.standalone_question) }));
      this.understood.hidden = false;
    }
    if (isRestricted(reply.scope) && !reply.refused) {
      this.scope.replaceChildren(...renderSearched(reply, this.actions.onAskAll));
      this.scope.hidden = false;
    }
    const { instruction } = reply;
    this.wording.hidden = !instruction;
    if (instruction) {
      this.wording.replaceChildren(...parts("instructions.used", { name: isolate(instruction.name) }));
      this.wording.title = instruction.text;
    }
    this.showTools(reply.branches);
  }

  /** The tools of the question. @param {number[]} branches the turns that follow the same turn */
  showTools(branches) {
    this.head.querySelector(".turn-tools")?.remove();
    const edit = this.reply && makeIconButton("edit", t("ask.edit"), () => this.#edit());
    edit?.classList.add("edit-question");
    this.head.append(el("div", { class: "turn-tools" }, this.#renderBranches(branches), edit));
  }

  /** "2 of 3" with a button to each side; null if the conversation does not branch here. @param {number[]} branches */
  #renderBranches(branches) {
    const at = branches.indexOf(this.number ?? 0);
    if (branches.length < 2 || at < 0) return null;
    /** @param {string} icon @param {import("../base/strings.js").Key} label @param {number} to */
    const renderStep = (icon, label, to) => {
      const node = makeIconButton(icon, t(label), () => this.actions.onBranch(branches[to]));
      node.disabled = to < 0 || to >= branches.length;
      node.dataset.step = label;
      return node;
    };
    const place = t("ask.branch", { at: at + 1, all: branches.length });
    return el(
      "div",
      { class: "branches", role: "group", "aria-label": t("ask.branches") },
      renderStep("previous", "ask.branch.previous", at - 1),
      el("span", {}, place),
      renderStep("next", "ask.branch.next", at + 1),
    );
  }

  /** @param {Api.ChatReply} reply */
  #showRest(reply) {
    if (reply.refused) this.rest.append(renderRefusal(reply, this.actions.onAskAll));
    const profile = renderProfile(reply);
    if (profile) this.rest.append(profile);
    if (reply.remark) this.rest.append(el("p", { class: "remark" }, isolate(reply.remark)));
    const notes = [reply.notice, reply.stopped ? t("ask.stopped.kept") : "", describeDropped(reply)];
    const note = notes.filter(Boolean).join(" ");
    if (note) this.rest.append(el("p", { class: "note" }, renderMessage(note)));
    if (reply.left_out.length) this.rest.append(renderLeftOut(reply.left_out));
    if (reply.missing.length && health.get()?.online) {
      this.missing ??= new MissingPapers(reply, () => this.actions.onAskAgain(null));
      this.rest.append(this.missing.root);
    }
    if (reply.citations.length) this.rest.append(renderSources(reply, this.isSourcesOpen));
    if (reply.style === "report" && reply.citations.length) this.rest.append(renderReferences(reply.citations));
    this.rest.append(this.#renderActions(reply));
  }

  /** Shows the reply as the server has it now. @param {Api.ChatReply} reply */
  update(reply) {
    if (JSON.stringify(this.reply) !== JSON.stringify(reply)) this.refresh(reply);
  }

  /** Renders the reply again: papers were renamed, or it is shown in another way. Open parts stay open. */
  /** @param {Api.ChatReply} reply */
  refresh(reply) {
    const { root } = this;
    if (root.querySelector(".question-form")) return; // somebody writes in it
    const list = () => /** @type {HTMLElement[]} */ ([...root.querySelectorAll("details, button")]);
    const listSources = () => /** @type {HTMLElement[]} */ ([...root.querySelectorAll(".chip, .source")]);
    const [before, sources] = [list(), listSources()];
    const focused = before.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    this.#start(false, this.#prefersProse(reply));
    this.finish(reply, { whole: true, open: this.isSourcesOpen });
    // Questions that follow up come later than the answer; its sources are the same.
    const shown = listSources();
    if (sources.length === shown.length) {
      sources.forEach((node, at) => {
        replaceOpener(node, shown[at]);
      });
    }
    const after = list();
    if (before.length !== after.length) return;
    before.forEach((node, at) => {
      const other = after[at];
      if (node instanceof HTMLDetailsElement && other instanceof HTMLDetailsElement) other.open = node.open;
    });
    after[focused]?.focus({ preventScroll: true });
  }

  /** Shows the answer as a text or statement by statement, as is chosen now. */
  updateMode() {
    const { reply } = this;
    if (!reply || this.prose === this.#prefersProse(reply)) return;
    const isFocused = this.root.contains(document.activeElement);
    this.refresh(reply);
    const box = this.root.querySelector(".mode");
    if (isFocused && box instanceof HTMLElement) box.focus({ preventScroll: true });
  }

  /** @param {api.ApiError} error */
  showError(error) {
    const others = [];
    const quote = () => this.actions.onRetry(BUILTIN);
    if (error.modelFailed) others.push(makeButton("button", quote, makeIcon("text"), t("ask.quotes")));
    if (this.number === null) others.push(makeButton("button", this.actions.onDrop, t("ask.unsent.drop")));
    this.#endWith(renderProblem(error, () => this.actions.onRetry(null), t("ask.again"), ...others));
  }

  /** Shows why the server has no answer. @param {Api.UnansweredJson} stored */
  showUnanswered(stored) {
    const known = JSON.stringify(stored);
    if (this.reply || this.unanswered === known) return;
    this.showTools(stored.branches);
    this.unanswered = known;
    this.rest.replaceChildren();
    if (stored.error) return this.showError(api.errorOf(stored.error));
    const again = makeButton("button quiet", () => this.actions.onRetry(null), makeIcon("again"), t("ask.again"));
    this.#endWith(el("p", { class: "note" }, t("ask.stopped")), again);
  }

  /** Leads back to the answer that it was to replace. @param {() => void} back */
  offerReturn(back) {
    this.rest.append(makeButton("button quiet", back, makeIcon("previous"), t("ask.back")));
  }

  /** @param {...HTMLElement} nodes */
  #endWith(...nodes) {
    this.status.hidden = true;
    this.sentences.removeAttribute("aria-live");
    this.rest.append(...nodes);
  }

  /** Shows that what was written is being kept, or nothing more is written. */
  showStopping() {
    this.isStopped = true;
    this.status.replaceChildren(t("ask.stopping"));
  }

  /** Folds the sources, to save space once a later question is asked. */
  fold() {
    const list = this.rest.querySelector("details.sources");
    if (list instanceof HTMLDetailsElement) list.open = false;
    this.isSourcesOpen = false;
  }

  /** Lets the person change the question. */
  #edit() {
    if (this.root.querySelector(".question-form")) return;
    const box = el("textarea", { name: "question", rows: "1", maxlength: "10000", "aria-label": t("ask.edit.label") });
    box.defaultValue = this.message;
    const close = () => {
      form.remove();
      this.head.hidden = false;
      /** @type {HTMLElement | null} */ (this.head.querySelector(".edit-question"))?.focus();
    };
    const send = () => {
      const message = box.value.trim();
      if (!message) return;
      draft.forget();
      form.remove();
      this.head.hidden = false;
      this.actions.onEdit(message);
    };
    const form = el(
      "form",
      {
        class: "question-form",
        /** @param {Event} event */
        onsubmit: (event) => {
          event.preventDefault();
          send();
        },
        /** @param {KeyboardEvent} event */
        onkeydown: (event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            close();
          } else if (event.key === "Enter" && event.target === box && !event.shiftKey) {
            event.preventDefault();
            send();
          }
        },
      },
      box,
      el("p", { class: "about" }, t("ask.edit.note")),
      el(
        "div",
        { class: "row" },
        el("button", { type: "submit", class: "button primary" }, makeIcon("send"), t("ask.send")),
      ),
    );
    const draft = new Draft(form);
    draft.open(`edit ${this.answered.conversation} ${this.answered.turn}`);
    form.querySelector("button")?.before(draft.makeCancel(close));
    this.head.hidden = true;
    this.head.after(form);
    box.focus();
    box.style.setProperty("height", `${box.scrollHeight + 2}px`);
  }

  /** @param {Api.ChatReply} reply */
  #renderActions(reply) {
    const row = el("div", { class: "actions" });
    const copyAnswer = () => copyText(formatAnswer(reply), t("ask.copy.answer"));
    if (reply.sentences.length) row.append(makeButton("button quiet", copyAnswer, makeIcon("copy"), t("ask.copy")));
    if (reply.citations.some((cited) => checkZoteroLink(cited.zotero))) {
      row.append(makeButton("button quiet", () => copyZoteroNote(reply), makeIcon("copy"), t("ask.copy_zotero")));
    }
    row.append(renderFeedbackButton(reply, "good", row), renderFeedbackButton(reply, "bad", row));
    row.append(...this.#renderAgain());
    if (reply.sentences.length) row.append(this.#renderModeSwitch());
    const made = [formatDuration(reply.elapsed_ms), reply.models?.llm].filter(Boolean).join(" · ");
    row.append(el("span", { class: "made" }, made));
    return row;
  }

  /** The switch between a text and its statements with their quotes. */
  #renderModeSwitch() {
    const toggle = () => mode.set(box.checked ? "check" : "prose");
    const box = el("input", { type: "checkbox", role: "switch", class: "mode", autocomplete: "off", onchange: toggle });
    box.checked = !this.prose;
    return el("label", { class: "switch", title: t("ask.mode.title") }, box, t("ask.mode"));
  }

  /** The button that asks the question again, with the menu of the models. */
  #renderAgain() {
    const button = makeButton("button quiet", () => {}, makeIcon("again"), t("ask.again"));
    return addMenu(button, t("ask.again.with"), (close) =>
      renderModelButtons((model) => {
        close();
        this.actions.onAskAgain(model);
      }),
    );
  }
}

/** @param {Api.ChatReply} reply */
async function copyZoteroNote(reply) {
  try {
    const note = await api.getZoteroNote(reply.conversation, reply.turn);
    await copyText(formatAnswer(reply), t("ask.copy.zotero"), note);
  } catch (thrown) {
    showFailure(thrown);
  }
}

/** @param {Api.ChatReply} reply @param {"good" | "bad"} feedback @param {HTMLElement} row */
function renderFeedbackButton(reply, feedback, row) {
  const press = async () => {
    try {
      await api.sendFeedback({ conversation: reply.conversation, turn: reply.turn, feedback });
    } catch (thrown) {
      return showFailure(thrown);
    }
    reply.feedback = feedback;
    for (const other of row.querySelectorAll(".mark")) other.setAttribute("aria-pressed", String(other === node));
    showToast(t(feedback === "good" ? "ask.rated.good" : "ask.rated.bad"));
  };
  const name = t(feedback === "good" ? "ask.good" : "ask.bad");
  const node = makeButton("button quiet mark", press, makeIcon(feedback), name, hideVisually(t("ask.rated.answer")));
  node.setAttribute("aria-pressed", String(reply.feedback === feedback));
  return node;
}
