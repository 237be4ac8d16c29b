// Questions that the papers answer, as buttons: examples at the start, and follow-ups below the last answer.

import * as api from "../base/api.js";
import { el, isolate, makeButton } from "../base/dom.js";
import { t } from "../base/strings.js";
import { joinLines } from "../base/text.js";

const TRIES = 3; // an empty reply may mean that the server still looks for examples
const WAIT_MS = 3000;

/**
 * The questions below a heading; hidden without any.
 * @param {HTMLElement} box @param {string} heading @param {string[]} questions @param {(question: string) => void} ask
 */
function show(box, heading, questions, ask) {
  box.hidden = !questions.length;
  const items = questions.map((question) =>
    el(
      "li",
      {},
      makeButton("button suggestion", () => ask(question), isolate(joinLines(question))),
    ),
  );
  box.replaceChildren(...(items.length ? [el("h2", {}, heading), el("ul", {}, items)] : []));
}

const makeBox = () => el("section", { class: "suggestions", "aria-label": t("ask.suggestions"), hidden: true });

/** Examples from the library. @param {(question: string) => void} ask */
export class Examples {
  /** @param {(question: string) => void} ask */
  constructor(ask) {
    this.ask = ask;
    this.root = makeBox();
    this.isLoading = false;
    this.stamp = ""; // of the library that they are from
  }

  /** Loads them if the library has changed since. isWanted: whether they are still to be shown. */
  /** @param {string} stamp @param {() => boolean} isWanted */
  async load(stamp, isWanted) {
    if (this.isLoading || stamp === this.stamp) return;
    this.isLoading = true;
    /** @type {string[]} */
    let questions = [];
    for (let tries = 0; tries < TRIES && !questions.length && isWanted(); tries += 1) {
      if (tries) await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
      questions = (await api.listExamples().catch(() => null))?.questions ?? [];
    }
    this.isLoading = false;
    if (questions.length) this.stamp = stamp;
    show(this.root, t("ask.examples"), questions, this.ask);
  }
}

/** Follow-ups to the last answer of the conversation that is shown. */
export class FollowUps {
  /** @type {Api.ChatReply | null} */
  #reply = null;

  /** @param {(question: string) => void} ask */
  constructor(ask) {
    this.ask = ask;
    this.root = makeBox();
  }

  /** @param {Api.ChatReply | null} reply the last answer; null while there is none */
  async load(reply) {
    if (reply?.conversation === this.#reply?.conversation && reply?.turn === this.#reply?.turn) return;
    this.#reply = reply;
    show(this.root, "", [], this.ask);
    if (!reply?.citations.length) return;
    const found = await api.listFollowUps(reply.conversation, reply.turn).catch(() => null);
    if (this.#reply !== reply) return;
    if (found) show(this.root, t("ask.followups"), found.questions, this.ask);
    else this.#reply = null; // they are asked for again
  }
}
