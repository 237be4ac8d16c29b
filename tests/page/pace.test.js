import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { atMostEvery, inTurn, oneAtATime } from "../../folio/web/static/base/pace.js";

test("it runs at once, then once for all calls in between", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let runs = 0;
  const call = atMostEvery(100, () => (runs += 1));
  call();
  assert.equal(runs, 1);
  call();
  call();
  mock.timers.tick(99);
  assert.equal(runs, 1);
  mock.timers.tick(1);
  assert.equal(runs, 2);
  mock.timers.tick(200);
  assert.equal(runs, 2);
  call();
  assert.equal(runs, 3);
  mock.timers.reset();
});

test("loads run in turn, and once more for all calls meanwhile", async () => {
  /** @type {(() => void)[]} */
  const ends = [];
  let shown = 0;
  const load = inTurn(async () => {
    const number = ends.length + 1;
    await new Promise((resolve) => ends.push(() => resolve(undefined)));
    shown = number;
  });
  const first = load();
  const later = [load(), load()];
  await Promise.resolve();
  assert.equal(ends.length, 1);
  ends[0]();
  while (ends.length < 2) await Promise.resolve();
  ends[1]();
  await Promise.all([first, ...later]);
  assert.deepEqual([shown, ends.length], [2, 2]);
  const again = load();
  ends[2]();
  await again;
  assert.equal(shown, 3);
});

test("the last load says whether it failed", async () => {
  const results = [new Error("first"), null, new Error("third")];
  const load = inTurn(async () => {
    await Promise.resolve();
    const result = results.shift();
    if (result) throw result;
  });
  await Promise.all([load(), load()]);
  await assert.rejects(load(), /third/);
});

test("what is being done is not begun again", async () => {
  let runs = 0;
  const run = oneAtATime(async () => {
    runs += 1;
    await Promise.resolve();
    if (runs === 2) throw new Error("second");
  });
  await Promise.all([run(), run()]);
  assert.equal(runs, 1);
  await assert.rejects(run(), /second/);
  await run();
  assert.equal(runs, 3);
});
