// Papers that were removed in the last day, which can be brought back.

import * as api from "../base/api.js";
import { el, formatDate, hideVisually, isolate, makeButton, makeIcon, renderProblem, showToast } from "../base/dom.js";
import { byId, confirmAction, hideToast } from "../base/dom.js";
import { showFailure } from "../base/failure.js";
import { inTurn, oneAtATime } from "../base/pace.js";
import { loadHealth, loadPapers } from "../base/state.js";
import { t, parts } from "../base/strings.js";
import { shorten } from "../base/text.js";
import { offerUndo } from "../base/undo.js";
import { getName } from "./table.js";

/** @typedef {{id: string, title: string, file: string}} Named */

/**
 * Removes papers once a person has confirmed it. Returns whether they were. Throws ApiError.
 * @param {Named[]} papers @param {() => unknown} changed called when the library has changed
 */
export async function removePapers(papers, changed) {
  const name = papers.length === 1 ? `“${shorten(getName(papers[0]))}”` : t("library.count", { count: papers.length });
  const title = t("remove.title", { count: papers.length });
  const folder = el("code", {}, "papers/.removed");
  const files = el("span", {}, parts("remove.files", { folder }));
  const text = el("span", {}, parts("remove.text", { count: papers.length, name: isolate(name), files }));
  if (!(await confirmAction(title, text, t("remove")))) return false;
  showToast(t("removed.doing", { count: papers.length }));
  let kept = "";
  const key = api.makeKey();
  try {
    const { removed } = await api.removePapers(
      papers.map(({ id }) => id),
      key,
    );
    kept = removed[0].kept_at ?? "";
  } catch (thrown) {
    hideToast();
    throw thrown;
  } finally {
    await changed();
    loadHealth().catch(() => {});
  }
  const one = kept ? t("removed.moved", { place: kept }) : t("removed.left");
  offerUndo(papers.length > 1 ? t("removed.many", { count: papers.length }) : one, key);
  return true;
}

/**
 * Brings removed papers back. Throws ApiError, also if some stay removed.
 * @param {string[]} papers ids @param {() => unknown} changed
 */
async function restorePapers(papers, changed) {
  showToast(t("restore.doing", { count: papers.length }));
  try {
    const { restored, failed } = await api.restorePapers(papers).finally(hideToast);
    const [first] = restored;
    const name = restored.length === 1 ? getName(first) : t("library.count", { count: restored.length });
    if (first) showToast(t("restore.done", { name: shorten(name, 80) }));
    if (!failed.length) return;
    const [{ error, remedy }] = failed;
    throw new api.ApiError(t("restore.failed", { count: failed.length, error }), remedy);
  } finally {
    await changed();
    loadHealth().catch(() => {});
  }
}

/** @type {Promise<Api.RemovedPapers> | null} asked for once by all that ask at the same time */
let listing = null;

/**
 * Adds a button that brings a paper back, if it was removed and can be.
 * @param {HTMLElement} box @param {string} paper its id @param {() => unknown} [restored]
 */
export async function offerRestoring(box, paper, restored = () => {}) {
  listing ??= api.listRemoved().finally(() => (listing = null));
  const { papers } = await listing.catch(() => ({ papers: [] }));
  if (!papers.some((each) => each.paper === paper)) return;
  const restore = oneAtATime(async () => {
    try {
      await restorePapers([paper], loadPapers);
      restored();
    } catch (thrown) {
      showFailure(thrown);
    }
  });
  box.append(" ", makeButton("button", restore, makeIcon("again"), t("restore")));
}

/** What went wrong with a paper: if it was removed, it can be brought back here. */
/** @param {unknown} thrown @param {string} paper its id @param {() => void} retry */
export function renderMissing(thrown, paper, retry) {
  const error = api.toApiError(thrown);
  const box = renderProblem(error, api.isPermanent(error) ? null : retry);
  if (error.status === 404) offerRestoring(box, paper, retry);
  return box;
}

export class RemovedToday {
  /** @param {() => unknown} changed called when papers were brought back */
  constructor(changed) {
    this.changed = changed;
    this.count = el("summary", {});
    this.list = el("ul", { class: "removed-papers", "aria-label": t("removed") });
    this.problem = el("div");
    this.node = el("details", { class: "removed", hidden: true }, this.count, this.list, this.problem);
  }

  /** Shows which papers can be brought back. Never throws: without them the library is whole. */
  refresh = inTurn(async () => {
    const { papers } = await api.listRemoved().catch(() => ({ papers: [] }));
    this.node.hidden = !papers.length;
    this.count.textContent = t("removed.count", { count: papers.length });
    const isInside = this.list.contains(document.activeElement);
    const all = papers.length > 1 ? [el("li", {}, this.#makeButton(papers, t("restore.all")))] : [];
    const empty = makeButton(
      "button quiet",
      oneAtATime(() => this.#empty()),
      makeIcon("delete"),
      t("removed.empty"),
    );
    this.list.replaceChildren(...all, ...papers.map((paper) => this.#renderPaper(paper)), el("li", {}, empty));
    if (isInside) (this.list.querySelector("button") ?? byId("main")).focus();
  });

  /** Deletes the files of all removed papers once a person has confirmed it, and says which stay. */
  async #empty() {
    const text = el("span", {}, parts("removed.empty.text", { folder: el("code", {}, "papers/.removed") }));
    if (!(await confirmAction(t("removed.empty.title"), text, t("removed.empty")))) return;
    this.problem.replaceChildren();
    try {
      const { deleted, stay } = await api.emptyRemoved();
      showToast([t("removed.emptied", { count: deleted }), ...stay].join(" "));
    } catch (thrown) {
      this.problem.replaceChildren(renderProblem(api.toApiError(thrown)));
    }
    await this.refresh();
  }

  /** @param {Api.RemovedPaperJson} paper */
  #renderPaper(paper) {
    const name = paper.title || paper.file;
    const button = this.#makeButton([paper], t("restore"), hideVisually(`: ${name}`));
    return el("li", {}, isolate(shorten(name)), el("span", { class: "about" }, formatDate(paper.removed)), button);
  }

  /** @param {Api.RemovedPaperJson[]} papers @param {...(Node | string)} text */
  #makeButton(papers, ...text) {
    // The button is not disabled meanwhile, which would take its focus.
    const restore = oneAtATime(async () => {
      this.problem.replaceChildren();
      const ids = papers.map(({ paper }) => paper);
      try {
        await restorePapers(ids, this.changed);
      } catch (thrown) {
        this.problem.replaceChildren(renderProblem(api.toApiError(thrown)));
      }
      await this.refresh();
    });
    return makeButton("button quiet", restore, makeIcon("again"), ...text);
  }
}
