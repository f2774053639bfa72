import { test } from "uvu";
import * as assert from "uvu/assert";
import { AT, cpusOnThisThread } from "../helpers/engine.js";

test("ticket: lock draws the next ticket, unlock calls the next owner", () => {
  const { exports, word } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  cpu.ticket_init(AT);
  cpu.ticket_lock(AT);
  assert.is(word(), 0x0001_0000);
  cpu.ticket_unlock(AT);
  assert.is(word(), 0x0001_0001);
});

test("ticket: trylock draws no ticket from a held lock", () => {
  const { exports, word } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  assert.is(a.ticket_trylock(AT), 1);
  assert.is(b.ticket_trylock(AT), 0);
  assert.is(word(), 0x0001_0000);
  a.ticket_unlock(AT);
  assert.is(b.ticket_trylock(AT), 1);
});

test("ticket: both halves wrap by themselves", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  set(0xffff_ffff | 0);
  cpu.ticket_lock(AT);
  assert.is(word(), 0x0000_ffff);
  cpu.ticket_unlock(AT);
  assert.is(word(), 0);
  for (let i = 0; i < 70_000; i++) {
    cpu.ticket_lock(AT);
    cpu.ticket_unlock(AT);
  }
  assert.is(word(), ((70_000 & 0xffff) * 0x10001) >>> 0);
});

test.run();
