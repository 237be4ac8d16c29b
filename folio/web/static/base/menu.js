// A small menu below a button: a few buttons in a popover, which Escape and a press elsewhere close.

import { el } from "./dom.js";
import { placeBeside } from "./floating.js";

/**
 * Gives a button a menu, which is filled each time that it opens. Returns both, to be shown one after the other.
 * @param {HTMLButtonElement} button @param {string} label @param {(close: () => void) => HTMLElement[]} render
 * @returns {[HTMLButtonElement, HTMLElement]}
 */
export function addMenu(button, label, render) {
  const menu = el("div", { class: "menu", popover: "auto", role: "group", "aria-label": label });
  button.popoverTargetElement = menu;
  menu.addEventListener("beforetoggle", ({ newState }) => {
    if (newState === "open") menu.replaceChildren(...render(() => menu.hidePopover()));
  });
  menu.addEventListener("toggle", ({ newState }) => {
    if (newState === "closed") return menu.replaceChildren();
    placeBeside(menu, button.getBoundingClientRect());
    menu.querySelector("button")?.focus();
  });
  return [button, menu];
}
