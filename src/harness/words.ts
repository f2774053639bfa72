// Words and judgements that the closing sentences of sweeps share.

import { jointDeviation } from "../base/stats.js";
import type { MeasuredRun, SweepRun } from "./result.js";

/** Joint deviations that two means must be apart to count as different. */
export const NOISE_FACTOR = 2;
/** From this ratio on, "3.2 times as fast" reads better than "220 % faster". */
const TIMES_MIN = 3;

export function runAt(runs: readonly MeasuredRun[], cpus: number): MeasuredRun | undefined {
  return runs.find((run) => run.cpus === cpus);
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

export function cpusText(cpus: number): string {
  return cpus === 1 ? "1 cpu" : `${cpus} cpus`;
}

/** "a", "a and b", "a, b and c". */
export function listText(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

/** ", raw," or what an exception costs. */
export function trapClause(run: Pick<SweepRun, "trapNs">): string {
  return run.trapNs === 0 ? ", raw," : `, with ${run.trapNs} ns per exception,`;
}

/** "20 % faster than", or "5.1 times as fast as". */
export function fasterThan(ratio: number): string {
  return ratio < TIMES_MIN
    ? `${percent(ratio - 1)} faster than`
    : `${ratio.toFixed(1)} times as fast as`;
}

/** By how much two runs differ, against the noise: "unknown" where single samples tell nothing. */
export function compared(
  before: MeasuredRun,
  after: MeasuredRun,
): "more" | "less" | "same" | "unknown" {
  const joint = jointDeviation(before, after);
  if (joint === undefined) return "unknown";
  const gap = after.mean - before.mean;
  if (Math.abs(gap) <= NOISE_FACTOR * joint) return "same";
  return gap > 0 ? "more" : "less";
}

/** Why a reader of the published table need not be surprised by a rwlock that does not win. */
export function rawNote(before: MeasuredRun, after: MeasuredRun): string[] {
  if (before.preset !== "spinlock" || after.preset !== "rwlock") return [];
  if (after.trapNs > 0 || after.cpus !== 2) return [];
  return [
    "Raw, at two CPUs, the reader-writer lock need not win: its readers still write the lock " +
      "word, and nothing but the hit itself lies between two of them. The published gain was " +
      "measured with the cost of an exception in between (try --trap-ns 250).",
  ];
}
