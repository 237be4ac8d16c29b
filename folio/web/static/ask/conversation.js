// A conversation: its turns as they are asked and answered, and the branch of it that is shown.

import * as api from "../base/api.js";
import { announce, el, showToast } from "../base/dom.js";
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
 * @property {(conversation: Conversation) => void} onAnswered it has an answer, or none
 * @property {(conversation: Conversation, turn: number | null) => void} showBranch
 */

const STEPS = ["papers", "evidence", "search_again", "search_ended"]; // the events of a deep search
// How often the server is asked for what it has kept of a stopped answer, and the milliseconds between
const KEPT_TRIES = 12;
const KEPT_WAIT_MS = 120;

export class Conversation {
  title = "";
  /** @type {Turn[]} */
  turns = [];
  /** @type {AbortController | null} of the answer that is being made */
  running = null;
  /** @type {Promise<void> | null} while its turns are being loaded */
  loading = null;
  /** @type {number | null} the turn of the branch that is being loaded */
  wanted = null;
  /** @type {number | null} the turn that the shown branch goes through; null: the latest one */
  through = null;
  /** @type {import("../base/state.js").Scope | null} what was to be searched when another conversation was shown */
  left = null;

  /** @param {Host} host @param {string} [id] "" for a new one */
  constructor(host, id = "") {
    this.host = host;
    this.id = id;
    this.address = id; // its id in the address: "" until it has an answer
    this.root = el("div", { class: "turns" });
  }

  /** The last answer; null without one. @returns {Api.ChatReply | null} */
  get lastReply() {
    return this.turns.at(-1)?.reply ?? null;
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
    const { title, turns } = await api.getConversation(this.id, through);
    await papersLoaded; // a report's references name their authors
    if (!isLatest()) return;
    this.through = through;
    this.title = title;
    this.#take(turns);
  }

  /** Shows these turns of the server. Those that are shown already stay. @param {Api.ChatReply[]} replies */
  #take(replies) {
    const known = new Map(this.turns.map((turn) => [turn.answered.turn, turn]));
    this.#show(
      replies.map((reply, at) => {
        const turn = known.get(reply.turn);
        if (turn) {
          turn.update(reply);
          return turn;
        }
        const how = { written: wasWritten(reply.models), selection: reply.selection };
        const made = this.#makeTurn(reply.message, how);
        made.finish(reply, { whole: true, open: at === replies.length - 1 });
        return made;
      }),
    );
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
        onRetry: () => this.#retry(turn),
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
  async ask(question, place = this.turns.length, replaced = this.turns[place]?.reply?.turn ?? null) {
    const after = this.turns.slice(0, place).findLast((turn) => turn.reply)?.reply?.turn ?? null;
    const kept = this.turns.slice(0, place);
    for (const turn of kept) turn.fold();
    const turn = this.#makeTurn(question.message, {
      live: true,
      written: isWriter(question.options.model),
      selection: question.selection,
    });
    turn.question = question;
    this.#show([...kept, turn]);
    this.title ||= question.message;
    this.running = new AbortController();
    this.host.render(this);
    this.host.onAsked(this, turn);
    announce(t("ask.searching.heard"));
    const where = replaced === null ? { after } : { replaces: replaced };
    const request = { ...buildRequest(question), conversation: this.id || null, ...where };
    try {
      for await (const { event, data } of api.ask(request, this.running.signal)) this.#receive(turn, event, data);
    } catch (thrown) {
      if (api.isAbort(thrown)) await this.#keepStopped(turn);
      else turn.showError(api.toApiError(thrown));
      if (replaced !== null && !turn.reply) turn.offerReturn(() => this.host.showBranch(this, replaced));
      turn.replaced = replaced;
      if (replaced === null && !this.isAnswered) this.id = ""; // the server has no conversation to follow up on
    } finally {
      this.running = null;
    }
    if (turn.reply) this.through = null;
    this.host.onAnswered(this);
  }

  /** Shows an event of an answer. @param {Turn} turn @param {string} event @param {any} data */
  #receive(turn, event, data) {
    if (STEPS.includes(event)) {
      const status = turn.showSearch(data);
      if (status) announce(`${status}.`);
    } else if (event === "retrieved") {
      this.id = data.conversation;
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
    } else if (event === "done") {
      turn.finish(data);
      this.id = data.conversation;
      announce(data.sentences.length ? t("ask.answered", { count: data.citations.length }) : data.answer);
    }
  }

  /** Takes what the server has kept of an answer that was stopped: the statements that were shown. */
  /** @param {Turn} turn */
  async #keepStopped(turn) {
    const { turn: number } = turn.answered;
    if (!turn.shown.length || number === null) return turn.showStopped();
    turn.showStopping();
    for (let tries = 1; tries <= KEPT_TRIES; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, KEPT_WAIT_MS * tries));
      const stored = await api.getConversation(this.id, number).catch(() => null);
      const reply = stored?.turns.find((each) => each.turn === number);
      if (!reply) continue;
      turn.refresh(reply);
      announce(t("ask.stopped.heard"));
      return;
    }
    turn.showStopped();
  }

  /** Asks a question again that got no answer. @param {Turn} turn */
  #retry(turn) {
    const { question, replaced } = turn;
    if (!this.running && question) this.ask(question, this.turns.indexOf(turn), replaced);
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
    const last = this.lastReply;
    if (!this.id || this.running || !last) return;
    const { title, turns } = await api.getConversation(this.id, last.turn);
    if (this.running || this.lastReply !== last) return;
    this.title = title;
    const isWhole = this.turns.every((turn) => turn.reply); // else a question without an answer stays where it is
    if (isWhole) this.#take(turns);
    for (const turn of isWhole ? [] : this.turns) {
      const reply = turns.find((each) => each.turn === turn.reply?.turn);
      if (reply) turn.update(reply);
    }
    this.host.render(this);
  }

  stop() {
    this.running?.abort();
  }
}

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
    mode: /** @type {"deep" | "quick"} */ (chosen.deep ? "deep" : "quick"),
    ...(selection ? { selection: { ...pickSpan(selection), everywhere: isEverywhere } } : {}),
  };
}

/** @param {Selection} selection */
const pickSpan = ({ paper, start, end, text }) => ({ paper, start, end, quote: text });
