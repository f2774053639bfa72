// The fences with which readers enter (assembly/workload/rcufences.ts), on two CPUs.
// runs alone

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { runFor, withThreads } from "../helpers/engine.js";

const BYTES = 384 + 48 * 64;
const KINDS = ["srcu", "trace"];
const RUN_MS = 1500;

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
