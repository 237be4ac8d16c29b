// Adding papers: choosing and dropping files, what becomes of each, and one bar for all of them.

import { byId, el, formatCount, hideVisually, isolate } from "../base/dom.js";
import { makeButton, makeIcon, renderProblem, showToast } from "../base/dom.js";
import { choosesFolders, readDropped, sortFolder } from "./dropped.js";
import { getTitle, health, loadHealth } from "../base/state.js";
import { addFiles, cancelAll, canRetry, dismiss, getNotice, isActive } from "./upload_queue.js";
import { isDone, isSending, listItems, retry, retryFailed, setUpQueue } from "./upload_queue.js";

const SHOWN_MS = 10_000; // for which the bar stays when all were added
const REFRESH_MS = 2000; // between refreshes of the library: many papers may be added in a second

let hooks = { ask: () => {}, show: () => {}, added: () => {} };
const rows = new Map(); // key -> {line, state}
const seen = new Set(); // keys of all that was ever shown
let counted = new Set(); // keys of what the bar counts: all since nothing was to do
let wasActive = false;
let hiding = 0; // timer
let isClosed = false; // whether the bar was closed
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

function renderRows(items) {
  const list = byId("uploads");
  const wanted = new Set(items.map(({ key }) => key));
  for (const [key, { line }] of rows) {
    if (wanted.has(key)) continue;
    const next = line.nextElementSibling ?? line.previousElementSibling;
    const hadFocus = line.contains(document.activeElement);
    line.remove();
    rows.delete(key);
    if (hadFocus) (next?.querySelector("button") ?? byId("files")).focus();
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

const STAGES = { waiting: "Waiting", sending: "Sending", reading: "Reading", stopping: "Stopping" };

function renderItem(item) {
  const name = item.file.name ?? item.file; // the server has its name alone
  const nodes = [el("p", { class: "file" }, isolate(name))];
  if (item.state === "added") nodes.push(...renderAdded(item));
  else if (item.state === "failed") nodes.push(renderFailed(item, name));
  else {
    const embedding = item.of ? `Embedding ${item.done} of ${formatCount(item.of, "passage")}` : "Embedding";
    nodes.push(el("p", { class: "stage" }, STAGES[item.state] ?? embedding));
  }
  if (item.state === "stopping") return nodes;
  const label = hideVisually(`${isDone(item) ? "Dismiss" : "Cancel"} ${name}`);
  return [...nodes, makeButton("button bare", () => dismiss(item), makeIcon("close"), label)];
}

function renderFailed(item, name) {
  const label = el("span", {}, "Try again", hideVisually(` to add ${name}`));
  const problem = renderProblem(item.error.error ? item.error : item, canRetry(item) ? () => retry(item) : null, label);
  problem.removeAttribute("role"); // the bar is what is read aloud
  return problem;
}

function renderAdded({ status, paper, file, title, pages, notes }) {
  const name = isolate(getTitle({ id: paper, title, file }));
  const message = {
    duplicate: ["Already in the library as ", name, "."],
    unchanged: ["Already in the library, unchanged: ", name, "."],
  }[status] ?? ["Added: ", name, `, ${formatCount(pages, "page")}.`];
  const paragraphs = notes.map((note) => el("p", { class: "note" }, isolate(note)));
  const which = hideVisually(`: ${title || file}`);
  const ask = paper ? [makeButton("button quiet", () => hooks.ask(paper), "Ask this paper", which)] : [];
  return [el("p", { class: "stage ok" }, message), ...paragraphs, ...ask];
}

// The bar

/** How much of an item is done, from 0 to 1. */
function getShare(item) {
  if (isDone(item)) return 1;
  if (!item.id) return 0.2 * item.sent;
  if (item.of) return 0.3 + (0.7 * item.done) / item.of;
  return item.state === "waiting" ? 0.2 : 0.3;
}

function describe(items) {
  const failed = items.filter(({ state }) => state === "failed");
  const added = items.filter(({ state }) => state === "added").length;
  const of = wasActive || failed.length ? `${added} of ` : "";
  const all = `${of}${formatCount(of ? items.length : added, "paper")} added`;
  if (!failed.length) return all;
  const [{ error }] = failed;
  return `${all}, ${failed.length} failed: ${error.error ?? error}`;
}

function renderBar(items) {
  const anyFailed = items.some(({ state }) => state === "failed");
  const bar = byId("adding");
  const focused = bar.contains(document.activeElement) ? document.activeElement : null;
  clearTimeout(hiding);
  say("adding-text", items.length ? describe(items) : "");
  say("adding-notice", wasActive ? getNotice() : "");
  byId("adding-bar").value = items.reduce((sum, item) => sum + getShare(item), 0) / (items.length || 1);
  byId("adding-again").hidden = !items.some(canRetry);
  byId("adding-cancel").hidden = !wasActive;
  byId("adding-close").hidden = wasActive;
  bar.hidden = !items.length || isClosed;
  if (!wasActive && !anyFailed) hiding = setTimeout(close, SHOWN_MS);
  if (focused && bar.hidden) byId("main").focus();
  else if (focused?.hidden) byId(wasActive ? "adding-cancel" : "adding-close").focus();
}

/** Changes a text only if it is another one: each change is read aloud. */
function say(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

function close() {
  const hadFocus = byId("adding").contains(document.activeElement);
  isClosed = true;
  byId("adding").hidden = true;
  if (hadFocus) byId("main").focus();
}

// Choosing and dropping

function accept({ files, others }) {
  if (others && !files.length) showToast("There are no PDFs in that folder.");
  else if (others) showToast(`${formatCount(others, "file")} left out: only PDFs are added.`);
  if (!files.length) return;
  hooks.show();
  addFiles(files);
}

function setUpDropping() {
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
  // Files may be dropped anywhere. Without this the browser would open them instead.
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
    readDropped(event.dataTransfer).then(accept, () => showToast("A dropped folder cannot be read. Choose its files."));
  });
}

/** show: shows the library. ask: restricts questions to a paper, by its id. added: called when papers were added. */
export function setUpUploads(given) {
  hooks = given;
  const choose = (id, read) =>
    byId(id).addEventListener("change", (event) => {
      accept(read([...event.target.files]));
      event.target.value = ""; // otherwise the same file could not be chosen again
    });
  choose("files", (files) => ({ files, others: 0 }));
  choose("folder", sortFolder);
  byId("choose-folder").hidden = !choosesFolders();
  setUpDropping();
  byId("adding-cancel").onclick = cancelAll;
  byId("adding-again").onclick = retryFailed;
  byId("adding-close").onclick = close;
  addEventListener("beforeunload", (event) => {
    if (isSending()) event.preventDefault();
  });
  health.onChange((now) => {
    byId("drop-note").textContent = `Up to ${now?.max_file_mb} MB each. They are saved in your papers folder.`;
  });
  setUpQueue({ changed: render, added: refreshLibrary, renamed: rename });
}
