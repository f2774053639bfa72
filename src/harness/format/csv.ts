// One record per run, raw figures: rates in operations per second, times in nanoseconds. Columns of
// latencies and readers follow where some run has them.

import { csvLine } from "../../base/csv.js";
import { isMeasured, type SweepResult, type SweepRun } from "../result.js";

export const CSV_COLUMNS = [
  "bench",
  "preset",
  "on",
  "cpus",
  "probes",
  "site_bytes",
  "trap_ns",
  "state",
  "mean",
  "stddev",
  "per_cpu",
  "samples",
  "min",
  "max",
  "triggers",
  "handled",
  "filtered",
  "missed",
  "missed_causes",
  "shared_core",
  "oversubscribed",
  "flat",
  "unit",
  "fallbacks",
  "retries",
] as const;

export const LATENCY_COLUMNS = [
  "latency_mean",
  "latency_p50",
  "latency_p90",
  "latency_p99",
  "latency_max",
  "latency_samples",
  "latency_period",
  "clock_ns",
  "overhead_ns",
  "reader_cpus",
  "readers_mean",
  "readers_unit",
] as const;

export function formatCsv(result: SweepResult): string {
  const { runs } = result;
  const more = runs.some(
    (run) => isMeasured(run) && (run.latency !== undefined || run.readers !== undefined),
  );
  const columns = more ? [...CSV_COLUMNS, ...LATENCY_COLUMNS] : CSV_COLUMNS;
  const records = runs.map((run) => [...record(run), ...(more ? latencyRecord(run) : [])]);
  return [columns, ...records].map(csvLine).join("\n");
}

function latencyRecord(run: SweepRun): string[] {
  const { latency, readers } = isMeasured(run) ? run : {};
  const figures = [
    latency?.mean,
    latency?.p50,
    latency?.p90,
    latency?.p99,
    latency?.max,
    latency?.samples,
    latency?.period,
    latency?.clockNs,
    latency?.overheadNs,
    readers?.cpus,
    readers?.mean,
    readers?.unit,
  ];
  return figures.map((figure) => (figure === undefined ? "" : String(figure)));
}

function record(run: SweepRun): string[] {
  const { bench, preset, on, cpus, probes, siteBytes, trapNs, state } = run;
  const keys = [bench, preset ?? "", on, cpus, probes, siteBytes, trapNs, state].map(String);
  if (run.state !== "measured") {
    return [...keys, ...Array<string>(CSV_COLUMNS.length - keys.length).fill("")];
  }
  const causes = Object.entries(run.missed).filter(([, n]) => n > 0);
  return [
    ...keys,
    String(run.mean),
    run.stddev === null ? "" : String(run.stddev),
    String(run.perCpu),
    String(run.samples.length),
    String(run.min),
    String(run.max),
    String(run.triggers),
    String(run.handled),
    String(run.filtered),
    String(causes.reduce((sum, [, n]) => sum + n, 0)),
    causes.map(([cause, n]) => `${cause}=${n}`).join(";"),
    String(run.sharedCore),
    run.oversubscribed ?? "",
    String(run.flat ?? true),
    run.unit,
    run.fallbacks === undefined ? "" : String(run.fallbacks),
    run.retries === undefined ? "" : String(run.retries),
  ];
}
