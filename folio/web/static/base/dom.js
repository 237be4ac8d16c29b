// Elements, formats, messages. Text from a paper or the server never becomes markup.

import { enterPanel, leavePanel } from "./panels.js";
import { t } from "./strings.js";
import { withoutCitations } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | null | undefined} Child */
/** @typedef {Child | Child[] | Child[][]} Children */

/**
 * An element with attributes ("on..." adds a listener; null, undefined and false are skipped) and children.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Children} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  const flat = /** @type {Child[]} */ (children.flat(2));
  node.append(...flat.filter((child) => child !== null && child !== undefined));
  return node;
}

/**
 * @param {string} classes @param {(event: any) => void} onclick
 * @param {...Children} children
 */
export const makeButton = (classes, onclick, ...children) =>
  el("button", { type: "button", class: classes, onclick }, ...children);

/**
 * A link that acts in this tab where it is pressed plainly; a copy of its address, or another tab, has the place.
 * @param {string} href @param {(event: {currentTarget: any}) => void} onPress @param {Record<string, any>} attributes
 * @param {...Children} children
 */
export function makeLink(href, onPress, attributes, ...children) {
  const onclick = (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own
    event.preventDefault();
    onPress(event);
  };
  return el("a", { href, onclick, ...attributes }, ...children);
}

/**
 * A button with an icon alone; the label is read aloud and shown as its tooltip.
 * @param {string} icon @param {string} label @param {(event: any) => void} onclick @param {string} [keys]
 */
export function makeIconButton(icon, label, onclick, keys) {
  const node = makeButton("button bare", onclick, makeIcon(icon));
  node.setAttribute("aria-label", label);
  node.title = label;
  if (keys) node.setAttribute("aria-keyshortcuts", keys);
  return node;
}

/**
 * An element of index.html. Throws where it is missing or of another kind.
 * @template {HTMLElement} [Kind=HTMLElement]
 * @param {string} id
 * @param {new () => Kind} [kind]
 * @returns {Kind}
 */
export function byId(id, kind) {
  const node = document.getElementById(id);
  if (!(node instanceof (kind ?? HTMLElement))) throw new Error(`#${id} is missing`);
  return /** @type {Kind} */ (node);
}

/**
 * Fills in the texts of elements with data-t (their text) and data-t-aria-label, data-t-title, data-t-placeholder.
 * @param {ParentNode} root
 */
export function fillTexts(root) {
  for (const node of root.querySelectorAll("[data-t]")) node.textContent = t(readKey(node, "data-t"));
  for (const name of ["aria-label", "title", "placeholder"]) {
    for (const node of root.querySelectorAll(`[data-t-${name}]`)) {
      node.setAttribute(name, t(readKey(node, `data-t-${name}`)));
    }
  }
}

/** @param {Element} node @param {string} name */
const readKey = (node, name) => /** @type {import("./strings.js").Key} */ (node.getAttribute(name));

/** An icon from the sprite in index.html, hidden from screen readers. @param {string} name */
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
/** @param {string | number | null | undefined} text @param {Record<string, any>} [attributes] */
export const isolate = (text, attributes = {}) => el("bdi", attributes, withoutCitations(String(text ?? "")));

/** Text for screen readers only. @param {string} text */
export const hideVisually = (text) => el("span", { class: "unseen" }, text);

// A command in a message, as folio/shown_text.py has it
const COMMAND = /(?<!`)`([^\s`](?:[^`]*[^\s`])?)`(?!`)/;

/** Shows `commands` in backticks as code. @param {string} text @returns {(string | Node)[]} */
export function formatCommands(text) {
  return text.split(COMMAND).map((part, index) => (index % 2 ? el("code", {}, part) : part));
}

/**
 * The word Settings leads to them, where a remedy is there.
 * @param {(string | Node)[]} nodes @returns {(string | Node)[]}
 */
const linkSettings = (nodes) =>
  nodes.flatMap((node) => (typeof node === "string" ? node.split(/(?<=in )(Settings)\b/).map(linkOdd) : [node]));

/** @param {string} part @param {number} at @returns {string | Node} */
const linkOdd = (part, at) => (at % 2 ? el("a", { href: "#settings" }, part) : part);

/** A message of the server, which may name papers and commands. @param {string | null | undefined} text */
export const renderMessage = (text) => el("bdi", {}, linkSettings(formatCommands(withoutCitations(text ?? ""))));

/**
 * An error and what to do about it, with a button if `retry` is given, and others beside it.
 * @param {import("./api.js").ApiError} error @param {(() => void) | null} [retry] @param {string} [label]
 * @param {...HTMLElement} others
 */
export function renderProblem(error, retry, label = t("again"), ...others) {
  const happened = el("p", { class: "happened" }, formatCommands(error.error));
  const box = el("div", { class: "problem", role: "alert" }, happened);
  if (error.remedy) box.append(el("p", {}, linkSettings(formatCommands(error.remedy))));
  if (retry) box.append(el("div", { class: "row" }, makeButton("button", retry, makeIcon("again"), label), others));
  return box;
}

/**
 * Says below a field what is wrong with what was typed; "": nothing is.
 * @param {HTMLInputElement} field @param {string} text @param {Element} [row] of fields, below which it is said
 */
export function showFault(field, text, row = field) {
  const id = `${field.id}-fault`;
  document.getElementById(id)?.remove();
  field.setAttribute("aria-invalid", String(Boolean(text)));
  field.setAttribute("aria-errormessage", id);
  if (text) row.after(el("p", { class: "fault", id, role: "alert" }, text));
}

/** @param {number} ms */
export const formatDuration = (ms) => (ms < 100 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

const TIME = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
const DATE = new Intl.DateTimeFormat([], { day: "numeric", month: "short", year: "numeric" });

/** "14:02" today, "3 Nov" this year, "3 Nov 2024" before. @param {string} iso */
export function formatDate(iso) {
  const date = new Date(iso);
  const now = new Date();
  if (Number.isNaN(date.getTime())) return "";
  if (date.toDateString() === now.toDateString()) return TIME.format(date);
  return (date.getFullYear() === now.getFullYear() ? DAY : DATE).format(date);
}

/** "p. 7", or "p. 7 (printed iv)" if another label is printed on the page. */
/** @param {number} page @param {string | null} [label] */
export function formatPage(page, label) {
  return label && label !== String(page)
    ? t("page.printed", { page: String(page), label })
    : t("page", { page: String(page) });
}

/** "p. 3" or "pp. 3–4". @param {number[]} pages */
export const formatPages = ([first, last]) =>
  first === last ? t("page", { page: String(first) }) : t("pages", { first: String(first), last: String(last) });

/** Text that is never broken over two lines. @param {string} text */
export const keepTogether = (text) => el("span", { class: "at" }, text);

/** Keeps a choice in this browser. Storage may be blocked; then it lasts until the page is closed. */
/** @param {string} name @param {string} value */
export function remember(name, value) {
  try {
    localStorage.setItem(`folio-${name}`, value);
  } catch {
    // nothing to do
  }
}

/** A choice that was kept, or null. @param {string} name */
export function recall(name) {
  try {
    return localStorage.getItem(`folio-${name}`);
  } catch {
    return null;
  }
}

/**
 * Keeps a value with the browser's tab, over a reload and a crash, until the tab is closed; null removes it. Returns
 * whether it could: storage may be full or blocked.
 * @param {string} name @param {any} value
 */
export function keepInTab(name, value) {
  try {
    if (value === null) sessionStorage.removeItem(`folio-${name}`);
    else sessionStorage.setItem(`folio-${name}`, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** A value that was kept with the tab, or null. @param {string} name @returns {any} */
export function readInTab(name) {
  try {
    return JSON.parse(sessionStorage.getItem(`folio-${name}`) ?? "null");
  } catch {
    return null;
  }
}

/** The names that begin like this and have a value in the tab. @param {string} start */
export function listInTab(start) {
  try {
    const names = Object.keys(sessionStorage).map((key) => key.replace(/^folio-/, ""));
    return names.filter((name) => name.startsWith(start));
  } catch {
    return [];
  }
}

const TOAST_MS = 4000;
const ACTION_MS = 10_000; // for a message with a button

/** @type {number | undefined} */
let toastTimer;

/**
 * Shows a short message for a few seconds; screen readers announce it. With an action, it has a button and stays
 * longer, and while it has the focus.
 * @param {string} text @param {{label: string, run: () => void} | null} [action]
 */
export function showToast(text, action = null) {
  const node = byId("toast");
  const hideLater = () => {
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => (node.contains(document.activeElement) ? hideLater() : hideToast()), wait);
  };
  const wait = action ? ACTION_MS : TOAST_MS;
  const run = () => {
    hideToast();
    action?.run();
  };
  node.replaceChildren(...formatCommands(text), ...(action ? [makeButton("toast-action", run, action.label)] : []));
  node.classList.add("shown");
  hideLater();
}

export function hideToast() {
  const node = byId("toast");
  node.classList.remove("shown");
  node.textContent = "";
}

/** Has screen readers read a text. @param {string} text */
export function announce(text) {
  byId("said").textContent = text;
}

/** Copies text to the clipboard and confirms it. `what` names it in the message. */
/** @param {string} text @param {string} what @param {string} [html] */
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
      event.clipboardData?.setData("text/plain", text);
      if (html) event.clipboardData?.setData("text/html", html);
      event.preventDefault();
    });
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    (document.querySelector("dialog:modal") ?? document.body).append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    before?.focus();
    if (!copied) return showToast(t("copy.refused"));
  }
  showToast(t("copied", { what }));
}

/** Asks for confirmation. Resolves to true if confirmed. */
/** @param {string} title @param {string | Node} text @param {string} action @returns {Promise<boolean>} */
export function confirmAction(title, text, action) {
  const dialog = byId("confirm", HTMLDialogElement);
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
