// What one click asks a paper: its contributions, method, results and limits, and an explanation in other words.

import { el, makeButton } from "../base/dom.js";
import { health, options } from "../base/state.js";
import { t } from "../base/strings.js";
import { instructions } from "../ask/instructions.js";
import { BUILTIN, isWriter } from "../ask/models.js";

/** @typedef {{question: string, instruction: string | null}} Asked */
/** @typedef {import("../base/strings.js").Key} Key */

const MOST_EXPLAINED = 6; // instructions that a paper is explained with
/** @type {[Key, Key][]} the button, and what it asks */
const QUESTIONS = [
  ["paper.questions.contributions", "ask.paper.contributions"],
  ["paper.questions.method", "ask.paper.method"],
  ["paper.questions.results", "ask.paper.results"],
  ["paper.questions.limits", "ask.paper.limits"],
];

/** Whether a chat model is ready to word an answer. */
const canWrite = () => Boolean(health.get()) && (isWriter(options.get().model) || isWriter(null));

/** What can be asked, with the words of its button. @returns {{text: string, asked: Asked}[]} */
export function listPaperQuestions() {
  const asked = QUESTIONS.map(([text, question]) => ({
    text: t(text),
    asked: { question: t(question), instruction: null },
  }));
  if (!canWrite()) return asked;
  const explained = instructions.get().instructions.slice(0, MOST_EXPLAINED);
  return [
    ...asked,
    ...explained.map(({ id, name }) => ({
      text: t("paper.questions.explain", { name }),
      asked: { question: t("ask.paper.about"), instruction: id },
    })),
  ];
}

export class PaperQuestions {
  #shown = ""; // what is rendered
  #lost = ""; // the words of a button that had the focus and is gone for a moment; the first one has it
  node = el("section", { class: "paper-section paper-questions", hidden: true });

  /** @param {(asked: Asked) => void} ask */
  constructor(ask) {
    this.ask = ask;
    instructions.watch(() => this.#render());
    health.onChange((now, before) => {
      if (now?.model !== before?.model) this.#render();
    });
    options.onChange((now, before) => {
      if (now.model !== before.model) this.#render();
    });
  }

  #render() {
    const questions = listPaperQuestions();
    const isQuoting = health.get()?.model === BUILTIN && !canWrite();
    const shown = JSON.stringify([questions, isQuoting]);
    if (shown === this.#shown) return; // else what is shown would be rendered again, and lose the focus
    this.#shown = shown;
    const at = this.node.contains(document.activeElement) ? document.activeElement : null;
    const focused = (at === this.node.querySelector("button") && this.#lost) || at?.textContent;
    const buttons = questions.map(({ text, asked }) => makeButton("button suggestion", () => this.ask(asked), text));
    this.node.replaceChildren(
      el("h2", {}, t("paper.questions")),
      el("div", { class: "ready-questions" }, buttons),
      ...(isQuoting ? [el("p", { class: "about" }, t("paper.questions.needs_model"))] : []),
    );
    const same = buttons.find(({ textContent }) => textContent === focused);
    this.#lost = focused && !same ? focused : "";
    if (focused) (same ?? buttons[0]).focus();
  }
}
