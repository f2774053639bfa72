// Sweeps on a machine whose time and rates are the test's: test/helpers/machine.ts.

import { test } from "uvu";
import * as assert from "uvu/assert";
import { WasmprobeError } from "../../src/base/errors.js";
import { type Case, findCase, type PresetName } from "../../src/harness/cases.js";
import {
  identityHolds,
  type MeasuredRun,
  parseResult,
  type SweepRun,
} from "../../src/harness/result.js";
import { planCells, sweep, type SweepContext, type SweepPlan } from "../../src/harness/sweep.js";
import { sweepSteps } from "../../src/harness/sweep.js";
import { interruptible, Machine } from "../helpers/machine.js";
import { resultOf } from "../helpers/results.js";

const cases = (...names: string[]): Case[] => names.map((name) => findCase(name) as Case);

function planOf(names: readonly string[], more: Partial<SweepPlan> = {}): SweepPlan {
  return {
    benches: cases(...names),
    presets: ["spinlock", "rwlock"],
    cpus: [1],
    probes: [1],
    trapNs: 0,
    warmupSec: 0.1,
    durationSec: 1,
    repeat: 1,
    seed: 1,
    ...more,
  };
}

class Setup {
  readonly machine = new Machine();
  readonly interrupt = interruptible();
  readonly steps: string[] = [];
  readonly notes: string[] = [];

  sweep(plan: SweepPlan, more: Partial<SweepContext> = {}) {
    const { machine, interrupt } = this;
    const context: SweepContext = {
      runner: machine.runner,
      nowMs: machine.nowMs,
      unitNs: 1,
      usableCpus: 2,
      retryUntilMs: Number.POSITIVE_INFINITY,
      interrupt,
      onStep: (what) => this.steps.push(what),
      onRetry: (line, steps) => this.notes.push(`${line} (${steps} steps)`),
      ...more,
    };
    return machine.use(() => sweep(plan, context));
  }

  /** Runs of the control on two CPUs that scale by `shares`, then perfectly. */
  controlShares(...shares: number[]): void {
    let share = 1;
    this.machine.onRun = (entry, cpus) => {
      share = entry === "count_percpu" && cpus > 1 ? (shares.shift() ?? 1) : 1;
    };
    this.machine.rate = () => 1000 * share;
  }
}

const near = (value: number, wanted: number, what = "value"): void =>
  assert.ok(
    Math.abs(value - wanted) <= 1e-3 * Math.abs(wanted),
    `${what}: ${value}, not ${wanted}`,
  );

const states = (runs: readonly SweepRun[]): string[] =>
  runs.map((run) => `${run.bench} x${run.cpus} ${run.state}`);

function measuredOf(run: SweepRun | undefined): MeasuredRun {
  if (run?.state !== "measured") throw new Error(`not measured: ${JSON.stringify(run)}`);
  return run;
}

test("plan: cells of one CPU count together; presets and probes for uprobe benches only", () => {
  const plan = planOf(["uprobe-nop", "count-atomic"], {
    cpus: [1, 4],
    probes: [1, 100],
    trapNs: 250,
  });
  const title = (cell: ReturnType<typeof planCells>[0][0]): string =>
    `${cell.bench.name} ${cell.preset} ${cell.cpus} ${cell.probes} ${cell.trapNs}`;
  assert.equal(
    planCells(plan).map((group) => group.map(title)),
    [1, 4].map((cpus) => [
      `uprobe-nop spinlock ${cpus} 1 250`,
      `uprobe-nop rwlock ${cpus} 1 250`,
      `uprobe-nop spinlock ${cpus} 100 250`,
      `uprobe-nop rwlock ${cpus} 100 250`,
      `count-atomic null ${cpus} 0 0`,
    ]),
  );
  const one: PresetName[] = ["rwlock"];
  assert.is(planCells({ ...plan, presets: one }).flat().length, 2 * 3);
  assert.is(sweepSteps({ ...plan, repeat: 3 }), 2 * 5 * 3);
});

test("plan: distances of sites are an axis of runs with more than one probe", () => {
  const plan = planOf(["uprobe-nop", "count-atomic"], {
    presets: ["fastest"],
    probes: [1, 100],
    siteBytes: [16, 64],
  });
  assert.equal(
    planCells(plan)
      .flat()
      .map((cell) => `${cell.bench.name} ${cell.probes} ${cell.siteBytes}`),
    ["uprobe-nop 1 16", "uprobe-nop 100 16", "uprobe-nop 100 64", "count-atomic 0 undefined"],
  );
  assert.is(sweepSteps(plan), 4);
});

test("a run's rate is over all CPUs; min and max are its slowest and fastest worker", async () => {
  const setup = new Setup();
  setup.machine.rate = (entry, cpu) => (entry === "count_percpu" ? 1000 : 300 + 100 * cpu);
  const { runs, rounds, error } = await setup.sweep(planOf(["count-atomic"], { cpus: [2] }));
  const run = measuredOf(runs[0]);
  assert.is(runs.length, 1);
  near(run.mean, 700e3);
  near(run.perCpu, 350e3);
  near(run.min, 300e3);
  near(run.max, 400e3);
  assert.is(run.samples.length, 5);
  for (const rate of run.samples) near(rate, 700e3);
  assert.equal([run.sharedCore, run.flat, run.unit], [false, true, "increments"]);
  assert.equal(rounds, { kept: 1, dropped: 0 });
  assert.is(error, undefined);
  assert.ok(identityHolds(run));
  near(run.handled, 700 * 1100, "warm-up and measurement");
});

test("rounds are interleaved, and a cell's samples are those of all rounds", async () => {
  const setup = new Setup();
  const plan = planOf(["lock-mutex", "lock-spinlock"], { cpus: [1, 2], repeat: 3 });
  const { runs, rounds } = await setup.sweep(plan);
  const round = ["lock-mutex, 1 cpu", "lock-spinlock, 1 cpu"];
  round.push("lock-mutex, 2 cpus", "lock-spinlock, 2 cpus");
  assert.equal(setup.steps, [...round, ...round, ...round]);
  assert.is(setup.steps.length, sweepSteps(plan));
  const pairs = "bench_mutex x2 bench_spinlock x2"
    .split(" x2")
    .join(" x2")
    .split(/(?<=x2) /);
  const once = ["bench_mutex x1", "bench_spinlock x1"];
  once.push("count_percpu x1", "count_percpu x2", ...pairs, "count_percpu x2");
  assert.equal(setup.machine.runs, [...once, ...once, ...once], "controls around the pairs");
  for (const run of runs) {
    const { samples, triggers } = measuredOf(run);
    assert.is(samples.length, 15);
    near(triggers, 3 * 1100 * 1000 * run.cpus);
  }
  assert.equal(rounds, { kept: 3, dropped: 0 });
});

test("one CPU, and more than there are, are not judged by the control", async () => {
  const setup = new Setup();
  const { runs } = await setup.sweep(planOf(["count-atomic"], { cpus: [1, 4] }));
  assert.equal(setup.machine.runs, ["count_atomic x1", "count_atomic x4"]);
  assert.equal(
    runs.map((run) => measuredOf(run).oversubscribed),
    [undefined, "4:2"],
  );
  const { runs: fits } = await new Setup().sweep(planOf(["count-atomic"], { cpus: [3] }), {
    usableCpus: 3,
  });
  assert.is(measuredOf(fits[0]).oversubscribed, undefined);
});

test("busy host: a control that scales by 0.9 or more of its CPUs is good enough", async () => {
  const setup = new Setup();
  setup.controlShares(0.91, 0.91);
  const { runs, rounds } = await setup.sweep(planOf(["count-atomic"], { cpus: [2] }));
  assert.equal([measuredOf(runs[0]).sharedCore, rounds.dropped, setup.notes], [false, 0, []]);
});

for (const [when, shares] of [
  ["before", [0.85, 1]],
  ["after", [1, 0.85]],
] as const) {
  test(`busy host: a control that does not scale ${when} the cells drops the round`, async () => {
    const setup = new Setup();
    setup.controlShares(...shares);
    const { runs, rounds } = await setup.sweep(planOf(["count-atomic"], { cpus: [2] }));
    const run = measuredOf(runs[0]);
    assert.equal([run.sharedCore, run.samples.length], [false, 5], "measured again, and well");
    assert.equal(rounds, { kept: 1, dropped: 1 });
    assert.is(setup.notes.length, 1);
    const why = "2 CPUs: count-percpu scaled by 1.70 only; measured again";
    assert.is(setup.notes[0], `${why} (1 steps)`);
    const again = ["count_percpu x1", "count_percpu x2", "count_atomic x2", "count_percpu x2"];
    assert.equal(setup.machine.runs, [...again, ...again], "the single control too");
  });
}

test("busy host: after three tries the figures are kept and marked", async () => {
  const setup = new Setup();
  setup.controlShares(...Array<number>(20).fill(0.5));
  const { runs, rounds } = await setup.sweep(planOf(["count-atomic"], { cpus: [1, 2] }));
  assert.equal(
    runs.map((run) => [run.cpus, measuredOf(run).sharedCore, measuredOf(run).samples.length]),
    [
      [1, false, 5],
      [2, true, 5],
    ],
  );
  assert.equal(rounds, { kept: 1, dropped: 2 });
  assert.is(setup.machine.runs.filter((run) => run === "count_atomic x2").length, 3);
  assert.is(setup.notes.length, 2);
});

test("busy host: no second try once the time for it is over", async () => {
  const setup = new Setup();
  setup.controlShares(...Array<number>(20).fill(0.5));
  const retryUntilMs = setup.machine.nowMs() + 2500;
  const plan = planOf(["count-atomic"], { cpus: [2] });
  const { runs, rounds } = await setup.sweep(plan, { retryUntilMs });
  assert.is(measuredOf(runs[0]).sharedCore, true);
  assert.equal(rounds, { kept: 1, dropped: 1 }, "one try takes 1.85 s");
});

test("busy host: one round on a shared core marks the run, whatever the others", async () => {
  const setup = new Setup();
  // Round 1 is bad three times over, round 2 is good.
  setup.controlShares(...Array<number>(6).fill(0.5));
  const plan = planOf(["count-atomic"], { cpus: [2], repeat: 2 });
  const { runs, rounds } = await setup.sweep(plan);
  const run = measuredOf(runs[0]);
  assert.equal([run.sharedCore, run.samples.length], [true, 10]);
  assert.equal(rounds, { kept: 2, dropped: 2 });
});

test("a run is flat if it was in every round", async () => {
  const setup = new Setup();
  let round = 0;
  setup.machine.onRun = (entry) => {
    if (entry === "bench_mutex") round++;
  };
  setup.machine.rate = (_entry, _cpu, _cpus, nowMs) => (round === 2 ? 1.1 ** (nowMs / 20) : 1000);
  const plan = planOf(["count-atomic", "lock-mutex"], { repeat: 3 });
  const { runs } = await setup.sweep(plan);
  assert.equal(
    runs.map((run) => measuredOf(run).flat),
    [false, false],
    "round 2 of the one ends with the beginning of round 3 of the other",
  );
  const quiet = await new Setup().sweep(planOf(["count-atomic"], { repeat: 3 }));
  assert.is(measuredOf(quiet.runs[0]).flat, true);
});

test("a cell that fails ends the sweep; what was measured before is kept", async () => {
  const setup = new Setup();
  const full = new WasmprobeError("E_FULL", "only 7 of 9 probes could be registered");
  let formats = 0;
  setup.machine.onFormat = () => {
    if (++formats === 3) throw full;
  };
  const plan = planOf(["count-atomic", "count-shared", "lock-mutex", "lock-ticket"]);
  const { runs, rounds, error } = await setup.sweep(plan);
  assert.is(error, full);
  assert.equal(states(runs), [
    "count-atomic x1 measured",
    "count-shared x1 measured",
    "lock-mutex x1 failed",
    "lock-ticket x1 failed",
  ]);
  for (const run of runs.slice(2)) {
    assert.is(run.state === "failed" && run.reason, full.message);
  }
  assert.equal(rounds, { kept: 0, dropped: 0 });
});

test("a worker that dies in a later round keeps the earlier ones", async () => {
  const setup = new Setup();
  const { machine } = setup;
  machine.at(machine.nowMs() + 2 * 1100 + 500, () => machine.die());
  const { runs, rounds, error } = await setup.sweep(
    planOf(["count-atomic", "count-shared"], { repeat: 2 }),
  );
  assert.is(error?.code, "E_WORKER");
  assert.equal(states(runs), ["count-atomic x1 measured", "count-shared x1 measured"]);
  assert.is(measuredOf(runs[0]).samples.length, 5);
  assert.equal(rounds, { kept: 1, dropped: 0 });
});

test("an error of our own making is not taken for a result", async () => {
  const setup = new Setup();
  setup.machine.onFormat = () => {
    throw new TypeError("x is not a function");
  };
  let thrown: unknown;
  await setup.sweep(planOf(["count-atomic"])).catch((error: unknown) => (thrown = error));
  assert.instance(thrown, TypeError);
});

test("an interruption keeps what was measured, samples of the cell under way too", async () => {
  const setup = new Setup();
  const { machine, interrupt } = setup;
  machine.at(machine.nowMs() + 1100 + 100 + 650, () => interrupt.abort());
  const plan = planOf(["count-atomic", "count-shared", "lock-mutex"], { cpus: [1, 4] });
  const { runs, rounds, error } = await setup.sweep(plan);
  assert.is(error, undefined);
  assert.equal(states(runs), [
    "count-atomic x1 measured",
    "count-shared x1 measured",
    "lock-mutex x1 interrupted",
    "count-atomic x4 interrupted",
    "count-shared x4 interrupted",
    "lock-mutex x4 interrupted",
  ]);
  assert.is(measuredOf(runs[0]).samples.length, 5);
  assert.is(measuredOf(runs[1]).samples.length, 3);
  assert.equal(rounds, { kept: 0, dropped: 0 });
  assert.is(machine.running, undefined);
});

test("an interruption is no busy host, whenever it comes", async () => {
  // Control alone, control on two, cell, control on two again: 250 ms, 250 ms, 1100 ms, 250 ms.
  for (let atMs = 25; atMs < 1850; atMs += 50) {
    const setup = new Setup();
    const { machine, interrupt } = setup;
    machine.at(machine.nowMs() + atMs, () => interrupt.abort());
    const { runs, rounds } = await setup.sweep(planOf(["count-atomic"], { cpus: [2] }));
    assert.equal([setup.notes, rounds.dropped], [[], 0], `interrupted after ${atMs} ms`);
    const [run] = runs;
    const began = 500 + 100 + 200;
    assert.is(run?.state, atMs > began ? "measured" : "interrupted", `after ${atMs} ms`);
    if (run?.state === "measured") assert.is(run.sharedCore, false, `after ${atMs} ms`);
  }
});

test("every outcome of a sweep is a valid result", async () => {
  const setup = new Setup();
  const { machine } = setup;
  setup.controlShares(...Array<number>(20).fill(0.5));
  machine.at(machine.nowMs() + 8000, () => machine.die());
  const plan = planOf(["count-atomic", "lock-mutex"], { cpus: [1, 2, 4], durationSec: 0.3 });
  const { runs, rounds } = await setup.sweep(plan);
  const json = JSON.stringify(resultOf(runs, { rounds }));
  assert.equal(parseResult(json, "it").runs, runs);
});

test.run();
