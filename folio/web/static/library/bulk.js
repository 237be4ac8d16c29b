// The tags and the fields of several papers at once.

import * as api from "../base/api.js";
import { el, isolate, renderProblem } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { t } from "../base/strings.js";
import { offerUndo } from "../base/undo.js";
import { openDialog } from "./edit.js";

/** @typedef {import("./catalog.js").Paper} Paper */

/** The tags of papers, each with how many have it, in their order. @param {Paper[]} papers */
function countTags(papers) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const tag of papers.flatMap(({ tags }) => tags)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
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
 * Adds tags to papers, and takes tags from them.
 * @param {HTMLElement} root @param {Paper[]} papers @param {Iterable<string>} known tags of the library
 * @param {() => unknown} changed
 */
export async function editTags(root, papers, known, changed) {
  const how = { list: "bulk-known", autocomplete: "off", dir: "auto" };
  const input = el("input", { type: "text", id: "bulk-tags", name: "tags", ...how });
  const options = [...known].map((tag) => el("option", { value: tag }));
  const counts = countTags(papers);
  const boxes = counts.map(([tag, count]) => makeTagBox(tag, count, papers.length));
  /** @type {HTMLElement[]} */
  const fields = [
    el("div", { class: "field" }, el("label", { for: "bulk-tags" }, t("bulk.add")), input, el("p", {}, t("bulk.hint"))),
    el("datalist", { id: "bulk-known" }, options),
  ];
  if (boxes.length)
    fields.push(el("fieldset", { class: "field" }, el("legend", {}, t("bulk.tags")), boxes.map(toLabel)));
  const collect = () => ({
    add_tags: [...splitTags(input.value), ...boxes.filter(({ box }) => box.checked).map(({ tag }) => tag)],
    remove_tags: boxes.filter(({ box }) => !box.checked && !box.indeterminate).map(({ tag }) => tag),
  });
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
