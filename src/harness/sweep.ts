// A sweep: benches, presets, CPU counts and probe counts against each other, interleaved, with the
// control that tells whether this machine is shared just now.
//
// One round measures every cell once. Within a round, all cells of one CPU count lie between two
// short runs of count-percpu. Private counters scale by themselves: where they do not, two workers
// were on one core, and the group is measured again, at most three times; then it is kept and
// marked (design: busy hosts).

import { lineOf, WasmprobeError } from "../base/errors.js";
import { mean, sampleDeviation } from "../base/stats.js";
import type { Runner } from "../engine/runner.js";
import { type Arch, type Case, type PresetName, findCase, hasProbes } from "./cases.js";
import { HOST_CONTROL, shownPresets } from "./cases.js";
import { type CellCounts, type CellSpec, setUpCell, SITE_STRIDE, siteBytesOf } from "./cell.js";
import { latencyOf, type Recorded } from "./latency.js";
import { type Interrupt, measure, type Measurement, type Sample } from "./measure.js";
import { CONTROL_SHARE_MIN } from "./rounds.js";
import {
  type MeasuredRun,
  oversubscription,
  type RunKey,
  runTitle,
  type SweepRun,
} from "./result.js";

export interface SweepPlan {
  benches: readonly Case[];
  /** Null: those that each bench shows. */
  presets: readonly PresetName[] | null;
  cpus: readonly number[];
  /** @default "x86" */
  arch?: Arch;
  /** Probe counts; for uprobe benches only. */
  probes: readonly number[];
  /** Distances of sites, bytes; with one probe there is none. @default SITE_STRIDE */
  siteBytes?: readonly number[];
  trapNs: number;
  warmupSec: number;
  durationSec: number;
  repeat: number;
  seed: number;
}

export interface SweepContext {
  runner: Runner;
  nowMs(): number;
  /** Nanoseconds of one unit of cpu.delay. */
  unitNs: number;
  usableCpus: number;
  /** No group is measured again after this moment of nowMs. */
  retryUntilMs: number;
  interrupt: Interrupt;
  onStep(what: string): void;
  /** A group is measured again: `line` says why, `steps` more steps will be announced. */
  onRetry(line: string, steps: number): void;
}

export interface SweepOutcome {
  runs: SweepRun[];
  rounds: { kept: number; dropped: number };
  /** What ended the sweep before its end; the runs up to then are there. */
  error?: WasmprobeError;
}

const GROUP_TRIES = 3;
const CONTROL_WARMUP_SEC = 0.05;
const CONTROL_SEC = 0.2;
/** Samples a cell's duration is cut into, and the longest of them. */
const SAMPLES = 5;
const SAMPLE_SEC_MAX = 1;

/** All cells of a plan, those of one CPU count together. */
export function planCells(plan: SweepPlan): CellSpec[][] {
  return plan.cpus.map((cpus) =>
    plan.benches.flatMap((bench): CellSpec[] => {
      const { trapNs, seed } = plan;
      if (bench.presets.length === 0) {
        return [{ bench, preset: null, cpus, probes: 0, trapNs: 0, seed }];
      }
      const { arch = "x86", siteBytes: distances = [SITE_STRIDE] } = plan;
      const presets =
        plan.presets?.filter((preset) => bench.presets.includes(preset)) ??
        shownPresets(bench, arch);
      const common = { bench, cpus, arch, trapNs, seed };
      return plan.probes.flatMap((probes) =>
        distances
          .slice(0, probes > 1 ? distances.length : 1)
          .flatMap((siteBytes) =>
            presets.map((preset) => ({ ...common, preset, probes, siteBytes })),
          ),
      );
    }),
  );
}

/** Steps that onStep will announce, if no group has to be measured again. */
export function sweepSteps(plan: SweepPlan): number {
  return planCells(plan).flat().length * plan.repeat;
}

interface Collected {
  spec: CellSpec;
  samples: Sample[];
  counts: CellCounts[];
  flat: boolean;
  sharedCore: boolean;
  /** What each round timed; empty where nothing is. */
  recorded: Recorded[];
}

export async function sweep(plan: SweepPlan, context: SweepContext): Promise<SweepOutcome> {
  const groups = planCells(plan);
  const collected = new Map<CellSpec, Collected>();
  const rounds = { kept: 0, dropped: 0 };
  const single = { rate: 0 };
  let error: WasmprobeError | undefined;
  try {
    for (let round = 0; round < plan.repeat && !context.interrupt.aborted; round++) {
      single.rate = 0; // measured again in every round: the machine's speed drifts
      for (const group of groups) {
        if (context.interrupt.aborted) break;
        await measureGroup(plan, context, group, single, collected, rounds);
      }
      if (!context.interrupt.aborted) rounds.kept++;
    }
  } catch (thrown) {
    if (!(thrown instanceof WasmprobeError)) throw thrown;
    error = thrown;
  }
  const runs = groups.flat().map((spec) => toRun(spec, collected.get(spec), context, error));
  return { runs, rounds, ...(error === undefined ? {} : { error }) };
}

async function measureGroup(
  plan: SweepPlan,
  context: SweepContext,
  group: readonly CellSpec[],
  single: { rate: number },
  collected: Map<CellSpec, Collected>,
  rounds: { dropped: number },
): Promise<void> {
  const cpus = group[0]?.cpus ?? 1;
  const judged = cpus > 1 && cpus <= context.usableCpus;
  for (let attempt = 1; ; attempt++) {
    if (judged && (single.rate === 0 || attempt > 1)) single.rate = await control(context, 1);
    const before = judged ? await control(context, cpus) : 0;
    const results = new Map<CellSpec, Measurement>();
    let share = judged ? before / (single.rate * cpus) : 1;
    const keep = () => {
      const shared = share < CONTROL_SHARE_MIN;
      for (const [spec, measurement] of results) collect(collected, spec, measurement, shared);
    };
    try {
      for (const spec of group) {
        if (context.interrupt.aborted) break;
        context.onStep(runTitle(keyOf(spec, context.runner.on)));
        results.set(spec, await measureCell(plan, context, spec));
      }
      if (judged && !context.interrupt.aborted) {
        const after = await control(context, cpus);
        // An interrupted control says nothing about the host.
        if (!context.interrupt.aborted) share = Math.min(share, after / (single.rate * cpus));
      }
    } catch (error) {
      keep(); // a cell that fails does not take with it what was measured before
      throw error;
    }
    const again = attempt < GROUP_TRIES && context.nowMs() < context.retryUntilMs;
    if (share < CONTROL_SHARE_MIN && again && !context.interrupt.aborted) {
      rounds.dropped++;
      const scaling = (share * cpus).toFixed(2);
      const line = `${cpus} CPUs: ${HOST_CONTROL} scaled by ${scaling} only; measured again`;
      context.onRetry(line, group.length);
      continue;
    }
    keep();
    return;
  }
}

function collect(
  collected: Map<CellSpec, Collected>,
  spec: CellSpec,
  measurement: Measurement,
  shared: boolean,
): void {
  const all = collected.get(spec);
  const recorded = measurement.latency === undefined ? [] : [measurement.latency];
  if (all === undefined) {
    const { samples, counts, flat } = measurement;
    collected.set(spec, { spec, samples, counts: [counts], flat, sharedCore: shared, recorded });
    return;
  }
  all.recorded.push(...recorded);
  all.samples.push(...measurement.samples);
  all.counts.push(measurement.counts);
  all.flat &&= measurement.flat;
  all.sharedCore ||= shared;
}

async function measureCell(
  plan: SweepPlan,
  context: SweepContext,
  spec: CellSpec,
): Promise<Measurement> {
  const cell = await setUpCell(context.runner, spec, context.unitNs);
  return measure(context.runner, cell, {
    nowMs: context.nowMs,
    warmupSec: plan.warmupSec,
    durationSec: plan.durationSec,
    sampleSec: Math.min(SAMPLE_SEC_MAX, plan.durationSec / SAMPLES),
    interrupt: context.interrupt,
  });
}

/** Rate of the host control on so many CPUs, operations per second. */
export async function control(context: SweepContext, cpus: number): Promise<number> {
  const bench = findCase(HOST_CONTROL);
  if (bench === undefined) throw new WasmprobeError("E_NAME", `no bench "${HOST_CONTROL}"`);
  const spec = { bench, preset: null, cpus, probes: 0, trapNs: 0, seed: 1 };
  const cell = await setUpCell(context.runner, spec, context.unitNs);
  const { samples } = await measure(context.runner, cell, {
    nowMs: context.nowMs,
    warmupSec: CONTROL_WARMUP_SEC,
    durationSec: CONTROL_SEC,
    sampleSec: CONTROL_SEC,
    interrupt: context.interrupt,
  });
  return samples.length === 0 ? 0 : mean(samples.map(rateOf));
}

function rateOf(sample: Sample): number {
  return (sample.ops.reduce((a, b) => a + b, 0) * 1e9) / sample.elapsedNs;
}

export function keyOf(spec: CellSpec, on: string): RunKey {
  const probed = hasProbes(spec.bench);
  return {
    bench: spec.bench.name,
    preset: spec.preset,
    on,
    cpus: spec.cpus,
    probes: probed ? spec.probes : 0,
    siteBytes: probed ? siteBytesOf(spec) : 0,
    arch: probed ? (spec.arch ?? "x86") : "x86",
    trapNs: probed ? spec.trapNs : 0,
  };
}

function toRun(
  spec: CellSpec,
  all: Collected | undefined,
  context: SweepContext,
  error: WasmprobeError | undefined,
): SweepRun {
  const key = keyOf(spec, context.runner.on);
  if (all === undefined || all.samples.length === 0) {
    return error === undefined
      ? { state: "interrupted", ...key, reason: "interrupted" }
      : { state: "failed", ...key, reason: lineOf(error) };
  }
  return measuredRun(spec, all, key, context.usableCpus);
}

/** A run's figures from its samples. */
export function measuredRun(
  spec: CellSpec,
  all: Pick<Collected, "samples" | "counts" | "flat" | "sharedCore" | "recorded">,
  key: RunKey,
  usableCpus: number,
): MeasuredRun {
  const rates = all.samples.map(rateOf);
  const elapsed = all.samples.reduce((sum, sample) => sum + sample.elapsedNs, 0);
  // Of CPUs that do operations: all, or CPU 0 alone.
  const workers = all.samples[0]?.ops.length ?? spec.cpus;
  const perWorker = Array.from({ length: workers }, (_, cpu) => {
    const ops = all.samples.reduce((sum, sample) => sum + (sample.ops[cpu] ?? 0), 0);
    return (ops * 1e9) / elapsed;
  });
  const label = oversubscription(spec.cpus, usableCpus);
  const average = mean(rates);
  const latency = latencyOf(all.recorded);
  const missed: Record<string, number> = {};
  for (const { missed: one } of all.counts) {
    for (const [cause, n] of Object.entries(one)) missed[cause] = (missed[cause] ?? 0) + n;
  }
  const sum = (term: "triggers" | "handled" | "filtered" | "fallbacks" | "retries" | "steps") =>
    all.counts.reduce((total, counts) => total + (counts[term] ?? 0), 0);
  const lookups = all.counts.some((counts) => counts.fallbacks !== undefined);
  return {
    state: "measured",
    ...key,
    mean: average,
    stddev: sampleDeviation(rates) ?? null,
    perCpu: average / workers,
    samples: rates,
    min: Math.min(...perWorker),
    max: Math.max(...perWorker),
    triggers: sum("triggers"),
    handled: sum("handled"),
    filtered: sum("filtered"),
    missed,
    ...(lookups ? { fallbacks: sum("fallbacks"), retries: sum("retries") } : {}),
    ...(all.counts.some((counts) => counts.steps !== undefined) ? { steps: sum("steps") } : {}),
    ...returnsOf(all.counts),
    sharedCore: all.sharedCore,
    ...(label === undefined ? {} : { oversubscribed: label }),
    flat: all.flat,
    unit: spec.bench.unit,
    ...(latency === undefined ? {} : { latency }),
    ...readersOf(spec, all.samples, elapsed),
  };
}

function returnsOf(all: readonly CellCounts[]): Pick<MeasuredRun, "returns"> {
  const each = all.flatMap((counts) => (counts.returns === undefined ? [] : [counts.returns]));
  if (each.length === 0) return {};
  const missed: Record<string, number> = {};
  for (const { missed: one } of each) {
    for (const [cause, n] of Object.entries(one)) missed[cause] = (missed[cause] ?? 0) + n;
  }
  const sum = (term: "entries" | "returns" | "filtered" | "pending") =>
    each.reduce((total, counts) => total + counts[term], 0);
  return {
    returns: {
      entries: sum("entries"),
      returns: sum("returns"),
      filtered: sum("filtered"),
      missed,
      pending: sum("pending"),
    },
  };
}

function readersOf(
  spec: CellSpec,
  samples: readonly Sample[],
  elapsedNs: number,
): Pick<MeasuredRun, "readers"> {
  const { readers: unit } = spec.bench;
  if (unit === undefined) return {};
  const reads = samples.reduce((sum, sample) => sum + (sample.reads ?? 0), 0);
  return { readers: { cpus: spec.cpus - 1, mean: (reads * 1e9) / elapsedNs, unit } };
}
