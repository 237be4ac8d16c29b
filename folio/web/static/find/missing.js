// Below an answer that lacks something: searches for papers that are not here, sent once a person has seen them.

import * as api from "../base/api.js";
import { el, makeButton, makeIcon, renderMessage, renderProblem } from "../base/dom.js";
import { t } from "../base/strings.js";
import { renderWork } from "./works.js";

export class MissingPapers {
  root = el("div", { class: "missing" });
  /** @type {AbortController | null} */
  #asking = null;

  /** @param {Api.ChatReply} reply @param {() => void} onAskAgain asks the question again */
  constructor({ standalone_question: question, missing }, onAskAgain) {
    this.question = question;
    this.missing = missing;
    this.onAskAgain = onAskAgain;
    this.#showStart();
  }

  #showStart() {
    const start = makeButton("button quiet", () => this.#propose(), makeIcon("search"), t("missing.start"));
    this.root.replaceChildren(start);
  }

  /** Runs a request; what it shows takes the place of what is there. @param {(signal: AbortSignal) => Promise<Node[]>} run */
  async #show(run) {
    this.#asking?.abort();
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    const stop = makeButton("button quiet", () => this.#stop(), t("work.stop"));
    this.root.replaceChildren(el("p", { class: "status working", role: "status" }, t("find.working")), stop);
    try {
      this.root.replaceChildren(...(await run(signal)));
    } catch (thrown) {
      if (api.isAbort(thrown)) return;
      this.root.replaceChildren(renderProblem(api.toApiError(thrown), () => this.#show(run)));
    }
    /** @type {HTMLElement | null} */ (this.root.querySelector("input, button"))?.focus({ preventScroll: true });
    this.root.scrollIntoView({ block: "nearest" });
  }

  #stop() {
    this.#asking?.abort();
    this.#showStart();
  }

  #propose() {
    const { question, missing } = this;
    this.#show(async (signal) => {
      const { searches } = await api.proposeSearches({ question, missing }, signal);
      return [this.#renderSearches(searches)];
    });
  }

  /** The searches, which can be changed; nothing is sent before the button. @param {string[]} searches */
  #renderSearches(searches) {
    const inputs = searches.map((value, at) =>
      el("input", { type: "search", value, maxlength: "200", "aria-label": t("missing.search", { number: at + 1 }) }),
    );
    const onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      const wanted = inputs.map((input) => input.value.trim()).filter(Boolean);
      if (wanted.length) this.#find(wanted);
    };
    return el(
      "form",
      { onsubmit },
      el("p", {}, t(searches.length ? "missing.shown" : "missing.none")),
      inputs,
      el(
        "div",
        { class: "work-actions" },
        searches.length ? el("button", { type: "submit", class: "button" }, t("missing.send")) : null,
        makeButton("button quiet", () => this.#stop(), t("cancel")),
      ),
    );
  }

  /** @param {string[]} searches */
  #find(searches) {
    this.#show(async (signal) => {
      const { works, notices } = await api.discoverFor({ question: this.question, searches }, signal);
      return [
        ...notices.map((text) => el("p", { class: "note" }, renderMessage(text))),
        works.length ? this.#renderWorks(works) : el("p", {}, t("find.none")),
        el(
          "div",
          { class: "work-actions" },
          makeButton("button", this.onAskAgain, makeIcon("again"), t("ask.again")),
          makeButton("button quiet", () => this.#propose(), t("missing.other")),
        ),
      ];
    });
  }

  /** @param {Api.WorkJson[]} works */
  #renderWorks(works) {
    const items = works.map((work) => renderWork(work, { canAdd: true }));
    return el("ol", { class: "works", "aria-label": t("find.works") }, items);
  }
}
