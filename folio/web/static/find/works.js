// Works at services on the internet: what is known of one, whether it is in the library, and adding it.

import * as api from "../base/api.js";
import { announce, el, hideVisually, isolate, makeButton } from "../base/dom.js";
import { makeIcon, renderMessage, renderProblem } from "../base/dom.js";
import { getTitle, library, loadHealth } from "../base/state.js";
import { t } from "../base/strings.js";
import { makePageLink } from "../reader/reader.js";

const MAX_AUTHORS = 8; // that are shown

/** @typedef {Api.WorkJson} Work */
/** @typedef {{work: Work, box: HTMLElement}} Adding A work that is added, and the element that shows its progress. */
/** @typedef {{ask: (id: string) => void, added: () => unknown}} Hooks */

/** @type {Adding[]} */
const waiting = []; // one is added at a time
let isAdding = false;
/** @type {Hooks} */
let hooks = { ask: () => {}, added: () => {} };

/**
 * A work as an item of a list. canAdd: whether the server may download it.
 * @param {Work} work @param {{canAdd: boolean}} how
 */
export function renderWork(work, { canAdd }) {
  const { title, authors, venue, year, date, cited, open, abstract, retracted, link } = work;
  const facts = [
    venue ? isolate(venue) : null,
    date || (year ? String(year) : null),
    cited === null ? null : cited ? t("work.cited", { count: cited }) : t("work.uncited"),
    open === null ? null : t(open ? "work.free" : "work.closed"),
    link ? makeLink(link, title) : null,
  ];
  const actions = el("div", { class: "work-actions" });
  if (work.paper) showHere(actions, work, work.paper);
  else if (canAdd && work.id) showAdd(actions, work);
  return el(
    "li",
    {},
    el("h2", {}, isolate(title || work.id || t("work.untitled"))),
    authors.length ? el("p", { class: "authors" }, isolate(shortenNames(authors))) : null,
    el("p", { class: "about" }, joinFacts(facts)),
    retracted ? el("p", { class: "retracted" }, makeIcon("warning"), t("work.retracted")) : null,
    work.sentence ? el("p", { class: "snippet" }, isolate(work.sentence)) : null,
    abstract ? renderAbstract(work) : null,
    actions,
  );
}

/** @param {Work} work */
const renderAbstract = (work) =>
  el("details", { class: "abstract" }, el("summary", {}, t("work.abstract"), which(work)), isolate(work.abstract));

/** @param {Work} work */
const which = ({ title, id }) => hideVisually(`: ${title || id}`);

/** @param {(Node | string | null)[]} facts */
const joinFacts = (facts) => facts.filter(Boolean).flatMap((fact, at) => [at ? " · " : null, fact]);

/** @param {string[]} authors */
function shortenNames(authors) {
  const names = authors.slice(0, MAX_AUTHORS).join(", ");
  const count = authors.length - MAX_AUTHORS;
  return count > 0 ? t("work.authors", { names, count }) : names;
}

/** A link to the page about a work, which a click opens in a new tab. @param {string} link @param {string} title */
const makeLink = (link, title) =>
  el(
    "a",
    { href: link, target: "_blank", rel: "noopener noreferrer" },
    new URL(link).hostname.replace(/^www\./, ""),
    hideVisually(t("work.link", { title })),
  );

/**
 * Replaces the content of a box, and keeps the focus in it.
 * @param {HTMLElement} box @param {...(Node | null)} nodes
 */
function show(box, ...nodes) {
  const hadFocus = box.contains(document.activeElement);
  box.replaceChildren(...nodes.filter((node) => node !== null));
  if (hadFocus) /** @type {HTMLElement | null} */ (box.querySelector("button, a"))?.focus();
}

/** @param {HTMLElement} box @param {Work} work @param {string} paper its id */
function showHere(box, work, paper) {
  const { title, file } = library.get().papers.get(paper) ?? work;
  const mark = t(work.other_version ? "work.version" : "work.here");
  const link = makePageLink({ paper, page: 1, title, file }, { class: "button quiet" }, t("work.open"), which(work));
  show(box, el("p", { class: "here" }, makeIcon("check"), mark), link);
}

/** @param {HTMLElement} box @param {Work} work */
function showAdd(box, work) {
  const note = work.file ? el("p", { class: "about" }, t("work.file")) : null;
  const button = makeButton("button", () => add(work, box), makeIcon("plus"), t("work.add"), which(work));
  button.dataset.add = work.open ? "open" : "other";
  show(box, button, note);
}

/** Adds a work after those before it. The box shows the progress. @param {Work} work @param {HTMLElement} box */
function add(work, box) {
  const item = { work, box };
  const cancel = () => {
    waiting.splice(waiting.indexOf(item), 1);
    showAdd(box, work);
  };
  const button = makeButton("button quiet", cancel, t("cancel"), which(work));
  show(box, el("p", { class: "stage" }, t("work.waiting")), button);
  waiting.push(item);
  if (!isAdding) addWaiting();
}

async function addWaiting() {
  isAdding = true;
  for (let next = waiting.shift(); next; next = waiting.shift()) await addWork(next);
  isAdding = false;
}

/** @param {Api.FetchProgressEvent} progress */
function describeStage({ stage, done, of }) {
  if (stage === "downloading") return t("work.downloading");
  return stage === "reading" ? t("stage.reading") : t("stage.embedding.of", { done, count: of });
}

/** @param {Adding} item */
async function addWork({ work, box }) {
  const controller = new AbortController();
  const stage = el("p", { class: "stage" }, t("work.looking"));
  const bar = el("progress", { max: "1", "aria-label": t("work.progress", { title: work.title }) });
  const stop = makeButton("button quiet", () => controller.abort(), t("work.stop"), which(work));
  show(box, stage, bar, stop);
  try {
    for await (const { event, data } of api.fetchPapers([work.id], controller.signal)) {
      if (event === "notice") stage.textContent = data.text;
      else if (event === "progress") {
        stage.textContent = describeStage(data);
        if (data.of) bar.value = data.done / data.of;
      } else if (event === "failed") throw new api.ApiError(data.error, data.remedy);
      else if (event === "added") showAdded(box, work, data);
    }
    await hooks.added();
    loadHealth().catch(() => {});
  } catch (thrown) {
    if (api.isAbort(thrown)) {
      showAdd(box, work);
      box.append(el("p", { class: "stage" }, t("work.stopped")));
    } else {
      show(
        box,
        renderProblem(api.toApiError(thrown), () => add(work, box)),
      );
    }
  }
}

/** @param {HTMLElement} box @param {Work} work @param {Api.AddedEvent} added */
function showAdded(box, work, { status, paper, notes }) {
  const isNew = !["unchanged", "duplicate"].includes(status);
  const text = isNew ? t("work.added", { count: paper.pages }) : t("work.already");
  show(
    box,
    el("p", { class: "here" }, makeIcon("check"), text),
    makeButton("button quiet", () => hooks.ask(paper.id), t("paper.ask"), which(work)),
    ...notes.map((note) => el("p", { class: "note" }, renderMessage(note))),
  );
  announce(`${text}: ${getTitle(paper)}`);
}

/** Adds all works of a list that are free to read and not in the library. @param {HTMLElement} list */
export function addAll(list) {
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll('[data-add="open"]'))) {
    button.click();
  }
}

/** The number of works that addAll would add. @param {HTMLElement} list */
export const countAddable = (list) => list.querySelectorAll('[data-add="open"]').length;

/** ask: restricts questions to the paper with this id. added: called when a paper was added. @param {Hooks} given */
export function setUpWorks(given) {
  hooks = given;
}
