// The options of a question: papers, number of passages, style, model.

import { byId, el, formatCount, hideVisually, isolate, makeButton, makeIcon, recall, remember } from "./dom.js";
import { getTitle, notify, onChange, options, shared } from "./shared.js";

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
  "abstract", "introduction", "methods", "results", "discussion", "conclusion", "limitations", "appendix",
  "caption", "footnote", "references", "acknowledgements", "boilerplate",
];
const MAX_TYPED = 500; // characters, as the server has it

const applied = {}; // the filters that the fields were last filled with

const update = (change) => {
  change();
  notify("options");
};

const renderField = (label, control) =>
  el("div", { class: "field" }, el("label", { for: control.id }, label), control);

function renderSelect(id, choices, chosen) {
  const onchange = () => update(() => chosen(node.value || null));
  const node = el("select", { id, onchange }, choices.map(renderOption));
  return node;
}

const renderOption = ([value, name]) => el("option", { value }, name);

function renderPanel() {
  const styles = [["plain", "Plain answer"], ["report", "Report with headings"]];
  const style = renderSelect("style", styles, (value) => (options.style = value));
  const model = renderSelect("model", [["", "Default model"]], (value) => (options.model = value));
  const topK = el("input", {
    type: "number",
    id: "top-k",
    min: "1",
    max: "50",
    placeholder: "default",
    oninput: () => update(() => (options.topK = topK.value && topK.checkValidity() ? Number(topK.value) : null)),
  });
  const reranker = el("input", {
    type: "checkbox",
    id: "reranker",
    checked: true,
    onchange: () => update(() => (options.reranker = reranker.checked)),
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
        el("datalist", { id: "known-section" }, SECTIONS.map((kind) => el("option", { value: kind }))),
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
    if (node.value.trim() !== (options.filters[name] ?? "")) update(() => setFilter(name, node.value));
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
  if (typed.trim()) options.filters[name] = typed.trim();
  else delete options.filters[name];
}

function renderPaperChoices() {
  const wanted = filter.value.trim().toLowerCase();
  const fits = (paper) => [paper.title, paper.file, ...paper.authors].join(" ").toLowerCase().includes(wanted);
  const papers = [...shared.papers.values()].filter(fits).sort((a, b) => getTitle(a).localeCompare(getTitle(b)));
  papers.sort((a, b) => options.papers.has(b.id) - options.papers.has(a.id));
  list.replaceChildren(
    ...papers.slice(0, MAX_LISTED).map((paper) => {
      const choose = () => update(() => options.papers[box.checked ? "add" : "delete"](paper.id));
      const box = el("input", { type: "checkbox", "data-paper": paper.id, onchange: choose });
      box.checked = options.papers.has(paper.id);
      return el("li", {}, el("label", {}, box, isolate(getTitle(paper)), el("span", { class: "about" }, paper.year)));
    }),
  );
  const more = papers.length - MAX_LISTED;
  if (more > 0) list.append(el("li", { class: "none" }, `${formatCount(more, "more paper")}. Type to find them.`));
  const none = shared.papers.size ? "No paper matches." : "No papers yet.";
  if (!papers.length) list.append(el("li", { class: "none" }, none));
}

/** Offers the collections and the tags that papers have. */
function renderGroups() {
  for (const name of GROUPS) {
    byId(`known-${name}`).replaceChildren(...[...shared[name]].map((value) => el("option", { value })));
    byId(`filter-${name}`).parentElement.hidden = !shared[name].size && !options.filters[name];
  }
}

/** Tags for the options that are not the default, each with a button that resets it. */
function renderTags() {
  const papers = [...options.papers].map((id) => shared.papers.get(id)).filter(Boolean);
  const chosen = papers.map((paper) => [getTitle(paper), () => options.papers.delete(paper.id)]);
  for (const [name, label] of FILTERS) {
    const typed = options.filters[name];
    if (typed !== applied[name]) byId(`filter-${name}`).value = typed ?? ""; // else somebody may be typing in it
    applied[name] = typed;
    if (typed) chosen.push([`${label}: ${typed}`, () => setFilter(name, "")]);
  }
  const others = [];
  if (options.style === "report") others.push(["report", () => (options.style = "plain")]);
  if (options.topK) others.push([formatCount(options.topK, "passage"), () => (options.topK = null)]);
  const plain = options.reranker ? [] : [["not reranked", () => (options.reranker = true)]];
  if (options.model) others.push([options.model, () => (options.model = null)]);
  fillTags(byId("chosen"), [...chosen, ...others, ...plain]);
  fillTags(byId("search-chosen"), [...chosen, ...plain]);
  byId("style").value = options.style;
  byId("model").value = options.model ?? "";
  byId("reranker").checked = options.reranker;
  if (!options.topK && byId("top-k").checkValidity()) byId("top-k").value = "";
  for (const box of list.querySelectorAll("input")) box.checked = options.papers.has(box.dataset.paper);
}

function fillTags(box, chosen) {
  box.hidden = !chosen.length;
  box.replaceChildren(
    ...chosen.map(([name, undo]) => {
      const reset = () => {
        update(undo);
        (box.querySelector("button") ?? byId("question")).focus();
      };
      const remove = makeButton("button bare", reset, makeIcon("close"), hideVisually(`Remove: ${name}`));
      return el("span", { class: "tag" }, isolate(name, { class: "tag-name" }), remove);
    }),
  );
}

function renderModelChoices() {
  const names = shared.health.chat_models;
  const choices = [["", "Default model"], ["builtin", "Quotes from the papers (built in)"]];
  byId("model").replaceChildren(...choices.map(renderOption), ...names.map((name) => renderOption([name, name])));
  if (options.model && options.model !== "builtin" && !names.includes(options.model)) options.model = null;
  renderTags();
}

/** Restricts questions to this paper. */
export function askOnly(id) {
  options.papers.clear();
  options.papers.add(id);
  notify("options");
}

/** The switch of the deep search. What it does is shown while it is on, and where the pointer rests on it. */
function setUpDeep() {
  const box = byId("deep");
  const note = byId("deep-note");
  const show = () => {
    note.hidden = !box.checked;
    options.deep = box.checked;
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
  onChange("asked", () => toggle(false));
  filter.addEventListener("input", renderPaperChoices);
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // otherwise it would send the question
  });
  onChange("papers", renderPaperChoices);
  onChange("papers", renderGroups);
  renderGroups();
  onChange("options", renderTags);
  onChange("health", renderModelChoices);
}
