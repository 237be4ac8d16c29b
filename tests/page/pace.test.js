import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { atMostEvery } from "../../folio/web/static/base/pace.js";

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
