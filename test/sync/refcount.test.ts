import { test } from "uvu";
import * as assert from "uvu/assert";
import { RefCount } from "../../src/engine/locks.js";
import { AT, cpusOnThisThread } from "../helpers/engine.js";

function refcount(n: number): RefCount {
  const { exports, thread } = cpusOnThisThread(1);
  const count = new RefCount(exports[0] as (typeof exports)[0], AT, thread);
  count.set(n);
  return count;
}

test("refcount: the last drop, and only the last, says so", () => {
  const count = refcount(1);
  assert.ok(count.inc());
  assert.ok(count.incNotZero());
  assert.is(count.read(), 3);
  assert.equal([count.decAndTest(), count.decAndTest(), count.decAndTest()], [false, false, true]);
  assert.is(count.read(), 0);
  assert.not.ok(count.saturated());
});

test("C3: zero is final: inc-not-zero refuses and leaves it zero", () => {
  const count = refcount(0);
  assert.not.ok(count.incNotZero());
  assert.is(count.read(), 0);
  assert.not.ok(count.saturated());
});

test("refcount: inc of zero is refused and saturates for good", () => {
  const count = refcount(0);
  assert.not.ok(count.inc());
  assert.ok(count.saturated());
  assert.not.ok(count.decAndTest());
  assert.ok(count.saturated());
});

test("refcount: a drop below zero saturates instead of wrapping", () => {
  const count = refcount(0);
  assert.not.ok(count.decAndTest());
  assert.ok(count.saturated());
});

test("refcount: an overflow saturates, by either way of taking a reference", () => {
  for (const take of ["inc", "incNotZero"] as const) {
    const count = refcount(0x7fff_ffff);
    count[take]();
    assert.ok(count.saturated());
    for (let i = 0; i < 1000; i++) assert.not.ok(count.decAndTest());
    assert.ok(count.saturated());
  }
});

test("refcount: a saturated object still gives references, since it is never freed", () => {
  const count = refcount(-0x40000000);
  assert.ok(count.incNotZero());
  assert.ok(count.saturated());
});

test.run();
