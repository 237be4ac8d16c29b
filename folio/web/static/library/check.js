// The papers of which something is not sure, one after the other: the first page beside the fields.

import * as api from "../base/api.js";
import { el, isolate, makeButton, renderProblem } from "../base/dom.js";
import { t } from "../base/strings.js";
import { EditForm } from "./edit.js";
import { getName } from "./table.js";

/** @typedef {import("./catalog.js").Paper} Paper */

/** The papers of which something is not sure. @param {Iterable<Paper>} papers */
export const listUnsure = (papers) => [...papers].filter(({ unsure }) => unsure.length > 0);

/**
 * @typedef {object} CheckHooks
 * @property {() => unknown} changed called after each change
 * @property {(id: string) => void} show shows a paper; "" when all were gone through
 * @property {() => void} leave
 */

export class CheckQueue {
  /** @type {string[]} */
  #ids = []; // in the order of the list when it was opened
  #shown = "";
  /** @type {AbortController | null} */
  #loading = null;

  /** @param {CheckHooks} hooks */
  constructor(hooks) {
    this.hooks = hooks;
    this.title = el("h1", { tabindex: "-1" });
    this.place = el("p", { class: "status", role: "status" });
    this.body = el("div", { class: "check-body" });
    const back = makeButton("button quiet", () => hooks.leave(), t("check.leave"));
    this.node = el(
      "div",
      { class: "checking scroll", hidden: true },
      el("div", { class: "check-head" }, this.title, this.place, back),
      this.body,
    );
  }

  /**
   * Shows a paper of the queue; the next one if it is not in it; "all": the first.
   * @param {string} id @param {Paper[]} papers all papers, in the order of the list
   */
  show(id, papers) {
    const isNew = this.node.hidden;
    this.node.hidden = false;
    if (isNew || !this.#ids.length) this.#ids = listUnsure(papers).map((paper) => paper.id);
    if (!this.#ids.length) return this.#finish();
    if (id === "done") return this.#finish();
    const wanted = this.#ids.includes(id) ? id : this.#ids[0];
    if (wanted !== this.#shown) this.#load(wanted);
    return undefined;
  }

  hide() {
    this.node.hidden = true;
    this.#shown = "";
    this.#loading?.abort();
  }

  #finish() {
    this.#shown = "";
    this.title.textContent = t("check.done");
    this.place.textContent = "";
    const back = makeButton("button primary", () => this.hooks.leave(), t("check.leave"));
    this.body.replaceChildren(back);
    back.focus();
  }

  #goOn() {
    const next = this.#ids[this.#ids.indexOf(this.#shown) + 1];
    this.hooks.show(next ?? "done");
  }

  /** @param {string} id */
  async #load(id) {
    this.#loading?.abort();
    this.#loading = new AbortController();
    const { signal } = this.#loading;
    this.#shown = id;
    this.title.textContent = t("check.title", { count: this.#ids.length });
    this.place.textContent = t("check.place", { at: this.#ids.indexOf(id) + 1, of: this.#ids.length });
    try {
      const paper = await api.getPaper(id);
      if (!signal.aborted) this.#render(paper);
    } catch (thrown) {
      if (signal.aborted) return;
      const skip = makeButton("button", () => this.#goOn(), t("check.skip"));
      this.body.replaceChildren(
        renderProblem(api.toApiError(thrown), () => this.#load(id)),
        skip,
      );
    }
  }

  /** @param {Api.PaperDetails} paper */
  #render(paper) {
    const skip = makeButton("button", () => this.#goOn(), t("check.skip"));
    skip.setAttribute("aria-keyshortcuts", "Alt+S");
    const form = new EditForm(paper, {
      changed: this.hooks.changed,
      saved: () => this.#goOn(),
      save: "check.save",
      buttons: [skip],
      confirms: true,
    });
    form.node.addEventListener("keydown", (event) => {
      if (!event.altKey || event.code !== "KeyS") return;
      event.preventDefault();
      this.#goOn();
    });
    form.node.setAttribute("aria-label", t("check.fields"));
    const picture = el("img", { src: api.pictureUrl(paper.id), alt: t("check.picture", { name: getName(paper) }) });
    const name = el("p", { class: "about" }, isolate(paper.file));
    const keys = el("p", { class: "about" }, t("check.keys"));
    this.body.replaceChildren(
      el("div", { class: "check-page", tabindex: "0", role: "region", "aria-label": t("check.page") }, picture),
      el("div", { class: "check-fields" }, name, form.node, keys),
    );
    form.focus();
  }
}
