// What the host says of grace periods that are held up, and torture of all flavours in short.
// runs alone

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { stallLine } from "../../src/harness/torture/run.js";
import { tortureRcu } from "../../src/harness/torture/rcu.js";
import { withThreads } from "../helpers/engine.js";
import { Solo } from "../helpers/solo.js";

test("a stall report names the flavour, the CPU, and whether it goes on", () => {
  const periods = { completed: 7, waitsFor: undefined, stalls: 0, stalledBy: undefined };
  assert.is(stallLine("srcu", periods), undefined);
  assert.is(
    stallLine("srcu", { ...periods, stalls: 1, stalledBy: 3 }),
    "srcu: a grace period was held up by CPU 3; 1 so far",
  );
  assert.is(
    stallLine("qsbr", { ...periods, stalls: 2, stalledBy: 0, waitsFor: 0 }),
    "qsbr: a grace period was held up by CPU 0, and still is; 2 so far",
  );
  assert.match(stallLine("srcu", { ...periods, stalls: 1 }) ?? "", "by a CPU that cannot be told");
});

test("the host reads who holds up the grace periods of the engine itself", () => {
  const { memory } = new Solo({ cpus: 2 });
  const none = { completed: 0, waitsFor: undefined, stalls: 0, stalledBy: undefined };
  assert.equal(memory.graceOfEngine(), { srcu: none, "tasks-trace": none });
  memory.store(memory.base + abi.HDR_RCU + abi.GP_WAITS_FOR, 1);
  memory.store(memory.base + abi.HDR_RCU + abi.GP_STALLS, 1);
  memory.store(memory.base + abi.HDR_RCU + abi.GP_STALL_CPU, 2);
  assert.equal(memory.graceOfEngine()["tasks-trace"], {
    completed: 0,
    waitsFor: 0,
    stalls: 1,
    stalledBy: 1,
  });
});

test("C13, C14: torture of all flavours: two bins fill, the sums match, and nobody stalls", () =>
  withThreads(2, async (runner) => {
    const lines: string[] = [];
    const report = await tortureRcu({
      runner,
      cpus: 2,
      seconds: 3,
      seed: 1,
      nowMs: () => performance.now(),
      interrupt: { aborted: false, onAbort: () => {} },
      print: (line) => lines.push(line),
      onStep: () => {},
    });
    assert.equal(report.failures, []);
    assert.is(lines.length, 3, lines.join("\n"));
    for (const line of lines) {
      assert.match(line, /Reader Pipe: \d+ \d+ 0 {2}Updates: \d+ {2}Stalls: 0$/);
    }
  }));

test.run();
