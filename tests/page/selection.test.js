import assert from "node:assert/strict";
import test from "node:test";
import { Selection } from "../../folio/web/static/library/selection.js";

const make = () => {
  const selection = new Selection();
  selection.setKeys(["a", "b", "c", "d"]);
  return selection;
};

test("the first row is the current one, and steps end at the ends", () => {
  const selection = make();
  assert.equal(selection.current, "a");
  selection.move(-1);
  assert.equal(selection.current, "a");
  selection.move(9);
  assert.equal(selection.current, "d");
  assert.deepEqual(selection.list(), []);
  assert.deepEqual(selection.listOrCurrent(), ["d"]);
});

test("a range grows and shrinks from where it began", () => {
  const selection = make();
  selection.goTo("b");
  selection.move(2, true);
  assert.deepEqual(selection.list(), ["b", "c", "d"]);
  selection.move(-1, true);
  assert.deepEqual(selection.list(), ["b", "c"]);
  selection.goTo("a", true);
  assert.deepEqual(selection.list(), ["a", "b"]);
});

test("rows are selected one by one, all, and none", () => {
  const selection = make();
  selection.toggle("c");
  selection.toggle("a");
  assert.deepEqual(selection.listOrCurrent(), ["a", "c"]);
  selection.toggle("c");
  assert.deepEqual(selection.list(), ["a"]);
  selection.choose("d");
  assert.deepEqual(selection.list(), ["d"]);
  selection.selectAll();
  assert.equal(selection.list().length, 4);
  selection.clear();
  assert.deepEqual(selection.list(), []);
});

test("what is no longer shown is neither selected nor current", () => {
  const selection = make();
  selection.toggle("b");
  selection.toggle("c");
  selection.setKeys(["a", "b", "e"]);
  assert.deepEqual(selection.list(), ["b"]);
  assert.equal(selection.current, "a");
  selection.move(1, true);
  assert.deepEqual(selection.list(), ["a", "b"]);
  selection.setKeys([]);
  assert.deepEqual(selection.listOrCurrent(), []);
  selection.move(1);
  assert.equal(selection.current, "");
});
