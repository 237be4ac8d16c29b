// Words that are selected in an answer: what can be done with them, in a small bar beside them.

import { copyText, el, makeButton, makeIcon } from "../base/dom.js";
import { showFailure } from "../base/failure.js";
import { onScroll } from "../base/scrolling.js";
import { library, selection } from "../base/state.js";
import { t } from "../base/strings.js";
import { formatMark, joinLines } from "../base/text.js";
import { FORMATS, formatQuoted } from "../reader/citing.js";
import { getPaper } from "../reader/pages.js";
import { isInView, placeBeside } from "../base/floating.js";
import { keepNote } from "./keep.js";
import { getOrigin, WITH_ORIGIN } from "./origin.js";
import { locate } from "./spans.js";

/** @typedef {import("./origin.js").Origin} Origin */
/** @typedef {import("./origin.js").Quote} Quote */

const STILL_MS = 200; // after which a selection that no longer changes is offered something

const bar = el("div", { class: "selecting", popover: "manual", role: "toolbar", "aria-label": t("ask.selected") });

/** What the selected words are a part of: its statements and their quotes; null if they are in no answer. */
/** @param {Selection} chosen @returns {Origin | null} */
function findOrigin(chosen) {
  if (chosen.isCollapsed || !chosen.rangeCount) return null;
  const range = chosen.getRangeAt(0);
  const { commonAncestorContainer: node } = range;
  const parent = node instanceof Element ? node : node.parentElement;
  const inner = parent?.closest(WITH_ORIGIN);
  if (inner) return getOrigin(inner);
  const turn = parent?.closest(".turn");
  if (!turn) return null;
  const touched = [...turn.querySelectorAll(WITH_ORIGIN)].filter((each) => range.intersectsNode(each));
  // A quote inside of a statement that is selected too belongs to it.
  const outer = touched.filter((each) => !touched.some((other) => other !== each && other.contains(each)));
  const origins = outer.flatMap((each) => getOrigin(each) ?? []);
  if (!origins.length) return null;
  const statement = origins.map((each) => joinLines(each.statement)).filter(Boolean);
  return {
    statement: statement.join(" "),
    quotes: origins.flatMap(({ quotes }) => quotes),
    answered: origins[0].answered,
  };
}

/** The selected words without what is only for screen readers, and without the citations. @param {Range} range */
function readWords(range) {
  const copy = range.cloneContents();
  for (const node of copy.querySelectorAll(".unseen, .chip, .sign, .card, .in-place, .held")) node.remove();
  return joinLines(copy.textContent ?? "");
}

/** Copies words with the citations of an answer, or with whole references for a document. */
/** @param {string} words @param {Quote[]} quotes @param {import("../reader/citing.js").Format} format */
async function copy(words, quotes, format) {
  const marks = [...new Set(quotes.map(formatMark))].join(" ");
  if (format === "plain") return copyText(`“${words}” ${marks}`, t("ask.copy.words"));
  const pages = new Map(quotes.map(({ paper, page }) => [`${paper} ${page}`, { paper, page }]));
  try {
    const sources = await Promise.all(
      [...pages.values()].map(async ({ paper, page }) => ({ page, ...(await getPaper(paper)) })),
    );
    await copyText(formatQuoted({ text: words, sources }, format), t("ask.copy.words"));
  } catch (thrown) {
    showFailure(thrown);
  }
}

/** The button for copying, and the forms that it offers. */
/** @param {string} words @param {Quote[]} quotes @param {() => void} onUnfold */
function renderCopying(words, quotes, onUnfold) {
  const forms = el(
    "div",
    { class: "selecting-more", hidden: true },
    FORMATS.map(([format, key]) => makeButton("button quiet", () => copy(words, quotes, format), t(key))),
  );
  const toggle = makeButton(
    "button quiet",
    () => {
      forms.hidden = !forms.hidden;
      toggle.setAttribute("aria-expanded", String(!forms.hidden));
      if (!forms.hidden) forms.querySelector("button")?.focus();
      onUnfold();
    },
    makeIcon("copy"),
    t("ask.selected.copy"),
  );
  toggle.setAttribute("aria-expanded", "false");
  return [toggle, forms];
}

/** @param {string} words @param {Origin} origin @param {Range} range */
function show(words, origin, range) {
  const { quotes } = origin;
  const place = locate(words, quotes);
  const isHere = place !== null && library.get().papers.has(place.paper);
  const ask = () => {
    hide();
    getSelection()?.removeAllRanges();
    if (place) selection.set(place);
  };
  const put = () => placeBeside(bar, range.getBoundingClientRect());
  bar.replaceChildren(
    ...(isHere ? [makeButton("button quiet", ask, makeIcon("send"), t("ask.selected.ask"))] : []),
    makeButton("button quiet", () => keepNote(origin), makeIcon("note"), t("ask.note")),
    ...renderCopying(words, quotes, put),
  );
  // After the words, so that it comes next with the keyboard
  const end = range.endContainer instanceof Element ? range.endContainer : range.endContainer.parentElement;
  const block = end?.closest("p, li, blockquote, div");
  if (bar.previousElementSibling !== block) block?.after(bar);
  if (!bar.matches(":popover-open")) bar.showPopover();
  put();
}

function hide() {
  bar.remove(); // which hides it
}

/** @param {HTMLElement} scroller */
function update(scroller) {
  const chosen = getSelection();
  if (!chosen || bar.contains(document.activeElement)) return;
  const origin = findOrigin(chosen);
  const range = origin ? chosen.getRangeAt(0) : null;
  const words = range && isInView(range.getBoundingClientRect(), scroller) ? readWords(range) : "";
  if (origin && range && words) show(words, origin, range);
  else hide();
}

/** @param {HTMLElement} scroller what the answers are scrolled in */
export function setUpSelecting(scroller) {
  /** @type {number | undefined} */
  let timer;
  const updateSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(update, STILL_MS, scroller);
  };
  document.addEventListener("selectionchange", updateSoon);
  // Pressing a button of the bar would take the selection away.
  bar.addEventListener("pointerdown", (event) => event.preventDefault());
  onScroll(scroller, () => {
    const chosen = getSelection();
    if (!chosen?.rangeCount || chosen.isCollapsed) return;
    if (!bar.isConnected) return updateSoon();
    const rect = chosen.getRangeAt(0).getBoundingClientRect();
    if (isInView(rect, scroller)) placeBeside(bar, rect);
    else hide();
  });
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !bar.isConnected) return;
      event.stopPropagation(); // what is below the bar stays open
      const isInside = bar.contains(document.activeElement);
      hide();
      if (isInside) scroller.focus();
    },
    { capture: true },
  );
}
