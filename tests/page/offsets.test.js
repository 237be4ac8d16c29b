import assert from "node:assert/strict";
import test from "node:test";
import { Offsets } from "../../folio/web/static/base/offsets.js";

test("the item at a height is found", () => {
  const offsets = new Offsets([10, 20, 30]);
  assert.equal(offsets.total, 60);
  assert.deepEqual(
    [-5, 0, 9, 10, 29, 30, 59, 60, 999].map((y) => offsets.indexAt(y)),
    [0, 0, 0, 1, 1, 2, 2, 2, 2],
  );
});

test("a view takes the items that it touches, and those in its margin", () => {
  const offsets = new Offsets(Array(100).fill(10));
  assert.deepEqual(offsets.range(200, 249), [20, 25]);
  assert.deepEqual(offsets.range(200, 249, 100), [10, 35]);
  assert.deepEqual(offsets.range(0, 5000), [0, 100]);
});

test("a list without items takes none, and one far below takes its first", () => {
  assert.deepEqual(new Offsets([]).range(0, 500), [0, 0]);
  assert.deepEqual(new Offsets([10, 10]).range(-900, -500, 100), [0, 1]);
});

test("a measured height moves what is below it", () => {
  const offsets = new Offsets([10, 10, 10, 10]);
  offsets.change(
    new Map([
      [2, 50],
      [1, 30],
    ]),
  );
  assert.deepEqual([...offsets.tops], [0, 10, 40, 90, 100]);
});

test("a place among 5,000 items is found at once", () => {
  const offsets = new Offsets(Array.from({ length: 5000 }, (_, at) => 20 + (at % 7)));
  for (let y = 0; y < offsets.total; y += 997) {
    const at = offsets.indexAt(y);
    assert.ok(offsets.tops[at] <= y && y < offsets.tops[at + 1]);
  }
});
