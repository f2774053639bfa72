// The plan of `torture probes`, and what it counts; its runs are in test/cli.

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { EngineMemory } from "../../src/engine/memory.js";
import { PRESETS, strategyOf } from "../../src/engine/presets.js";
import { addTask, identityLines, noTotals, statsLines } from "../../src/harness/torture/counts.js";
import { optionsOf, planOf } from "../../src/harness/torture/plan.js";

const STRATEGIES = new Set(PRESETS.map(({ strategy }) => strategy)).size;
/** Rounds in which every strategy has had both parts. */
const CYCLE = 2 * STRATEGIES;
const plans = (from: number, to: number, seed = 3) =>
  Array.from({ length: to - from }, (_, i) => planOf(from + i, seed));
const kinds = (of: readonly { preset: string; part: string }[]) =>
  new Set(of.map(({ preset, part }) => `${preset} ${part}`)).size;

test("each cycle has both parts of every strategy, once", () => {
  for (const cycle of [0, 1, 2, 3]) {
    assert.is(kinds(plans(cycle * CYCLE, (cycle + 1) * CYCLE)), CYCLE);
  }
});

test("the first cycle takes less than five seconds", () => {
  assert.ok(plans(0, CYCLE).reduce((sum, { ms }) => sum + ms, 0) < 5000);
});

test("a second cycle begins with the newest preset, then the oldest", () => {
  const [newest, , oldest] = plans(CYCLE, 2 * CYCLE);
  assert.equal([newest?.preset, oldest?.preset], ["fastest", "spinlock"]);
});

const planned = new Set(plans(0, CYCLE).map(({ preset }) => preset));

test("each preset has both architectures, short leases and few slots within some cycles", () => {
  for (const name of planned) {
    const of = plans(0, 20 * CYCLE).filter(
      ({ preset, part }) => preset === name && part === "stress",
    );
    assert.equal(new Set(of.map(({ arch }) => arch)), new Set([abi.ARCH_X86, abi.ARCH_ARM64]));
    assert.ok(of.some(({ leaseUs }) => leaseUs <= 100) && of.some(({ leaseUs }) => leaseUs > 1000));
    assert.ok(
      of.some(({ xolSlots }) => xolSlots === 2) && of.some((o) => o.xolSlots === undefined),
    );
  }
});
test("the seed and the number of a round say all about it", () => {
  assert.equal(planOf(7, 5), planOf(7, 5));
  assert.is.not(planOf(7, 5).seed, planOf(7, 6).seed);
  assert.is.not(planOf(7, 5).seed, planOf(8, 5).seed);
});

test("an engine is formatted with slots only where the plan says how many", () => {
  const plan = planOf(1, 0);
  const all = optionsOf({ ...plan, xolSlots: undefined }, 2);
  assert.equal(Object.keys(all).includes("xolSlots"), false);
  assert.equal(optionsOf({ ...plan, xolSlots: 2 }, 2).xolSlots, 2);
  assert.is(all.strategy, strategyOf(plan.preset));
});

function taskWith(counters: Record<number, number>): EngineMemory {
  const memory = new EngineMemory(EngineMemory.create(65_536));
  for (const [offset, n] of Object.entries(counters)) {
    Atomics.store(memory.i64, (64 + Number(offset)) >> 3, BigInt(n));
  }
  return memory;
}

test("a call, or a return, without its outcome is a failure that says how many", () => {
  const memory = taskWith({
    [abi.TASK_TRIGGERS]: 5,
    [abi.TASK_HANDLED]: 4,
    [abi.TASK_RETURN_ENTRIES]: 7,
    [abi.TASK_RETURNS]: 3,
    [abi.TASK_RETURN_LONGJMP]: 2,
  });
  assert.equal(identityLines("task 0", memory.task(64), memory.returns(64)), [
    "task 0: triggers and outcomes differ by 1",
    "task 0: returns wanted and their outcomes differ by 2",
  ]);
});

test("what is counted is summed over tasks, and printed by uprobe-stress' names", () => {
  const memory = taskWith({
    [abi.TASK_TRIGGERS]: 5,
    [abi.TASK_HANDLED]: 4,
    [abi.TASK_RETURNS]: 3,
    [abi.TASK_RETURN_DEPTH]: 1,
    [abi.TASK_STEPS]: 2,
    [abi.TASK_SENT]: 9,
    [abi.TASK_SIGNALS]: 8,
  });
  const totals = noTotals();
  addTask(totals, memory, 64);
  addTask(totals, memory, 64);
  const lines = statsLines(totals);
  assert.is(lines[0], "FUNC CALLS: 10");
  assert.is(lines[1], "UPROBE HITS: 8  RESTARTS: 0  STEPS: 4");
  assert.is(lines[2], "URETPROBE HITS: 6");
  assert.match(lines[3] ?? "", /^RETURN MISSED: depth 2  memory 0  longjmp 0 /);
  assert.is(lines.at(-1), "SIGNALS: 18  DELIVERED: 16");
});

test.run();
