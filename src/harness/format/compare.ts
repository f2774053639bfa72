// Two results against each other: --compare OLD.json.

import { differs } from "../../base/stats.js";
import { textTable } from "../../base/text.js";
import { formatNs, formatRatio, mops } from "../../base/units.js";
import {
  isMeasured,
  runKey,
  runTitle,
  type Host,
  type MeasuredRun,
  type SweepResult,
} from "../result.js";

export interface ComparedRun {
  old: MeasuredRun;
  new: MeasuredRun;
  /** New by old rate: above 1 is faster. */
  ratio: number;
  /** Whether the means differ by more than two joint deviations; undefined with single samples. */
  differs: boolean | undefined;
}

export interface Comparison {
  runs: ComparedRun[];
  /** Titles of runs that only one of the two has figures for. */
  onlyOld: string[];
  onlyNew: string[];
  /** What makes the two hosts hard to compare: "runtime: node 20.20.2, was node 22.1.0". */
  hostChanges: string[];
}

/** How many joint deviations two means must be apart to count as different. */
const FACTOR = 2;

export function compareResults(old: SweepResult, fresh: SweepResult): Comparison {
  const before = byKey(old);
  const after = byKey(fresh);
  const runs: ComparedRun[] = [];
  const onlyNew: string[] = [];
  for (const [key, run] of after) {
    const was = before.get(key);
    if (was === undefined) {
      onlyNew.push(runTitle(run));
      continue;
    }
    const ratio = run.mean / was.mean;
    runs.push({ old: was, new: run, ratio, differs: differs(was, run, FACTOR) });
  }
  const onlyOld = [...before].filter(([key]) => !after.has(key)).map(([, run]) => runTitle(run));
  return { runs, onlyOld, onlyNew, hostChanges: hostChanges(old.host, fresh.host) };
}

function byKey(result: SweepResult): Map<string, MeasuredRun> {
  return new Map(result.runs.filter(isMeasured).map((run) => [runKey(run), run]));
}

function hostChanges(old: Host, fresh: Host): string[] {
  const fields = ["cpuModel", "allowedCpus", "runtime", "engine", "os", "affinity"] as const;
  return fields
    .filter((field) => old[field] !== fresh[field])
    .map((field) => `${field}: ${fresh[field]}, was ${old[field]}`);
}

/** The comparison as text; `source` names the old result. */
export function formatComparison(comparison: Comparison, source: string): string {
  const { runs, onlyOld, onlyNew } = comparison;
  const lines = [`compared with ${source}: rates in M/s, ratio is new by old`];
  lines.push(...comparison.hostChanges.map((change) => `another host, ${change}`));
  if (runs.length === 0) lines.push("no run is in both");
  else {
    const rows = runs.map((row) => [
      runTitle(row.new),
      withDeviation(row.old),
      withDeviation(row.new),
      formatRatio(row.ratio),
      verdictOf(row),
    ]);
    const align = ["left", "right", "right", "right", "left"] as const;
    lines.push(textTable(["run", "old", "new", "ratio", ""], rows, { align }));
  }
  lines.push(...runs.flatMap(latencyLines));
  lines.push(...onlyOld.map((title) => `only in ${source}: ${title}`));
  lines.push(...onlyNew.map((title) => `not in ${source}: ${title}`));
  return lines.join("\n");
}

/** What became of the times, where both runs have some. */
function latencyLines({ old, new: fresh }: ComparedRun): string[] {
  const { latency } = fresh;
  const was = old.latency;
  if (latency === undefined || was === undefined) return [];
  const parts = (["p50", "p99", "max"] as const).map(
    (field) => `${field} ${formatNs(latency[field])}, was ${formatNs(was[field])}`,
  );
  return [`latency of ${runTitle(fresh)}: ${parts.join("; ")}`];
}

function withDeviation(run: MeasuredRun): string {
  return `${mops(run.mean)} ± ${run.stddev === null ? "n/a" : mops(run.stddev)}`;
}

function verdictOf(row: ComparedRun): string {
  if (row.differs === undefined) return "noise unknown";
  if (!row.differs) return "within noise";
  return row.ratio > 1 ? "faster" : "slower";
}
