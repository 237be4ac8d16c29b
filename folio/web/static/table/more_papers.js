// Papers that are added to a table, chosen in a dialog.

import { el, isolate, makeButton } from "../base/dom.js";
import { library } from "../base/state.js";
import { t } from "../base/strings.js";
import { fold, joinLines, shorten } from "../base/text.js";
import { openDialog } from "../library/edit.js";
import { getName } from "../library/table.js";

const MOST = 100; // papers that are listed; typing finds the others

/**
 * Resolves to the ids of the papers that a person chose; [] for none.
 * @param {HTMLElement} root @param {Set<string>} there papers that the table has
 * @returns {Promise<string[]>}
 */
export async function choosePapersToAdd(root, there) {
  /** @type {Set<string>} */
  const chosen = new Set();
  let isDone = false;
  const others = [...library.get().papers.values()]
    .filter(({ id }) => !there.has(id))
    .map((paper) => ({
      id: paper.id,
      name: getName(paper),
      text: fold([getName(paper), ...paper.authors, paper.year ?? "", ...paper.tags].join("\n")),
    }))
    .sort((one, other) => one.name.localeCompare(other.name));
  const list = el("ul", { class: "tables-papers", tabindex: "0", "aria-label": t("tables.rows.choose") });
  const more = el("p", { class: "about" });
  const add = makeButton("button primary", () => close(true), "");
  const show = () => {
    const words = fold(query.value).split(/\s+/).filter(Boolean);
    const found = others.filter(({ text }) => words.every((word) => text.includes(word)));
    list.replaceChildren(...found.slice(0, MOST).map(renderPaper));
    const count = found.length - MOST;
    more.textContent = !others.length
      ? t("tables.rows.all")
      : found.length
        ? count > 0
          ? t("ask.papers.type", { count })
          : ""
        : t("ask.papers.none");
    showCount();
  };
  const showCount = () => {
    add.textContent = t("tables.rows.add.count", { count: chosen.size });
    add.disabled = !chosen.size;
  };
  /** @param {{id: string, name: string}} paper */
  const renderPaper = ({ id, name }) => {
    const box = el("input", { type: "checkbox", checked: chosen.has(id), autocomplete: "off" });
    box.onchange = () => {
      if (box.checked) chosen.add(id);
      else chosen.delete(id);
      showCount();
    };
    return el("li", {}, el("label", { class: "check" }, box, isolate(shorten(joinLines(name)))));
  };
  const close = (/** @type {boolean} */ isWanted) => {
    isDone = isWanted;
    dialog.close();
  };
  const query = el("input", {
    type: "search",
    placeholder: t("ask.papers.find"),
    "aria-label": t("ask.papers.find"),
    autocomplete: "off",
    oninput: show,
  });
  const dialog = el("dialog", { class: "edit", "aria-labelledby": "tables-papers-title" });
  const row = el(
    "div",
    { class: "row" },
    makeButton("button", () => close(false), t("cancel")),
    add,
  );
  dialog.append(
    el("h2", { id: "tables-papers-title" }, t("tables.rows.add")),
    query,
    list,
    more,
    el("div", { class: "edit-form" }, row),
  );
  show();
  const closed = openDialog(root, dialog);
  query.focus();
  await closed;
  return isDone ? [...chosen] : [];
}
