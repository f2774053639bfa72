// One record per run, raw figures: rates in operations per second, times in nanoseconds. Columns of
// latencies, readers and returns follow where some run has them.

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
  "arch",
  "steps",
] as const;

export const RETURN_COLUMNS = [
  "entries",
  "returns",
  "returns_filtered",
  "returns_missed",
  "returns_missed_causes",
  "returns_pending",
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
  const back = runs.some((run) => isMeasured(run) && run.returns !== undefined);
  const columns = [
    ...CSV_COLUMNS,
    ...(more ? LATENCY_COLUMNS : []),
    ...(back ? RETURN_COLUMNS : []),
  ];
  const records = runs.map((run) => [
    ...record(run),
    ...(more ? latencyRecord(run) : []),
    ...(back ? returnsRecord(run) : []),
  ]);
  return [columns, ...records].map(csvLine).join("\n");
}

function returnsRecord(run: SweepRun): string[] {
  const { returns } = isMeasured(run) ? run : {};
  if (returns === undefined) return RETURN_COLUMNS.map(() => "");
  const causes = Object.entries(returns.missed).filter(([, n]) => n > 0);
  return [
    String(returns.entries),
    String(returns.returns),
    String(returns.filtered),
    String(causes.reduce((sum, [, n]) => sum + n, 0)),
    causes.map(([cause, n]) => `${cause}=${n}`).join(";"),
    String(returns.pending),
  ];
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
    run.probes > 0 ? run.arch : "",
    run.steps === undefined ? "" : String(run.steps),
  ];
}
