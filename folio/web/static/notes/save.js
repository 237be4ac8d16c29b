// Saving a note that another tab or person may change meanwhile.

import * as api from "../base/api.js";

/** @typedef {Api.NoteJson} Note */

/**
 * A function that saves what was edited. If the note has changed since, it throws, and the person is told what the note
 * is now; saved again, their words take its place.
 * @param {Note} note as it was when its editing began
 */
export function makeSaver({ id, text }) {
  /** @type {string | null} */
  let before = text;
  return async (/** @type {string} */ words, /** @type {Note["colour"]} */ colour) => {
    try {
      return await api.editNote(id, { text: words, colour, before });
    } catch (thrown) {
      if (thrown instanceof api.ApiError && thrown.status === 409) before = null;
      throw thrown;
    }
  };
}
