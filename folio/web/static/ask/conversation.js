// A conversation: its turns as they are asked and answered, and the branch of it that is shown.

import * as api from "../base/api.js";
import { announce, el, keepInTab, listInTab, readInTab, showToast } from "../base/dom.js";
import { showFailure } from "../base/failure.js";
import { buildFilter, EVERYTHING, options, papersLoaded, setOptions } from "../base/state.js";
import { t } from "../base/strings.js";
import { Turn } from "./answer.js";
import { isWriter, wasWritten } from "./models.js";
import { isRestricted, toScope } from "./scope.js";

/** @typedef {import("../base/options.js").Options} Options */
/** @typedef {import("../base/state.js").Selection} Selection */

/**
 * @typedef {object} Question
 * @property {string} message
 * @property {Options} options
 * @property {Selection | null} selection
 * @property {boolean} [isEverywhere] the selected words are looked for in all papers
 */

/**
 * @typedef {object} Host What shows a conversation.
 * @property {(conversation: Conversation) => void} render shows what has changed
 * @property {(conversation: Conversation, turn: Turn) => void} onAsked a question was sent
 * @property {(conversation: Conversation) => void} onStored the server has the question
 * @property {(conversation: Conversation) => void} onAnswered it has an answer, or none
 * @property {(conversation: Conversation, turn: number | null) => void} showBranch
 */

const UNSENT = "unsent "; // with its key: the name in the tab of a question that the server does not have yet
const STEPS = ["papers", "evidence", "search_again", "search_ended"]; // the events of a deep search

export class Conversation {
  title = "";
  /** @type {Turn[]} */
  turns = [];
  /** @type {Turn | null} whose answer is being made */
  running = null;
  /** @type {Promise<void> | null} while its turns are being loaded */
  loading = null;
  /** @type {number | null} the turn of the branch that is being loaded */
  wanted = null;
  /** @type {number | null} the turn that the shown branch goes through; null: the latest one */
  through = null;
  /** @type {import("../base/state.js").Scope | null} what was to be searched when another conversation was shown */
  left = null;
  isLeft = false; // another conversation is shown

  /** @param {Host} host @param {string} [id] "" for a new one */
  constructor(host, id = "") {
    this.host = host;
    this.id = id;
    this.address = id; // its id in the address
    this.views = new AbortController(); // of its answers, which the server makes whoever looks
    this.root = el("div", { class: "turns" });
    if (!id) this.#showUnsent();
  }

  /** The last answer; null without one. @returns {Api.ChatReply | null} */
  get lastReply() {
    return this.turns.at(-1)?.reply ?? null;
  }

  /** The last turn that the server has; null without one. */
  get lastNumber() {
    return this.turns.findLast(({ number }) => number !== null)?.number ?? null;
  }

  /** The turn that the shown branch goes through, or the one that is being loaded; null: the latest one. */
  get branch() {
    return this.loading ? this.wanted : this.through;
  }

  get isAnswered() {
    return this.turns.some((turn) => turn.reply);
  }

  /** What was searched last: the scope that a person chose, not the paper of words that were selected. */
  get #lastScope() {
    return this.turns.findLast(({ reply }) => reply && !reply.selection)?.reply?.scope ?? null;
  }

  /** What is searched if the address does not say so. @returns {import("../base/state.js").Scope} */
  get scope() {
    const scope = this.#lastScope;
    return this.left ?? (scope ? toScope(scope) : EVERYTHING);
  }

  /** Whether the last question searched only a part of the library. */
  get isNarrowed() {
    const scope = this.#lastScope;
    return scope !== null && isRestricted(scope);
  }

  /** Loads the turns from the server. Throws ApiError. @param {number | null} through */
  load(through) {
    this.wanted = through;
    /** @type {Promise<void>} */
    const loading = this.#load(through, () => this.loading === loading).finally(() => {
      if (this.loading === loading) this.loading = null;
    });
    this.loading = loading;
    return loading;
  }

  /** @param {number | null} through @param {() => boolean} isLatest */
  async #load(through, isLatest) {
    const stored = await api.getConversation(this.id, through);
    await papersLoaded; // a report's references name their authors
    if (!isLatest()) return;
    this.through = through;
    this.title = stored.title;
    this.#show(this.#take(stored));
    this.#showUnsent();
  }

  /** @param {Turn} turn */
  #keepUnsent({ key, question, asked }) {
    keepInTab(`${UNSENT}${key}`, { conversation: this.id, question, asked });
  }

  /** Shows the questions that could not be sent before the page was left. */
  #showUnsent() {
    const kept = listInTab(UNSENT).map((name) => ({ name, ...readInTab(name) }));
    for (const { name, conversation, question, asked } of kept.sort((one, other) => one.asked - other.asked)) {
      if (conversation !== this.id) continue;
      const { selection, message } = question;
      const turn = this.#makeTurn(message, { written: isWriter(question.options.model), selection });
      turn.question = question;
      turn.key = name.slice(UNSENT.length);
      turn.asked = asked;
      turn.showError(new api.ApiError(t("ask.unsent"), t("ask.unsent.remedy")));
      this.title ||= message;
      this.#show([...this.turns, turn]);
    }
  }

  /** The turns of the server, as they are now. Those that are shown already stay. @param {Api.Conversation} stored */
  #take({ turns, unanswered }) {
    const known = new Map(this.turns.map((turn) => [turn.number, turn]));
    return [...turns, ...unanswered]
      .sort((one, other) => one.turn - other.turn)
      .map((each, at, { length }) => {
        const written = "state" in each ? isWriter(each.model ?? null) : wasWritten(each.models);
        const turn = known.get(each.turn) ?? this.#makeTurn(each.message, { written, selection: each.selection });
        turn.setStored(each);
        keepInTab(`${UNSENT}${each.key}`, null);
        if (!known.has(each.turn)) turn.isSourcesOpen = at === length - 1;
        if (turn !== this.running) this.#update(turn, each);
        return turn;
      });
  }

  /** @param {Turn} turn @param {Api.ChatReply | Api.UnansweredJson} stored */
  #update(turn, stored) {
    if (!("state" in stored)) turn.update(stored);
    else if (stored.state !== "running") turn.showUnanswered(stored);
    else if (!turn.reply) this.#follow(turn, api.followAnswer(stored.conversation, stored.turn, this.views.signal));
  }

  /** @param {Turn[]} turns */
  #show(turns) {
    this.turns = turns;
    const nodes = turns.map((turn) => turn.root);
    for (const node of [...this.root.children]) if (!nodes.some((each) => each === node)) node.remove();
    nodes.forEach((node, at) => {
      if (this.root.children[at] !== node) this.root.insertBefore(node, this.root.children[at] ?? null);
    });
  }

  /** @param {string} message @param {{live?: boolean, written?: boolean, selection: any}} how */
  #makeTurn(message, how) {
    /** @type {Turn} */
    const turn = new Turn(message, {
      ...how,
      actions: {
        onRetry: (model) => this.#retry(turn, model),
        onDrop: () => {
          dropUnsent(turn);
          this.#show(this.turns.filter((each) => each !== turn));
          this.host.render(this);
        },
        onAskAll: () => this.askAll(message),
        onEdit: (edited) => this.#replace(turn, edited, options.get().model),
        onAskAgain: (model) => this.#replace(turn, message, model),
        onBranch: (number) => this.#ifIdle(() => this.host.showBranch(this, number)),
      },
    });
    return turn;
  }

  /** Does something unless an answer is being made. @param {() => void} act */
  #ifIdle(act) {
    if (this.running) showToast(t("ask.busy"));
    else act();
  }

  /**
   * Asks a question after the turns that are shown. place: in the place of this turn and those after it, which are
   * another branch then.
   * @param {Question} question
   */
  ask(question, place = this.turns.length) {
    const kept = this.turns.slice(0, place);
    for (const turn of kept) turn.fold();
    const turn = this.#makeTurn(question.message, {
      live: true,
      written: isWriter(question.options.model),
      selection: question.selection,
    });
    turn.question = question;
    turn.replaced = this.turns[place]?.number ?? null;
    this.#show([...kept, turn]);
    this.title ||= question.message;
    this.host.onAsked(this, turn);
    return this.#send(turn, question);
  }

  /** Sends a question that the server has not stored yet. Sent twice, it is asked once. */
  /** @param {Turn} turn @param {Question} question */
  #send(turn, question) {
    const { key, replaced } = turn;
    this.#keepUnsent(turn);
    const where = replaced === null ? { after: this.lastNumber } : { replaces: replaced };
    const request = { ...buildRequest(question), key, conversation: this.id || null, ...where };
    return this.#follow(turn, api.ask(request, this.views.signal));
  }

  /** Shows an answer while it is made, from its beginning. @param {Turn} turn @param {api.Events} events */
  async #follow(turn, events) {
    turn.restart();
    this.running = turn;
    announce(t("ask.searching.heard"));
    this.host.render(this);
    try {
      for await (const { event, data } of events) this.#receive(turn, event, data);
    } catch (thrown) {
      if (api.isAbort(thrown)) return;
      turn.showError(api.toApiError(thrown));
      const { replaced, number } = turn;
      if (replaced !== null && number === null) {
        turn.offerReturn(() => {
          dropUnsent(turn);
          this.host.showBranch(this, replaced);
        });
      }
    } finally {
      this.running = null;
    }
    this.host.onAnswered(this);
  }

  /** Shows an event of an answer. @param {Turn} turn @param {string} event @param {any} data */
  #receive(turn, event, data) {
    if (event === "asked") {
      this.#setStored(turn, data);
    } else if (STEPS.includes(event)) {
      const status = turn.showSearch(data);
      if (status) announce(`${status}.`);
    } else if (event === "retrieved") {
      turn.showHits(data);
      announce(t("ask.reading.heard", { passages: t("ask.passages", { count: data.hits.length }) }));
    } else if (event === "sentence") {
      turn.addSentence(data);
    } else if (event === "thinking") {
      turn.showThinking(data.model);
      announce(t("ask.thinking.heard"));
    } else if (event === "checking") {
      turn.showChecking(data.count);
      if (data.count) announce(`${t("ask.checking", { count: data.count })}.`);
    } else if (event === "stopped") {
      turn.showUnanswered(data);
    } else if (event === "done") {
      if (turn.number === null) this.#setStored(turn, data); // it was sent before, and has its answer
      turn.finish(data, { whole: !turn.shown.length });
      const answered = data.sentences.length ? t("ask.answered", { count: data.citations.length }) : data.answer;
      announce(data.stopped ? t("ask.stopped.heard") : answered);
    }
  }

  /** @param {Turn} turn @param {Api.UnansweredJson | Api.ChatReply} asked */
  #setStored(turn, asked) {
    if (turn.number === null) this.through = null;
    keepInTab(`${UNSENT}${asked.key}`, null);
    this.id = asked.conversation;
    turn.setStored(asked);
    for (const each of this.turns) if (each.number === null) this.#keepUnsent(each); // with this id
    if (turn.isStopped) this.stop();
    if (this.isLeft) this.views.abort();
    else this.host.onStored(this);
  }

  /** Asks a question again that got no answer, in its place. @param {Turn} turn @param {string | null} model */
  #retry(turn, model) {
    const { question, number } = turn;
    this.#ifIdle(() => {
      if (number !== null) this.#follow(turn, api.askAgain(this.id, number, model, this.views.signal));
      else if (question) this.#send(turn, question);
    });
  }

  /** Asks another question, or with another model, in the place of an answered one. The answer is kept as a branch. */
  /** @param {Turn} turn @param {string} message @param {string | null} model */
  #replace(turn, message, model) {
    const { reply } = turn;
    if (!reply) return;
    const chosen = {
      ...options.get(),
      ...toScope(reply.scope),
      style: reply.style,
      deep: reply.trace !== null,
      instruction: reply.instruction?.id ?? null,
      model,
    };
    const question = { message, options: chosen, selection: reply.selection };
    this.#ifIdle(() => this.ask(question, this.turns.indexOf(turn)));
  }

  /** Asks the same question about all papers. @param {string} message */
  askAll(message) {
    if (this.running) return;
    setOptions(EVERYTHING);
    this.ask({ message, options: options.get(), selection: null });
  }

  /** Shows the current names of papers, and what was asked in another tab. */
  async refresh() {
    const last = this.lastNumber;
    if (last === null || this.running || this.loading || this.isLeft) return;
    const stored = await api.getConversation(this.id, last);
    if (this.running || this.loading || this.lastNumber !== last) return;
    this.title = stored.title;
    const shown = this.#take(stored);
    this.turns.forEach((turn, at) => {
      // What could not be sent stays behind the turn that it stands behind.
      if (turn.number === null) shown.splice(shown.indexOf(this.turns[at - 1]) + 1, 0, turn);
    });
    this.#show(shown);
    this.host.render(this);
  }

  /** Ends the views of its answers once the server has the question, and goes on with it by itself. */
  leave() {
    this.isLeft = true;
    if (this.running?.number !== null) this.views.abort();
  }

  /** Stops the answer that is being made, once the server knows of it. */
  stop() {
    const turn = this.running;
    if (!turn) return;
    turn.showStopping();
    if (turn.number !== null) api.stopAnswer(this.id, turn.number).catch(showFailure);
  }
}

/** @param {Turn} turn */
const dropUnsent = ({ key }) => keepInTab(`${UNSENT}${key}`, null);

/** @param {Question} question */
function buildRequest({ message, options: chosen, selection, isEverywhere = false }) {
  return {
    message,
    listed: true,
    top_k: chosen.topK,
    use_reranker: chosen.reranker,
    model: chosen.model,
    ...buildFilter(chosen),
    style: chosen.style,
    instruction: chosen.instruction ?? null,
    mode: /** @type {"deep" | "quick"} */ (chosen.deep ? "deep" : "quick"),
    ...(selection ? { selection: { ...pickSpan(selection), everywhere: isEverywhere } } : {}),
  };
}

/** @param {Selection} selection */
const pickSpan = ({ paper, start, end, text }) => ({ paper, start, end, quote: text });
