// Adds papers to a project, or to a new one: those that are selected in the library, or what its filter finds.

import * as api from "../base/api.js";
import { el, makeButton, renderProblem } from "../base/dom.js";
import { loadProjects, projects } from "../base/state.js";
import { t } from "../base/strings.js";
import { offerUndo } from "../base/undo.js";
import { describeRule } from "../projects/rules.js";
import { openDialog } from "./edit.js";

/**
 * Resolves when the dialog is closed. rule: the filter that found these papers; null if they are chosen one by one.
 * @param {HTMLElement} root @param {string[]} papers their ids @param {Api.PaperRule_Input | null} rule
 */
export async function addToProject(root, papers, rule) {
  const own = [...(projects.get()?.values() ?? [])].filter((project) => project.own);
  const which = el("select", { id: "add-which", name: "which" });
  which.append(
    ...own.map(({ id, name }) => el("option", { value: id }, name)),
    el("option", { value: "" }, t("project.add.new")),
  );
  const name = el("input", { type: "text", id: "add-name", name: "name", maxlength: "200", autocomplete: "off" });
  const named = el("div", { class: "field" }, el("label", { for: name.id }, t("projects.name")), name);
  const asRule = el("input", { type: "radio", name: "how", value: "rule", id: "add-rule" });
  const byHand = el("input", { type: "radio", name: "how", value: "papers", id: "add-papers" });
  (rule ? asRule : byHand).checked = true;
  const choices = rule && [
    el("label", { class: "check" }, asRule, t("project.add.rule", { rule: describeRule(rule) })),
    el("label", { class: "check" }, byHand, t("project.add.papers", { count: papers.length })),
  ];
  const showName = () => {
    named.hidden = which.value !== "";
    name.required = !named.hidden;
  };
  which.onchange = showName;
  showName();
  const problem = el("div");
  const dialog = el("dialog", { class: "edit", id: "add-to-project", "aria-labelledby": "add-title" });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const parts = rule && asRule.checked ? { rules: [rule] } : { papers };
    try {
      const key = api.makeKey();
      const project = which.value
        ? await api.changeParts(which.value, { add: parts }, key)
        : await api.addProject({ name: name.value, ...parts });
      await loadProjects();
      dialog.close();
      const done = t("project.added", { name: project.name });
      if (which.value) offerUndo(done, key);
      else location.hash = `#projects?project=${project.id}`;
    } catch (thrown) {
      problem.replaceChildren(renderProblem(api.toApiError(thrown)));
    }
  };
  const form = el(
    "form",
    { class: "edit-form", onsubmit: submit },
    el(
      "div",
      { class: "fields" },
      choices ? el("fieldset", { class: "choices-of-how" }, choices) : null,
      el("div", { class: "field" }, el("label", { for: which.id }, t("project.add.which")), which),
      named,
    ),
    problem,
    el(
      "div",
      { class: "row" },
      makeButton("button", () => dialog.close(), t("cancel")),
      el("button", { type: "submit", class: "button primary" }, t("project.add.do")),
    ),
  );
  dialog.append(el("h2", { id: "add-title" }, t("project.add.title", { count: papers.length })), form);
  const closed = openDialog(root, dialog);
  (own.length ? which : name).focus();
  await closed;
}
