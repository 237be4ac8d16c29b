// The papers: listed, added, removed.

import * as api from "./api.js";
import { button, byId, confirmed, count, el, icon, problem, toast, unseen, words } from "./dom.js";
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
  const told = (paper) => [paper.title, paper.file, paper.year ?? "", paper.arxiv, ...paper.authors].join(" ");
  const fits = (paper) => told(paper).toLowerCase().includes(wanted);
  const papers = [...shared.papers.values()].filter(fits).sort(ORDERS[byId("sort").value]);
  const all = shared.papers.size;
  byId("library-tools").hidden = !all;
  let said = papers.length === all ? count(all, "paper") : `${papers.length} of ${count(all, "paper")}`;
  if (!all) said = "No paper yet. What you add is read on this computer and stays on it.";
  byId("library-count").textContent = said;
  byId("papers").replaceChildren(...papers.map(entry));
  byId("failures").replaceChildren(...failed());
}

function entry(paper) {
  const { id, title, file, authors, problems } = paper;
  const open = (event) => openPage({ paper: id, page: 1, title, file, quotes: [], from: event.currentTarget });
  const facts = [paper.year, count(paper.pages, "page"), paper.arxiv ? `arXiv:${paper.arxiv}` : null];
  const which = () => unseen(`: ${nameOf(paper)}`);
  return el(
    "li",
    {},
    el("h2", {}, button("source", open, words(nameOf(paper)))),
    authors.length ? el("p", { class: "authors" }, words(authors.join(", "))) : null,
    el(
      "div",
      { class: "facts" },
      el("p", { class: "about" }, facts.filter(Boolean).join(" · "), ...(title ? [" · ", words(file)] : [])),
      button("button quiet", () => askOnly(id), "Ask only this", which()),
      button("button quiet", () => remove(paper), "Remove", which()),
    ),
    el("ul", { class: "odd" }, problems.map((said) => el("li", {}, icon("warning"), words(said)))),
  );
}

function failed() {
  if (!shared.failures.length) return [];
  const items = shared.failures.map(({ file, error, remedy }) =>
    el("li", {}, el("p", { class: "file" }, words(file)), el("p", {}, words(error)), el("p", {}, words(remedy))),
  );
  return [el("h2", {}, "Files that gave no text"), el("ul", { class: "failed" }, items)];
}

async function remove(paper) {
  const text = el(
    "span",
    {},
    "“",
    words(nameOf(paper)),
    "” leaves the index. A file in your papers folder is moved to ",
    el("code", {}, "papers/.removed"),
    "; a file anywhere else stays where it is.",
  );
  if (!(await confirmed("Remove this paper?", text, "Remove"))) return;
  try {
    const { kept_at: kept } = await api.deletePaper(paper.id);
    toast(kept ? `Removed. Its file is kept in your papers folder: ${kept}` : "Removed. Its file stays where it is.");
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
    const name = el("p", { class: "file" }, words(file.name));
    const line = el("li", { class: "upload" }, name, el("p", { class: "stage" }, "Waiting"));
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
    const dismiss = button("button bare", () => line.remove(), icon("close"), unseen(`Dismiss ${file.name}`));
    line.replaceChildren(line.firstChild, ...nodes, dismiss);
  };
  line.replaceChildren(line.firstChild, stage, bar);
  try {
    const most = shared.health?.max_file_mb;
    if (most && file.size > most * 1e6) {
      throw new api.ApiError(`The file is larger than ${most} MB.`, "Raise MAX_FILE_MB if it shall be read.", 413);
    }
    for await (const { event, data } of api.addPaper(file)) {
      if (event === "saved") stage.textContent = "Waiting for its turn";
      else if (event === "progress") {
        const embedded = `Embedding ${data.done} of ${count(data.of, "passage")}`;
        stage.textContent = data.stage === "reading" ? "Reading" : embedded;
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
    duplicate: ["Already here as ", name, "."],
    unchanged: ["Already here, unchanged: ", name, "."],
  }[status] ?? ["Added: ", name, `, ${count(paper.pages, "page")}.`];
  const ask = button("button quiet", () => askOnly(paper.id), "Ask only this paper");
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
