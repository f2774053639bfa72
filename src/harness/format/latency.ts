// Latencies and readers in words: the kernel format's second line, and bench's lines below Summary.

import { formatCount, formatNs, mops } from "../../base/units.js";
import type { MeasuredRun } from "../result.js";

/** "p50 1.20 us, p90 ..., mean ... (12 345 grace periods)"; empty where nothing was timed. */
export function latencyText({ latency, unit }: Pick<MeasuredRun, "latency" | "unit">): string {
  if (latency === undefined) return "";
  const { p50, p90, p99, max, mean, samples, period, batch } = latency;
  const figures = Object.entries({ p50, p90, p99, max, mean });
  const which = period === 1 ? "" : `, one in ${period}`;
  const times = figures.map(([name, ns]) => `${name} ${formatNs(ns)}`).join(", ");
  const each = batch === undefined ? "" : ` of ${batch}, per one`;
  return `${times} (${formatCount(samples)} ${unit}${each}${which})`;
}

/** "61.234M/s sections on 3 cpus", or "nobody"; empty where all CPUs do operations. */
export function readersText({ readers }: Pick<MeasuredRun, "readers">): string {
  if (readers === undefined) return "";
  const { cpus, mean, unit } = readers;
  if (cpus === 0) return "nobody";
  return `${mops(mean)}M/s ${unit} on ${cpus === 1 ? "1 cpu" : `${cpus} cpus`}`;
}

/** What was done about the clock's own time, for a header. */
export function clockText(runs: readonly Pick<MeasuredRun, "latency">[]): string {
  const overheads = runs.flatMap(({ latency }) =>
    latency === undefined ? [] : [latency.overheadNs],
  );
  if (overheads.length === 0) return "";
  const [least, most] = [formatNs(Math.min(...overheads)), formatNs(Math.max(...overheads))];
  const range = least === most ? least : `${least} to ${most}`;
  return `latencies: less what the clock itself takes, ${range}; percentiles up to 1.6 % high`;
}
