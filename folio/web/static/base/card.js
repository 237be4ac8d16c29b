// The card of a citation: shown beside it on hover, on focus and on tap, and hidden when it is left.

import { el } from "./dom.js";
import { isInView, placeBeside } from "./floating.js";
import { onScroll } from "./scrolling.js";

const SHOW_MS = 150; // that the pointer rests on a citation
const HIDE_MS = 250; // to reach the card from it

const card = el("div", { class: "card", popover: "manual", role: "group" });
/** @type {HTMLElement | null} the citation that the card belongs to, while it is shown */
let chip = null;
/** @type {number | undefined} */
let timer;

/**
 * Shows a card beside a citation on hover, on focus and on tap. label: what the card is, read aloud.
 * @param {HTMLElement} node @param {string} label @param {() => Node[] | Promise<Node[]>} render [] for no card
 */
export function attachCard(node, label, render) {
  let pointer = "";
  const show = () => showCard(node, label, render);
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
      if (wasTapped) event.stopImmediatePropagation(); // a tap shows the card, which has a button for the place
      if (wasTapped) event.preventDefault();
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

/** @param {HTMLElement} node @param {string} label @param {() => Node[] | Promise<Node[]>} render */
async function showCard(node, label, render) {
  clearTimeout(timer);
  if (chip === node || !node.isConnected) return;
  hideCard();
  chip = node;
  const parts = render();
  const nodes = parts instanceof Promise ? await parts : parts;
  if (chip !== node || !node.isConnected || !nodes.length) return;
  card.replaceChildren(...nodes);
  card.setAttribute("aria-label", label);
  node.after(card); // the next in the order of the keyboard
  card.showPopover();
  node.setAttribute("aria-expanded", "true");
  placeBeside(card, node.getBoundingClientRect());
}

export function hideCard() {
  clearTimeout(timer);
  chip?.setAttribute("aria-expanded", "false");
  chip = null;
  card.remove(); // which hides it
}

/** @param {FocusEvent} event */
function hideUnlessInside(event) {
  if (!chip) return; // it is being hidden
  const next = /** @type {Node | null} */ (event.relatedTarget);
  if (next && (card.contains(next) || next === chip)) return;
  if (card.matches(":hover")) return; // words of the card are being selected
  hideCard();
}

/** The card follows its citation where that scrolls. @param {HTMLElement} scroller */
export function followCard(scroller) {
  onScroll(scroller, () => {
    if (!chip) return;
    const rect = chip.getBoundingClientRect();
    if (isInView(rect, scroller)) placeBeside(card, rect);
    else hideCard();
  });
}

card.addEventListener("pointerenter", () => clearTimeout(timer));
card.addEventListener("pointerleave", () => {
  if (!card.querySelector(":focus-visible")) wait(hideCard, HIDE_MS); // else the keyboard is in it
});
card.addEventListener("focusout", hideUnlessInside);
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

/** Focuses a citation without its card. @param {HTMLElement} node */
function focusQuietly(node) {
  node.focus({ preventScroll: true });
  hideCard();
}
