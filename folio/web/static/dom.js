// Elements, formats, messages. Text from a paper or the server never becomes markup.

import { enterPanel, leavePanel } from "./panels.js";
import { withoutCitations } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes ("on..." adds a listener; null, undefined and false are skipped) and children. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export const makeButton = (classes, onclick, ...children) =>
  el("button", { type: "button", class: classes, onclick }, ...children);

export const byId = (id) => document.getElementById(id);

/** An icon from the sprite in index.html, hidden from screen readers. */
export function makeIcon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/** Isolates text of a paper, so that its writing direction does not affect the text around it. */
export const isolate = (text, attributes = {}) => el("bdi", attributes, withoutCitations(text ?? ""));

/** Text for screen readers only. */
export const hideVisually = (text) => el("span", { class: "unseen" }, text);

// A command in a message, as folio/shown_text.py has it
const COMMAND = /(?<!`)`([^\s`](?:[^`]*[^\s`])?)`(?!`)/;

/** Shows `commands` in backticks as code. */
export function formatCommands(text) {
  return text.split(COMMAND).map((part, index) => (index % 2 ? el("code", {}, part) : part));
}

/** A message of the server, which may name papers and commands. */
export const renderMessage = (text) => el("bdi", {}, formatCommands(withoutCitations(text ?? "")));

/** An error and what to do about it, with a button if `retry` is given. */
export function renderProblem(error, retry, label = "Try again") {
  const happened = el("p", { class: "happened" }, formatCommands(error.error));
  const box = el("div", { class: "problem", role: "alert" }, happened);
  if (error.remedy) box.append(el("p", {}, formatCommands(error.remedy)));
  if (retry) box.append(makeButton("button", retry, makeIcon("again"), label));
  return box;
}

export const formatCount = (number, one, many = `${one}s`) => `${number.toLocaleString()} ${number === 1 ? one : many}`;

export const formatDuration = (ms) => (ms < 100 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** "14:02" today, "3 Nov" this year, "3 Nov 2024" before. */
export function formatDate(iso) {
  const date = new Date(iso);
  const now = new Date();
  if (Number.isNaN(date.getTime())) return "";
  if (date.toDateString() === now.toDateString()) {
    return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  }
  const year = date.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString([], { day: "numeric", month: "short", year });
}

/** "p. 7", or "p. 7 (printed iv)" if another label is printed on the page. */
export function formatPage(page, label) {
  return label && label !== String(page) ? `p. ${page} (printed ${label})` : `p. ${page}`;
}

/** "p. 3" or "pp. 3–4". */
export const formatPages = ([first, last]) => (first === last ? `p. ${first}` : `pp. ${first}–${last}`);

/** Text that is never broken over two lines. */
export const keepTogether = (text) => el("span", { class: "at" }, text);

/** Keeps a choice in this browser. Storage may be blocked; then it lasts until the page is closed. */
export function remember(name, value) {
  try {
    localStorage.setItem(`folio-${name}`, value);
  } catch {
    // nothing to do
  }
}

/** A choice that was kept, or null. */
export function recall(name) {
  try {
    return localStorage.getItem(`folio-${name}`);
  } catch {
    return null;
  }
}

let toastTimer;

/** Shows a short message for a few seconds; screen readers announce it. */
export function showToast(text) {
  const node = byId("toast");
  node.replaceChildren(...formatCommands(text));
  node.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => {
    node.classList.remove("shown");
    node.textContent = "";
  }, 4000);
}

/** Copies text to the clipboard and confirms it. `what` names it in the message. */
export async function copyText(text, what, html = "") {
  try {
    if (html) {
      const forms = { "text/plain": text, "text/html": html };
      const blobs = Object.entries(forms).map(([type, content]) => [type, new Blob([content], { type })]);
      await navigator.clipboard.write([new ClipboardItem(Object.fromEntries(blobs))]);
    } else await navigator.clipboard.writeText(text);
  } catch {
    // Browsers allow the clipboard API only on this computer or over HTTPS.
    const area = el("textarea", { class: "unseen" });
    area.value = text;
    area.addEventListener("copy", (event) => {
      event.clipboardData.setData("text/plain", text);
      if (html) event.clipboardData.setData("text/html", html);
      event.preventDefault();
    });
    const before = document.activeElement;
    (document.querySelector("dialog:modal") ?? document.body).append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    before?.focus();
    if (!copied) return showToast("The browser does not allow copying from this page.");
  }
  showToast(`${what} copied.`);
}

/** Asks for confirmation. Resolves to true if confirmed. */
export function confirmAction(title, text, action) {
  const dialog = byId("confirm");
  byId("confirm-title").replaceChildren(title);
  byId("confirm-text").replaceChildren(text);
  byId("confirm-do").textContent = action;
  return new Promise((resolve) => {
    let answer = false;
    byId("confirm-do").onclick = () => {
      answer = true;
      dialog.close();
    };
    byId("confirm-cancel").onclick = () => dialog.close();
    dialog.onclose = () => {
      leavePanel(dialog);
      resolve(answer);
    };
    dialog.showModal();
    enterPanel(dialog, () => dialog.close());
  });
}
