// The fences of readers: that they are in the code, and a litmus test of those with which readers
// enter (assembly/workload/rcufences.ts), on two CPUs. A missing one shows in few runs only: a
// grace period takes longer than most stores stay in a buffer. On arm64 others would show as well.
// runs alone

import { readFileSync } from "node:fs";
import binaryen from "binaryen";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { runFor, WASM, withThreads } from "../helpers/engine.js";

const BYTES = 384 + 48 * 64;
const KINDS = ["srcu", "trace"];
const RUN_MS = 1500;

const module = binaryen.readBinary(readFileSync(WASM));
module.setFeatures(binaryen.Features.All);
const functions = new Map(
  module
    .emitText()
    .split(/^ \(func \$/m)
    .slice(1)
    .map((text) => [/^\S+/.exec(text)?.[0] ?? "", text]),
);

/** Stores and fences of a function and what it calls, in the order of the code. */
function storesOf(name: string): string[] {
  const text = functions.get(name) ?? "";
  return [
    ...text.matchAll(/\((i32\.store|i32\.atomic\.store|atomic\.fence|call \$(\S+))/g),
  ].flatMap(([, what = "", callee]) =>
    callee === undefined ? [what] : storesOf(callee.replace(/\)$/, "")),
  );
}

test("C13: a reader counts itself in, then has a fence", () => {
  assert.equal(storesOf("rcu/srcu/srcu_read_lock"), ["i32.store", "atomic.fence"]);
});

test("C13: a reader has a fence, then counts itself out", () => {
  assert.equal(storesOf("rcu/srcu/srcu_read_unlock"), ["atomic.fence", "i32.store"]);
});

test("C14: a CPU says atomically that it is online, after its generation, then has a fence", () => {
  const order = ["i32.store", "i32.atomic.store", "atomic.fence"];
  assert.equal(storesOf("rcu/tasks_trace/rcu_online"), order);
  assert.equal(storesOf("rcu/tasks_trace/rcu_online_silent"), order);
});

test("C14: a CPU says atomically that it is offline", () => {
  assert.equal(storesOf("rcu/tasks_trace/rcu_offline"), ["i32.atomic.store"]);
});

test("C14: sections and quiet moments have no fence and no atomic store: plain ones only", () => {
  for (const name of ["rcu_read_lock_trace", "rcu_read_unlock_trace", "rcu_quiescent"]) {
    const stores = new Set(storesOf(`rcu/tasks_trace/${name}`));
    assert.equal([...stores], ["i32.store"], name);
  }
});

for (const [kind, name] of KINDS.entries()) {
  test(`${name}: who enters is seen by the grace period, or sees what was unlinked before it`, () =>
    withThreads(2, async (runner) => {
      const { memory } = runner;
      await runner.format({ cpus: 2 });
      const p = await runner.command(abi.OP_ALLOC, BYTES);
      runner.host.workload(kind === 0 ? "srcu_init" : "rcu_init")(p, 4);
      const jobs = ["updater", "reader"].map((side) => ({
        entry: `fences_${name}_${side}`,
        args: [p],
      }));
      const [updates = 0, reads = 0] = await runFor(runner, jobs, RUN_MS, abi.PCPU_OPS);
      assert.ok(updates > 100 && reads > 100, `${updates} updates, ${reads} sections`);
      assert.equal(memory.faults(), {});
      assert.is(memory.gracePeriods(p).stalls, 0);
    }));
}

test.run();
