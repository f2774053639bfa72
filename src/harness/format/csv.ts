// One record per run, raw figures: rates in operations per second, times in nanoseconds.

import { csvLine } from "../../base/csv.js";
import type { SweepResult, SweepRun } from "../result.js";

export const CSV_COLUMNS = [
  "bench",
  "preset",
  "on",
  "cpus",
  "probes",
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
] as const;

export function formatCsv(result: SweepResult): string {
  return [csvLine(CSV_COLUMNS), ...result.runs.map((run) => csvLine(record(run)))].join("\n");
}

function record(run: SweepRun): string[] {
  const key = [run.bench, run.preset ?? "", run.on, run.cpus, run.probes, run.trapNs, run.state];
  const keys = key.map(String);
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
  ];
}
