// The keys of the page: one table, from which they work and are listed.

import { el, makeIconButton } from "../base/dom.js";
import { enterPanel, leavePanel } from "../base/panels.js";
import { t } from "../base/strings.js";
import { matchesKeys, nameKeys } from "./match_keys.js";

/** @typedef {import("../base/strings.js").Key} Key */

/**
 * @typedef {object} Binding
 * @property {string} keys as in match_keys.js; several are separated by spaces
 * @property {Key} text what they do
 * @property {Record<string, string>} [values] of that text
 * @property {Key} [group] where they work; without one, everywhere
 * @property {() => unknown} [run] returns false if there is nothing to do; without it, a module handles the keys itself
 */

/** @type {Binding[]} */
const bindings = [];
const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Adds keys to the table. @param {Binding[]} more */
export const bindKeys = (more) => void bindings.push(...more);

/** Whether a person is typing into a field. @param {EventTarget | null} target */
const isTyping = (target) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.closest("input:not([type=checkbox], [type=radio]), textarea, select") !== null);

/** @param {KeyboardEvent} event */
function handleKey(event) {
  if (event.defaultPrevented || document.querySelector("dialog:modal")) return;
  const isSingle = !(event.ctrlKey || event.metaKey || event.altKey);
  if (isSingle && event.key.length === 1 && isTyping(event.target)) return;
  const binding = bindings.find(({ keys, run }) => run && keys.split(" ").some((each) => matchesKeys(event, each)));
  if (binding?.run && binding.run() !== false) event.preventDefault();
}

/** The keys of a binding, as keys. @param {string} keys */
export const renderKeys = (keys) =>
  keys
    .split(" ")
    .flatMap((each, at) => [
      at ? ` ${t("keys.or")} ` : "",
      ...nameKeys(each, isMac).flatMap((name, place) => [place ? "+" : "", el("kbd", {}, name)]),
    ])
    .filter((part) => part !== "");

const columns = el("div", { class: "keys-columns" });
const list = el("div", { class: "keys-list", tabindex: "0", role: "region", "aria-label": t("keys.title") }, columns);
const dialog = buildDialog();

function buildDialog() {
  const close = makeIconButton("close", t("close"), () => dialog.close(), "Escape");
  const title = el("h2", { id: "keys-title" }, t("keys.title"));
  const node = el("dialog", { class: "keys-dialog", "aria-labelledby": "keys-title" });
  node.append(el("div", { class: "keys-head" }, title, close), list);
  node.onclose = () => leavePanel(node);
  return node;
}

/** @param {Key | undefined} group @param {Binding[]} all */
function renderGroup(group, all) {
  const rows = all.flatMap(({ keys, text, values }) => [el("dt", {}, renderKeys(keys)), el("dd", {}, t(text, values))]);
  return el("section", {}, el("h3", {}, t(group ?? "keys.everywhere")), el("dl", {}, rows));
}

/** Lists all keys. */
export function showKeys() {
  const groups = [...new Set(bindings.map(({ group }) => group))];
  columns.replaceChildren(
    ...groups.map((name) =>
      renderGroup(
        name,
        bindings.filter(({ group }) => group === name),
      ),
    ),
  );
  dialog.showModal();
  enterPanel(dialog, () => dialog.close());
}

// The keys of an input method, as for Japanese, are for it alone: Enter confirms a word and sends nothing. In Safari
// that Enter comes after the composition has ended, and only its code tells.
const INPUT_METHOD = 229;

/** @param {KeyboardEvent} event */
function leaveToInputMethod(event) {
  if (event.isComposing || event.keyCode === INPUT_METHOD) event.stopImmediatePropagation();
}

export function setUpKeys() {
  addEventListener("keydown", leaveToInputMethod, { capture: true });
  document.body.append(dialog);
  document.addEventListener("keydown", handleKey);
}
