// The options of a question: papers, number of passages, style, model.

import {
  byId,
  el,
  formatCount,
  hideVisually,
  isolate,
  makeButton,
  makeIcon,
  recall,
  remember,
  showToast,
} from "../base/dom.js";
import { getTitle, health, library, options, setOptions } from "../base/state.js";

const MAX_LISTED = 100; // papers; the filter finds the others

const filter = el("input", {
  type: "search",
  id: "paper-filter",
  placeholder: "Find a paper",
  autocomplete: "off",
  "aria-label": "Find a paper",
});
const list = el("ul", { class: "choices", tabindex: "-1" });

// What is searched: the name of the field, its label and an example
const FILTERS = [
  ["year", "Years", "2014 or 2020-"],
  ["author", "Author", "Ongaro"],
  ["venue", "Venue", "USENIX"],
  ["section", "Section", "methods"],
  ["collection", "Collection", "Consensus"],
  ["tag", "Tag", "to read"],
  ["cited_by", "Cited by", "RAG survey"],
];
const GROUPS = ["collection", "tag"]; // shown where papers have any
const SECTIONS = [
  "abstract",
  "introduction",
  "methods",
  "results",
  "discussion",
  "conclusion",
  "limitations",
  "appendix",
  "caption",
  "footnote",
  "references",
  "acknowledgements",
  "boilerplate",
];
const MAX_TYPED = 500; // characters, as the server has it

const applied = {}; // the filters that the fields were last filled with

const renderField = (label, control) => el("div", { class: "field" }, el("label", { for: control.id }, label), control);

function renderSelect(id, choices, chosen) {
  const onchange = () => chosen(node.value || null);
  const node = el("select", { id, onchange }, choices.map(renderOption));
  return node;
}

const renderOption = ([value, name]) => el("option", { value }, name);

function renderPanel() {
  const styles = [
    ["plain", "Plain answer"],
    ["report", "Report with headings"],
  ];
  const style = renderSelect("style", styles, (value) => setOptions({ style: value ?? "plain" }));
  const model = renderSelect("model", [["", "Default model"]], (value) => setOptions({ model: value }));
  const topK = el("input", {
    type: "number",
    id: "top-k",
    min: "1",
    max: "50",
    placeholder: "default",
    oninput: () => setOptions({ topK: topK.value && topK.checkValidity() ? Number(topK.value) : null }),
  });
  const reranker = el("input", {
    type: "checkbox",
    id: "reranker",
    checked: true,
    onchange: () => setOptions({ reranker: reranker.checked }),
  });
  return [
    el(
      "div",
      {},
      el("fieldset", { class: "paper-choice" }, el("legend", {}, "Ask only these papers"), filter, list),
      el(
        "div",
        { class: "fields filters" },
        ...FILTERS.map(([name, label, example]) => renderField(label, renderFilter(name, example))),
        el(
          "datalist",
          { id: "known-section" },
          SECTIONS.map((kind) => el("option", { value: kind })),
        ),
        ...GROUPS.map((name) => el("datalist", { id: `known-${name}` })),
      ),
    ),
    el(
      "div",
      { class: "fields" },
      renderField("Style", style),
      renderField("Model", model),
      renderField("Passages to use", topK),
      el("label", { class: "check" }, reranker, "Rerank passages"),
    ),
  ];
}

function renderFilter(name, example) {
  // Only once: what is set anew while a button is pressed takes the button away.
  const apply = () => {
    if (node.value.trim() !== (options.get().filters[name] ?? "")) setFilter(name, node.value);
  };
  const node = el("input", {
    type: "text",
    id: `filter-${name}`,
    placeholder: example,
    maxlength: MAX_TYPED,
    autocomplete: "off",
    list: name === "section" || GROUPS.includes(name) ? `known-${name}` : null,
    onchange: apply,
    onkeydown: (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // otherwise it would send the question
      apply();
    },
  });
  return node;
}

function setFilter(name, typed) {
  const { [name]: _, ...others } = options.get().filters;
  setOptions({ filters: typed.trim() ? { ...others, [name]: typed.trim() } : others });
}

function renderPaperChoices() {
  const wanted = filter.value.trim().toLowerCase();
  const fits = (paper) => [paper.title, paper.file, ...paper.authors].join(" ").toLowerCase().includes(wanted);
  const papers = [...library.get().papers.values()].filter(fits).sort((a, b) => getTitle(a).localeCompare(getTitle(b)));
  const chosen = new Set(options.get().papers);
  papers.sort((a, b) => Number(chosen.has(b.id)) - Number(chosen.has(a.id)));
  list.replaceChildren(
    ...papers.slice(0, MAX_LISTED).map((paper) => {
      const choose = () => choosePaper(paper.id, box.checked);
      const box = el("input", { type: "checkbox", "data-paper": paper.id, onchange: choose });
      box.checked = chosen.has(paper.id);
      return el("li", {}, el("label", {}, box, isolate(getTitle(paper)), el("span", { class: "about" }, paper.year)));
    }),
  );
  const more = papers.length - MAX_LISTED;
  if (more > 0) list.append(el("li", { class: "none" }, `${formatCount(more, "more paper")}. Type to find them.`));
  const none = library.get().papers.size ? "No paper matches." : "No papers yet.";
  if (!papers.length) list.append(el("li", { class: "none" }, none));
}

/** Offers the collections and the tags that papers have. */
function renderGroups() {
  for (const name of GROUPS) {
    byId(`known-${name}`).replaceChildren(...[...library.get()[`${name}s`]].map((value) => el("option", { value })));
    byId(`filter-${name}`).parentElement.hidden = !library.get()[`${name}s`].size && !options.get().filters[name];
  }
}

/** Tags for the options that are not the default, each with a button that resets it. */
function renderTags() {
  const now = options.get();
  const papers = now.papers.map((id) => library.get().papers.get(id)).filter(Boolean);
  const chosen = papers.map((paper) => [getTitle(paper), () => choosePaper(paper.id, false)]);
  for (const [name, label] of FILTERS) {
    const typed = now.filters[name];
    if (typed !== applied[name]) byId(`filter-${name}`).value = typed ?? ""; // else somebody may be typing in it
    applied[name] = typed;
    if (typed) chosen.push([`${label}: ${typed}`, () => setFilter(name, "")]);
  }
  const others = [];
  if (now.style === "report") others.push(["report", () => setOptions({ style: "plain" })]);
  if (now.topK) others.push([formatCount(now.topK, "passage"), () => setOptions({ topK: null })]);
  const plain = now.reranker ? [] : [["not reranked", () => setOptions({ reranker: true })]];
  if (now.model) others.push([now.model, () => setOptions({ model: null })]);
  fillTags(byId("chosen"), [...chosen, ...others, ...plain]);
  fillTags(byId("search-chosen"), [...chosen, ...plain]);
  byId("style").value = now.style;
  byId("model").value = now.model ?? "";
  byId("reranker").checked = now.reranker;
  if (!now.topK && byId("top-k").checkValidity()) byId("top-k").value = "";
  for (const box of list.querySelectorAll("input")) box.checked = now.papers.includes(box.dataset.paper);
}

function fillTags(box, chosen) {
  box.hidden = !chosen.length;
  box.replaceChildren(
    ...chosen.map(([name, undo]) => {
      const reset = () => {
        undo();
        (box.querySelector("button") ?? byId("question")).focus();
      };
      const remove = makeButton("button bare", reset, makeIcon("close"), hideVisually(`Remove: ${name}`));
      return el("span", { class: "tag" }, isolate(name, { class: "tag-name" }), remove);
    }),
  );
}

function renderModelChoices() {
  const names = health.get()?.chat_models ?? [];
  const choices = [
    ["", "Default model"],
    ["builtin", "Quotes from the papers (built in)"],
  ];
  byId("model").replaceChildren(...choices.map(renderOption), ...names.map((name) => renderOption([name, name])));
  const { model } = options.get();
  if (model && model !== "builtin" && !names.includes(model)) setOptions({ model: null });
  renderTags();
}

function choosePaper(id, isChosen) {
  const others = options.get().papers.filter((other) => other !== id);
  setOptions({ papers: isChosen ? [...others, id] : others });
}

/** Papers that were removed are not asked any more. */
function forgetRemoved({ papers }) {
  const chosen = options.get().papers;
  const left = chosen.filter((id) => papers.has(id));
  if (left.length === chosen.length) return;
  setOptions({ papers: left });
  if (!left.length) showToast("The paper you were asking about was removed. Questions now go to all papers.");
}

/** Hides the options, as when a question is sent. */
export let closeOptions = () => {};

/** Restricts questions to this paper. */
export function askOnly(id) {
  setOptions({ papers: [id] });
}

/** The switch of the deep search. What it does is shown while it is on, and where the pointer rests on it. */
function setUpDeep() {
  const box = byId("deep");
  const note = byId("deep-note");
  const show = () => {
    note.hidden = !box.checked;
    setOptions({ deep: box.checked });
  };
  box.checked = recall("deep") === "on";
  box.parentElement.title = note.textContent;
  box.onchange = () => {
    remember("deep", box.checked ? "on" : "off");
    show();
  };
  show();
}

export function setUpOptions() {
  setUpDeep();
  const box = byId("options-panel");
  const button = byId("options-button");
  box.append(...renderPanel());
  const toggle = (open) => {
    box.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (open) renderPaperChoices();
  };
  button.onclick = () => toggle(box.hidden);
  byId("composer").addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || box.hidden) return;
    event.stopPropagation(); // so that the open page of a paper stays open
    if (box.contains(document.activeElement)) button.focus();
    toggle(false);
  });
  closeOptions = () => toggle(false);
  filter.addEventListener("input", renderPaperChoices);
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // otherwise it would send the question
  });
  library.onChange(renderPaperChoices);
  library.onChange(renderGroups);
  library.onChange(forgetRemoved);
  renderGroups();
  options.onChange(renderTags);
  health.onChange(renderModelChoices);
}
