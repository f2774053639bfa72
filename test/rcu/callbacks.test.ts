// Deferred work: what is pushed is taken once, whoever pushes meanwhile.
// runs alone

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { runFor, withThreads } from "../helpers/engine.js";
import { Solo } from "../helpers/solo.js";

const LIST = 0;
const headAt = (i: number): number => 64 + i * abi.RCU_HEAD_BYTES;

function solo(): { p: number; push(i: number): boolean; take(): number; next(h: number): number } {
  const engine = new Solo();
  const p = engine.ok(abi.OP_ALLOC, 128);
  return {
    p,
    push: (i) => engine.call(0, "call_rcu_push", p + LIST, p + headAt(i)) === 1,
    take: () => engine.call(0, "call_rcu_take", p + LIST) as number,
    next: (h) => engine.memory.load(h + abi.RCU_HEAD_NEXT),
  };
}

test("callbacks: only the push that finds the list empty says so", () => {
  const list = solo();
  assert.equal([list.push(0), list.push(1), list.push(2)], [true, false, false]);
  list.take();
  assert.equal([list.push(0), list.push(1)], [true, false]);
});

test("callbacks: a take has all heads, the last first, and leaves none", () => {
  const list = solo();
  for (const i of [0, 1, 2]) list.push(i);
  const third = list.take();
  const second = list.next(third);
  const first = list.next(second);
  const offsets = [third, second, first].map((h) => h - list.p);
  assert.equal(offsets, [headAt(2), headAt(1), headAt(0)]);
  assert.is(list.next(first), 0);
  assert.is(list.take(), 0);
});

for (const pushers of [1, 3]) {
  test(`callbacks: ${pushers} CPUs push while one takes: every head is taken once`, () =>
    withThreads(pushers + 1, async (runner) => {
      const { memory } = runner;
      await runner.format({ cpus: pushers + 1 });
      const p = await runner.command(abi.OP_ALLOC, 128 + (pushers + 1) * abi.STRIDE);
      const jobs = Array.from({ length: pushers + 1 }, (_, cpu) => ({
        entry: cpu === 0 ? "torture_callbacks_take" : "torture_callbacks_push",
        args: [p],
      }));
      await runFor(runner, jobs, 500, abi.PCPU_OPS);
      const sum = (offset: number): number =>
        jobs.reduce(
          (a, _, cpu) => a + memory.load64(memory.perCpu(abi.PCPU_TORTURE, cpu) + offset),
          0,
        );
      let left = 0;
      for (let head = memory.load(p); head !== 0 && left < 1000; head = memory.load(head)) left++;
      const [pushed, taken] = [sum(abi.TORTURE_WRITES), sum(abi.TORTURE_READS)];
      assert.ok(taken > 0, "nothing was taken");
      assert.is(pushed, taken + left, "pushed = taken + left");
      assert.is(sum(abi.TORTURE_FAILS), 0, "taken without a push");
      const [wasEmpty, takes] = [sum(abi.TORTURE_TRYFAILS), sum(abi.TORTURE_TIMEOUTS)];
      assert.is(wasEmpty, takes + (left > 0 ? 1 : 0), "one word of it per batch");
    }));
}

test.run();
