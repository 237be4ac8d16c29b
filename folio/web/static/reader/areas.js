// Drawing an area of a page, such as a figure: by dragging with Alt, or once a button was pressed.

import { el } from "../base/dom.js";

const SMALLEST = 8; // pixels on each side; a smaller area is a slip of the hand

/**
 * Lets a person draw areas on pages. Returns a function that arms the next drag; Escape calls it off.
 * @param {HTMLElement} root of the pages
 * @param {(page: number, x: number, y: number) => [number, number]} toPoints a place on the screen on a page
 * @param {(page: number, area: import("./spans.js").Box) => void} onArea
 */
export function setUpAreas(root, toPoints, onArea) {
  const arm = (/** @type {boolean} */ isArmed) => root.classList.toggle("drawing", isArmed);
  const frame = el("div", { class: "page-area" });
  /** @type {{page: number, x: number, y: number} | null} where the drag began */
  let from = null;
  const stop = () => {
    from = null;
    frame.remove();
    arm(false);
  };
  root.addEventListener(
    "pointerdown",
    (event) => {
      const sheet = event.target instanceof Element ? event.target.closest(".page-sheet") : null;
      if (!sheet || event.button || !(event.altKey || root.classList.contains("drawing"))) return;
      event.preventDefault(); // no words are selected
      event.stopPropagation();
      arm(true);
      root.setPointerCapture(event.pointerId);
      const page = Number(/** @type {HTMLElement} */ (sheet.closest(".page"))?.dataset.page);
      from = { page, x: event.clientX, y: event.clientY };
    },
    { capture: true },
  );
  root.addEventListener("pointermove", ({ clientX: x, clientY: y }) => {
    if (!from) return;
    const sides = { left: Math.min(from.x, x), top: Math.min(from.y, y) };
    const size = { width: Math.abs(x - from.x), height: Math.abs(y - from.y) };
    for (const [name, value] of Object.entries({ ...sides, ...size })) frame.style.setProperty(name, `${value}px`);
    root.append(frame);
  });
  root.addEventListener("pointerup", ({ clientX: x, clientY: y }) => {
    if (!from) return;
    const { page, x: left, y: top } = from;
    stop();
    if (Math.min(Math.abs(x - left), Math.abs(y - top)) < SMALLEST) return;
    const [one, other] = [toPoints(page, left, top), toPoints(page, x, y)];
    const [low, high] = [Math.min, Math.max].map((pick) => one.map((side, at) => Math.max(0, pick(side, other[at]))));
    onArea(page, [low[0], low[1], high[0], high[1]]);
  });
  root.addEventListener("pointercancel", stop);
  addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !root.classList.contains("drawing")) return;
      event.stopPropagation();
      stop();
    },
    { capture: true },
  );
  return () => arm(true);
}
