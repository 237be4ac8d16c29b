// What a paper cites and what cites it, as services on the internet know it.

import * as api from "../base/api.js";
import { el, formatCommands, makeButton, renderProblem } from "../base/dom.js";
import { health } from "../base/state.js";
import { t } from "../base/strings.js";

/** @typedef {(work: Api.WorkJson, how: {canAdd: boolean}) => HTMLElement} RenderWork */

export class Citations {
  /** @type {AbortController | null} */
  #asking = null;
  #paper = "";

  /** @param {RenderWork} renderWork */
  constructor(renderWork) {
    this.renderWork = renderWork;
    this.status = el("p", { class: "status", role: "status" });
    this.button = makeButton("button", () => this.#load(true), "");
    this.problem = el("div");
    this.lists = el("div", { class: "citation-lists" });
    this.node = el(
      "details",
      { class: "citations", ontoggle: () => this.#open() },
      el("summary", {}, el("h2", {}, t("citations"))),
      el("div", { class: "find-status" }, this.status, this.button),
      this.problem,
      this.lists,
    );
  }

  /** @param {string} paper its id */
  show(paper) {
    if (paper === this.#paper) return;
    this.#asking?.abort();
    this.#paper = paper;
    this.node.open = false;
    this.#showLists(null);
  }

  #open() {
    if (this.node.open && this.#paper) this.#load(false);
  }

  /** @param {boolean} isLookUp whether services are asked */
  async #load(isLookUp) {
    this.#asking?.abort();
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    const paper = this.#paper;
    this.status.textContent = t(isLookUp ? "citations.asking" : "loading");
    this.status.classList.add("working");
    this.button.disabled = true;
    this.problem.replaceChildren();
    try {
      this.#showLists(await (isLookUp ? api.lookUpCitations : api.getCitations)(paper, signal));
    } catch (thrown) {
      if (signal.aborted) return;
      this.status.textContent = "";
      this.problem.replaceChildren(renderProblem(api.toApiError(thrown), () => this.#load(isLookUp)));
    } finally {
      if (!signal.aborted) {
        this.status.classList.remove("working");
        this.button.disabled = false;
      }
    }
  }

  /** @param {Api.PaperCitations | null} citations as the server replies; null before it has */
  #showLists(citations) {
    const isOnline = health.get()?.online ?? false;
    const lists = citations
      ? [
          ...this.#renderList(t("citations.references"), citations.references),
          ...this.#renderList(t("citations.citing"), citations.cited_by),
        ]
      : [];
    this.lists.replaceChildren(...lists);
    this.button.hidden = !citations || !isOnline;
    this.button.textContent = t(citations?.known ? "citations.again" : "citations.look");
    if (citations) this.status.replaceChildren(...formatCommands(describe(citations, isOnline)));
  }

  /** @param {string} name @param {Api.WorkJson[]} works */
  #renderList(name, works) {
    if (!works.length) return [];
    const canAdd = health.get()?.online ?? false;
    const render = (/** @type {Api.WorkJson} */ work) => this.renderWork(work, { canAdd });
    const [named, unnamed] = [works.filter(({ title }) => title), works.filter(({ title }) => !title)];
    const more = el(
      "details",
      { class: "unnamed" },
      el("summary", {}, t("citations.unnamed", { count: unnamed.length })),
      el("ol", { class: "works" }, unnamed.map(render)),
    );
    const heading = el("h3", {}, `${name} `, el("span", { class: "size" }, String(works.length)));
    return [heading, el("ol", { class: "works" }, named.map(render)), ...(unnamed.length ? [more] : [])];
  }
}

/** @param {Api.PaperCitations} citations @param {boolean} isOnline */
function describe({ known, reference_count: cites, cited_by_count: citing }, isOnline) {
  if (!known) return [t("citations.none"), isOnline ? "" : health.get()?.network].filter(Boolean).join(" ");
  return t("citations.counts", {
    references: t("citations.reference.count", { count: cites }),
    works: t("citations.work.count", { count: citing }),
  });
}
