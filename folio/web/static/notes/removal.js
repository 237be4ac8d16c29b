// Deleting notes: they leave the page at once, and the server when it is too late for "Undo".

import * as api from "../base/api.js";
import { showToast } from "../base/dom.js";
import { showFailure } from "../base/failure.js";
import { t } from "../base/strings.js";
import { Value } from "../base/value.js";

const UNDO_MS = 10_000; // as long as the message stays

/** The ids of notes that are being deleted. @type {Value<Set<string>>} */
export const leaving = new Value(new Set());

/** @type {Map<string, number>} timers, by id */
const timers = new Map();

/** @param {string[]} ids @param {boolean} isLeaving */
function mark(ids, isLeaving) {
  const next = new Set(leaving.get());
  for (const id of ids) {
    if (isLeaving) next.add(id);
    else next.delete(id);
  }
  leaving.set(next);
}

/** @param {string} id */
async function remove(id) {
  clearTimeout(timers.get(id));
  timers.delete(id);
  try {
    await api.deleteNote(id);
  } catch (thrown) {
    mark([id], false);
    showFailure(thrown);
  }
}

/** Deletes notes, with a message that offers to bring them back. @param {string[]} ids */
export function deleteNotes(ids) {
  mark(ids, true);
  for (const id of ids)
    timers.set(
      id,
      setTimeout(() => remove(id), UNDO_MS),
    );
  const run = () => {
    for (const id of ids) {
      clearTimeout(timers.get(id));
      timers.delete(id);
    }
    mark(ids, false);
  };
  showToast(t("notes.deleted", { count: ids.length }), { label: t("undo"), run });
}

// What a person has deleted is deleted, also where the page is closed before the message.
addEventListener("pagehide", () => {
  for (const id of [...timers.keys()]) remove(id);
});
