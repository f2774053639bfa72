import { test } from "uvu";
import * as assert from "uvu/assert";
import type { EngineInstance } from "../../src/engine/instance.js";
import { delayUnits, measureDelayUnit, tryDelay } from "../../src/harness/delay.js";
import { describeHost, timerStepNs, usableCpus } from "../../src/harness/host.js";
import { parseResult } from "../../src/harness/result.js";
import { nodePlatform } from "../../src/platform/node.js";
import type { HostInfo, Platform } from "../../src/platform/platform.js";
import { resultOf } from "../helpers/results.js";
import { messageOf } from "../helpers/throws.js";

const INFO: HostInfo = {
  cpuModel: "Example CPU",
  allowedCpus: [0, 1, 2, 3, 8],
  runtime: "node 20.0.0",
  engine: "v8 11.0",
  os: "linux 6.8 x64",
};

const on = (more: Partial<HostInfo>): Platform => ({
  ...nodePlatform,
  host: () => ({ ...INFO, ...more }),
});

/** A clock that moves on by `stepMs` each time it is looked at. */
function clock(stepMs: number): () => number {
  let now = 0;
  return () => (now += stepMs);
}

test("usable CPUs: the mask, or the quota rounded up where that is less, at least 1", () => {
  assert.is(usableCpus(on({})), 5);
  assert.is(usableCpus(on({ quotaCpus: 1.5 })), 2);
  assert.is(usableCpus(on({ quotaCpus: 2 })), 2);
  assert.is(usableCpus(on({ quotaCpus: 0.1 })), 1);
  assert.is(usableCpus(on({ quotaCpus: 64 })), 5);
  assert.is(usableCpus(on({ allowedCpus: [] })), 1);
});

test("the header says what this machine is, and is valid in a result", () => {
  const host = describeHost(on({ quotaCpus: 1.5 }), "not pinned");
  assert.is(host.allowedCpus, 2);
  assert.is(host.affinityMask, "0-3,8");
  assert.is(host.cpuQuota, 1.5);
  assert.is(host.affinity, "not pinned");
  assert.ok(host.timerStepNs > 0);
  const real = describeHost(nodePlatform, "off");
  for (const one of [host, real]) {
    const result = resultOf([], { host: one });
    assert.equal(parseResult(JSON.stringify(result), "it").host, one);
  }
});

test("the timer's step is the smallest that was seen", () => {
  let now = 0;
  const steps = [0, 0.1, 0.005, 0, 0.02];
  let i = 0;
  assert.is(
    timerStepNs(() => (now += steps[i++ % steps.length] ?? 0)),
    5000,
  );
});

test("a delay's unit is measured as the fastest of many trials", () => {
  const calls: number[] = [];
  let now = 0;
  let trial = 0;
  const instance = {
    exports: {
      cpu_delay(units: number) {
        calls.push(units);
        now += trial++ === 17 ? 0.05 : 0.2; // one without an interruption
      },
    },
  } as unknown as EngineInstance;
  const ns = measureDelayUnit(instance, () => now);
  assert.ok(Math.abs(ns - (0.05 * 1e6) / (calls[0] ?? 1)) < 1e-9, `${ns}`);
  assert.ok(calls.length > 17);
});

test("what a delay takes is told without the way there, and without interruptions", () => {
  let now = 0;
  let call = 0;
  const instance = {
    exports: {
      cpu_delay(units: number) {
        // 1 ns a unit, 40 ns for the call; now and then an interruption of 1 ms.
        now += (units + 40) * 1e-6 + (call++ % 9_000 === 8_999 ? 1 : 0);
      },
    },
  } as unknown as EngineInstance;
  const [least, most] = tryDelay(instance, () => now, 480, 1);
  assert.ok(Math.abs(least - 480) < 1 && Math.abs(most - 480) < 1, `${least} .. ${most}`);
});

test("a clock too coarse to calibrate a delay is an error", () => {
  const instance = { exports: { cpu_delay() {} } } as unknown as EngineInstance;
  const line = messageOf("E_PLATFORM", () => measureDelayUnit(instance, () => 1));
  assert.match(line, /too coarse/);
  assert.ok(measureDelayUnit(instance, clock(1)) > 0);
});

test("a delay in units is the nearest number of them, and never 0 for a delay", () => {
  assert.is(delayUnits(0, 3), 0);
  assert.is(delayUnits(250, 0.5), 500);
  assert.is(delayUnits(250, 3), 83);
  assert.is(delayUnits(0.1, 3), 1);
});

test.run();
