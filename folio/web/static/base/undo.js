// The last deletion or change can be undone until the next one: by the button of its message, by Ctrl+Z, and in the
// palette. The server keeps what was there; the tab keeps the key to it, over a reload.

import * as api from "./api.js";
import { keepInTab, readInTab, showToast } from "./dom.js";
import { startAgain } from "./events.js";
import { showFailure } from "./failure.js";
import { oneAtATime } from "./pace.js";
import { goTo } from "./router.js";
import { t } from "./strings.js";

/** @typedef {{text: string, key: string, back: Partial<import("./place.js").Place> | null}} Change */

/** @type {Change | null} */
let last = readInTab("undo");
let isTyped = false; // whether a person has typed since

const noteTyping = () => {
  isTyped = true;
};
addEventListener("input", noteTyping, { capture: true });

/** @param {Change | null} change */
function setLast(change) {
  last = change;
  isTyped = false;
  keepInTab("undo", change);
}

/** What Ctrl+Z undoes; null for nothing. */
export const getLastChange = () => last;

/**
 * Says what was done with a key of makeKey, and offers to undo it.
 * @param {string} text @param {string} key @param {Change["back"]} [back] where to go once it is undone
 */
export function offerUndo(text, key, back = null) {
  setLast({ text, key, back });
  showToast(text, { label: t("undo"), run: undo });
}

export const undo = oneAtATime(async () => {
  if (!last) return;
  const { key, back } = last;
  showToast(t("undo.doing"));
  try {
    await api.undo(key);
    showToast(t("undo.done"));
  } catch (thrown) {
    showFailure(thrown);
    if (api.toApiError(thrown).status === 0) return; // the server was away: it can be tried again
  }
  if (last?.key === key) setLast(null);
  startAgain();
  if (back) goTo(back);
});

/** Ctrl+Z. A field with words in it, or in which a person has typed since, has its own. Returns false there. */
export function undoByKey() {
  const field = document.activeElement;
  const isText = field?.matches("textarea, input:not([type=checkbox], [type=radio])");
  if (!last || (isText && (isTyped || /** @type {HTMLInputElement} */ (field).value))) return false;
  return undo();
}
