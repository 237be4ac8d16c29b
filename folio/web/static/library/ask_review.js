// The dialog that begins a review of papers.

import * as api from "../base/api.js";
import { el, makeButton, renderProblem } from "../base/dom.js";
import { goTo } from "../base/router.js";
import { t } from "../base/strings.js";
import { openDialog } from "./edit.js";

const MOST_QUESTIONS = 10;

/**
 * Asks for the title and the questions of a review of these papers, and begins it. Resolves when the dialog is closed.
 * @param {HTMLElement} root that gets the dialog @param {Partial<Api.ReviewRequest>} scope its questions can be changed @param {number} count
 */
export async function askForReview(root, scope, count) {
  const dialog = el("dialog", { class: "edit", id: "review-dialog", "aria-labelledby": "review-dialog-title" });
  const title = el("input", { type: "text", id: "review-title", maxlength: 200, autocomplete: "off", dir: "auto" });
  const questions = el("textarea", { id: "review-questions", rows: 3, dir: "auto" });
  questions.value = (scope.questions ?? []).slice(0, MOST_QUESTIONS).join("\n");
  const problem = el("div");
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const lines = questions.value.split("\n").map((line) => line.trim());
    const asked = lines.filter(Boolean).slice(0, MOST_QUESTIONS);
    try {
      const { id } = await api.makeReview({ ...scope, title: title.value.trim(), questions: asked });
      dialog.close();
      goTo({ view: "review", id, query: {} });
    } catch (thrown) {
      problem.replaceChildren(renderProblem(api.toApiError(thrown)));
    }
  };
  const fields = el(
    "div",
    { class: "fields" },
    el("div", { class: "field" }, el("label", { for: "review-title" }, t("review.title")), title),
    el(
      "div",
      { class: "field" },
      el("label", { for: "review-questions" }, t("review.questions")),
      questions,
      el("p", {}, t("review.questions.hint")),
    ),
  );
  const row = el(
    "div",
    { class: "row" },
    makeButton("button", () => dialog.close(), t("cancel")),
    el("button", { type: "submit", class: "button primary" }, t("review.make")),
  );
  const heading = el("h2", { id: "review-dialog-title" }, t("review.of", { count }));
  dialog.append(heading, el("form", { class: "edit-form", onsubmit: submit }, fields, problem, row));
  const closed = openDialog(root, dialog);
  title.focus();
  await closed;
}
