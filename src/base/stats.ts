// Statistics over samples. Thin on purpose: the definitions are simple-statistics', the contract
// (what is undefined, and when) is ours.

import {
  max as maxOf,
  mean as meanOf,
  median as medianOf,
  min as minOf,
  quantile as quantileOf,
  sampleStandardDeviation,
} from "simple-statistics";

/** Arithmetic mean. Throws on an empty list, as everything here does except sampleDeviation. */
export function mean(values: readonly number[]): number {
  return meanOf(values as number[]);
}

/** Deviation of a sample (divides by n - 1, as the kernel's bench does); needs two values. */
export function sampleDeviation(values: readonly number[]): number | undefined {
  return values.length < 2 ? undefined : sampleStandardDeviation(values as number[]);
}

export function median(values: readonly number[]): number {
  return medianOf(values as number[]);
}

export function min(values: readonly number[]): number {
  return minOf(values as number[]);
}

export function max(values: readonly number[]): number {
  return maxOf(values as number[]);
}

/** The value below which a share `p` (0..1) of the values lies. */
export function quantile(values: readonly number[], p: number): number {
  return quantileOf(values as number[], p);
}

export interface Summary {
  count: number;
  mean: number;
  /** Undefined under two values. */
  stddev: number | undefined;
  median: number;
  min: number;
  max: number;
}

export function summarize(values: readonly number[]): Summary {
  return {
    count: values.length,
    mean: mean(values),
    stddev: sampleDeviation(values),
    median: median(values),
    min: min(values),
    max: max(values),
  };
}

/** A number with the deviation of its samples, if there were two. */
export interface Measured {
  mean: number;
  stddev: number | null | undefined;
}

/** Deviation of the difference a - b of independent measurements; undefined if either has none. */
export function jointDeviation(a: Measured, b: Measured): number | undefined {
  if (typeof a.stddev !== "number" || typeof b.stddev !== "number") return undefined;
  return Math.hypot(a.stddev, b.stddev);
}

/** Whether two means differ by more than `factor` joint deviations; undefined if unknown. */
export function differs(a: Measured, b: Measured, factor = 2): boolean | undefined {
  const joint = jointDeviation(a, b);
  return joint === undefined ? undefined : Math.abs(a.mean - b.mean) > factor * joint;
}
