// What a person selects on pages, as a span of the paper's text.

import { el } from "../base/dom.js";
import { getText, trim } from "./spans.js";

/** @typedef {{start: number, end: number, page: number, text: string}} Selected */

/**
 * Code points of the text before a position in an element.
 * @param {Element} holder @param {Node} node @param {number} at
 */
function countBefore(holder, node, at) {
  const range = document.createRange();
  range.selectNodeContents(holder);
  range.setEnd(node, at);
  return [...range.toString()].length;
}

/**
 * The span that is selected; null without one. Elements with data-start contain the paper's text from that offset on.
 * @param {HTMLElement} root @param {Api.PageText[]} texts of the pages there
 * @returns {Selected | null}
 */
export function readSelection(root, texts) {
  const selection = getSelection();
  if (!selection?.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  if (!root.contains(range.startContainer) && !root.contains(range.endContainer)) return null;
  const inside = /** @type {HTMLElement[]} */ ([...root.querySelectorAll("[data-start]")]).filter((node) =>
    range.intersectsNode(node),
  );
  const [first, last] = [inside[0], inside.at(-1)];
  if (!first || !last) return null;
  const starts = first.contains(range.startContainer);
  const ends = last.contains(range.endContainer);
  const start =
    Number(first.dataset.start) + (starts ? countBefore(first, range.startContainer, range.startOffset) : 0);
  const length = ends ? countBefore(last, range.endContainer, range.endOffset) : [...(last.textContent ?? "")].length;
  return selectSpan(texts, start, Number(last.dataset.start) + length);
}

/** @param {Api.PageText[]} texts @param {number} start @param {number} end @returns {Selected | null} */
function selectSpan(texts, start, end) {
  const touched = texts.filter((text) => text.end > start && text.start < end);
  const [first, last] = [touched[0], touched.at(-1)];
  if (!first || !last) return null;
  const [from] = trim(first, Math.max(start, first.start), Math.min(end, first.end));
  const [, to] = trim(last, Math.max(start, last.start), Math.min(end, last.end));
  const text = touched.map((page) => getText(page, from, to)).join("");
  const page = touched.find((one) => from < one.end) ?? first;
  return text ? { start: from, end: to, page: page.page, text } : null;
}

/**
 * Keeps a selection by the mouse from jumping to the other end of the page where the pointer is between words: there
 * lies an element behind the words that comes right after the last selected one.
 * @param {HTMLElement} root
 */
export function steadySelection(root) {
  const blank = el("div", { class: "page-blank" });
  let isSelecting = false;
  root.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || !(event.target instanceof Element)) return;
    isSelecting = event.target.closest(".page-words") !== null;
    root.classList.toggle("selecting", isSelecting); // links are in nobody's way
  });
  for (const name of ["pointerup", "pointercancel"]) {
    addEventListener(name, () => {
      isSelecting = false;
      root.classList.remove("selecting");
      blank.remove();
    });
  }
  document.addEventListener("selectionchange", () => {
    const focus = isSelecting ? getSelection()?.focusNode : null;
    const word = (focus instanceof Element ? focus : focus?.parentElement)?.closest(".word");
    if (!word) return;
    const selection = getSelection();
    const isBackward = selection?.anchorNode && isBefore(word, selection.anchorNode);
    if (isBackward) word.before(blank);
    else word.after(blank);
  });
}

/** @param {Node} node @param {Node} other */
const isBefore = (node, other) => Boolean(node.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);

/**
 * Selects the words of a span on the pages that are rendered.
 * @param {HTMLElement} root @param {number} start @param {number} end
 */
export function selectWords(root, start, end) {
  const words = /** @type {HTMLElement[]} */ ([...root.querySelectorAll("[data-start]")]).filter((node) => {
    const from = Number(node.dataset.start);
    return from < end && from + [...(node.textContent ?? "")].length > start;
  });
  const [first, last] = [words[0]?.firstChild, words.at(-1)?.firstChild];
  if (!first || !last) return false;
  const from = unitsOf(first, start - Number(words[0].dataset.start));
  const to = unitsOf(last, end - Number(words.at(-1)?.dataset.start));
  getSelection()?.setBaseAndExtent(first, from, last, to);
  return true;
}

/** UTF-16 units of the first code points of a text. @param {Node} node @param {number} count */
function unitsOf(node, count) {
  const chars = [...(node.textContent ?? "")];
  return chars.slice(0, Math.max(0, Math.min(count, chars.length))).join("").length;
}
