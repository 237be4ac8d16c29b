// Saving a note that another tab or person may change meanwhile.

import * as api from "../base/api.js";
import { t } from "../base/strings.js";
import { offerUndo } from "../base/undo.js";

/** @typedef {Api.NoteJson} Note */

/**
 * A place in a paper, as the server takes it.
 * @param {Pick<Api.NoteQuoteJson, "paper" | "start" | "end" | "quote" | "page" | "area">} place
 */
export const toPlace = ({ paper, start, end, quote, page, area }) =>
  quote ? { paper, start, end, quote } : { paper, page, area };

/**
 * A function that saves what was edited. If the note has changed since, it throws, and the person is told what the note
 * is now; saved again, their words take its place. A note that was deleted meanwhile is saved again as a new one.
 * @param {Note} note as it was when its editing began
 */
export function makeSaver({ id, text, statement, conversation, turn, quotes }) {
  /** @type {string | null} */
  let before = text;
  let isNew = false;
  const spans = quotes.map(toPlace);
  const canBeAdded = quotes.every(({ place }) => place === "here" || place === "moved");
  return async (/** @type {string} */ words, /** @type {Note["colour"]} */ colour) => {
    if (isNew) return api.addNote({ quotes: spans, text: words, colour, statement, conversation, turn });
    try {
      const key = api.makeKey();
      const edited = await api.editNote(id, { text: words, colour, before }, key);
      offerUndo(t("notes.edited"), key);
      return edited;
    } catch (thrown) {
      if (!(thrown instanceof api.ApiError)) throw thrown;
      if (thrown.status === 409) before = null;
      if (thrown.status !== 404) throw thrown;
      isNew = canBeAdded;
      throw new api.ApiError(t("notes.gone"), t(canBeAdded ? "notes.gone.remedy" : "notes.gone.copy"));
    }
  };
}
