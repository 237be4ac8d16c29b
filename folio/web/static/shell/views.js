// The views of the page: one is shown at a time. The navigation is built from them.

import { el, makeLink } from "../base/dom.js";
import { parsePlace } from "../base/place.js";
import { goTo, place } from "../base/router.js";
import { t } from "../base/strings.js";
import { joinLines, shorten } from "../base/text.js";

/** @typedef {import("../base/strings.js").Key} Key */
/** @typedef {import("../base/place.js").Place} Place */
/** @typedef {import("../base/place.js").View} Name */

/**
 * @typedef {object} View
 * @property {Name} name
 * @property {Key} text its name
 * @property {HTMLElement} section
 * @property {Name} [under] the view that stands for it in the navigation, where it has no link itself
 * @property {boolean} [hasTitle] it sets the title of the document itself
 * @property {number} [scrolled] where the page scrolls as a whole: how far it was, in this view
 * @property {boolean} [isTyped] its field gets the focus when it is shown
 */

/** @type {View[]} */
const views = [];

/** The views with a link, in the order of the keys that open them. */
export const listLinked = () => views.filter(({ under }) => !under);

/** @param {View} view */
export function registerView(view) {
  view.section.setAttribute("aria-label", t(view.text));
  views.push(view);
}

const getView = () => views.find(({ name }) => name === place.get().view) ?? views[0];

/** Focuses the field of the view in which a person types; its content if it has none. */
export function focusField() {
  const { section } = getView();
  const field = /** @type {HTMLElement | null} */ (
    section.querySelector('[aria-keyshortcuts~="/"]') ?? section.querySelector('input[type="search"]')
  );
  (field ?? /** @type {HTMLElement | null} */ (section.closest("main")))?.focus();
}

/** Follows a link to another view; what is open in the reader stays. @param {HTMLAnchorElement} link */
export function followLink({ hash }) {
  const { view, id, query } = parsePlace(hash);
  goTo({ view, id, query });
}

/** @param {HTMLElement} nav */
export function renderNav(nav) {
  nav.replaceChildren(
    ...listLinked().map(({ name, text }, at) => {
      const keys = `Alt+${at + 1}`;
      const [label, ...rest] = t(text).split(" "); // on a narrow screen one word is shown
      const more = rest.length ? el("span", { class: "rest-of-name" }, ` ${rest.join(" ")}`) : null;
      const given = { id: `to-${name}`, "data-view": name, "aria-keyshortcuts": keys, title: keys };
      return makeLink(`#${name}`, ({ currentTarget }) => followLink(currentTarget), given, label, more);
    }),
  );
}

/** Shows the view of the address. @param {HTMLElement} nav */
export function showView(nav) {
  const view = getView();
  const before = views.find(({ section }) => !section.hidden);
  if (before) before.scrolled = document.body.scrollTop;
  for (const { section } of views) section.hidden = section !== view.section;
  document.body.scrollTop = view.scrolled ?? 0;
  for (const link of nav.querySelectorAll("a")) {
    if (link.dataset.view === (view.under ?? view.name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view.hasTitle) return;
  const words = shorten(joinLines(place.get().query.q ?? ""), 60);
  document.title = [words, t(view.text), "Folio"].filter(Boolean).join(" · ");
}

const canHover = matchMedia("(hover: hover)");

/** Focuses the field of a view that was opened to type in; on a touch screen that would open the keyboard. */
export function focusTyped() {
  if (getView().isTyped && canHover.matches) focusField();
}
