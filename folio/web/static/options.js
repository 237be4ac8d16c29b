// How a question is asked: of which papers, from how many passages, in which style, by which model.

import { button, byId, count, el, icon, unseen, words } from "./dom.js";
import { changed, nameOf, onChange, options, shared } from "./shared.js";

const MOST = 100; // papers listed at once; the filter finds the others

const filter = el("input", {
  type: "search",
  id: "paper-filter",
  placeholder: "Find a paper",
  autocomplete: "off",
  "aria-label": "Find a paper",
});
const list = el("ul", { class: "choices", tabindex: "-1" });

const set = (change) => {
  change();
  changed("options");
};

const field = (label, control) => el("div", { class: "field" }, el("label", { for: control.id }, label), control);

function select(id, choices, chosen) {
  const node = el("select", { id, onchange: () => set(() => chosen(node.value || null)) }, choices.map(choice));
  return node;
}

const choice = ([value, name]) => el("option", { value }, name);

function panel() {
  const styles = [["plain", "Sentences"], ["report", "Report with headings"]];
  const style = select("style", styles, (value) => (options.style = value));
  const model = select("model", [["", "As set up"]], (value) => (options.model = value));
  const topK = el("input", {
    type: "number",
    id: "top-k",
    min: "1",
    max: "50",
    placeholder: "as set",
    oninput: () => set(() => (options.topK = topK.value && topK.checkValidity() ? Number(topK.value) : null)),
  });
  const reranker = el("input", {
    type: "checkbox",
    id: "reranker",
    checked: true,
    onchange: () => set(() => (options.reranker = reranker.checked)),
  });
  return [
    el("fieldset", { class: "paper-choice" }, el("legend", {}, "Ask only these papers"), filter, list),
    el(
      "div",
      { class: "fields" },
      field("Answer as", style),
      field("Answered by", model),
      field("Passages to read", topK),
      el("label", { class: "check" }, reranker, "Rerank the passages"),
    ),
  ];
}

function drawChoices() {
  const wanted = filter.value.trim().toLowerCase();
  const fits = (paper) => [paper.title, paper.file, ...paper.authors].join(" ").toLowerCase().includes(wanted);
  const papers = [...shared.papers.values()].filter(fits).sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
  papers.sort((a, b) => options.papers.has(b.id) - options.papers.has(a.id));
  list.replaceChildren(
    ...papers.slice(0, MOST).map((paper) => {
      const choose = () => set(() => options.papers[box.checked ? "add" : "delete"](paper.id));
      const box = el("input", { type: "checkbox", "data-paper": paper.id, onchange: choose });
      box.checked = options.papers.has(paper.id);
      return el("li", {}, el("label", {}, box, words(nameOf(paper)), el("span", { class: "about" }, paper.year)));
    }),
  );
  const more = papers.length - MOST;
  if (more > 0) list.append(el("li", { class: "none" }, `${count(more, "more paper")}: type to find them`));
  const none = shared.papers.size ? "No paper has these words." : "There is no paper yet.";
  if (!papers.length) list.append(el("li", { class: "none" }, none));
}

/** What differs from the usual, each with a button that sets it back. */
function drawChosen() {
  const papers = [...options.papers].map((id) => shared.papers.get(id)).filter(Boolean);
  const chosen = papers.map((paper) => [nameOf(paper), () => options.papers.delete(paper.id)]);
  const others = [];
  if (options.style === "report") others.push(["report", () => (options.style = "plain")]);
  if (options.topK) others.push([count(options.topK, "passage"), () => (options.topK = null)]);
  const plain = options.reranker ? [] : [["not reranked", () => (options.reranker = true)]];
  if (options.model) others.push([options.model, () => (options.model = null)]);
  fill(byId("chosen"), [...chosen, ...others, ...plain]);
  fill(byId("search-chosen"), [...chosen, ...plain]);
  byId("style").value = options.style;
  byId("model").value = options.model ?? "";
  byId("reranker").checked = options.reranker;
  if (!options.topK && byId("top-k").checkValidity()) byId("top-k").value = "";
  for (const box of list.querySelectorAll("input")) box.checked = options.papers.has(box.dataset.paper);
}

function fill(box, chosen) {
  box.hidden = !chosen.length;
  box.replaceChildren(
    ...chosen.map(([name, undo]) => {
      const off = () => {
        set(undo);
        (box.querySelector("button") ?? byId("question")).focus();
      };
      const undone = button("button bare", off, icon("close"), unseen(`Without: ${name}`));
      return el("span", { class: "tag" }, words(name, { class: "tag-name" }), undone);
    }),
  );
}

function drawModels() {
  const names = shared.health.chat_models;
  const choices = [["", "As set up"], ["builtin", "Quotes from the papers (built in)"]];
  byId("model").replaceChildren(...choices.map(choice), ...names.map((name) => choice([name, name])));
  if (options.model && options.model !== "builtin" && !names.includes(options.model)) options.model = null;
  drawChosen();
}

/** Only this paper is asked from now on. */
export function askOnly(id) {
  options.papers.clear();
  options.papers.add(id);
  changed("options");
}

export function setUpOptions() {
  const box = byId("options-panel");
  const button = byId("options-button");
  box.append(...panel());
  const show = (open) => {
    box.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (open) drawChoices();
  };
  button.onclick = () => show(box.hidden);
  byId("composer").addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || box.hidden) return;
    event.stopPropagation(); // the page beside the answer stays open
    if (box.contains(document.activeElement)) button.focus();
    show(false);
  });
  onChange("asked", () => show(false));
  filter.addEventListener("input", drawChoices);
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // it would send the question
  });
  onChange("papers", drawChoices);
  onChange("options", drawChosen);
  onChange("health", drawModels);
}
