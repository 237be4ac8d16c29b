// The parts of the settings: a heading, what belongs to it, and the place where its problems are shown.

import { toApiError } from "../base/api.js";
import { el, renderProblem } from "../base/dom.js";
import { t } from "../base/strings.js";
import { isGiven, settings } from "./state.js";

/** @typedef {import("../base/strings.js").Key} Key */

/** @param {string} name @param {Key} title @param {...(Node | string | null)} children */
export function makePart(name, title, ...children) {
  const heading = el("h2", { id: `settings-${name}`, tabindex: "-1" }, t(title));
  const problem = el("div", { class: "part-problem" });
  const node = el("section", { class: "part", "aria-labelledby": heading.id, "data-part": name }, heading, ...children);
  node.append(problem);
  return { node, run: makeRun(problem) };
}

/** A function that does something, and shows why it fails. @param {HTMLElement} problem where */
export function makeRun(problem) {
  /** @param {() => Promise<unknown>} act */
  return async (act) => {
    problem.replaceChildren();
    try {
      await act();
    } catch (thrown) {
      problem.replaceChildren(renderProblem(toApiError(thrown)));
    }
  };
}

/**
 * A choice for one or several settings. list: the values with their texts, anew for each change. Where the environment
 * has a setting, it cannot be chosen.
 * @param {object} given
 * @param {string} given.id
 * @param {Key} given.label
 * @param {string[]} given.names of the settings
 * @param {() => [string, string][]} given.list
 * @param {() => string} given.read
 * @param {(value: string) => void} given.choose
 */
export function makeChoice({ id, label, names, list, read, choose }) {
  const select = el("select", { id, onchange: () => choose(select.value) });
  const note = el("p", { class: "about", id: `${id}-note` }, t("settings.given", { names: names.join(", ") }));
  const render = () => {
    select.replaceChildren(...list().map(([value, text]) => el("option", { value }, text)));
    select.value = read();
    const given = isGiven(...names);
    select.disabled = given;
    note.hidden = !given;
    if (given) select.setAttribute("aria-describedby", note.id);
    else select.removeAttribute("aria-describedby");
  };
  settings.watch(render);
  return { node: el("div", { class: "field" }, el("label", { for: id }, t(label)), select, note), render };
}
