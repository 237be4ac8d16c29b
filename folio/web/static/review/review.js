// A review of papers: followed while it is made, and shown with links to the pages that it quotes.

import * as api from "../base/api.js";
import { announce, el, makeButton, makeIcon, makeLink, renderProblem } from "../base/dom.js";
import { parsePlace } from "../base/place.js";
import { openReading, place } from "../base/router.js";
import { t } from "../base/strings.js";

const POLL_MS = 700;
const FORMATS = /** @type {const} */ (["md", "docx"]);
const OVER = ["done", "stopped", "failed"];

class ReviewView {
  #id = "";
  /** @type {AbortController | null} */
  #following = null;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.status = el("p", { class: "status", role: "status" });
    this.bar = el("progress", { "aria-label": t("review.reading") });
    this.stop = makeButton("button", () => this.#stop(), makeIcon("stop"), t("review.stop"));
    this.making = el("div", { class: "review-making" }, this.status, this.bar, this.stop);
    this.actions = el("div", { class: "review-actions", role: "group", "aria-label": t("review.export") });
    this.problem = el("div");
    this.body = el("article", { class: "review" });
    const reading = el("div", { class: "reading" }, this.making, this.problem, this.actions, this.body);
    root.append(el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("review") }, reading));
  }

  /** Shows the review that the address names, unless it is shown. */
  follow() {
    const { view, id } = place.get();
    if (view !== "review" || id === this.#id) return;
    this.#id = id;
    this.#following?.abort();
    this.#following = new AbortController();
    this.body.replaceChildren();
    this.actions.replaceChildren();
    this.problem.replaceChildren();
    this.#load(id, this.#following.signal);
  }

  /** Asks how far the review is until it is over. @param {string} id @param {AbortSignal} signal */
  async #load(id, signal) {
    try {
      let review = await api.getReview(id, signal);
      while (!OVER.includes(review.state)) {
        this.#showProgress(review);
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        if (signal.aborted) return;
        review = await api.getReview(id, signal);
      }
      this.#show(review);
    } catch (thrown) {
      if (api.isAbort(thrown) || signal.aborted) return;
      this.making.hidden = true;
      const error = api.toApiError(thrown);
      const retry = () => {
        this.#id = "";
        this.follow();
      };
      this.problem.replaceChildren(renderProblem(error, api.isPermanent(error) ? undefined : retry));
    }
  }

  /** @param {Api.ReviewJson} review */
  #showProgress({ state, done, total }) {
    this.making.hidden = false;
    document.title = `${t("review")} · Folio`;
    if (state === "reading" && total) {
      this.bar.max = total;
      this.bar.value = done;
      this.status.textContent = t("review.progress", { done, total });
    } else {
      this.bar.removeAttribute("value");
      this.status.textContent = t(state === "comparing" ? "review.comparing" : "review.waiting");
    }
  }

  async #stop() {
    try {
      await api.stopReview(this.#id);
    } catch (thrown) {
      this.problem.replaceChildren(renderProblem(api.toApiError(thrown)));
    }
  }

  /** @param {Api.ReviewJson} review */
  #show({ id, title, state, error, blocks }) {
    this.making.hidden = state !== "stopped";
    this.bar.hidden = this.stop.hidden = true;
    document.title = `${title || t("review")} · Folio`;
    if (state === "stopped") this.status.textContent = t("review.stopped");
    if (error) this.problem.replaceChildren(renderProblem(api.errorOf(error)));
    if (state !== "done") return;
    this.actions.replaceChildren(...FORMATS.map((format) => makeExport(id, format)));
    this.body.replaceChildren(...renderBlocks(blocks));
    announce(t("review.done"));
  }
}

/** @param {string} id @param {"md" | "docx"} format */
const makeExport = (id, format) =>
  el(
    "a",
    { class: "button quiet", href: api.reviewUrl(id, format), download: true },
    makeIcon("export"),
    t(`review.export.${format}`),
  );

/** The blocks as elements; items that follow each other are one list. @param {Api.BlockJson[]} blocks */
function renderBlocks(blocks) {
  /** @type {HTMLElement[]} */
  const nodes = [];
  for (const { kind, level, runs } of blocks) {
    const words = runs.flatMap((run, at) => (at ? [" ", renderRun(run)] : [renderRun(run)]));
    if (kind === "item") {
      const last = nodes.at(-1);
      const list = last instanceof HTMLUListElement ? last : el("ul");
      if (list !== last) nodes.push(list);
      list.append(el("li", {}, words));
    } else if (kind === "heading") {
      nodes.push(el(level === 1 ? "h1" : level === 2 ? "h2" : "h3", {}, words));
    } else nodes.push(el("p", {}, words));
  }
  return nodes;
}

/** @param {Api.RunJson} run */
function renderRun({ text, style, link }) {
  if (!link) return el(style === "bold" ? "strong" : style === "italic" ? "em" : "bdi", { dir: "auto" }, text);
  const { reading } = parsePlace(link);
  return makeLink(link, () => reading && openReading(reading), { class: "cite" }, text);
}

/** @param {HTMLElement} root */
export function setUpReview(root) {
  const view = new ReviewView(root);
  place.watch(() => view.follow());
}
