// The library: lists and removes papers.

import * as api from "../base/api.js";
import { showCitations } from "./citations.js";
import { byId, confirmAction, el, formatCount, formatPages, hideVisually } from "../base/dom.js";
import { isolate, makeButton, makeIcon, renderMessage, renderProblem, showToast } from "../base/dom.js";
import { editPaper, setUpEdit } from "./edit.js";
import { getTitle, isIn, library, loadHealth, loadPapers } from "../base/state.js";
import { renderNotice } from "../ask/statement.js";
import { openPage } from "../reader/viewer.js";

let askOnly = () => {};
let related = []; // papers found by what is typed, best first
let finding = null; // aborts the search for them
const TYPING_MS = 250; // a search starts when nothing was typed for so long
const MAX_QUERY = 500; // characters, as the server has it

/** Loads the papers and renders them, with ifChanged only if they are others. Returns whether; never throws. */
export async function refreshLibrary({ ifChanged = false } = {}) {
  const box = byId("library-problem");
  try {
    const isLoaded = await loadPapers();
    if (isLoaded) box.replaceChildren();
    return isLoaded;
  } catch (thrown) {
    if (ifChanged) return false; // what is shown stays
    byId("library-count").textContent = "";
    box.replaceChildren(renderProblem(api.toApiError(thrown), () => refreshLibrary()));
    return false;
  }
}

const ORDERS = {
  title: (a, b) => getTitle(a).localeCompare(getTitle(b)),
  year: (a, b) => (b.year ?? 0) - (a.year ?? 0) || ORDERS.title(a, b),
  added: (a, b) => b.added.localeCompare(a.added) || ORDERS.title(a, b),
};

const EXPORTS = { "export-bibtex": "BibTeX", "export-csl": "CSL-JSON" };
const GROUPS = { collection: "All collections", tag: "All tags" };

/** Offers the collections and tags to choose from, where papers have any. */
function renderGroups() {
  for (const [name, all] of Object.entries(GROUPS)) {
    const node = byId(`choose-${name}`);
    const chosen = node.value;
    node.replaceChildren(
      el("option", { value: "" }, all),
      ...[...library.get()[`${name}s`]].map((value) => el("option", { value }, value)),
    );
    node.value = library.get()[`${name}s`].has(chosen) ? chosen : "";
    node.hidden = !library.get()[`${name}s`].size;
  }
}

function renderPapers() {
  const { value: collection } = byId("choose-collection");
  const { value: tag } = byId("choose-tag");
  const isChosen = (paper) => (!collection || isIn(paper, collection)) && (!tag || paper.tags.includes(tag));
  const wanted = byId("filter").value.trim().toLowerCase();
  const describe = (paper) =>
    [paper.title, paper.file, paper.year ?? "", paper.venue, paper.doi, paper.arxiv, ...paper.authors].join(" ");
  const fits = (paper) => isChosen(paper) && describe(paper).toLowerCase().includes(wanted);
  const papers = [...library.get().papers.values()].filter(fits).sort(ORDERS[byId("sort").value]);
  const all = library.get().papers.size;
  byId("library-tools").hidden = !all;
  let status = papers.length === all ? formatCount(all, "paper") : `${papers.length} of ${formatCount(all, "paper")}`;
  if (!all) status = "No papers yet. Papers that you add never leave this computer.";
  byId("library-count").textContent = status;
  renderExports(papers);
  byId("papers").replaceChildren(...papers.map((paper) => renderPaper(paper)));
  const exact = new Set(papers.map((paper) => paper.id));
  const others = related.filter(({ id }) => library.get().papers.has(id) && !exact.has(id));
  byId("related").hidden = !others.length;
  byId("related-papers").replaceChildren(
    ...others.map(({ id, match }) => renderPaper(library.get().papers.get(id), match)),
  );
  byId("failures").replaceChildren(...renderFailures());
}

/** The exports have the papers that are listed. */
function renderExports(papers) {
  const isWhole = papers.length === library.get().papers.size;
  for (const [id, name] of Object.entries(EXPORTS)) {
    const link = byId(id);
    const which = isWhole ? "" : ` of ${formatCount(papers.length, "paper")}`;
    link.lastChild.textContent = `Export ${name}${which}`;
    link.hidden = !papers.length;
    link.onclick = isWhole ? null : (event) => exportListed(event, papers);
  }
}

async function exportListed(event, papers) {
  event.preventDefault();
  const path = event.currentTarget.getAttribute("href");
  try {
    const href = URL.createObjectURL(
      await api.exportPapers(
        path,
        papers.map(({ id }) => id),
      ),
    );
    el("a", { href, download: path.replace("/papers", "folio").replace(".csl", "") }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  } catch (thrown) {
    const error = api.toApiError(thrown);
    showToast(`${error.error} ${error.remedy}`);
  }
}

/** Papers that contain what is typed are shown at once; those that are about it follow, ranked by the server. */
async function findRelated() {
  finding?.abort();
  finding = new AbortController();
  const { signal } = finding;
  related = [];
  renderPapers();
  const query = byId("filter").value.trim();
  if (!query) return;
  await new Promise((resolve) => setTimeout(resolve, TYPING_MS));
  if (signal.aborted) return;
  try {
    related = (await api.findPapers(query.slice(0, MAX_QUERY), signal)).papers;
  } catch {
    return; // typed on, or no model: the papers that contain the words are there
  }
  renderPapers();
}

/** Why a paper was found, in words. */
function describeMatch({ words, pages, section }) {
  const reasons = words.length ? [`its words: ${words.join(", ")}`] : [];
  if (pages) reasons.push(`in the text: ${[section, formatPages(pages)].filter(Boolean).join(", ")}`);
  return reasons.join(" · ") || "a similar subject";
}

/** match: why it was found; left out for a paper that contains what is typed. */
function renderPaper(paper, match = null) {
  const { id, title, file, authors, venue, problems } = paper;
  const open = (event) => openPage({ paper: id, page: 1, title, file, from: event.currentTarget });
  const facts = [
    paper.year ? [String(paper.year), unsure(paper, "year")] : null,
    venue ? [isolate(venue), unsure(paper, "venue")] : null,
    formatCount(paper.pages, "page"),
    paper.arxiv ? `arXiv:${paper.arxiv}` : null,
    title ? isolate(file) : null,
  ];
  const which = () => hideVisually(`: ${getTitle(paper)}`);
  return el(
    "li",
    {},
    el("h2", {}, makeButton("source", open, isolate(getTitle(paper))), unsure(paper, "title")),
    renderNotice(paper.notice),
    authors.length ? el("p", { class: "authors" }, isolate(authors.join(", ")), unsure(paper, "authors")) : null,
    renderNames("Collections", paper.collections),
    renderNames("Tags", paper.tags),
    el(
      "div",
      { class: "facts" },
      el(
        "p",
        { class: "about" },
        facts.filter(Boolean).flatMap((fact, place) => [place ? " · " : null, fact].flat()),
      ),
      el(
        "div",
        { class: "paper-actions" },
        makeButton("button quiet", () => askOnly(id), "Ask this paper", which()),
        makeButton("button quiet", (event) => showCitations(id, event.currentTarget), "Citations", which()),
        makeEditButton(id, which()),
        makeButton("button quiet", () => removePaper(paper), "Remove", which()),
      ),
    ),
    match ? el("p", { class: "note" }, isolate(describeMatch(match))) : null,
    el(
      "ul",
      { class: "odd" },
      problems.map((text) => el("li", {}, makeIcon("warning"), renderMessage(text))),
    ),
  );
}

const renderNames = (label, names) =>
  names.length ? el("p", { class: "groups" }, `${label}: `, isolate(names.join(" · "))) : null;

/** " (year not sure)" if it is not. */
const unsure = (paper, name) =>
  paper.unsure.includes(name) ? el("span", { class: "unsure" }, ` (${name} not sure)`) : null;

function makeEditButton(id, which) {
  const button = makeButton("button quiet", () => edit(id), "Edit", which);
  button.dataset.edit = id;
  return button;
}

async function edit(id) {
  try {
    await editPaper(id, refreshLibrary);
  } catch (thrown) {
    showPaperProblem(id, api.toApiError(thrown), () => edit(id));
  }
}

/** Shows a problem beneath its paper, where the button is that somebody pressed. */
function showPaperProblem(id, error, retry) {
  const item = document.querySelector(`[data-edit="${id}"]`)?.closest("li");
  item?.querySelector(".problem")?.remove();
  (item ?? byId("library-problem")).append(renderProblem(error, retry));
}

const renderRemedy = (remedy) => el("p", {}, renderMessage(remedy));

function renderFailures() {
  if (!library.get().failures.length) return [];
  const items = library
    .get()
    .failures.map(({ file, error, remedy }) =>
      el("li", {}, el("p", { class: "file" }, isolate(file)), el("p", {}, renderMessage(error)), renderRemedy(remedy)),
    );
  return [el("h2", {}, "Files that could not be read"), el("ul", { class: "failed" }, items)];
}

async function removePaper(paper) {
  const text = el(
    "span",
    {},
    "“",
    isolate(getTitle(paper)),
    "” will be removed from the index. If its file is in your papers folder, it is moved to ",
    el("code", {}, "papers/.removed"),
    "; otherwise it stays where it is.",
  );
  if (!(await confirmAction("Remove this paper?", text, "Remove"))) return;
  try {
    const { kept_at: kept } = await api.deletePaper(paper.id);
    showToast(kept ? `Removed. The file is now ${kept} in your papers folder.` : "Removed. The file was not moved.");
  } catch (thrown) {
    return showPaperProblem(paper.id, api.toApiError(thrown), () => removePaper(paper));
  }
  await refreshLibrary();
  loadHealth().catch(() => {});
}

/** ask: restricts questions to the paper with this id. */
export function setUpLibrary({ ask }) {
  askOnly = ask;
  setUpEdit((id) => (document.querySelector(`[data-edit="${id}"]`) ?? byId("filter")).focus());
  byId("filter").addEventListener("input", findRelated);
  byId("sort").addEventListener("change", renderPapers);
  for (const name of Object.keys(GROUPS)) byId(`choose-${name}`).addEventListener("change", renderPapers);
  library.onChange(renderGroups);
  library.onChange(renderPapers);
}
