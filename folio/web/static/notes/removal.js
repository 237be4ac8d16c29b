// Deleting notes: they leave the page at once, and can be brought back until something else is changed.

import * as api from "../base/api.js";
import { onEvent } from "../base/events.js";
import { showFailure } from "../base/failure.js";
import { t } from "../base/strings.js";
import { offerUndo } from "../base/undo.js";
import { Value } from "../base/value.js";

/** The ids of notes that are deleted, until the lists are loaded again. @type {Value<Set<string>>} */
export const leaving = new Value(new Set());

onEvent("hello", () => leaving.set(new Set())); // what is there is loaded again, as after "Undo"

/** Deletes notes, with a message that offers to bring them back. @param {string[]} ids */
export async function deleteNotes(ids) {
  leaving.set(new Set([...leaving.get(), ...ids]));
  const key = api.makeKey();
  const all = await Promise.allSettled(ids.map((id) => api.deleteNote(id, key)));
  const count = all.filter(({ status }) => status === "fulfilled").length;
  if (count) offerUndo(t("notes.deleted", { count }), key);
  const failed = all.find((each) => each.status === "rejected");
  if (!failed) return;
  leaving.set(new Set([...leaving.get()].filter((id) => all[ids.indexOf(id)]?.status !== "rejected")));
  showFailure(failed.reason);
}
