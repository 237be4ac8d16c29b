// Keys by their names: "Mod+K" (Ctrl; on a Mac also Cmd), "Alt+1", "?", "Escape".

/** @typedef {Pick<KeyboardEvent, "key" | "code" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">} Pressed */

/** Whether the pressed keys are these. @param {Pressed} pressed @param {string} keys */
export function matchesKeys({ key, code, ctrlKey, metaKey, altKey, shiftKey }, keys) {
  const parts = keys.split("+");
  const wanted = parts.pop() || "+";
  const isMod = parts.includes("Mod");
  if (isMod && shiftKey) return false; // such as Ctrl+Shift+Z, which does again
  if ((ctrlKey || metaKey) !== isMod || altKey !== parts.includes("Alt")) return false;
  if (/^\d$/.test(wanted)) return code === `Digit${wanted}`; // Alt changes the character on some keyboards
  return wanted.length === 1 ? key.toLowerCase() === wanted.toLowerCase() : key === wanted;
}

/** @type {Record<string, string>} */
const NAMES = { Mod: "Ctrl", Escape: "Esc", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };

/** The keys as they are shown, one by one. @param {string} keys @param {boolean} isMac @returns {string[]} */
export function nameKeys(keys, isMac) {
  if (keys === "+") return ["+"];
  return keys.split("+").map((key) => (isMac && key === "Mod" ? "Cmd" : (NAMES[key] ?? key)));
}

/** The keys for aria-keyshortcuts. @param {string} keys */
export const formatShortcut = (keys) => (keys.startsWith("Mod+") ? keys.replace("Mod+", "Control+") : keys);
