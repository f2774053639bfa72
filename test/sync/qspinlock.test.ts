import { test } from "uvu";
import * as assert from "uvu/assert";
import { AT, cpusOnThisThread } from "../helpers/engine.js";

// [31:16] tail, [15:8] pending, [7:0] locked
const LOCKED = 1;
const PENDING = 0x100;
const TAIL_OF_CPU_2 = 3 << 16;

test("qspinlock: the word is 1 while held, 0 when free", () => {
  const { exports, word } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  cpu.qspin_init(AT);
  cpu.qspin_lock(AT);
  assert.is(word(), LOCKED);
  cpu.qspin_unlock(AT);
  assert.is(word(), 0);
});

test("qspinlock: unlock is a store of one byte, pending and tail stay", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  set(TAIL_OF_CPU_2 | PENDING | LOCKED);
  exports[0]?.qspin_unlock(AT);
  assert.is(word(), TAIL_OF_CPU_2 | PENDING);
});

test("qspinlock: trylock wants the whole word zero, so that newcomers do not barge", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  for (const taken of [LOCKED, PENDING, TAIL_OF_CPU_2, TAIL_OF_CPU_2 | PENDING]) {
    set(taken);
    assert.is(cpu.qspin_trylock(AT), 0);
    assert.is(word(), taken);
  }
  set(0);
  assert.is(cpu.qspin_trylock(AT), 1);
});

test.run();
