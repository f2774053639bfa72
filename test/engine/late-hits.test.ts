// A hit that takes its time, while its probe is unregistered and the next one registered: what it
// does when it goes on must not be done to the next one.
// runs alone
// time limit: 60 s

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { sleep } from "../helpers/engine.js";
import { type LateHit, until, withLateHit } from "../helpers/late-hit.js";

/** Presets whose hits are in a read section. */
const PRESETS = ["srcu", "tasks-trace", "mmap-lock", "speculative", "fastest"] as const;

for (const preset of PRESETS) {
  test(`C11: ${preset}: a hit on the old probe does not remove the next one's breakpoint`, () =>
    withLateHit(preset, 64, async ({ memory, text, registers, release }) => {
      const churn = await registers();
      await until("the next one is registered", () => memory.uprobes().inTree === 1);
      await until("and checked", () => memory.load(churn + abi.CHURN_CHECKS) === 1);
      await release();
      assert.is(memory.load(churn + abi.CHURN_REGISTERED), 1);
      assert.is(new Uint8Array(memory.memory.buffer)[text], abi.INSN_TRAP, "its breakpoint");
    }));
}

for (const preset of PRESETS) {
  test(`C11: ${preset}: a consumer that comes during the last hit keeps the breakpoint`, () => {
    const body = async ({ runner, memory, inode, text, release }: LateHit) => {
      const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
      await runner.command(abi.OP_REGISTER, inode, 0, sink);
      await release();
      assert.is(new Uint8Array(memory.memory.buffer)[text], abi.INSN_TRAP, "its breakpoint");
    };
    return withLateHit(preset, 64, body, { unregister: async () => 0, erased: false });
  });
}

for (const preset of PRESETS) {
  test(`${preset}: a table with no room but what another CPU is about to free is not full`, () =>
    withLateHit(preset, 1, async ({ memory, registers, release }) => {
      const churn = await registers();
      await sleep(20);
      await release();
      const [errors, registered] = [abi.CHURN_ERRORS, abi.CHURN_REGISTERED];
      assert.equal([memory.load(churn + errors), memory.load(churn + registered)], [0, 1]);
    }));
}

test.run();
