// Measuring a cell: start, warm until flat, sample by snapshot, stop.
//
// Counters are never reset while CPUs run: a sample is the difference of two snapshots over the
// time that really passed between them.

import { mean } from "../base/stats.js";
import type { Runner } from "../engine/runner.js";
import type { Cell, CellCounts } from "./cell.js";
import type { Recorded } from "./latency.js";

/** Why an interrupted measurement has fewer samples; passed down by whoever owns Ctrl-C. */
export interface Interrupt {
  readonly aborted: boolean;
  /** Called once, at once if it has happened already. */
  onAbort(listener: () => void): void;
}

export interface MeasureOptions {
  nowMs(): number;
  /** Least warm-up, seconds; it may take up to three times as long. 0: none. */
  warmupSec: number;
  durationSec: number;
  /** Time between two snapshots, seconds. */
  sampleSec: number;
  interrupt: Interrupt;
  /** Called after each snapshot, warm-up included, with what happened since the one before. */
  onSample?(sample: Sample, warmup: boolean): void;
}

export interface Sample {
  elapsedNs: number;
  /** Operations of each CPU. */
  ops: number[];
  /** Triggers without a handler, all CPUs together. */
  drops: number;
  /** Rounds of the CPUs that are not there for operations, together. */
  reads?: number;
}

export interface Measurement {
  /** Empty if the interruption came during the warm-up. */
  samples: Sample[];
  /** False if the rate still rose or fell when the warm-up ended. */
  flat: boolean;
  counts: CellCounts;
  /** What was timed after the warm-up, where the cell times anything. */
  latency?: Recorded;
}

/** Snapshots a warm-up takes per `warmupSec`. */
const WARMUP_STEPS = 5;
const WARMUP_FACTOR_MAX = 3;
/** Two halves of the last five warm-up samples may differ by this much. */
const FLAT_TOLERANCE = 0.05;

/** Resolves after `ms`, or at once when interrupted. */
function pause(ms: number, interrupt: Interrupt): Promise<void> {
  if (interrupt.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    interrupt.onAbort(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function total(sample: Sample): number {
  return (sample.ops.reduce((a, b) => a + b, 0) * 1e9) / sample.elapsedNs;
}

/** Whether the last five rates neither rise nor fall: later half against earlier half. */
export function isFlat(rates: readonly number[]): boolean {
  if (rates.length < WARMUP_STEPS) return false;
  const last = rates.slice(-WARMUP_STEPS);
  const earlier = mean(last.slice(0, 2));
  const later = mean(last.slice(-2));
  return Math.abs(later - earlier) <= FLAT_TOLERANCE * earlier;
}

/** Runs the cell; the runner's CPUs have left when this resolves, whatever happened. */
export async function measure(
  runner: Runner,
  cell: Cell,
  options: MeasureOptions,
): Promise<Measurement> {
  const { interrupt, nowMs, warmupSec } = options;
  const { recorder } = cell;
  const run = await runner.run(cell.jobs);
  let broken: unknown;
  const failed = run.done.catch((error: unknown) => {
    broken = error;
  });
  const samples: Sample[] = [];
  let flat = warmupSec === 0;
  try {
    let at = nowMs();
    let ops = cell.progress();
    let drops = cell.drops();
    let reads = cell.reads?.();
    const snapshot = async (sec: number): Promise<Sample> => {
      await Promise.race([pause(sec * 1000, interrupt), failed]);
      const now = nowMs();
      const fresh = cell.progress();
      const freshDrops = cell.drops();
      const freshReads = cell.reads?.();
      const sample = {
        elapsedNs: (now - at) * 1e6,
        ops: fresh.map((value, cpu) => value - (ops[cpu] ?? 0)),
        drops: freshDrops - drops,
        ...(freshReads === undefined ? {} : { reads: freshReads - (reads ?? 0) }),
      };
      at = now;
      ops = fresh;
      drops = freshDrops;
      reads = freshReads;
      return sample;
    };
    const goesOn = () => !interrupt.aborted && broken === undefined;

    const rates: number[] = [];
    const steps = warmupSec === 0 ? 0 : WARMUP_STEPS;
    for (let i = 0; i < steps * WARMUP_FACTOR_MAX && goesOn(); i++) {
      if (i >= steps && isFlat(rates)) break;
      const sample = await snapshot(warmupSec / WARMUP_STEPS);
      rates.push(total(sample));
      options.onSample?.(sample, true);
    }
    flat ||= isFlat(rates);

    recorder?.start();
    const wanted = Math.max(1, Math.round(options.durationSec / options.sampleSec));
    for (let i = 0; i < wanted && goesOn(); i++) {
      const sample = await snapshot(options.durationSec / wanted);
      // An interrupted sample may be of no length at all.
      if (interrupt.aborted || broken !== undefined) break;
      samples.push(sample);
      options.onSample?.(sample, false);
    }
  } finally {
    recorder?.stop();
    await run.stop();
  }
  if (broken !== undefined) throw broken;
  const counts = cell.counts();
  return { samples, flat, counts, ...(recorder === undefined ? {} : { latency: recorder.read() }) };
}
