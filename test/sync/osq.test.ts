import { test } from "uvu";
import * as assert from "uvu/assert";
import { AT, cpusOnThisThread } from "../helpers/engine.js";

test("osq: the tail is the CPU number + 1 of the last in the queue, 0 when nobody is in", () => {
  const { exports, word } = cpusOnThisThread(3);
  const [, , c] = exports as [unknown, unknown, (typeof exports)[0]];
  c.osq_init(AT);
  assert.is(c.osq_lock(AT, 0, 0n), 1);
  assert.is(word(), 3);
  c.osq_unlock(AT);
  assert.is(word(), 0);
});

test("C26: who gives up behind the holder moves the tail back, and its node is free again", () => {
  const { exports, word } = cpusOnThisThread(3);
  const [a, b, c] = exports as [(typeof exports)[0], (typeof exports)[0], (typeof exports)[0]];
  assert.is(a.osq_lock(AT, 0, 0n), 1);
  for (const other of [b, c, b]) {
    assert.is(other.osq_lock(AT, 10, 0n), 0);
    assert.is(word(), 1);
  }
  a.osq_unlock(AT);
  assert.is(word(), 0);
  // The same nodes, in another queue.
  assert.is(b.osq_lock(AT + 64, 0, 0n), 1);
  b.osq_unlock(AT + 64);
  assert.is(word(64), 0);
});

test("osq: a deadline in the past ends the wait", () => {
  const { exports } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  assert.is(a.osq_lock(AT, 0, 0n), 1);
  assert.is(b.osq_lock(AT, 0x7fff_ffff, 1n), 0);
});

test.run();
