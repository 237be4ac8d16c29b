import assert from "node:assert/strict";
import test from "node:test";
import { formatShortcut, matchesKeys, nameKeys } from "../../folio/web/static/shell/match_keys.js";

const press = (key, more = {}) => ({ key, code: "", ctrlKey: false, metaKey: false, altKey: false, ...more });

test("a key is its character, whatever its case", () => {
  assert.ok(matchesKeys(press("n"), "n"));
  assert.ok(matchesKeys(press("N"), "n"));
  assert.ok(matchesKeys(press("?"), "?"));
  assert.ok(matchesKeys(press("+"), "+"));
  assert.ok(!matchesKeys(press("n", { ctrlKey: true }), "n"));
  assert.ok(!matchesKeys(press("n", { altKey: true }), "n"));
});

test("Mod is Ctrl or Cmd", () => {
  assert.ok(matchesKeys(press("k", { ctrlKey: true }), "Mod+K"));
  assert.ok(matchesKeys(press("k", { metaKey: true }), "Mod+K"));
  assert.ok(!matchesKeys(press("k"), "Mod+K"));
});

test("a digit is the place of the key: with Alt, some keyboards type something else", () => {
  assert.ok(matchesKeys(press("¡", { code: "Digit1", altKey: true }), "Alt+1"));
  assert.ok(!matchesKeys(press("1", { code: "Digit1" }), "Alt+1"));
});

test("keys are named as they are on the keyboard", () => {
  assert.deepEqual(nameKeys("Mod+K", false), ["Ctrl", "K"]);
  assert.deepEqual(nameKeys("Mod+K", true), ["Cmd", "K"]);
  assert.deepEqual(nameKeys("+", false), ["+"]);
  assert.deepEqual(nameKeys("ArrowDown", false), ["↓"]);
  assert.equal(formatShortcut("Mod+K"), "Control+K");
});
