// The settings, and how they are changed: at once or, where the index must be made again, with a rebuild.

import * as api from "../base/api.js";
import { confirmAction, el, formatCommands, showToast } from "../base/dom.js";
import { loadHealth } from "../base/state.js";
import { t } from "../base/strings.js";
import { Value } from "../base/value.js";

/** @type {Value<Api.SettingsJson | null>} */
export const settings = new Value(/** @type {Api.SettingsJson | null} */ (null));

/** Throws ApiError. */
export async function loadSettings() {
  settings.set(await api.getSettings());
}

/** @param {string} name */
export const findSetting = (name) => settings.get()?.settings.find((each) => each.name === name);

/** @param {string} name */
export const readSetting = (name) => findSetting(name)?.value ?? "";

/** Whether the environment has one of these settings, so that it cannot be changed here. @param {...string} names */
export const isGiven = (...names) => names.some((name) => findSetting(name)?.origin === "environment");

/**
 * Changes settings; null for a default. Returns whether they are in use now, or will be after a rebuild. Throws
 * ApiError.
 * @param {Record<string, string | null>} changes
 */
export async function changeSettings(changes) {
  const reply = await api.changeSettings(changes);
  settings.set(reply.settings);
  if (reply.needs_rebuild) return rebuild(reply.needs_rebuild, changes);
  showToast(t("settings.changed"));
  loadHealth().catch(() => {});
  return true;
}

/**
 * Makes the index again once a person has confirmed it. Returns whether it was started. Throws ApiError.
 * @param {string} reason @param {Record<string, string | null>} [changes] @param {boolean} [dropsMissing]
 */
export async function rebuild(reason, changes = {}, dropsMissing = false) {
  const text = el("span", {}, formatCommands(reason), " ", t("settings.rebuild.text"));
  if (settings.get()?.is_shared) text.append(" ", t("settings.rebuild.shared"));
  if (!(await confirmAction(t("settings.rebuild.title"), text, t("settings.rebuild")))) return false;
  await api.startRebuild({ changes, drops_missing: dropsMissing });
  return true;
}
