// `wasmprobe bench NAME`: one run, with the lines of the kernel's bench.

import { EXIT_OK, WasmprobeError } from "../../base/errors.js";
import { formatCount, formatNs, formatRate } from "../../base/units.js";
import type { Runner } from "../../engine/runner.js";
import { findCase } from "../../harness/cases.js";
import { setUpCell } from "../../harness/cell.js";
import { type MeasuredDelay, measureDelayUnit, tryDelay } from "../../harness/delay.js";
import { BENCH_INTERVAL_NS, iterLine, setupLine } from "../../harness/format/bench.js";
import { startedLine, summaryLine } from "../../harness/format/bench.js";
import { hostLines } from "../../harness/format/header.js";
import { latencyText, readersText } from "../../harness/format/latency.js";
import { trapText } from "../../harness/format/series.js";
import { describeHost, timerStepNs, usableCpus } from "../../harness/host.js";
import { measure, type Measurement, type Sample } from "../../harness/measure.js";
import { type MeasuredRun, oversubscription } from "../../harness/result.js";
import { keyOf, measuredRun } from "../../harness/sweep.js";
import type { BenchOptions } from "../options.js";
import type { Session } from "../session.js";
import { withThreads } from "./start.js";

/** A tick late by less than this still closes an interval. */
const TICK_SLACK_NS = 5e6;

export async function runBench(session: Session, options: BenchOptions): Promise<number> {
  return withThreads(session, options, (runner) => benchOn(runner, session, options));
}

async function benchOn(runner: Runner, session: Session, options: BenchOptions): Promise<number> {
  const bench = findCase(options.name);
  if (bench === undefined) throw new WasmprobeError("E_NAME", `no bench "${options.name}"`);
  const { cpus, preset, probes, siteBytes, arch, trapNs, seed, quiet, latency } = options;
  const { nowMs } = session.platform;
  const spec = { bench, preset, cpus, probes, siteBytes, arch, trapNs, seed, latency };
  const unitNs = measureDelayUnit(runner.host, nowMs);
  const delays = preset !== null && trapNs > 0;
  const tried = delays ? tryDelay(runner.host, nowMs, trapNs, unitNs) : undefined;
  printHeader(session, options, runner, tried);
  if (!quiet) session.print(setupLine(options.name));
  const cell = await setUpCell(runner, spec, unitNs);
  if (!quiet) session.print(startedLine(options.name));

  let iter = 0;
  const ticker = new Ticker((sample) => {
    session.print(iterLine(iter, { ...sample, hits: sum(sample.ops) }, cpus));
    iter++;
  });
  const measurement = await measure(runner, cell, {
    nowMs,
    warmupSec: options.warmupSec,
    durationSec: options.durationSec,
    sampleSec: Math.min(1, options.durationSec),
    interrupt: session.interrupt,
    onSample: (sample, warmup) => ticker.add(sample, warmup),
  });
  return report(session, options, measurement, spec, runner);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0);
}

/** Joins the short samples of a warm-up to the one-second ticks that the kernel prints. */
class Ticker {
  readonly #print: (sample: Sample) => void;
  #open: Sample | undefined;

  constructor(print: (sample: Sample) => void) {
    this.#print = print;
  }

  add(sample: Sample, warmup: boolean): void {
    if (!warmup) {
      this.#open = undefined; // a warm-up that ended within a second: no tick
      this.#print(sample);
      return;
    }
    const open = this.#open;
    this.#open =
      open === undefined
        ? sample
        : {
            elapsedNs: open.elapsedNs + sample.elapsedNs,
            ops: open.ops.map((n, cpu) => n + (sample.ops[cpu] ?? 0)),
            drops: open.drops + sample.drops,
          };
    if (this.#open.elapsedNs > BENCH_INTERVAL_NS - TICK_SLACK_NS) {
      this.#print(this.#open);
      this.#open = undefined;
    }
  }
}

// The kernel's bench prints no header; ours must be able to say where its figures come from. It
// goes where it disturbs no reader of the kernel's lines, or with -v among them.
function printHeader(
  session: Session,
  options: BenchOptions,
  runner: Runner,
  tried: MeasuredDelay | undefined,
): void {
  if (options.quiet && !options.verbose) return;
  const host = {
    ...describeHost(session.platform, runner.affinity),
    ...(tried === undefined ? {} : { trapMeasuredNs: tried }),
  };
  const traps = options.preset === null ? undefined : trapText(options.trapNs);
  const lines = hostLines(host, traps, options.preset === null ? "x86" : options.arch);
  const label = oversubscription(options.cpus, usableCpus(session.platform));
  if (label !== undefined) lines.push(`oversubscribed ${label}`);
  for (const line of lines) {
    if (options.verbose) session.print(`# ${line}`);
    else session.note(line);
  }
}

function report(
  session: Session,
  options: BenchOptions,
  measurement: Measurement,
  spec: Parameters<typeof setUpCell>[1],
  runner: Runner,
): number {
  const { samples, flat, counts, latency } = measurement;
  if (samples.length === 0) {
    session.note("interrupted before the first sample: nothing was measured");
    return EXIT_OK;
  }
  const hits = samples.map((sample) => ({ ...sample, hits: sum(sample.ops) }));
  session.print(summaryLine(hits, options.cpus));
  if (!flat && !options.quiet) {
    session.note(
      `not flat: the rate still changed when the warm-up ended (-w ${options.warmupSec})`,
    );
  }
  const recorded = latency === undefined ? [] : [latency];
  const all = { samples, counts: [counts], flat, sharedCore: false, recorded };
  const usable = usableCpus(session.platform);
  const run = measuredRun(spec, all, keyOf(spec, runner.on), usable);
  if (latency !== undefined) printLatency(session, run);
  if (run.readers !== undefined) session.print(`Readers: ${readersText(run)}`);
  if (options.verbose) printCounters(session, run);
  return EXIT_OK;
}

function printLatency(session: Session, run: MeasuredRun): void {
  if (run.latency === undefined) {
    session.print(`Latency: none, no ${run.unit} were timed`);
    return;
  }
  const { clockNs, overheadNs, period } = run.latency;
  const step = formatNs(timerStepNs(session.platform.nowMs));
  const beside = period === 1 ? "" : " (the clock and an empty batch)";
  session.print(`Latency: ${latencyText(run)}`);
  session.print(
    `Clock: ${formatNs(clockNs)} a reading, step ${step}; ` +
      `${formatNs(overheadNs)}${beside} taken off each figure above`,
  );
}

function printCounters(session: Session, run: MeasuredRun): void {
  const causes = Object.entries(run.missed).map(([cause, n]) => `${cause} ${formatCount(n)}`);
  const missed = causes.length === 0 ? "0" : causes.join(", ");
  session.print(
    `# triggers ${formatCount(run.triggers)} = handled ${formatCount(run.handled)} ` +
      `+ filtered ${formatCount(run.filtered)} + missed ${missed}`,
  );
  if (run.fallbacks !== undefined && run.retries !== undefined) {
    session.print(
      `# lookups: ${formatCount(run.fallbacks)} fell back to mmap_lock, ` +
        `${formatCount(run.retries)} searches of the tree began again`,
    );
  }
  if (run.steps !== undefined && run.steps > 0) {
    session.print(`# ${formatCount(run.steps)} instructions executed out of line`);
  }
  if (run.returns !== undefined) printReturns(session, run.returns);
  session.print(`# per worker: min ${formatRate(run.min)}, max ${formatRate(run.max)}`);
}

function printReturns(session: Session, returns: NonNullable<MeasuredRun["returns"]>): void {
  const causes = Object.entries(returns.missed).map(([cause, n]) => `${cause} ${formatCount(n)}`);
  const missed = causes.length === 0 ? "0" : causes.join(", ");
  session.print(
    `# entries ${formatCount(returns.entries)} = returns ${formatCount(returns.returns)} ` +
      `+ filtered ${formatCount(returns.filtered)} + missed ${missed} ` +
      `+ pending ${formatCount(returns.pending)}`,
  );
}
