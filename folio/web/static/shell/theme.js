// The button for the dark mode. theme.js, beside app.js, applies the choice before the page is rendered.

import { remember } from "../base/dom.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

/** @type {() => void} */
let update = () => {};

/** Changes between light and dark. */
export function toggleTheme() {
  const chosen = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = chosen;
  remember("theme", chosen);
  update();
}

/** @param {HTMLElement} button */
export function setUpTheme(button) {
  update = () => button.setAttribute("aria-pressed", String(isDark()));
  button.onclick = toggleTheme;
  system.addEventListener("change", update);
  update();
}
