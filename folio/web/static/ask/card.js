// The card of a citation in a text: its quote, and what opens its page or keeps it as a note.

import { el, formatPage, isolate, makeButton, makeIcon } from "../base/dom.js";
import { getTitle, library } from "../base/state.js";
import { t } from "../base/strings.js";
import { joinLines, shorten } from "../base/text.js";
import { renderNotice } from "../paper/notice.js";
import { isInView, placeBeside } from "./floating.js";
import { keepNote } from "./keep.js";
import { setOrigin } from "./origin.js";

/** @typedef {import("./origin.js").Origin} Origin */
/** @typedef {import("./statement.js").CitedPage} CitedPage */

const SHOW_MS = 150; // that the pointer rests on a citation
const HIDE_MS = 250; // to reach the card from it

const card = el("div", { class: "card", popover: "manual", role: "group", "aria-label": t("ask.card") });
/** @type {HTMLElement | null} the citation that the card belongs to, while it is shown */
let chip = null;
/** @type {number | undefined} */
let timer;

/**
 * Shows a card beside a citation on hover, on focus and on tap. open: opens the page; it gets what to focus later.
 * @param {HTMLElement} node @param {CitedPage} cited @param {Origin} origin @param {(from: HTMLElement) => void} open
 */
export function attachCard(node, cited, origin, open) {
  let pointer = "";
  const show = () => showCard(node, () => renderCard(node, cited, origin, open));
  node.setAttribute("aria-expanded", "false");
  node.addEventListener("pointerdown", (event) => (pointer = event.pointerType));
  node.addEventListener("pointerenter", (event) => {
    if (event.pointerType === "mouse") wait(show, SHOW_MS);
  });
  node.addEventListener("pointerleave", () => wait(hideCard, HIDE_MS));
  node.addEventListener("focus", () => {
    if (node.matches(":focus-visible")) show();
  });
  node.addEventListener("focusout", hideUnlessInside);
  node.addEventListener(
    "click",
    (event) => {
      const wasTapped = pointer === "touch" || pointer === "pen";
      pointer = "";
      if (wasTapped) event.stopImmediatePropagation(); // a tap shows the quote; the card has a button for the page
      if (wasTapped && chip !== node) show();
      else hideCard();
    },
    { capture: true },
  );
}

/** @param {() => void} act @param {number} ms */
function wait(act, ms) {
  clearTimeout(timer);
  timer = setTimeout(act, ms);
}

/** @param {HTMLElement} node @param {() => Node[]} render */
function showCard(node, render) {
  clearTimeout(timer);
  if (chip === node || !node.isConnected) return;
  hideCard();
  chip = node;
  card.replaceChildren(...render());
  node.after(card); // the next in the order of the keyboard
  card.showPopover();
  node.setAttribute("aria-expanded", "true");
  placeBeside(card, node.getBoundingClientRect());
}

function hideCard() {
  clearTimeout(timer);
  chip?.setAttribute("aria-expanded", "false");
  chip = null;
  card.remove(); // which hides it
}

/**
 * @param {HTMLElement} node @param {CitedPage} cited @param {Origin} origin
 * @param {(from: HTMLElement) => void} open
 */
function renderCard(node, cited, origin, open) {
  const { answered } = origin;
  const quotes = cited.quotes.map(({ text }) => {
    const own = origin.quotes.filter(({ quote }) => quote === text);
    return setOrigin(el("p", {}, "“", isolate(joinLines(text)), "”"), { statement: "", quotes: own, answered });
  });
  const { year = cited.year } = library.get().papers.get(cited.paper) ?? {};
  const place = [year, formatPage(cited.page, cited.label), ...cited.sections].filter(Boolean).join(" · ");
  const openPage = () => {
    hideCard();
    open(node);
  };
  return [
    el("blockquote", { tabindex: "0" }, quotes),
    el("p", { class: "card-title" }, isolate(shorten(joinLines(getTitle(cited))))),
    el("p", { class: "about" }, isolate(joinLines(place))),
    ...(cited.notice ? [renderNotice(cited.notice)] : []),
    el(
      "div",
      { class: "row" },
      makeButton("button quiet", openPage, makeIcon("out"), t("ask.card.open")),
      makeButton("button quiet", () => keepNote(origin), makeIcon("note"), t("ask.note")),
    ),
  ];
}

/** @param {FocusEvent} event */
function hideUnlessInside(event) {
  if (!chip) return; // it is being hidden
  const next = /** @type {Node | null} */ (event.relatedTarget);
  if (next && (card.contains(next) || next === chip)) return;
  if (card.matches(":hover")) return; // words of the card are being selected
  hideCard();
}

/** Sets up what hides the card. @param {HTMLElement} scroller what the answers are scrolled in */
export function setUpCard(scroller) {
  card.addEventListener("pointerenter", () => clearTimeout(timer));
  card.addEventListener("pointerleave", () => {
    if (!card.querySelector(":focus-visible")) wait(hideCard, HIDE_MS); // else the keyboard is in it
  });
  card.addEventListener("focusout", hideUnlessInside);
  scroller.addEventListener(
    "scroll",
    () => {
      if (!chip) return;
      const rect = chip.getBoundingClientRect();
      if (isInView(rect, scroller)) placeBeside(card, rect);
      else hideCard();
    },
    { passive: true },
  );
  document.addEventListener("pointerdown", ({ target }) => {
    const node = /** @type {Node} */ (target);
    if (chip && !chip.contains(node) && !card.contains(node)) hideCard();
  });
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !chip) return;
      event.stopPropagation(); // what is below the card stays open
      event.preventDefault();
      const node = chip;
      const isInside = card.contains(document.activeElement);
      hideCard();
      if (isInside) focusQuietly(node);
    },
    { capture: true },
  );
}

/** Focuses a citation without its card. @param {HTMLElement} node */
function focusQuietly(node) {
  node.focus({ preventScroll: true });
  hideCard();
}
