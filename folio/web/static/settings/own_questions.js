// A person's own questions: how many are found, and which settings would find more. Nothing is changed by it.

import * as api from "../base/api.js";
import { el, isolate, makeButton, renderProblem } from "../base/dom.js";
import { showFailure } from "../base/failure.js";
import { t } from "../base/strings.js";

const LOOK_MS = 1000; // between two looks at a run

/** @type {Record<Api.TriedJson["verdict"], import("../base/strings.js").Key>} */
const VERDICTS = {
  better: "own.better",
  worse: "own.worse",
  same: "own.same",
  unclear: "own.unclear",
  "more passages": "own.more_passages",
};

/** "BM25_WEIGHT=0.5, DENSE_WEIGHT=0.5" @param {Record<string, string>} settings */
export const formatSettings = (settings) =>
  Object.entries(settings)
    .map((pair) => pair.join("="))
    .join(", ");

export class OwnQuestions {
  node = el("div", { class: "own-questions" });
  #text = el("div");
  #status = el("p", { role: "status" });
  #result = el("div");
  #row = el("div", { class: "row" });
  /** @type {number | undefined} */
  #timer;

  constructor() {
    this.node.append(el("p", { class: "about" }, t("own.about")), this.#text, this.#status, this.#result, this.#row);
  }

  /** Looks how things stand, and again while they are measured. */
  async load() {
    clearTimeout(this.#timer);
    try {
      this.#render(await api.getOwnQuestions());
    } catch (thrown) {
      this.#result.replaceChildren(renderProblem(api.toApiError(thrown), () => this.load()));
    }
  }

  /** @param {Api.OwnQuestionsJson} now */
  #render(now) {
    const isRunning = now.state === "running";
    const opened = now.opened ? [" ", t("own.opened", { count: now.opened })] : [];
    const bad = now.bad ? [" ", t("own.bad", { count: now.bad })] : [];
    this.#text.replaceChildren(el("p", {}, t("own.questions", { count: now.questions }), opened, bad));
    if (!now.logged) this.#text.append(el("p", { class: "about" }, t("own.unlogged")));
    this.#status.textContent = isRunning ? t("own.running", { done: now.done, total: now.total }) : now.problem;
    this.#status.classList.toggle("working", isRunning);
    this.#result.replaceChildren(...(now.result && !isRunning ? renderResult(now.result) : []));
    const hadFocus = this.#row.contains(document.activeElement);
    const act = isRunning
      ? makeButton("button", () => this.#do(api.stopMeasuring), t("own.stop"))
      : makeButton("button primary", () => this.#do(api.measureOwnQuestions), t("own.measure"));
    act.disabled = !isRunning && !now.questions;
    if (this.#row.textContent !== act.textContent || !hadFocus) this.#row.replaceChildren(act);
    if (hadFocus) this.#row.querySelector("button")?.focus();
    if (isRunning && this.node.isConnected) this.#timer = setTimeout(() => this.load(), LOOK_MS);
  }

  /** @param {() => Promise<unknown>} act */
  async #do(act) {
    try {
      await act();
    } catch (thrown) {
      showFailure(thrown);
    }
    await this.load();
  }
}

/** @param {Api.OwnResultJson} result */
function renderResult({ questions, now, others, missed }) {
  const rows = others.map(({ settings, found, gained, lost, verdict }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("code", {}, formatSettings(settings))),
      el("td", {}, t("own.of", { found, questions })),
      el("td", {}, t("own.gained", { gained, lost })),
      el("td", {}, t(VERDICTS[verdict])),
    ),
  );
  const heads = /** @type {const} */ ([
    "own.head.setting",
    "own.head.found",
    "own.head.difference",
    "own.head.verdict",
  ]);
  const table = el(
    "table",
    {},
    el("caption", {}, t("own.others")),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((key) => el("th", { scope: "col" }, t(key))),
      ),
    ),
    el("tbody", {}, rows),
  );
  const list = el(
    "ul",
    {},
    missed.map((question) => el("li", {}, isolate(question))),
  );
  return [
    el("p", { class: "own-found" }, t("own.found", { found: now.found, questions })),
    el("div", { class: "own-table", tabindex: "0", role: "region", "aria-label": t("own.others") }, table),
    el("p", { class: "about" }, t("own.bias")),
    ...(missed.length ? [el("details", {}, el("summary", {}, t("own.missed", { count: missed.length })), list)] : []),
  ];
}
