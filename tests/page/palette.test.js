import assert from "node:assert/strict";
import test from "node:test";
import { findEntries, makeEntry } from "../../folio/web/static/palette/match.js";

const TITLES = ["In Search of Raft", "Raft Refloated", "Paxos Made Live", "Aircraft of the Alps", "Über Raft Logs"];
const entries = TITLES.map((title, at) => makeEntry(title, title, [at === 2 ? "Chandra 2007 raft" : "Ongaro"]));

test("titles that begin with the words come first, then those with the words, then other fields", () => {
  const expected = ["Raft Refloated", "In Search of Raft", "Aircraft of the Alps", "Über Raft Logs", "Paxos Made Live"];
  assert.deepEqual(findEntries(entries, "raft", 9), expected);
});

test("all words are needed, in any order, in any field", () => {
  assert.deepEqual(findEntries(entries, "chandra paxos", 9), ["Paxos Made Live"]);
  assert.deepEqual(findEntries(entries, "uber logs", 9), ["Über Raft Logs"]);
  assert.deepEqual(findEntries(entries, "raft zebra", 9), []);
});

test("without words, the first entries are listed", () => {
  assert.deepEqual(findEntries(entries, "  ", 2), TITLES.slice(0, 2));
});

test("characters of patterns are only characters", () => {
  assert.deepEqual(findEntries(entries, ".*", 9), []);
});
