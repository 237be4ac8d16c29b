// What floats over the page beside something else: the card of a citation, the tools of a selection, a menu.

import { getScroller } from "./scrolling.js";

const MARGIN = 8; // pixels to the edges of the window
const GAP = 6;

/**
 * Places an open popover below a rectangle, or above it where there is no room below.
 * @param {HTMLElement} node @param {{left: number, top: number, bottom: number}} rect
 */
export function placeBeside(node, { left, top, bottom }) {
  const { offsetWidth: width, offsetHeight: height } = node;
  const hasRoom = bottom + GAP + height + MARGIN <= innerHeight;
  const y = hasRoom ? bottom + GAP : Math.max(MARGIN, top - GAP - height);
  const x = Math.max(MARGIN, Math.min(left, innerWidth - width - MARGIN));
  node.style.setProperty("left", `${x}px`);
  node.style.setProperty("top", `${y}px`);
}

/** Whether a rectangle is in the view of a part that scrolls. @param {DOMRect} rect @param {HTMLElement} part */
export function isInView(rect, part) {
  const view = getScroller(part).getBoundingClientRect();
  return rect.bottom > view.top && rect.top < view.bottom;
}
