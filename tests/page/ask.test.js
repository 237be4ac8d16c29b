import assert from "node:assert/strict";
import test from "node:test";
import { groupByAge } from "../../folio/web/static/ask/groups.js";
import { findSpan, locate } from "../../folio/web/static/ask/spans.js";

const QUOTE = { paper: "p", page: 2, quote: "The tongue retreats\nby 40 metres\neach year.", span: [100, 143] };

test("words are found in a quote however it is broken into lines", () => {
  assert.deepEqual(findSpan(QUOTE.quote, "retreats by 40"), [11, 25]);
  assert.deepEqual(findSpan("a 𝛼 b", "𝛼b"), [2, 5]); // in code points
  assert.equal(findSpan(QUOTE.quote, "retreats by 41"), null);
  assert.equal(findSpan(QUOTE.quote, " \n"), null);
});

test("words of a quote are a place in its paper", () => {
  const text = "retreats\nby 40";
  assert.deepEqual(locate("retreats by 40", [QUOTE]), { paper: "p", page: 2, start: 111, end: 125, text });
});

test("a model's words stand for the first quote that knows its place", () => {
  const old = { paper: "o", page: 1, quote: "Of an older answer.", span: null };
  const { start, end, text } = locate("it gets shorter", [old, QUOTE]);
  assert.deepEqual([start, end, text], [100, 100 + [...QUOTE.quote].length, QUOTE.quote]);
  assert.equal(locate("it gets shorter", [old]), null);
});

test("conversations are grouped by age, pinned ones first", () => {
  const now = new Date(2026, 10, 26, 15);
  /** @param {number} days */
  const ago = (days) => new Date(2026, 10, 26 - days, 9).toISOString();
  const list = [
    { id: 1, pinned: true, updated: ago(90) },
    { id: 2, pinned: false, updated: ago(0) },
    { id: 3, pinned: false, updated: ago(1) },
    { id: 4, pinned: false, updated: ago(6) },
    { id: 5, pinned: false, updated: ago(7) },
  ];
  const groups = groupByAge(list, now).map(([name, items]) => [name, items.map(({ id }) => id)]);
  assert.deepEqual(groups, [
    ["pinned", [1]],
    ["today", [2]],
    ["week", [3, 4]],
    ["earlier", [5]],
  ]);
  assert.deepEqual(groupByAge([], now), []);
});
