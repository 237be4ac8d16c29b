// Adding papers: choosing and dropping files, what becomes of each, and one bar for all of them.

import { ApiError } from "../base/api.js";
import { el, hideVisually, isolate, makeButton, makeIcon, makeIconButton, renderProblem } from "../base/dom.js";
import { byId, showToast } from "../base/dom.js";
import { goTo } from "../base/router.js";
import { getTitle, health, loadHealth } from "../base/state.js";
import { parts, t } from "../base/strings.js";
import { choosesFolders, readDropped, sortFolder } from "./dropped.js";
import { addFiles, cancelAll, canRetry, dismiss, getNotice, isActive } from "./upload_queue.js";
import { isDone, isQueued, isSending, listItems, retry, retryFailed, setUpQueue } from "./upload_queue.js";

/** @typedef {import("./upload_queue.js").Item} Item */
/** @typedef {import("./upload_queue.js").Queued} Queued */
/** @typedef {import("../base/strings.js").Key} Key */

/**
 * @typedef {object} UploadHooks
 * @property {HTMLElement} drop gets the fields to choose files with
 * @property {HTMLElement} list gets a line for each file
 * @property {HTMLElement} bar tells of all files at once, in all views
 * @property {(id: string) => void} ask restricts questions to a paper
 * @property {() => void} added called when papers were added
 */

const SHOWN_MS = 10_000; // for which the bar stays when all were added
const REFRESH_MS = 2000; // between refreshes of the library: many papers may be added in a second

/** @type {UploadHooks} */
let hooks;
/** @type {ReturnType<typeof buildBar>} */
let bar;
/** @type {HTMLInputElement} */
let chooser;
/** @type {Map<string, {line: HTMLElement, state: string}>} */
const rows = new Map();
/** @type {Set<string>} */
const seen = new Set(); // keys of all that was ever shown
/** @type {Set<string>} */
let counted = new Set(); // keys of what the bar counts: all since nothing was to do
let wasActive = false;
/** @type {number | undefined} */
let hiding; // timer
let isClosed = false; // whether the bar was closed
/** @type {number | null} */
let refreshing = null; // timer
let isOld = false; // whether the library has changed since it was refreshed

function refreshLibrary() {
  isOld = true;
  if (refreshing) return;
  isOld = false;
  hooks.added();
  loadHealth().catch(() => {});
  refreshing = setTimeout(() => {
    refreshing = null;
    if (isOld) refreshLibrary();
  }, REFRESH_MS);
}

function render() {
  const items = listItems();
  const active = isActive();
  if (active && !wasActive) {
    counted = new Set(); // what was done before is another matter
    isClosed = false;
  }
  wasActive = active;
  for (const item of items) {
    if (!seen.has(item.key) || !isDone(item)) counted.add(item.key);
    seen.add(item.key);
  }
  renderRows(items);
  renderBar(items.filter(({ key }) => counted.has(key)));
}

/** @param {string} before @param {string} after */
function rename(before, after) {
  seen.add(after);
  if (counted.delete(before)) counted.add(after);
  const row = rows.get(before);
  rows.delete(before);
  if (rows.has(after))
    row?.line.remove(); // the server told of it before it replied
  else if (row) rows.set(after, row);
}

// A line for each file

/** @param {Item[]} items */
function renderRows(items) {
  const { list } = hooks;
  const wanted = new Set(items.map(({ key }) => key));
  for (const [key, { line }] of rows) {
    if (wanted.has(key)) continue;
    const next = line.nextElementSibling ?? line.previousElementSibling;
    const hadFocus = line.contains(document.activeElement);
    line.remove();
    rows.delete(key);
    if (hadFocus) (next?.querySelector("button") ?? chooser).focus();
  }
  items.forEach((item, place) => {
    const state = JSON.stringify({ ...item, sent: 0 });
    const row = rows.get(item.key) ?? { line: el("li", { class: "upload" }), state: "" };
    rows.set(item.key, row);
    const { line } = row;
    if (row.state !== state) {
      const hadFocus = line.contains(document.activeElement);
      line.replaceChildren(...renderItem(item));
      row.state = state;
      if (hadFocus) line.querySelector("button")?.focus();
    }
    if (list.children[place] !== line) list.insertBefore(line, list.children[place] ?? null);
  });
}

/** @type {Record<string, Key>} */
const STAGES = {
  waiting: "uploads.waiting",
  sending: "uploads.sending",
  reading: "stage.reading",
  stopping: "uploads.stopping",
};

/** The name of its file: the server has that alone. @param {Item} item */
const getFile = ({ file }) => (typeof file === "string" ? file : file.name);

/** @param {Item} item */
function describeStage(item) {
  if (STAGES[item.state]) return t(STAGES[item.state]);
  return isQueued(item) && item.of
    ? t("stage.embedding.of", { done: item.done, count: item.of })
    : t("stage.embedding");
}

/** @param {Item} item */
function renderItem(item) {
  const name = getFile(item);
  /** @type {HTMLElement[]} */
  const nodes = [el("p", { class: "file" }, isolate(name))];
  if (isQueued(item) && item.state === "added") nodes.push(...renderAdded(item));
  else if (item.state === "failed") nodes.push(renderFailed(item, name));
  else nodes.push(el("p", { class: "stage" }, describeStage(item)));
  if (item.state === "stopping") return nodes;
  const label = hideVisually(t(isDone(item) ? "uploads.dismiss" : "uploads.cancel", { name }));
  return [...nodes, makeButton("button bare", () => dismiss(item), makeIcon("close"), label)];
}

/** @param {Item} item @param {string} name */
function renderFailed(item, name) {
  const again = canRetry(item) ? () => retry(item) : null;
  const problem = renderProblem(getError(item), again);
  problem.querySelector("button")?.append(hideVisually(t("uploads.again.of", { name })));
  problem.removeAttribute("role"); // the bar is what is read aloud
  return problem;
}

/** What went wrong with a failed item. @param {Item} item */
function getError(item) {
  if (isQueued(item)) return new ApiError(item.error, item.remedy);
  return item.error ?? new ApiError("", "");
}

/** @param {Queued} item */
function renderAdded({ status, paper, file, title, pages, notes }) {
  const name = isolate(getTitle({ id: paper ?? "", title, file }));
  let message = parts("uploads.added", { name, count: pages });
  if (status === "duplicate") message = parts("uploads.duplicate", { name });
  if (status === "unchanged") message = parts("uploads.unchanged", { name });
  const paragraphs = notes.map((note) => el("p", { class: "note" }, isolate(note)));
  const which = hideVisually(`: ${title || file}`);
  const ask = paper ? [makeButton("button quiet", () => hooks.ask(paper), t("paper.ask"), which)] : [];
  return [el("p", { class: "stage ok" }, message), ...paragraphs, ...ask];
}

// The bar

/** @param {HTMLElement} root */
function buildBar(root) {
  const text = el("p", { id: "adding-text", role: "status" });
  const notice = el("p", { class: "about", id: "adding-notice", role: "status" });
  const progress = el("progress", { max: "1", value: "0", "aria-label": t("uploads.progress") });
  const again = makeButton("button quiet", retryFailed, makeIcon("again"), t("again"));
  const cancel = makeButton("button quiet", cancelAll, t("cancel"));
  const shut = makeIconButton("close", t("close"), close);
  again.id = "adding-again";
  cancel.id = "adding-cancel";
  shut.id = "adding-close";
  root.append(el("div", { class: "adding-texts" }, text, notice), progress, again, cancel, shut);
  root.setAttribute("aria-label", t("uploads"));
  return { root, text, notice, progress, again, cancel, shut };
}

/** How much of an item is done, from 0 to 1. @param {Item} item */
function getShare(item) {
  if (isDone(item)) return 1;
  if (!isQueued(item)) return 0.2 * item.sent;
  if (item.of) return 0.3 + (0.7 * item.done) / item.of;
  return item.state === "waiting" ? 0.2 : 0.3;
}

/** @param {Item[]} items */
function describe(items) {
  const failed = items.filter(({ state }) => state === "failed");
  const done = items.filter((item) => isQueued(item) && item.state === "added");
  const here = done.filter((item) => isQueued(item) && ["duplicate", "unchanged"].includes(item.status ?? "")).length;
  const added = done.length - here;
  const count = items.length - here;
  const some = wasActive || failed.length > 0;
  const fresh = some ? t("uploads.some", { added, count }) : t("uploads.all", { count: added });
  const all = here ? [count ? fresh : "", t("uploads.here", { count: here })].filter(Boolean).join(", ") : fresh;
  const [error, ...others] = new Set(failed.map((item) => getError(item).error));
  if (others.length) return t("uploads.failed.several", { all, count: failed.length });
  return failed.length ? t("uploads.failed", { all, count: failed.length, error }) : all;
}

/** @param {Item[]} items */
function renderBar(items) {
  const anyFailed = items.some(({ state }) => state === "failed");
  const active = document.activeElement;
  const focused = active instanceof HTMLElement && bar.root.contains(active) ? active : null;
  clearTimeout(hiding);
  show(bar.text, items.length ? describe(items) : "");
  show(bar.notice, wasActive ? getNotice() : "");
  bar.progress.value = items.reduce((sum, item) => sum + getShare(item), 0) / (items.length || 1);
  bar.again.hidden = !items.some(canRetry);
  bar.cancel.hidden = !wasActive;
  bar.shut.hidden = wasActive;
  bar.root.hidden = !items.length || isClosed;
  if (!wasActive && !anyFailed) hiding = setTimeout(close, SHOWN_MS);
  if (focused && bar.root.hidden) byId("main").focus();
  else if (focused?.hidden) (wasActive ? bar.cancel : bar.shut).focus();
}

/**
 * Changes a text only if it is another one: each change is read aloud.
 * @param {HTMLElement} node @param {string} text
 */
function show(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function close() {
  const hadFocus = bar.root.contains(document.activeElement);
  isClosed = true;
  bar.root.hidden = true;
  if (hadFocus) byId("main").focus();
}

// Choosing and dropping

/** @param {{files: File[], others: number}} chosen */
function accept({ files, others }) {
  if (others && !files.length) showToast(t("uploads.none"));
  else if (others) showToast(t("uploads.others", { count: others }));
  if (!files.length) return;
  goTo({ view: "library", id: "", query: {} });
  addFiles(files);
}

/** Files may be dropped anywhere. Without this the browser would open them instead. */
function setUpDropping() {
  const target = byId("dropping");
  const carriesFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    target.hidden = false;
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) target.hidden = true;
  });
  document.addEventListener("drop", (event) => {
    if (!event.dataTransfer || !carriesFiles(event)) return;
    event.preventDefault();
    target.hidden = true;
    readDropped(event.dataTransfer).then(accept, () => showToast(t("uploads.folder.unreadable")));
  });
}

/**
 * @param {Record<string, string | boolean>} attributes @param {(files: File[]) => {files: File[], others: number}} read
 */
function makeChooser(attributes, read) {
  /** @type {HTMLInputElement} */
  const input = el("input", {
    type: "file",
    class: "unseen",
    ...attributes,
    onchange: () => {
      const files = [...(input.files ?? [])];
      input.value = ""; // otherwise the same file could not be chosen again
      accept(read(files));
    },
  });
  return input;
}

/** @param {UploadHooks} given */
export function setUpUploads(given) {
  hooks = given;
  bar = buildBar(given.bar);
  const all = { id: "files", accept: "application/pdf,.pdf", multiple: true };
  chooser = makeChooser(all, (files) => ({ files, others: 0 }));
  const folder = makeChooser({ id: "folder", webkitdirectory: true }, sortFolder);
  const choose = el("span", { class: "as-link" }, t("uploads.choose"));
  const note = el("span", { class: "drop-note", id: "drop-note" });
  const title = el("span", { class: "drop-title" }, parts("uploads.drop", { choose }));
  const chooseFolder = el("span", { class: "as-link" }, t("uploads.folder"));
  given.drop.append(
    el("label", { class: "drop", id: "drop" }, chooser, title, note),
    el("label", { class: "choose-folder", id: "choose-folder", hidden: !choosesFolders() }, folder, chooseFolder),
  );
  setUpDropping();
  addEventListener("beforeunload", (event) => {
    if (isSending()) event.preventDefault();
  });
  health.onChange((now) => {
    note.textContent = now ? t("uploads.limit", { most: now.max_file_mb }) : "";
  });
  setUpQueue({ changed: render, added: refreshLibrary, renamed: rename });
}
