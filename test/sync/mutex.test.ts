import { test } from "uvu";
import * as assert from "uvu/assert";
import { Mutex } from "../../src/engine/locks.js";
import { AT, cpusOnThisThread } from "../helpers/engine.js";

const WAITERS = 1;
const HANDOFF = 2;
const PICKUP = 4;
/** Owner word of CPU 0 and of CPU 1. */
const BY_0 = 1 << 3;
const BY_1 = 2 << 3;
const FIRST = 16;
const LAST = 24;

test("mutex: 32 bytes, the owner word names the holder", () => {
  const { exports, word } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  assert.is(Mutex.BYTES, 32);
  a.mutex_init(AT);
  assert.is(a.mutex_owner(AT), -1);
  b.mutex_lock(AT);
  assert.is(word(), BY_1);
  assert.is(a.mutex_owner(AT), 1);
  b.mutex_unlock(AT);
  assert.is(word(), 0);
});

test("mutex: trylock takes a free mutex and leaves a held one alone", () => {
  const { exports, word } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  assert.is(a.mutex_trylock(AT), 1);
  assert.is(b.mutex_trylock(AT), 0);
  assert.is(a.mutex_trylock(AT), 0);
  assert.is(word(), BY_0);
});

test("mutex: trylock takes a free mutex in spite of sleepers, and keeps their flag", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  set(WAITERS);
  assert.is(exports[0]?.mutex_trylock(AT), 1);
  assert.is(word(), BY_0 | WAITERS);
});

test("mutex: a mutex that was handed over is picked up by its heir only", () => {
  const { exports, set, word } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  set(BY_1 | PICKUP | WAITERS);
  assert.is(a.mutex_trylock(AT), 0);
  assert.is(b.mutex_trylock(AT), 1);
  assert.is(word(), BY_1 | WAITERS);
});

test("mutex: unlock with nobody on the list frees it, whatever flags were left", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  for (const flags of [0, WAITERS, HANDOFF, WAITERS | HANDOFF]) {
    set(BY_0 | flags);
    exports[0]?.mutex_unlock(AT);
    assert.is(word() & ~WAITERS, 0);
  }
});

test("C26: a timed lock that gave up left nothing behind: no flag, no node", () => {
  const { exports, word } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  a.mutex_lock(AT);
  for (const ns of [0n, 1n, 1000n, 3_000_000n]) {
    const start = performance.now();
    assert.is(b.mutex_lock_timeout(AT, ns), 0);
    assert.ok((performance.now() - start) * 1e6 >= Number(ns));
    assert.equal([word(), word(8), word(12), word(FIRST), word(LAST)], [BY_0, 0, 0, 0, 0]);
  }
  a.mutex_unlock(AT);
  assert.is(b.mutex_lock_timeout(AT, 0n), 1);
});

test.run();
