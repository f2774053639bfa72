// Latencies: what workloads recorded into histograms (assembly/workload/histogram.ts), merged over
// CPUs and rounds, and the percentiles of that.
//
// Percentile p is the nearest rank: the smallest sample that at least p % of all samples do not
// exceed. Histograms know it to a bucket, whose upper end is reported: at most 1/64 (1.6 %) too
// high, never too low, and never above the largest sample, which is exact, as mean and count are.
// (Quantiles of base/stats.ts want all samples; here are millions.)

import * as abi from "../engine/abi.js";
import type { EngineMemory } from "../engine/memory.js";
import type { Runner } from "../engine/runner.js";
import type { Latency } from "./result.js";

export interface Histogram {
  samples: number;
  /** Of all samples, nanoseconds. */
  sum: number;
  max: number;
  /** Samples by bucket, HIST_BUCKETS of them. */
  buckets: Float64Array;
}

/** What a run recorded, not yet reduced to figures: further rounds can be added. */
export interface Recorded {
  histogram: Histogram;
  /** Median of two readings of the clock, one directly after the other, at start. */
  clockNs: number;
  /** Median of what a sample has in it besides its operation. */
  overheadNs: number;
  period: number;
  /** Where each sample is the time of a batch divided by its size. */
  batch?: number;
}

/** The histograms of a cell: of every CPU that times something. */
export interface Recorder {
  /** From here on, until `stop`, samples count; those of a warm-up do not. */
  start(): void;
  stop(): void;
  read(): Recorded;
}

export function emptyHistogram(): Histogram {
  return { samples: 0, sum: 0, max: 0, buckets: new Float64Array(abi.HIST_BUCKETS) };
}

/** Index of a value's bucket, as the engine has it. */
export function bucketOf(ns: number): number {
  if (ns >= 2 ** abi.HIST_BITS) return abi.HIST_BUCKETS - 1;
  const value = Math.max(0, Math.floor(ns));
  const bits = value === 0 ? 0 : Math.floor(Math.log2(value)) + 1;
  const shift = Math.max(0, bits - abi.HIST_SUB_BITS - 1);
  return (shift << abi.HIST_SUB_BITS) + Math.floor(value / 2 ** shift);
}

/** The largest value that falls into a bucket. */
export function bucketEnd(bucket: number): number {
  const shift = Math.max(0, (bucket >> abi.HIST_SUB_BITS) - 1);
  return (bucket - (shift << abi.HIST_SUB_BITS) + 1) * 2 ** shift - 1;
}

export function readHistogram(memory: EngineMemory, at: number): Histogram {
  return {
    samples: memory.load64(at + abi.HIST_COUNT),
    sum: memory.load64(at + abi.HIST_SUM),
    max: memory.load64(at + abi.HIST_MAX),
    buckets: Float64Array.from({ length: abi.HIST_BUCKETS }, (_, bucket) =>
      memory.load64(at + abi.HIST_BUCKETS_AT + 8 * bucket),
    ),
  };
}

export function mergeHistograms(all: readonly Histogram[]): Histogram {
  const merged = emptyHistogram();
  for (const { samples, sum, max, buckets } of all) {
    merged.samples += samples;
    merged.sum += sum;
    merged.max = Math.max(merged.max, max);
    buckets.forEach((n, bucket) => (merged.buckets[bucket] = (merged.buckets[bucket] ?? 0) + n));
  }
  return merged;
}

/** Percentile `p` (0..100) of at least one sample. */
export function percentile(histogram: Histogram, p: number): number {
  const { samples, max, buckets } = histogram;
  const rank = Math.max(1, Math.ceil((p / 100) * samples));
  let upTo = 0;
  const bucket = buckets.findIndex((n) => (upTo += n) >= rank);
  // The last bucket has no end.
  return bucket < 0 || bucket === abi.HIST_BUCKETS - 1 ? max : Math.min(max, bucketEnd(bucket));
}

/** Undefined without a sample. */
export function latencyOf(recorded: readonly Recorded[]): Latency | undefined {
  const [first] = recorded;
  const histogram = mergeHistograms(recorded.map((one) => one.histogram));
  if (first === undefined || histogram.samples === 0) return undefined;
  // Each round measured these anew; the least is the one that was not disturbed.
  const clockNs = Math.min(...recorded.map((one) => one.clockNs));
  const overheadNs = Math.min(...recorded.map((one) => one.overheadNs));
  const net = (ns: number) => Math.max(0, ns - overheadNs);
  return {
    mean: net(histogram.sum / histogram.samples),
    p50: net(percentile(histogram, 50)),
    p90: net(percentile(histogram, 90)),
    p99: net(percentile(histogram, 99)),
    max: net(histogram.max),
    samples: histogram.samples,
    clockNs,
    overheadNs,
    period: first.period,
    ...(first.batch === undefined ? {} : { batch: first.batch }),
  };
}

/** Calls until the engine's optimised code has taken over, then those that count. */
const CLOCK_WARMUP = 20;
const CLOCK_SAMPLES = 1000;

interface Histograms extends Recorder {
  /** For each CPU that times something, what its job is given. */
  addresses: number[];
}

/**
 * Histograms for `count` CPUs that time each of their operations, or batches of them: then a sample
 * is the time of a batch divided by its size.
 */
export async function createRecorder(
  runner: Runner,
  count: number,
  batch = 1,
): Promise<Histograms> {
  const histograms = await create(runner, count, 1, (clockNs) => clockNs / batch);
  if (batch === 1) return histograms;
  return { ...histograms, read: () => ({ ...histograms.read(), batch }) };
}

/**
 * For `count` CPUs that time one hit in a period. Behind each CPU's histogram lies one of the empty
 * batches that it timed beside: coming online before the first hit of a batch and going offline
 * after the last take longer than a hit does, and belong to none.
 */
export function createSampler(runner: Runner, count: number): Promise<Histograms> {
  return create(runner, count, abi.LATENCY_PERIOD, (_, empty) => percentile(empty, 50));
}

async function create(
  runner: Runner,
  count: number,
  period: number,
  overhead: (clockNs: number, empty: Histogram) => number,
): Promise<Histograms> {
  const { memory, host } = runner;
  const each = period === 1 ? 1 : 2;
  const first = await runner.command(abi.OP_ALLOC, (count * each + 1) * abi.HIST_BYTES);
  const all = Array.from({ length: count * each }, (_, i) => first + i * abi.HIST_BYTES);
  const clock = first + all.length * abi.HIST_BYTES;
  const timeNothing = host.workload("time_nothing");
  for (let i = 0; i < CLOCK_WARMUP; i++) timeNothing(clock, CLOCK_SAMPLES);
  memory.store(clock + abi.HIST_ON, 1);
  timeNothing(clock, CLOCK_SAMPLES);
  const clockNs = percentile(readHistogram(memory, clock), 50);
  const turn = (on: number) => {
    for (const at of all) memory.store(at + abi.HIST_ON, on);
  };
  const merged = (part: number) =>
    mergeHistograms(all.filter((_, i) => i % each === part).map((at) => readHistogram(memory, at)));
  return {
    addresses: all.filter((_, i) => i % each === 0),
    start: () => turn(1),
    stop: () => turn(0),
    read: () => ({
      histogram: merged(0),
      clockNs,
      overheadNs: overhead(clockNs, merged(1)),
      period,
    }),
  };
}
