// The papers: listed, added, removed.

import * as api from "./api.js";
import { byId, confirmed, count, el, icon, problem, toast, words } from "./dom.js";
import { loadHealth, loadPapers, nameOf, onChange, shared } from "./shared.js";
import { openPage } from "./viewer.js";

let askOnly = () => {};
const waiting = []; // files to be added, one after the other
let adding = false;

/** Asks the server for the papers. Never raises. */
export async function refreshLibrary() {
  const box = byId("library-problem");
  try {
    await loadPapers();
    box.replaceChildren();
  } catch (thrown) {
    byId("library-count").textContent = "";
    box.replaceChildren(problem(api.shown(thrown), refreshLibrary));
  }
}

const ORDERS = {
  title: (a, b) => nameOf(a).localeCompare(nameOf(b)),
  year: (a, b) => (b.year ?? 0) - (a.year ?? 0) || ORDERS.title(a, b),
  added: (a, b) => b.added.localeCompare(a.added) || ORDERS.title(a, b),
};

function draw() {
  const wanted = byId("filter").value.trim().toLowerCase();
  const fits = (paper) => [paper.title, paper.file, paper.year ?? "", paper.arxiv, ...paper.authors].join(" ").toLowerCase().includes(wanted);
  const papers = [...shared.papers.values()].filter(fits).sort(ORDERS[byId("sort").value]);
  const all = shared.papers.size;
  byId("library-tools").hidden = !all;
  const said = papers.length === all ? count(all, "paper") : `${papers.length} of ${count(all, "paper")}`;
  byId("library-count").textContent = all ? said : "No paper yet. What you add is read on this computer and stays on it.";
  byId("papers").replaceChildren(...papers.map(entry));
  byId("failures").replaceChildren(...failed());
}

function entry(paper) {
  const open = (event) => openPage({ paper: paper.id, page: 1, title: paper.title, file: paper.file, quotes: [], from: event.currentTarget });
  const facts = [paper.year, count(paper.pages, "page"), paper.arxiv ? `arXiv:${paper.arxiv}` : null].filter(Boolean).join(" · ");
  return el(
    "li",
    {},
    el("h2", {}, el("button", { type: "button", class: "source", onclick: open }, words(nameOf(paper)))),
    paper.authors.length ? el("p", { class: "authors" }, words(paper.authors.join(", "))) : null,
    el("p", { class: "about" }, facts, paper.title ? [" · ", words(paper.file)] : null),
    paper.problems.length ? el("ul", { class: "odd" }, paper.problems.map((said) => el("li", {}, icon("warning"), words(said)))) : null,
    el(
      "div",
      { class: "row" },
      el("button", { type: "button", class: "button quiet", onclick: () => askOnly(paper.id), "aria-label": `Ask only this paper: ${nameOf(paper)}` }, "Ask only this paper"),
      el("button", { type: "button", class: "button quiet", onclick: () => remove(paper), "aria-label": `Remove ${nameOf(paper)}` }, icon("delete"), "Remove"),
    ),
  );
}

function failed() {
  if (!shared.failures.length) return [];
  const items = shared.failures.map(({ file, error, remedy }) => el("li", {}, el("p", { class: "file" }, words(file)), el("p", {}, words(error)), el("p", {}, words(remedy))));
  return [el("h2", {}, "Files that gave no text"), el("ul", { class: "failed" }, items)];
}

async function remove(paper) {
  const text = el("span", {}, "“", words(nameOf(paper)), "” leaves the index. A file in your papers folder is moved to ", el("code", {}, "papers/.removed"), "; a file anywhere else stays where it is.");
  if (!(await confirmed("Remove this paper?", text, "Remove"))) return;
  try {
    const { kept_at: kept } = await api.deletePaper(paper.id);
    toast(kept ? `Removed. The file is now at ${kept}.` : "Removed. The file stays where it is.");
  } catch (thrown) {
    const error = api.shown(thrown);
    byId("library-problem").replaceChildren(problem(error, () => remove(paper)));
  }
  await refreshLibrary();
  loadHealth().catch(() => {});
}

/** Adds files, one after the other; what becomes of each is told in its own line. */
export function addFiles(files) {
  for (const file of files) {
    const line = el("li", { class: "upload" }, el("p", { class: "file" }, words(file.name)), el("p", { class: "stage" }, "Waiting"));
    byId("uploads").append(line);
    waiting.push({ file, line });
  }
  if (!adding) addAll();
}

async function addAll() {
  adding = true;
  while (waiting.length) await addOne(waiting.shift());
  adding = false;
}

async function addOne({ file, line }) {
  const stage = el("p", { class: "stage" }, "Sending");
  const bar = el("progress", { max: "1", "aria-label": `Progress of ${file.name}` });
  const told = (...nodes) => {
    line.replaceChildren(line.firstChild, ...nodes, el("button", { type: "button", class: "button bare", "aria-label": `Dismiss ${file.name}`, onclick: () => line.remove() }, icon("close")));
  };
  line.replaceChildren(line.firstChild, stage, bar);
  try {
    const most = shared.health?.max_file_mb;
    if (most && file.size > most * 1e6) throw new api.ApiError(`The file is larger than ${most} MB.`, "Raise MAX_FILE_MB if it shall be read.", 413);
    for await (const { event, data } of api.addPaper(file)) {
      if (event === "saved") stage.textContent = "Waiting for its turn";
      else if (event === "progress") {
        stage.textContent = data.stage === "reading" ? "Reading" : `Embedding ${data.done} of ${count(data.of, "passage")}`;
        if (data.of) bar.value = data.done / data.of;
      } else if (event === "done") told(...done(data));
    }
    await refreshLibrary();
    loadHealth().catch(() => {});
  } catch (thrown) {
    told(problem(api.shown(thrown), () => addAgain(file, line)));
  }
}

function addAgain(file, line) {
  line.replaceChildren(line.firstChild, el("p", { class: "stage" }, "Waiting"));
  waiting.push({ file, line });
  if (!adding) addAll();
}

function done({ status, paper, notes }) {
  const name = words(nameOf(paper));
  const said = {
    added: ["Added: ", name, `, ${count(paper.pages, "page")}.`],
    duplicate: ["Already here as ", name, "."],
    unchanged: ["Already here, unchanged: ", name, "."],
  }[status];
  const ask = el("button", { type: "button", class: "button quiet", onclick: () => askOnly(paper.id) }, "Ask only this paper");
  return [el("p", { class: "stage ok" }, said), ...notes.map((note) => el("p", { class: "note" }, words(note))), ask];
}

/** show: brings the library into view. ask: asks only the paper with this id. */
export function setUpLibrary({ show, ask }) {
  askOnly = ask;
  const take = (files) => {
    if (!files.length) return;
    show();
    addFiles([...files]);
  };
  byId("files").addEventListener("change", (event) => {
    take(event.target.files);
    event.target.value = ""; // so that the same file can be chosen again
  });
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
  // A file that is dropped anywhere is added: without this the browser would leave the page for it.
  document.addEventListener("dragover", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    byId("dropping").hidden = false;
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) byId("dropping").hidden = true;
  });
  document.addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    byId("dropping").hidden = true;
    take(event.dataTransfer.files);
  });
  byId("filter").addEventListener("input", draw);
  byId("sort").addEventListener("change", draw);
  onChange("papers", draw);
  onChange("health", () => {
    byId("drop-note").textContent = `Up to ${shared.health.max_file_mb} MB each. They are kept in your papers folder.`;
  });
}
