// Returns that race with a timer which does nothing else but walk: the owner's exchange and the
// timer's compare-exchange meet many thousand times a second (C18). What came of it is looked at
// before anybody waits for leases: with one too many or too few he would wait for ever.
// runs alone

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { entryOf, strategyOf } from "../../src/engine/presets.js";
import { sleep } from "../helpers/engine.js";
import { FILE_BYTES, VADDR } from "../helpers/probes.js";
import { LEASING, returnCounts } from "../helpers/returns.js";
import { withRunner } from "../helpers/threads.js";

const RACE_MS = 1000;

for (const preset of LEASING) {
  test(`C18: ${preset}: of a return and a timer that never rests one ends the lease`, () =>
    withRunner(
      { strategy: strategyOf(preset), leaseUs: 600e6, memoryBytes: 8 << 20 },
      async (runner) => {
        const { memory } = runner;
        const inode = await runner.command(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_NOP);
        const mm = await runner.command(abi.OP_MM_CREATE, 1);
        await runner.command(abi.OP_MMAP, mm, inode, VADDR, FILE_BYTES, 0);
        const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
        const kind = abi.CONSUMER_RETURN;
        const place = [inode, 0, sink, 0, 0, 0, 0, kind];
        const consumer = await runner.command(abi.OP_REGISTER, ...place);
        const task = await runner.command(abi.OP_TASK_CREATE, mm, 1, VADDR, 16, 1, 1);
        const run = await runner.run([
          { entry: entryOf(preset, "trigger"), args: [task] },
          { entry: "ri_timer_rounds", args: [] },
        ]);
        await sleep(RACE_MS);
        await run.stop();
        const { entries = 0, ...ends } = returnCounts(memory, task);
        assert.ok(entries > 1000);
        assert.equal(ends, { returns: entries });
        await runner.command(abi.OP_TASK_DESTROY, task);
        assert.is(await runner.command(abi.OP_RETURNS_LEFT), 0, "leases, or instances");
        await runner.command(abi.OP_UNREGISTER, consumer);
        await runner.command(abi.OP_SYNCHRONIZE);
        assert.equal(memory.uprobes(), { alive: 0, inTree: 0 });
        assert.equal(memory.faults(), {});
      },
    ));
}

test.run();
