import { test } from "uvu";
import * as assert from "uvu/assert";
import { AT, cpusOnThisThread } from "../helpers/engine.js";

const WRITER = 0xff;
const WAITING = 0x100;
const READER = 0x200;

test("rwlock: readers count in 0x200, a writer is 0xff", () => {
  const { exports, word } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  a.rwlock_init(AT);
  a.read_lock(AT);
  b.read_lock(AT);
  assert.is(word(), 2 * READER);
  a.read_unlock(AT);
  b.read_unlock(AT);
  a.write_lock(AT);
  assert.is(word(), WRITER);
  a.write_unlock(AT);
  assert.is(word(), 0);
});

test("rwlock: who gets in beside whom", () => {
  const { exports, word } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  a.read_lock(AT);
  assert.is(b.read_trylock(AT), 1);
  assert.is(b.write_trylock(AT), 0);
  b.read_unlock(AT);
  a.read_unlock(AT);
  a.write_lock(AT);
  assert.is(b.read_trylock(AT), 0);
  assert.is(b.write_trylock(AT), 0);
  assert.is(word(), WRITER);
  a.write_unlock(AT);
  assert.is(b.write_trylock(AT), 1);
});

test("C25: with a writer waiting, a new reader does not get in", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  set(READER | WAITING);
  assert.is(cpu.read_trylock(AT), 0);
  assert.is(cpu.write_trylock(AT), 0);
  assert.is(word(), READER | WAITING);
});

test("rwlock: a writer's unlock leaves waiting and backing-out CPUs in the word", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  set(WRITER | WAITING | READER);
  exports[0]?.write_unlock(AT);
  assert.is(word(), WAITING | READER);
});

test.run();
