// Adds papers, conversations, notes and tables to a project, or to a new one.

import * as api from "../base/api.js";
import { el, makeButton, renderProblem } from "../base/dom.js";
import { loadProjects, projects } from "../base/state.js";
import { t } from "../base/strings.js";
import { offerUndo } from "../base/undo.js";
import { openDialog } from "../library/edit.js";
import { describeRule } from "./rules.js";

/** @typedef {Partial<Api.ProjectParts>} Parts */

/**
 * Adds what belongs together, such as the notes that are selected. Resolves when the dialog is closed.
 * @param {string} title of the dialog @param {Parts} parts
 */
export const addToProject = (title, parts) => openAdding(title, [{ text: title, parts }]);

/**
 * Adds papers: those that are selected, or, where a filter found them, that filter as a rule.
 * @param {string[]} papers their ids @param {Api.PaperRule_Input | null} rule
 */
export function addPapersToProject(papers, rule) {
  const count = papers.length;
  const byHand = { text: t("project.add.papers", { count }), parts: { papers } };
  const asRule = rule && { text: t("project.add.rule", { rule: describeRule(rule) }), parts: { rules: [rule] } };
  return openAdding(t("project.add.title", { count }), asRule ? [asRule, byHand] : [byHand]);
}

/** @param {string} title @param {{text: string, parts: Parts}[]} ways what can be added; the first unless another is chosen */
async function openAdding(title, ways) {
  const own = [...(projects.get()?.values() ?? [])].filter((project) => project.own);
  const which = el("select", { id: "add-which", name: "which" });
  which.append(
    ...own.map(({ id, name }) => el("option", { value: id }, name)),
    el("option", { value: "" }, t("project.add.new")),
  );
  const name = el("input", { type: "text", id: "add-name", name: "name", maxlength: "200", autocomplete: "off" });
  const named = el("div", { class: "field" }, el("label", { for: name.id }, t("projects.name")), name);
  const boxes = ways.map(() => el("input", { type: "radio", name: "how" }));
  boxes[0].checked = true;
  const choices = ways.map(({ text }, at) => el("label", { class: "check" }, boxes[at], text));
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
    const { parts } = ways[boxes.findIndex((box) => box.checked)];
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
      ways.length > 1 ? el("fieldset", { class: "choices-of-how" }, choices) : null,
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
  dialog.append(el("h2", { id: "add-title" }, title), form);
  const closed = openDialog(document.body, dialog);
  (own.length ? which : name).focus();
  await closed;
}
