import { test } from "uvu";
import * as assert from "uvu/assert";
import { Rwsem } from "../../src/engine/locks.js";
import { AT, cpusOnThisThread } from "../helpers/engine.js";

const WRITER = 1;
const WAITERS = 2;
const HANDOFF = 4;
const READER = 256;
const OWNER = 8;

test("rwsem: 40 bytes, readers count in 256, a writer is bit 0", () => {
  const { exports, word } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  assert.is(Rwsem.BYTES, 40);
  a.rwsem_init(AT);
  a.down_read(AT);
  b.down_read(AT);
  assert.is(word(), 2 * READER);
  a.up_read(AT);
  b.up_read(AT);
  a.down_write(AT);
  assert.is(word(), WRITER);
  a.up_write(AT);
  assert.is(word(), 0);
});

test("rwsem: the owner names the last reader with bit 0 set, or the writer, who clears it", () => {
  const { exports, word } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  a.down_read(AT);
  assert.is(word(OWNER), (1 << 2) | 1);
  b.down_read(AT);
  assert.is(word(OWNER), (2 << 2) | 1);
  a.up_read(AT);
  b.up_read(AT);
  assert.is(word(OWNER), (2 << 2) | 1);
  b.down_write(AT);
  assert.is(word(OWNER), 2 << 2);
  b.up_write(AT);
  assert.is(word(OWNER), 0);
});

test("rwsem: who gets in beside whom", () => {
  const { exports } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  a.down_read(AT);
  assert.is(b.down_read_trylock(AT), 1);
  assert.is(b.down_write_trylock(AT), 0);
  a.up_read(AT);
  b.up_read(AT);
  assert.is(a.down_write_trylock(AT), 1);
  assert.is(b.down_read_trylock(AT), 0);
  assert.is(b.down_write_trylock(AT), 0);
  a.up_write(AT);
  assert.is(b.down_read_trylock(AT), 1);
});

test("rwsem: with waiters, or a hand-over asked for, no reader takes the fast path", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  for (const waited of [READER | WAITERS, READER | WAITERS | HANDOFF, WAITERS]) {
    set(waited);
    assert.is(cpu.down_read_trylock(AT), 0);
    assert.is(word(), waited);
  }
});

test("rwsem: a reader steals a free lock from waiters that did not insist", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  set(WAITERS);
  cpu.down_read(AT);
  assert.is(word(), READER | WAITERS);
});

test.run();
