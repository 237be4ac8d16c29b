// The line above the question that always says what is asked: "12 papers in Consensus, 2000 to 2015". One click asks
// all papers instead; a list switches to another project.

import * as api from "../base/api.js";
import { el, isolate, makeButton } from "../base/dom.js";
import { buildFilter, EVERYTHING, getScope, isLibraryLoaded, library, options } from "../base/state.js";
import { projects, setOptions } from "../base/state.js";
import { parts, t } from "../base/strings.js";
import { setFilter } from "./options.js";

const PAUSE_MS = 150; // several options change at once

const text = el("span", { class: "scope-text", role: "status" });
const switcher = el("select", {
  id: "scope-project",
  autocomplete: "off",
  "aria-label": t("scope.project"),
  onchange: () => setFilter("project", switcher.value),
});
const all = makeButton("button quiet", () => {}, t("ask.all"));
all.id = "scope-all";

export const scopeLine = el(
  "div",
  { class: "scope-line", id: "scope-line", role: "group", "aria-label": t("scope.label") },
  text,
  all,
  switcher,
);

let asked = 0; // a later request makes an earlier one void
let described = ""; // the scope of the latest one
/** @type {number | undefined} */
let timer;

/** Whether the whole library is asked. @param {import("../base/state.js").Scope} scope */
const isEverything = ({ papers, filters }) => !papers.length && !Object.keys(filters).length;

/** @param {string} line @param {boolean} isWrong */
function show(line, isWrong = false) {
  const shown = isWrong ? [isolate(line)] : parts("scope.line", { papers: isolate(line) });
  const before = text.textContent;
  const next = el("span", {}, ...shown);
  if (next.textContent === before) return; // a screen reader says it once
  text.replaceChildren(...next.childNodes);
  text.classList.toggle("fault", isWrong);
}

/** Says what is asked now. */
async function update() {
  asked += 1;
  const request = asked;
  const scope = getScope();
  described = JSON.stringify(scope);
  all.hidden = isEverything(scope);
  const known = projects.get();
  const project = scope.filters.project ?? "";
  switcher.value = known?.has(project) ? project : "";
  if (known && project && !known.has(project)) return; // it was deleted: what is asked changes at once
  const count = library.get().papers.size;
  scopeLine.hidden = !isLibraryLoaded() || !count;
  if (scopeLine.hidden) return;
  if (isEverything(scope)) return show(lower(t("scope.all", { count })));
  try {
    const { line, papers } = await api.describeScope(buildFilter(scope));
    if (request === asked) show(papers ? lower(line) : line, !papers);
  } catch (thrown) {
    const error = api.toApiError(thrown);
    if (request === asked) show(error.error, true);
  }
}

/** In the middle of a sentence. @param {string} line */
const lower = (line) => line.replace(/^(All|The) /, (word) => word.toLowerCase());

function updateSoon() {
  clearTimeout(timer);
  timer = setTimeout(update, PAUSE_MS);
}

/** The projects and collections that can be chosen. */
function renderSwitcher() {
  const listed = [...(projects.get()?.values() ?? [])];
  /** @param {import("../base/strings.js").Key} name @param {boolean} own */
  const group = (name, own) => {
    const options = listed
      .filter((project) => project.own === own)
      .map((project) => el("option", { value: project.id }, project.name));
    return options.length ? [el("optgroup", { label: t(name) }, options)] : [];
  };
  const none = el("option", { value: "" }, t("scope.none"));
  switcher.replaceChildren(none, ...group("scope.own", true), ...group("scope.collections", false));
  switcher.hidden = !listed.length;
  updateSoon();
}

/** @param {HTMLElement} next gets the focus once all papers are asked */
export function setUpScopeLine(next) {
  all.onclick = () => {
    setOptions(EVERYTHING);
    next.focus();
  };
  options.onChange(() => {
    if (JSON.stringify(getScope()) !== described) updateSoon(); // and not another option
  });
  library.onChange(updateSoon);
  projects.watch(renderSwitcher);
  updateSoon();
}
