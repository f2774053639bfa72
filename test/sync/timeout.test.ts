// runs alone

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { Mutex, type LockExports } from "../../src/engine/locks.js";
import { runFor, withThreads } from "../helpers/engine.js";

test("a timed lock that never comes free gives up in time, again and again", () =>
  withThreads(2, async (runner) => {
    const p = await runner.command(abi.OP_ALLOC, abi.LOCK_AREA_BYTES);
    // This thread holds it for the whole run.
    const exports = runner.host.exports as unknown as LockExports;
    const mutex = new Mutex(exports, p, { canBlock: false, i32: runner.memory.i32 });
    assert.ok(mutex.tryLock());
    const job = { entry: "torture_mutex_expired", args: [p, 1] };
    const ops = await runFor(runner, [job, job], 500, abi.PCPU_OPS);
    for (const [cpu, n] of ops.entries()) {
      const torture = runner.memory.perCpu(abi.PCPU_TORTURE, cpu);
      assert.is(runner.memory.load64(torture + abi.TORTURE_TIMEOUTS), n);
      assert.is(runner.memory.load64(torture + abi.TORTURE_LATE), 0);
      assert.ok(n > 0);
    }
    mutex.unlock();
    assert.equal(
      [0, 8, 12, 16, 24].map((o) => runner.memory.load(p + o)),
      [0, 0, 0, 0, 0],
    );
  }));

test.run();
