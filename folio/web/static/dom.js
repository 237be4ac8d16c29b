// Nodes, times, messages. Whatever came from a paper or the server becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes ("onclick" and its like are listeners; null, undefined and false are left out). */
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

export const button = (kind, press, ...children) =>
  el("button", { type: "button", class: kind, onclick: press }, ...children);

export const byId = (id) => document.getElementById(id);

/** An icon of the sprite in index.html; it says nothing to a screen reader. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/** Words of a paper: their direction of writing does not reach what stands around them. */
export const words = (text, attributes = {}) => el("bdi", attributes, text);

/** For screen readers alone. */
export const unseen = (text) => el("span", { class: "unseen" }, text);

/** The program's own text, with `commands` in backticks set as code. */
export function withCommands(text) {
  return text.split("`").map((part, index) => (index % 2 ? el("code", {}, part) : part));
}

/** What went wrong and what to do about it, with a button to try again where that may help. */
export function problem(error, retry, label = "Try again") {
  const box = el("div", { class: "problem", role: "alert" }, el("p", { class: "happened" }, withCommands(error.error)));
  if (error.remedy) box.append(el("p", {}, withCommands(error.remedy)));
  if (retry) box.append(button("button", retry, icon("again"), label));
  return box;
}

export const count = (number, one, many = `${one}s`) => `${number.toLocaleString()} ${number === 1 ? one : many}`;

export const seconds = (ms) => (ms < 100 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** "14:02" today, "3 Nov" this year, "3 Nov 2024" before. */
export function when(iso) {
  const date = new Date(iso);
  const now = new Date();
  if (Number.isNaN(date.getTime())) return "";
  if (date.toDateString() === now.toDateString()) {
    return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  }
  const year = date.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString([], { day: "numeric", month: "short", year });
}

/** A page as people write it: "p. 7", "p. 7 (printed iv)". */
export function pageName(page, label) {
  return label && label !== String(page) ? `p. ${page} (printed ${label})` : `p. ${page}`;
}

/** Pages of a passage: "p. 3" or "pp. 3–4". */
export const pagesName = ([first, last]) => (first === last ? `p. ${first}` : `pp. ${first}–${last}`);

/** Pages, never broken over two lines. */
export const at = (name) => el("span", { class: "at" }, name);

export const oneLine = (text) => text.replace(/\s+/g, " ").trim();

let toastEnds;

/** A short message that goes away by itself; screen readers say it. */
export function toast(text) {
  const node = byId("toast");
  node.textContent = text;
  node.classList.add("shown");
  clearTimeout(toastEnds);
  toastEnds = setTimeout(() => {
    node.classList.remove("shown");
    node.textContent = "";
  }, 4000);
}

/** Copies a text and says so. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers keep the clipboard from pages that are neither on this computer nor encrypted.
    const area = el("textarea", { class: "unseen" });
    area.value = text;
    const before = document.activeElement;
    (document.querySelector("dialog:modal") ?? document.body).append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    before?.focus();
    if (!copied) return toast("The browser does not allow copying here.");
  }
  toast(`${what} copied.`);
}

/** Asks before something is lost. Resolves to whether it shall be done. */
export function confirmed(title, text, action) {
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
    dialog.onclose = () => resolve(answer);
    dialog.showModal();
  });
}
