// The tags and the fields of several papers at once.

import * as api from "../base/api.js";
import { el, isolate, renderProblem } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { t } from "../base/strings.js";
import { offerUndo } from "../base/undo.js";
import { openDialog } from "./edit.js";

/** @typedef {import("./catalog.js").Paper} Paper */

/** The tags or collections of papers, each with how many have it, in their order. */
/** @param {Paper[]} papers @param {"tags" | "collections"} field */
function countNames(papers, field) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const name of papers.flatMap((paper) => paper[field])) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([one], [other]) => one.localeCompare(other));
}

/** The tags that were typed, separated by commas or lines. @param {string} text */
const splitTags = (text) => [
  ...new Set(
    text
      .split(/[,\n]/)
      .map((tag) => tag.trim())
      .filter(Boolean),
  ),
];

/**
 * A dialog with a form that sends the same changes of papers. Resolves when it is closed.
 * @param {HTMLElement} root @param {string} title @param {HTMLElement[]} fields
 * @param {() => Omit<Api.ManyEdits, "papers">} collect @param {Paper[]} papers @param {() => unknown} changed
 */
async function changeAll(root, title, fields, collect, papers, changed) {
  const dialog = el("dialog", { class: "edit", id: "bulk", "aria-labelledby": "bulk-title" });
  const problem = el("div");
  const ids = papers.map(({ id }) => id);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      const key = api.makeKey();
      const { changed: count } = await api.editPapers({ papers: ids, ...collect() }, key);
      draft.forget();
      await changed();
      dialog.close();
      offerUndo(t("bulk.saved", { count }), key);
    } catch (thrown) {
      problem.replaceChildren(renderProblem(api.toApiError(thrown)));
    }
  };
  const row = el("div", { class: "row" });
  const list = el("div", { class: "fields" }, fields);
  const form = el("form", { class: "edit-form", onsubmit: submit }, list, problem, row);
  dialog.append(el("h2", { id: "bulk-title" }, title), form);
  const draft = new Draft(form);
  draft.open(`${title} ${ids.sort().join(" ")}`);
  const save = el("button", { type: "submit", class: "button primary" }, t("edit.save"));
  const cancel = draft.makeCancel(() => dialog.close());
  row.append(cancel, save);
  const closed = openDialog(root, dialog);
  dialog.querySelector("input")?.focus();
  await closed;
}

/**
 * The fields for tags or collections: a text to add some, and a box for each that papers have.
 * @param {Paper[]} papers @param {"tags" | "collections"} field @param {Iterable<string>} known those of the library
 */
function makeNameFields(papers, field, known) {
  const how = { list: `known-bulk-${field}`, autocomplete: "off", dir: "auto" };
  const input = el("input", { type: "text", id: `bulk-${field}`, name: field, ...how });
  const options = [...known].map((name) => el("option", { value: name }));
  const boxes = countNames(papers, field).map(([name, count]) => makeTagBox(name, count, papers.length));
  const hint = el("p", {}, t(field === "tags" ? "bulk.hint" : "bulk.collections.hint"));
  const label = el("label", { for: input.id }, t(field === "tags" ? "bulk.add" : "bulk.collections.add"));
  /** @type {HTMLElement[]} */
  const nodes = [
    el("div", { class: "field" }, label, input, hint),
    el("datalist", { id: `known-bulk-${field}` }, options),
  ];
  const legend = el("legend", {}, t(field === "tags" ? "bulk.tags" : "bulk.collections"));
  if (boxes.length) nodes.push(el("fieldset", { class: "field" }, legend, boxes.map(toLabel)));
  const collect = () => ({
    add: [...splitTags(input.value), ...boxes.filter(({ box }) => box.checked).map(({ tag }) => tag)],
    remove: boxes.filter(({ box }) => !box.checked && !box.indeterminate).map(({ tag }) => tag),
  });
  return { nodes, collect };
}

/**
 * Adds tags and collections to papers, and takes them from them.
 * @param {HTMLElement} root @param {Paper[]} papers
 * @param {{tags: Iterable<string>, collections: Iterable<string>}} known those of the library
 * @param {() => unknown} changed
 */
export async function editTags(root, papers, known, changed) {
  const tags = makeNameFields(papers, "tags", known.tags);
  const collections = makeNameFields(papers, "collections", known.collections);
  const collect = () => {
    const [tagged, put] = [tags.collect(), collections.collect()];
    return {
      add_tags: tagged.add,
      remove_tags: tagged.remove,
      add_collections: put.add,
      remove_collections: put.remove,
    };
  };
  const fields = [...tags.nodes, ...collections.nodes];
  await changeAll(root, t("bulk.tags.title", { count: papers.length }), fields, collect, papers, changed);
}

/** @param {string} tag @param {number} count @param {number} all */
function makeTagBox(tag, count, all) {
  const box = el("input", { type: "checkbox", checked: count === all });
  box.indeterminate = count < all;
  return { tag, box, share: t("bulk.share", { some: count, all }) };
}

/** @param {ReturnType<typeof makeTagBox>} tagBox */
const toLabel = ({ tag, box, share }) =>
  el("label", { class: "facet-value" }, box, isolate(tag), el("span", { class: "size" }, share));

/**
 * Sets the year or the venue of several papers.
 * @param {HTMLElement} root @param {Paper[]} papers @param {() => unknown} changed
 */
export async function editFields(root, papers, changed) {
  const year = el("input", { type: "text", id: "bulk-year", name: "year", inputmode: "numeric", pattern: "[0-9]{4}" });
  year.size = 6;
  year.title = t("edit.year.hint");
  const venue = el("input", { type: "text", id: "bulk-venue", name: "venue", autocomplete: "off", dir: "auto" });
  const fields = [
    el("p", { class: "about" }, t("bulk.empty")),
    el("div", { class: "field" }, el("label", { for: "bulk-year" }, t("edit.year")), year),
    el("div", { class: "field" }, el("label", { for: "bulk-venue" }, t("edit.venue")), venue),
  ];
  const collect = () => {
    /** @type {Api.PaperEdits} */
    const edits = {};
    if (year.value.trim()) edits.year = Number(year.value);
    if (venue.value.trim()) edits.venue = venue.value.trim();
    return { edits };
  };
  await changeAll(root, t("bulk.fields.title", { count: papers.length }), fields, collect, papers, changed);
}
