// Where the page is. Each state has an address: Back returns to the state before, and a reload shows the state again.

import { closeLeftPanels } from "./panels.js";
import { formatPlace, isSamePlace, parsePlace } from "./place.js";
import { Value } from "./value.js";

/** @typedef {import("./place.js").Place} Place */
/** @typedef {import("./place.js").Reading} Reading */
/** @typedef {import("./place.js").Look} Look */

/** @type {Value<Place>} */
export const place = new Value(parsePlace(location.hash));

// The entry of the history that opened the reader, and the one below it, have the same number.
let opened = history.state?.reader ?? 0;

/**
 * Shows another place. replace: without an entry of its own in the browser's history, as for what is being typed.
 * @param {Partial<Place>} change
 * @param {{replace?: boolean}} [how]
 */
export function goTo(change, { replace = false } = {}) {
  const next = { ...place.get(), ...change };
  if (isSamePlace(next, place.get())) return;
  const isOpening = next.reading && !place.get().reading; // Back closes the reader
  if (replace) history.replaceState(history.state, "", formatPlace(next));
  else {
    opened = isOpening ? Date.now() : 0;
    if (opened) history.replaceState({ ...history.state, below: opened }, "");
    history.pushState(opened ? { reader: opened } : null, "", formatPlace(next));
  }
  place.set(next);
}

/** Changes what a view shows besides its id. Empty values are left out. @param {Record<string, string>} change */
export function setQuery(change, { replace = true } = {}) {
  const entries = Object.entries({ ...place.get().query, ...change }).filter(([, value]) => value);
  goTo({ query: Object.fromEntries(entries) }, { replace });
}

/** The address of another view, for a link. What is open in the reader stays. @param {Partial<Place>} change */
export const linkTo = (change) =>
  formatPlace({ view: "ask", id: "", query: {}, reading: place.get().reading, ...change });

/** @type {() => Look} how the reader shows pages now, and what is opened next */
let readLook = () => ({});

/** @param {() => Look} read */
export const setLook = (read) => (readLook = read);

/** Opens a page of a paper. @param {Reading} reading @param {{replace?: boolean}} [how] */
export function openReading(reading, { replace = place.get().reading !== null } = {}) {
  goTo({ reading: { ...reading, ...readLook() } }, { replace });
}

/** Closes the reader. Where it was just opened, this is a step back. */
export function closeReading() {
  if (!place.get().reading) return;
  if (history.state?.reader) history.back();
  else goTo({ reading: null }, { replace: true });
}

addEventListener("popstate", () => {
  const isClosing = opened && history.state?.below === opened;
  opened = history.state?.reader ?? 0;
  if (closeLeftPanels()) {
    history.replaceState(history.state, "", formatPlace(place.get())); // it may have changed below the panel
    return;
  }
  let next = parsePlace(location.hash);
  if (isClosing) {
    // What was changed beside the reader stays: a filter, or the address of a conversation that has its first answer.
    next = { ...place.get(), reading: null };
    history.replaceState(history.state, "", formatPlace(next));
  }
  if (!isSamePlace(next, place.get())) place.set(next);
});
