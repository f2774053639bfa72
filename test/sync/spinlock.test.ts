import { test } from "uvu";
import * as assert from "uvu/assert";
import { Spinlock } from "../../src/engine/locks.js";
import { AT, cpusOnThisThread } from "../helpers/engine.js";

test("spinlock: the word is 1 while held, 0 when free", () => {
  const { exports, word } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  cpu.spin_init(AT);
  assert.is(word(), 0);
  cpu.spin_lock(AT);
  assert.is(word(), 1);
  cpu.spin_unlock(AT);
  assert.is(word(), 0);
});

test("spinlock: trylock takes a free lock and leaves a held one alone", () => {
  const { exports, word } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  assert.is(a.spin_trylock(AT), 1);
  assert.is(b.spin_trylock(AT), 0);
  assert.is(word(), 1);
  a.spin_unlock(AT);
  assert.is(b.spin_trylock(AT), 1);
});

test("spinlock: init frees a lock whatever the word was", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  set(77);
  exports[0]?.spin_init(AT);
  assert.is(word(), 0);
  assert.is(exports[0]?.spin_trylock(AT), 1);
});

test("spinlock: the handle says 4 bytes", () => {
  assert.is(Spinlock.BYTES, 4);
});

test.run();
