// A new table: its name, its papers, and its first columns.

import * as api from "../base/api.js";
import { el, isolate, renderProblem } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { oneAtATime } from "../base/pace.js";
import { buildFilter, getScope, library } from "../base/state.js";
import { t } from "../base/strings.js";
import { joinLines, shorten } from "../base/text.js";
import { openDialog } from "../library/edit.js";
import { makeField, renderSuggestions } from "./columns.js";

/** @typedef {Pick<Api.ProjectSummary, "id" | "name" | "own" | "papers">} Project */
/** @typedef {{text: string, filter: Record<string, string[]>}} Choice papers of a table, in words and for the server */

/** What questions are restricted to now; null if they go to all papers. @returns {Choice | null} */
function readScope() {
  const scope = getScope();
  const { section: _, ...filters } = scope.filters; // a table has whole papers
  const named = Object.values(filters).filter(Boolean);
  if (!scope.papers.length && !named.length) return null;
  const papers = scope.papers.length ? [t("ask.papers", { count: scope.papers.length })] : [];
  const text = t("tables.papers.scope", { scope: [...papers, ...named].join("; ") });
  return { text, filter: buildFilter({ papers: scope.papers, filters }) };
}

/** The papers that a table may have, the likeliest first. */
/** @param {string[]} chosen ids of papers that were chosen @param {Project | null} project whose papers are meant */
function listChoices(chosen, project) {
  /** @type {Choice[]} */
  const choices = [];
  if (project) {
    const text = t("tables.papers.project", { count: project.papers, name: project.name });
    choices.push({ text, filter: project.own ? { project: [project.id] } : { collection: [project.name] } });
  }
  if (chosen.length)
    choices.push({ text: t("tables.papers.chosen", { count: chosen.length }), filter: { papers: chosen } });
  const scope = project ? null : readScope();
  if (scope) choices.push(scope);
  choices.push({ text: t("tables.papers.all", { count: library.get().papers.size }), filter: {} });
  return choices;
}

/** The columns that were written, a question on each line. @param {string} text @returns {import("./columns.js").NewColumn[]} */
export const readQuestions = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean)
    .map((line) => ({
      name: shorten(line, 60),
      question: line.length > 60 || line.endsWith("?") ? line : "",
      kind: "text",
      unit: "",
      choices: [],
    }));

/**
 * A dialog that makes a table. Resolves when it is closed.
 * @param {HTMLElement} root @param {string[]} chosen ids of papers that were chosen for it
 * @param {(table: Api.TableJson) => void} made @param {Project | null} [project] that it is made in
 */
export async function openNewTable(root, chosen, made, project = null) {
  const dialog = el("dialog", { class: "edit", "aria-labelledby": "tables-new-title" });
  const choices = listChoices(chosen, project);
  const name = el("input", {
    type: "text",
    id: "tables-new-name",
    name: "name",
    maxlength: "200",
    autocomplete: "off",
    dir: "auto",
  });
  const own = el("textarea", { id: "tables-new-own", name: "own", rows: "3", dir: "auto" });
  const radios = choices.map((_, at) =>
    el("input", { type: "radio", name: "papers", value: String(at), checked: at === 0, onchange: () => suggest() }),
  );
  const papers = el(
    "fieldset",
    { class: "field tables-kinds" },
    el("legend", {}, t("tables.papers")),
    choices.map(({ text }, at) => el("label", { class: "check tables-kind" }, radios[at], isolate(joinLines(text)))),
  );
  const suggestions = el("div", { class: "field", hidden: true });
  const problem = el("div");
  /** @type {import("./columns.js").NewColumn[]} */
  let wanted = [];
  const getChoice = () =>
    choices[
      Math.max(
        0,
        radios.findIndex(({ checked }) => checked),
      )
    ];
  let asking = new AbortController();

  const suggest = async () => {
    asking.abort();
    asking = new AbortController();
    wanted = [];
    suggestions.hidden = true;
    try {
      const { columns } = await api.suggestFirstColumns(getChoice().filter, asking.signal);
      const list = renderSuggestions(columns, (column, node) => {
        const isWanted = node.getAttribute("aria-pressed") !== "true";
        node.setAttribute("aria-pressed", String(isWanted));
        wanted = isWanted ? [...wanted, column] : wanted.filter((each) => each !== column);
      });
      for (const node of list.querySelectorAll("button")) node.setAttribute("aria-pressed", "false");
      suggestions.replaceChildren(el("p", { class: "tables-label" }, t("tables.suggested")), list);
      suggestions.hidden = !columns.length;
    } catch {
      // typed on, or none: columns are written by hand
    }
  };
  const submit = oneAtATime(async () => {
    const columns = [
      ...wanted.map(({ name, question, kind, unit, choices }) => ({ name, question, kind, unit, choices })),
      ...readQuestions(own.value),
    ];
    const filter = /** @type {any} */ (getChoice().filter); // the server fills in the others
    try {
      const owner = project?.own ? { project: project.id } : {}; // a collection has papers alone
      const asked = { name: name.value.trim(), filter, columns, fill: columns.length > 0 };
      const table = await api.addTable({ ...asked, ...owner });
      draft.forget();
      dialog.close();
      made(table);
    } catch (thrown) {
      problem.replaceChildren(renderProblem(api.toApiError(thrown)));
    }
  });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    submit();
  };
  const row = el("div", { class: "row" });
  const fields = el(
    "div",
    { class: "fields" },
    makeField(name, t("tables.name"), t("tables.name.hint")),
    papers,
    suggestions,
    makeField(own, t("tables.own"), t("tables.own.hint")),
  );
  const form = el("form", { class: "edit-form", onsubmit }, fields, problem, row);
  const draft = new Draft(form);
  draft.open(`table ${[project?.id ?? "", ...chosen].join(" ").trim().slice(0, 200)}`);
  row.append(
    draft.makeCancel(() => dialog.close()),
    el("button", { type: "submit", class: "button primary" }, t("tables.make")),
  );
  dialog.append(el("h2", { id: "tables-new-title" }, t("tables.new")), form);
  const closed = openDialog(root, dialog);
  name.focus();
  suggest();
  await closed;
  asking.abort();
}
