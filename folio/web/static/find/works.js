// Works at services on the internet: what is known of one, whether it is in the library, and adding it.

import * as api from "../base/api.js";
import { byId, el, formatCount, hideVisually, isolate, makeButton } from "../base/dom.js";
import { makeIcon, renderMessage, renderProblem } from "../base/dom.js";
import { getTitle, library, loadHealth } from "../base/state.js";
import { openAt } from "../reader/reader.js";

const MAX_AUTHORS = 8; // that are shown
const waiting = []; // works to add, one at a time
let adding = null; // aborts the one that is being added
let askOnly = () => {};
let refresh = () => {};

/**
 * A work as an item of a list. canAdd: whether the server may download it. leave: closes the panel around the list, and
 * returns the element that then has the focus.
 */
export function renderWork(work, { canAdd, leave = () => null }) {
  const { title, authors, venue, year, cited, open, abstract, retracted, link } = work;
  const facts = [
    venue ? isolate(venue) : null,
    year ? String(year) : null,
    cited === null ? null : cited ? `cited ${formatCount(cited, "time")}` : "not cited yet",
    open === null ? null : open ? "free to read" : "not free to read",
    link ? makeLink(link, title) : null,
  ];
  return el(
    "li",
    {},
    el("h2", {}, isolate(title || work.id || "A work without a title")),
    authors.length ? el("p", { class: "authors" }, isolate(shorten(authors))) : null,
    el("p", { class: "about" }, join(facts)),
    retracted ? el("p", { class: "retracted" }, makeIcon("warning"), "Retracted") : null,
    abstract ? renderAbstract(work) : null,
    renderActions({ ...work, leave }, canAdd),
  );
}

const renderAbstract = (work) =>
  el("details", { class: "abstract" }, el("summary", {}, "Abstract", which(work)), isolate(work.abstract));

const which = ({ title, id }) => hideVisually(`: ${title || id}`);
const join = (parts) => parts.filter(Boolean).flatMap((part, place) => [place ? " · " : null, part]);

function shorten(authors) {
  const more = authors.length - MAX_AUTHORS;
  return authors.slice(0, MAX_AUTHORS).join(", ") + (more > 0 ? ` and ${formatCount(more, "other")}` : "");
}

/** A link to the page about a work, which a click opens in a new tab. */
const makeLink = (link, title) =>
  el(
    "a",
    { href: link, target: "_blank", rel: "noopener noreferrer" },
    new URL(link).hostname.replace(/^www\./, ""),
    hideVisually(` (opens the page about ${title} in a new tab)`),
  );

function renderActions(work, canAdd) {
  const box = el("div", { class: "work-actions" });
  if (work.paper) showHere(box, work);
  else if (canAdd && work.id) showAdd(box, work);
  return box;
}

/** Replaces the content of a box, and keeps the focus in it. */
function show(box, ...nodes) {
  const hadFocus = box.contains(document.activeElement);
  box.replaceChildren(...nodes);
  if (hadFocus) box.querySelector("button")?.focus();
}

function showHere(box, work) {
  const { title, file } = library.get().papers.get(work.paper) ?? work;
  const open = (event) => {
    const from = event.currentTarget;
    openAt({ paper: work.paper, page: 1, title, file, opener: work.leave() ?? from });
  };
  const mark = work.other_version ? "Another version is in your library" : "In your library";
  show(box, el("p", { class: "here" }, makeIcon("check"), mark), makeButton("button quiet", open, "Open", which(work)));
}

function showAdd(box, work) {
  const note = work.file ? el("p", { class: "about" }, "Its file is in your papers folder.") : null;
  const button = makeButton("button", () => add(work, box), makeIcon("plus"), "Add", which(work));
  button.dataset.add = work.open ? "open" : "other";
  show(box, ...[button, note].filter(Boolean));
}

/** Adds a work after those before it. The box shows the progress. */
function add(work, box) {
  const item = { work, box };
  const cancel = () => {
    waiting.splice(waiting.indexOf(item), 1);
    showAdd(box, work);
  };
  show(box, el("p", { class: "stage" }, "Waiting"), makeButton("button quiet", cancel, "Cancel", which(work)));
  waiting.push(item);
  if (!adding) addWaiting();
}

async function addWaiting() {
  while (waiting.length) await addWork(waiting.shift());
}

const STAGES = { downloading: () => "Downloading", reading: () => "Reading" };
const describeStage = ({ stage, done, of }) =>
  STAGES[stage]?.() ?? `Embedding ${done} of ${formatCount(of, "passage")}`;

async function addWork({ work, box }) {
  const controller = new AbortController();
  adding = controller;
  const stage = el("p", { class: "stage" }, "Looking it up");
  const bar = el("progress", { max: "1", "aria-label": `Progress of ${work.title}` });
  show(
    box,
    stage,
    bar,
    makeButton("button quiet", () => controller.abort(), "Stop", which(work)),
  );
  try {
    for await (const { event, data } of api.fetchPapers([work.id], controller.signal)) {
      if (event === "notice") stage.textContent = data.text;
      else if (event === "progress") {
        stage.textContent = describeStage(data);
        if (data.of) bar.value = data.done / data.of;
      } else if (event === "failed") throw new api.ApiError(data.error, data.remedy);
      else if (event === "added") showAdded(box, work, data);
    }
    await refresh();
    loadHealth().catch(() => {});
  } catch (thrown) {
    if (api.isAbort(thrown)) {
      showAdd(box, work);
      box.append(el("p", { class: "stage" }, "Stopped. A complete file is still added."));
    } else showFailed(box, work, api.toApiError(thrown));
  } finally {
    adding = null;
  }
}

function showAdded(box, work, { status, paper, notes }) {
  const ask = () => {
    work.leave();
    askOnly(paper.id);
  };
  const isNew = !["unchanged", "duplicate"].includes(status);
  const text = isNew ? `Added, ${formatCount(paper.pages, "page")}` : "In your library already";
  show(
    box,
    el("p", { class: "here" }, makeIcon("check"), text),
    makeButton("button quiet", ask, "Ask this paper", which(work)),
    ...notes.map((note) => el("p", { class: "note" }, renderMessage(note))),
  );
  byId("said").textContent = `${text}: ${getTitle(paper)}`;
}

function showFailed(box, work, error) {
  show(
    box,
    renderProblem(error, () => add(work, box)),
  );
}

/** Adds all works of a list that are free to read and not in the library. */
export const addAll = (list) => {
  for (const button of list.querySelectorAll('[data-add="open"]')) button.click();
};

/** The number of works that addAll would add. */
export const countAddable = (list) => list.querySelectorAll('[data-add="open"]').length;

/** ask: restricts questions to the paper with this id. added: called when a paper was added. */
export function setUpWorks({ ask, added }) {
  askOnly = ask;
  refresh = added;
}
