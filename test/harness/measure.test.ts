// Measuring on a machine whose time and rates are the test's: test/helpers/machine.ts.

import { test } from "uvu";
import * as assert from "uvu/assert";
import { WasmprobeError } from "../../src/base/errors.js";
import type { Cell, CellCounts } from "../../src/harness/cell.js";
import { findCase, type Case } from "../../src/harness/cases.js";
import { emptyHistogram } from "../../src/harness/latency.js";
import { isFlat, measure, type MeasureOptions, type Sample } from "../../src/harness/measure.js";
import { interruptible, Machine } from "../helpers/machine.js";

const BENCH = findCase("count-atomic") as Case;
const COUNTS: CellCounts = { triggers: 1, handled: 1, filtered: 0, missed: {} };

class Setup {
  readonly machine = new Machine();
  readonly interrupt = interruptible();
  /** Of the samples that were announced, whether each was warm-up. */
  readonly announced: boolean[] = [];
  readonly warmups: Sample[] = [];
  cpus = 1;
  drops = 0;
  counts: () => CellCounts = () => COUNTS;
  more: Partial<Cell> = {};
  onSample: (sample: Sample, warmup: boolean) => void = () => {};

  measure(options: Partial<MeasureOptions> = {}) {
    const { machine, cpus } = this;
    const cell: Cell = {
      spec: { bench: BENCH, preset: null, cpus, probes: 0, trapNs: 0, seed: 1 },
      jobs: Array.from({ length: cpus }, () => ({ entry: "count_atomic", args: [] })),
      // Counters are never reset: there was something before.
      progress: () => Array.from({ length: cpus }, (_, cpu) => 5_000_000 + machine.done(cpu)),
      drops: () => this.drops,
      counts: () => this.counts(),
      ...this.more,
    };
    return machine.use(() =>
      measure(machine.runner, cell, {
        nowMs: machine.nowMs,
        warmupSec: 1,
        durationSec: 2,
        sampleSec: 0.5,
        interrupt: this.interrupt,
        onSample: (sample, warmup) => {
          this.announced.push(warmup);
          if (warmup) this.warmups.push(sample);
          this.onSample(sample, warmup);
        },
        ...options,
      }),
    );
  }

  warmupSec(): number {
    return this.warmups.reduce((sum, sample) => sum + sample.elapsedNs, 0) / 1e9;
  }
}

const near = (value: number, wanted: number, what = "value"): void =>
  assert.ok(
    Math.abs(value - wanted) <= 1e-6 * Math.abs(wanted),
    `${what}: ${value}, not ${wanted}`,
  );

test("flat: the later of the last five rates within 5 % of the earlier", () => {
  assert.ok(isFlat([100, 100, 100, 100, 100]));
  assert.ok(isFlat([100, 100, 100, 105, 105]));
  assert.not(isFlat([100, 100, 100, 105, 105.2]), "rising");
  assert.ok(isFlat([100, 100, 100, 95, 95]));
  assert.not(isFlat([100, 100, 100, 95, 94.8]), "falling");
  assert.ok(isFlat([100, 110, 500, 110, 100]), "noise is no slope");
  assert.ok(isFlat([1, 2, 4, 8, 100, 100, 100, 100, 100]), "the last five only");
  assert.not(isFlat([100, 100, 100, 100, 100, 110, 120, 130, 140]));
});

test("flat: fewer than five rates say nothing", () => {
  for (let n = 0; n < 5; n++) assert.not(isFlat(Array<number>(n).fill(100)));
});

test("a steady rate is warm after -w, in five samples", async () => {
  const setup = new Setup();
  const { flat } = await setup.measure();
  assert.ok(flat);
  assert.is(setup.warmups.length, 5);
  near(setup.warmupSec(), 1);
});

test("a rate that rises for ever warms up three times as long, and is not flat", async () => {
  const setup = new Setup();
  setup.machine.rate = (_entry, _cpu, _cpus, nowMs) => 1000 * 1.5 ** (nowMs / 200);
  const { flat, samples } = await setup.measure();
  assert.not(flat);
  assert.is(setup.warmups.length, 15);
  near(setup.warmupSec(), 3);
  assert.is(samples.length, 4, "it is measured all the same");
});

test("a rate that falls for ever is not flat either", async () => {
  const setup = new Setup();
  setup.machine.rate = (_entry, _cpu, _cpus, nowMs) => 1e6 / 1.2 ** (nowMs / 200);
  assert.not((await setup.measure()).flat);
  assert.is(setup.warmups.length, 15);
});

test("a warm-up ends between -w and 3 x -w, as soon as the rate is steady", async () => {
  const setup = new Setup();
  const begin = setup.machine.nowMs();
  // Optimised code takes over after 1.3 s.
  setup.machine.rate = (_entry, _cpu, _cpus, nowMs) =>
    nowMs < begin + 1300 ? 400 + nowMs / 10 : 2000;
  const { flat, samples } = await setup.measure();
  assert.ok(flat);
  assert.ok(setup.warmups.length > 5 && setup.warmups.length < 15, `${setup.warmups.length}`);
  for (const { ops, elapsedNs } of samples) near(((ops[0] ?? 0) * 1e6) / elapsedNs, 2000);
});

test("without a warm-up the first sample is a measured one", async () => {
  const setup = new Setup();
  const { flat, samples } = await setup.measure({ warmupSec: 0 });
  assert.ok(flat);
  assert.equal(setup.announced, [false, false, false, false]);
  assert.is(samples.length, 4);
});

test("samples are announced in order, those of the warm-up first", async () => {
  const setup = new Setup();
  await setup.measure({ durationSec: 1 });
  assert.equal(setup.announced, [...Array<boolean>(5).fill(true), false, false]);
});

test("a duration is cut into samples of equal length, at least one", async () => {
  for (const [durationSec, sampleSec, wanted] of [
    [2, 0.5, 4],
    [0.3, 1, 1],
    [0.01, 1, 1],
    [5, 1, 5],
    [1, 0.3, 3],
  ] as const) {
    const { samples } = await new Setup().measure({ durationSec, sampleSec });
    assert.is(samples.length, wanted, `${durationSec} s by ${sampleSec} s`);
    for (const sample of samples) near(sample.elapsedNs, (durationSec * 1e9) / wanted);
  }
});

test("a sample is what each CPU did in the time that really passed", async () => {
  const setup = new Setup();
  setup.cpus = 3;
  let late = 0;
  setup.machine.lateMs = () => (late = (late + 37) % 100);
  setup.machine.rate = (_entry, cpu) => 100 * (cpu + 1);
  const { samples } = await setup.measure({ warmupSec: 0.1 });
  const lengths = new Set(samples.map((sample) => sample.elapsedNs));
  assert.is(lengths.size, 4, "each was late by another time");
  for (const { ops, elapsedNs } of samples) {
    assert.is(ops.length, 3);
    const perMs = ops.map((n) => (n * 1e6) / elapsedNs);
    for (const [cpu, rate] of perMs.entries()) near(rate, 100 * (cpu + 1), `CPU ${cpu}`);
  }
});

test("nothing is counted twice and nothing between two samples is lost", async () => {
  const setup = new Setup();
  const { samples } = await setup.measure();
  const all = [...setup.warmups, ...samples].map((sample) => sample.ops[0] ?? 0);
  assert.is(
    all.reduce((a, b) => a + b, 0),
    setup.machine.done(0),
  );
});

test("drops are differences too", async () => {
  const setup = new Setup();
  setup.drops = 1000;
  setup.onSample = () => (setup.drops += 7);
  const { samples } = await setup.measure({ warmupSec: 0 });
  assert.equal(
    samples.map((sample) => sample.drops),
    [0, 7, 7, 7],
  );
});

test("what others do meanwhile is a difference too, and is there only where they do", async () => {
  const setup = new Setup();
  setup.more = { reads: () => 7_000 + 3 * setup.machine.done(0) };
  const { samples } = await setup.measure({ durationSec: 1 });
  assert.equal(
    samples.map((sample) => sample.reads),
    [1_500_000, 1_500_000],
  );
  const [plain] = (await new Setup().measure({ durationSec: 0.5 })).samples;
  assert.not("reads" in (plain ?? {}));
});

test("what is timed counts from the end of the warm-up to the last sample", async () => {
  for (const warmupSec of [0, 1]) {
    const setup = new Setup();
    const calls: string[] = [];
    const recorded = { histogram: emptyHistogram(), clockNs: 50, overheadNs: 50, period: 1 };
    const note = (what: string) => () =>
      void calls.push(`${what} after ${setup.announced.length}, ${setup.machine.running?.length}`);
    setup.more = {
      recorder: { start: note("start"), stop: note("stop"), read: () => recorded },
    };
    const { latency } = await setup.measure({ warmupSec });
    assert.is(latency, recorded);
    const steps = warmupSec * 5;
    assert.equal(calls, [`start after ${steps}, 1`, `stop after ${steps + 4}, 1`]);
  }
});

test("the run is stopped before its counts are taken", async () => {
  const setup = new Setup();
  setup.counts = () => {
    assert.is(setup.machine.running, undefined);
    return COUNTS;
  };
  assert.equal((await setup.measure()).counts, COUNTS);
});

test("an interruption keeps the samples that were complete, and does not wait", async () => {
  const setup = new Setup();
  const begin = setup.machine.nowMs();
  setup.machine.at(begin + 1000 + 1200, () => setup.interrupt.abort());
  const { samples, counts } = await setup.measure();
  assert.is(samples.length, 2, "the third was under way");
  for (const sample of samples) near(sample.elapsedNs, 0.5e9);
  assert.is(setup.machine.nowMs(), begin + 2200);
  assert.is(setup.machine.running, undefined);
  assert.equal(counts, COUNTS);
  assert.is(setup.announced.filter((warmup) => !warmup).length, 2);
});

test("an interruption in the warm-up measures nothing, and stops the run", async () => {
  const setup = new Setup();
  const begin = setup.machine.nowMs();
  setup.machine.at(begin + 500, () => setup.interrupt.abort());
  const { samples } = await setup.measure();
  assert.equal(samples, []);
  assert.is(setup.machine.nowMs(), begin + 500);
  assert.is(setup.machine.running, undefined);
});

test("an interruption that came before begins no sample", async () => {
  const setup = new Setup();
  const begin = setup.machine.nowMs();
  setup.interrupt.abort();
  const { samples } = await setup.measure();
  assert.equal([samples, setup.announced], [[], []]);
  assert.is(setup.machine.nowMs(), begin);
  assert.is(setup.machine.running, undefined);
});

for (const [when, atMs] of [
  ["in the warm-up", 300],
  ["while it is measured", 1700],
] as const) {
  test(`a worker that dies ${when} ends the measurement with its error, at once`, async () => {
    const setup = new Setup();
    const begin = setup.machine.nowMs();
    const error = new WasmprobeError("E_WORKER", "worker 0 ended: exit code 1");
    setup.machine.at(begin + atMs, () => setup.machine.die(error));
    let thrown: unknown;
    await setup.measure().catch((e: unknown) => (thrown = e));
    assert.is(thrown, error);
    assert.is(setup.machine.nowMs(), begin + atMs);
    assert.is(setup.machine.running, undefined, "the others are stopped");
  });
}

test("a run that cannot be stopped is an error, and so are contradicting counts", async () => {
  const stuck = new Setup();
  stuck.machine.stopError = new WasmprobeError("E_WORKER", "CPU 0 did not leave");
  let line = "";
  await stuck.measure().catch((error: Error) => (line = error.message));
  assert.is(line, "CPU 0 did not leave");

  const wrong = new Setup();
  wrong.counts = () => {
    throw new WasmprobeError("E_FAULT", "triggers and outcomes differ by 1");
  };
  await wrong.measure().catch((error: Error) => (line = error.message));
  assert.is(line, "triggers and outcomes differ by 1");
  assert.is(wrong.machine.running, undefined);
});

test.run();
