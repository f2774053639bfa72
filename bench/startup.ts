// One start from nothing: how long from the process's birth to the first sample of two workers,
// beyond the warm-up and the sample themselves. Prints milliseconds. Run by goals.ts, many times.

import { startThreads } from "../src/engine/threads.js";
import { findCase } from "../src/harness/cases.js";
import { setUpCell } from "../src/harness/cell.js";
import { measureDelayUnit } from "../src/harness/delay.js";
import { measure } from "../src/harness/measure.js";
import { nodePlatform as platform } from "../src/platform/node.js";

const bench = findCase("uprobe-nop");
if (bench === undefined) throw new Error("no bench uprobe-nop");
const { nowMs } = platform;
const runner = await startThreads({ platform, cpus: 2 });
const spec = { bench, preset: "rwlock", cpus: 2, probes: 1, trapNs: 0, seed: 1 } as const;
const cell = await setUpCell(runner, spec, measureDelayUnit(runner.host, nowMs));
let measuringMs = 0;
let beyondMs = 0;
await measure(runner, cell, {
  nowMs,
  warmupSec: 0.1,
  durationSec: 0.1,
  sampleSec: 0.1,
  interrupt: { aborted: false, onAbort: () => {} },
  onSample: (sample, warmup) => {
    measuringMs += sample.elapsedNs / 1e6;
    if (!warmup) beyondMs = nowMs() - measuringMs; // nowMs counts from the process's birth
  },
});
await runner.close();
console.log(beyondMs.toFixed(1));
