// The options of a question: papers, filters, number of passages, style.

import { el, hideVisually, isolate, makeButton, makeIcon, showFault, showToast } from "../base/dom.js";
import { isFilter } from "../base/options.js";
import { linkTo } from "../base/router.js";
import { getProjectName, getTitle, library, options, projects, setOptions } from "../base/state.js";
import { t } from "../base/strings.js";

/** @typedef {import("../base/options.js").Options} Options */
/** @typedef {import("../base/strings.js").Key} Key */

const MAX_LISTED = 100; // papers; the filter finds the others
const MAX_TYPED = 500; // characters, as the server has it

// What is searched: the name of the field, its label and an example
/** @type {[string, Key, Key][]} */
const FILTERS = [
  ["year", "ask.year", "ask.year.example"],
  ["author", "ask.author", "ask.author.example"],
  ["venue", "ask.venue", "ask.venue.example"],
  ["section", "ask.section", "ask.section.example"],
  ["collection", "ask.collection", "ask.collection.example"],
  ["tag", "ask.tag", "ask.tag.example"],
  ["category", "ask.category", "ask.category.example"],
  ["cited_by", "ask.cited_by", "ask.cited_by.example"],
];
/** @type {("collection" | "tag" | "category")[]} */
const GROUPS = ["collection", "tag", "category"]; // shown where papers have any
// As the server names them, and as people type them
const SECTIONS =
  "abstract introduction methods results discussion conclusion limitations appendix caption footnote algorithm " +
  "references acknowledgements boilerplate";

const filter = el("input", {
  type: "search",
  id: "paper-filter",
  placeholder: t("ask.papers.find"),
  autocomplete: "off",
  "aria-label": t("ask.papers.find"),
});
const list = el("ul", { class: "choices", tabindex: "-1" });
/** @type {Map<string, HTMLInputElement>} */
const fields = new Map(FILTERS.map(([name, , example]) => [name, renderFilter(name, example)]));
const known = new Map(GROUPS.map((name) => [name, el("datalist", { id: `known-${name}` })]));
/** @type {Map<string, string | undefined>} the filters that the fields were last filled with */
const applied = new Map();

const style = el(
  "select",
  { id: "style", onchange: () => setOptions({ style: style.value === "report" ? "report" : "plain" }) },
  el("option", { value: "plain" }, t("ask.style.plain")),
  el("option", { value: "report" }, t("ask.style.report")),
);
const topK = el("input", {
  type: "number",
  id: "top-k",
  min: "1",
  max: "50",
  placeholder: t("ask.default"),
  oninput: () => setOptions({ topK: topK.value && topK.checkValidity() ? Number(topK.value) : null }),
});
const reranker = el("input", {
  type: "checkbox",
  id: "reranker",
  checked: true,
  onchange: () => setOptions({ reranker: reranker.checked }),
});

/** The panel, below its button in the question form. */
export const panel = el("div", { class: "panel", id: "options-panel", hidden: true }, renderPapers(), renderOthers());

/** @param {string} label @param {HTMLElement} control */
function renderField(label, control) {
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control);
}

function renderPapers() {
  const datalist = el(
    "datalist",
    { id: "known-section" },
    SECTIONS.split(" ").map((kind) => el("option", { value: kind })),
  );
  const filters = FILTERS.map(([name, label]) => renderFieldOf(name, label));
  return el(
    "div",
    {},
    el("fieldset", { class: "paper-choice" }, el("legend", {}, t("ask.papers.only")), filter, list),
    el("div", { class: "fields filters" }, ...filters, datalist, ...known.values()),
  );
}

/** @param {string} name @param {Key} label */
function renderFieldOf(name, label) {
  const control = /** @type {HTMLInputElement} */ (fields.get(name));
  return renderField(t(label), control);
}

function renderOthers() {
  return el(
    "div",
    { class: "fields" },
    renderField(t("ask.style"), style),
    renderField(t("ask.top_k"), topK),
    el("label", { class: "check" }, reranker, t("ask.rerank")),
  );
}

/** @param {string} name @param {Key} example */
function renderFilter(name, example) {
  // Only once: what is set anew while a button is pressed takes the button away.
  const apply = () => {
    const isRight = isFilter(name, node.value);
    showFault(node, isRight ? "" : t("ask.year.wrong"));
    if (isRight && node.value.trim() !== (options.get().filters[name] ?? "")) setFilter(name, node.value);
  };
  const node = el("input", {
    type: "text",
    id: `filter-${name}`,
    placeholder: t(example),
    maxlength: MAX_TYPED,
    autocomplete: "off",
    list: ["section", ...GROUPS].includes(name) ? `known-${name}` : null,
    onchange: apply,
    /** @param {KeyboardEvent} event */
    onkeydown: (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // otherwise it would send the question
      apply();
    },
  });
  return node;
}

/** @param {string} name @param {string} typed */
export function setFilter(name, typed) {
  const { [name]: _, ...others } = options.get().filters;
  setOptions({ filters: typed.trim() ? { ...others, [name]: typed.trim() } : others });
}

function renderPaperChoices() {
  if (panel.hidden) return;
  const wanted = filter.value.trim().toLowerCase();
  /** @param {Api.ListedPaperJson} paper */
  const fits = (paper) => [paper.title, paper.file, ...paper.authors].join(" ").toLowerCase().includes(wanted);
  const chosen = new Set(options.get().papers);
  const papers = [...library.get().papers.values()]
    .filter(fits)
    .map((paper) => ({ paper, title: getTitle(paper), isChosen: chosen.has(paper.id) }))
    .sort((a, b) => Number(b.isChosen) - Number(a.isChosen) || a.title.localeCompare(b.title));
  list.replaceChildren(
    ...papers.slice(0, MAX_LISTED).map(({ paper, title, isChosen }) => {
      const choose = () => choosePaper(paper.id, box.checked);
      const box = el("input", { type: "checkbox", "data-paper": paper.id, onchange: choose, checked: isChosen });
      return el(
        "li",
        {},
        el("label", {}, box, isolate(title), el("span", { class: "about" }, String(paper.year ?? ""))),
      );
    }),
  );
  const more = papers.length - MAX_LISTED;
  if (more > 0) list.append(el("li", { class: "none" }, t("ask.papers.type", { count: more })));
  const none = t(library.get().papers.size ? "ask.papers.none" : "ask.papers.empty");
  if (!papers.length) list.append(el("li", { class: "none" }, none));
}

/** Offers the collections, the tags and the categories that papers have. */
function renderGroups() {
  const { collections, tags, categories } = library.get();
  for (const [name, values] of /** @type {const} */ ([
    ["collection", collections],
    ["tag", tags],
    ["category", categories],
  ])) {
    known.get(name)?.replaceChildren(...[...values].map((value) => el("option", { value })));
    const field = fields.get(name)?.parentElement;
    if (field) field.hidden = !values.size && !options.get().filters[name];
  }
}

/** @typedef {[string, () => void, string?]} Tag what is chosen, what resets it, and where its name leads */

/** withProject: also the project, which the line above the question has. */
/** @param {boolean} withProject @returns {{scope: Tag[], other: Tag[], reranking: Tag[]}} */
function listTags(withProject) {
  const now = options.get();
  /** @type {Tag[]} */
  const scope = now.papers
    .flatMap((id) => library.get().papers.get(id) ?? [])
    .map((paper) => [
      getTitle(paper),
      () => choosePaper(paper.id, false),
      linkTo({ view: "paper", id: paper.id, query: {} }),
    ]);
  for (const [name, label] of FILTERS) {
    const typed = now.filters[name];
    if (typed) scope.push([`${t(label)}: ${typed}`, () => setFilter(name, "")]);
  }
  if (now.filters.project && withProject) {
    const href = linkTo({ view: "projects", query: { project: now.filters.project } });
    scope.push([t("project.is", { name: getProjectName(now.filters.project) }), () => setFilter("project", ""), href]);
  }
  /** @type {Tag[]} */
  const other = [];
  if (now.style === "report") other.push([t("ask.tag.report"), () => setOptions({ style: "plain" })]);
  if (now.topK) other.push([t("ask.passages", { count: now.topK }), () => setOptions({ topK: null })]);
  /** @type {Tag[]} */
  const reranking = now.reranker ? [] : [[t("ask.tag.not_reranked"), () => setOptions({ reranker: true })]];
  return { scope, other, reranking };
}

/** Fills in the fields of the panel. */
function fillFields() {
  const now = options.get();
  for (const [name, field] of fields) {
    const typed = now.filters[name];
    if (typed !== applied.get(name)) {
      field.value = typed ?? ""; // else somebody may be typing in it
      showFault(field, "");
    }
    applied.set(name, typed);
  }
  style.value = now.style;
  reranker.checked = now.reranker;
  if (now.topK ? Number(topK.value) !== now.topK : topK.checkValidity()) topK.value = now.topK ? String(now.topK) : "";
  for (const box of list.querySelectorAll("input")) box.checked = now.papers.includes(box.dataset.paper ?? "");
}

/**
 * Shows tags for the options that are not the default, each with a button that resets it. forSearch: only those that
 * a search without an answer has. next: gets the focus once the last tag is gone.
 * @param {HTMLElement} box @param {HTMLElement} next
 */
export function showTags(box, next, { forSearch = false } = {}) {
  const render = () => {
    const { scope, other, reranking } = listTags(forSearch);
    const chosen = [...scope, ...(forSearch ? [] : other), ...reranking];
    box.hidden = !chosen.length;
    box.replaceChildren(
      ...chosen.map(([name, undo, href]) => {
        const reset = () => {
          undo();
          (box.querySelector("button") ?? next).focus();
        };
        const label = hideVisually(t("ask.tag.remove", { name }));
        const remove = makeButton("button bare", reset, makeIcon("close"), label);
        const shown = isolate(name, { class: "tag-name" });
        return el("span", { class: "tag" }, href ? el("a", { href }, shown) : shown, remove);
      }),
    );
  };
  options.onChange(render);
  library.onChange(render);
  projects.onChange(render);
  render();
}

/** @param {string} id @param {boolean} isChosen */
function choosePaper(id, isChosen) {
  const others = options.get().papers.filter((other) => other !== id);
  setOptions({ papers: isChosen ? [...others, id] : others });
}

/** Papers that were removed are not asked any more. @param {import("../base/state.js").Library} library */
function forgetRemoved({ papers }) {
  const chosen = options.get().papers;
  const left = chosen.filter((id) => papers.has(id));
  if (left.length === chosen.length) return;
  setOptions({ papers: left });
  if (!left.length) showToast(t("ask.papers.removed"));
}

/** A project that was deleted is not asked any more. @param {Map<string, Api.ProjectSummary> | null} known */
function forgetProject(known) {
  const { project } = options.get().filters;
  if (!project || !known || !/^[0-9a-f]{16}$/.test(project) || known.has(project)) return;
  setFilter("project", "");
  showToast(t("project.gone"));
}

/** @param {boolean} open */
export function togglePanel(open) {
  panel.hidden = !open;
  if (open) renderPaperChoices();
}

export function setUpOptions() {
  filter.addEventListener("input", renderPaperChoices);
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // otherwise it would send the question
  });
  library.onChange(renderPaperChoices);
  library.onChange(renderGroups);
  library.onChange(forgetRemoved);
  projects.onChange(forgetProject);
  renderGroups();
  options.watch(fillFields);
}
