// The rows of the table and markdown formats: our figures, and the published ones beside them.

import { formatNs, formatRatio, mops } from "../../base/units.js";
import { publishedBefore, publishedRow, type PublishedRow, TABLES } from "../published.js";
import {
  distanceOf,
  isMeasured,
  isTimed,
  type MeasuredRun,
  type SweepResult,
  type SweepRun,
} from "../result.js";
import { remarks, seriesOf, trapText, varyingAxes } from "./series.js";

export interface Rows {
  head: string[];
  align: ("left" | "right")[];
  rows: string[][];
  /** Which published tables stand beside, one line each. */
  sources: string[];
}

interface Column {
  head: string;
  left?: boolean;
  /** Shown only if some cell has text. */
  cell: (run: SweepRun) => string;
  /** Order in which columns go when there is no room; absent: it stays. */
  spare?: number;
}

/** How many columns rowsOf can leave out. */
export const SPARE_MAX = 6;

/** `spared`: leave out the columns that are least missed, up to that number. */
export function rowsOf(result: SweepResult, spared = 0): Rows {
  const runs = seriesOf(result.runs).flatMap((series) => series.runs);
  const columns = columnsOf(runs).filter((column) => (column.spare ?? Infinity) > spared);
  const used = columns.filter((column) => runs.some((run) => column.cell(run) !== ""));
  const tables = new Set(runs.map((run) => published(run)?.table).filter((t) => t !== undefined));
  return {
    head: used.map((column) => column.head),
    align: used.map((column) => (column.left ? "left" : "right")),
    rows: runs.map((run) => used.map((column) => column.cell(run))),
    sources: TABLES.filter((t) => tables.has(t.name)).map(
      (t) => `published: ${t.name}, ${t.title} (${t.source}), on another machine, in M/s`,
    ),
  };
}

function columnsOf(runs: readonly SweepRun[]): Column[] {
  const measured = runs.filter(isMeasured);
  const axes = varyingAxes(runs);
  const base = basePreset(measured);
  const columns: Column[] = [
    { head: "bench", left: true, cell: (run) => run.bench },
    { head: "preset", left: true, cell: (run) => run.preset ?? "" },
  ];
  if (axes.has("probes")) {
    columns.push({ head: "probes", cell: (run) => (run.probes > 0 ? String(run.probes) : "") });
  }
  if (axes.has("siteBytes")) {
    columns.push({ head: "bytes apart", cell: apart });
  }
  if (axes.has("arch")) {
    columns.push({ head: "arch", left: true, cell: (run) => (run.probes > 0 ? run.arch : "") });
  }
  if (axes.has("trapNs")) {
    columns.push({ head: "trap", left: true, cell: trapOf });
  }
  if (axes.has("on")) columns.push({ head: "on", left: true, cell: (run) => run.on });
  columns.push(
    { head: "cpus", cell: (run) => String(run.cpus) },
    { head: "M/s", cell: figure((run) => mops(run.mean)) },
    { head: "±", cell: figure((run) => (run.stddev === null ? "n/a" : mops(run.stddev))) },
    { head: "M/s/cpu", cell: figure((run) => mops(run.perCpu)), spare: 3 },
    { head: "min/max", cell: figure(fairness), spare: 2 },
    { head: "p50", cell: latency("p50") },
    { head: "p90", cell: latency("p90"), spare: 5 },
    { head: "p99", cell: latency("p99") },
    { head: "max", cell: latency("max") },
    { head: "readers M/s", cell: figure(readersRate) },
    { head: "vs 1 cpu", cell: figure((run) => faster(run, oneCpu(run, measured))) },
  );
  if (base !== undefined) {
    const other = (run: MeasuredRun) => twin(run, base, measured);
    const cell = figure((run) => faster(run, other(run)));
    columns.push({ head: `vs ${base}`, cell, spare: 6 });
  }
  columns.push(
    { head: "published", cell: (run) => rateOf(published(run)) },
    { head: "pub. vs 1 cpu", cell: (run) => ratio(published(run), publishedOneCpu(run)), spare: 1 },
    { head: "pub. vs before", cell: (run) => ratio(published(run), beforeOf(run)), spare: 4 },
  );
  columns.push({ head: "remarks", left: true, cell: (run) => remarks(run).join(", ") });
  return columns;
}

/** A cell of measured runs only. */
function figure(text: (run: MeasuredRun) => string): (run: SweepRun) => string {
  return (run) => (isMeasured(run) ? text(run) : "");
}

function latency(field: "p50" | "p90" | "p99" | "max"): (run: SweepRun) => string {
  return figure((run) => (run.latency === undefined ? "" : formatNs(run.latency[field])));
}

function readersRate({ readers }: MeasuredRun): string {
  return readers === undefined || readers.cpus === 0 ? "" : mops(readers.mean);
}

function published(run: SweepRun): PublishedRow | undefined {
  return publishedRow(run.preset, run.bench, run.cpus, run.arch);
}

function publishedOneCpu(run: SweepRun): PublishedRow | undefined {
  return run.cpus === 1 ? undefined : publishedRow(run.preset, run.bench, 1, run.arch);
}

function beforeOf(run: SweepRun): PublishedRow | undefined {
  const row = published(run);
  return row === undefined ? undefined : publishedBefore(row);
}

function apart(run: SweepRun): string {
  const distance = distanceOf(run);
  return distance > 0 ? String(distance) : "";
}

/** Benches without a probe table take no exceptions. */
function trapOf(run: SweepRun): string {
  return run.probes > 0 ? trapText(run.trapNs) : "";
}

/** The preset the others are compared with: the first one, if there are several. */
function basePreset(runs: readonly MeasuredRun[]): string | undefined {
  const presets = [...new Set(runs.map((run) => run.preset).filter((p) => p !== null))];
  return presets.length > 1 ? presets[0] : undefined;
}

function sameBut(a: MeasuredRun, b: MeasuredRun, field: "cpus" | "preset"): boolean {
  const fields = ["bench", "preset", "on", "cpus", "probes", "arch", "trapNs"] as const;
  return distanceOf(a) === distanceOf(b) && fields.every((f) => f === field || a[f] === b[f]);
}

function oneCpu(run: MeasuredRun, all: readonly MeasuredRun[]): MeasuredRun | undefined {
  if (run.cpus === 1) return undefined;
  return all.find((other) => other.cpus === 1 && sameBut(run, other, "cpus"));
}

function twin(
  run: MeasuredRun,
  preset: string,
  all: readonly MeasuredRun[],
): MeasuredRun | undefined {
  if (run.preset === preset || run.preset === null) return undefined;
  return all.find((other) => other.preset === preset && sameBut(run, other, "preset"));
}

/** How much faster `a` is: by rates, or by times where each operation was timed. */
function faster(a: MeasuredRun, b: MeasuredRun | undefined): string {
  if (b === undefined || !isTimed(a) || !isTimed(b)) return ratio(a, b);
  return ratio(b.latency, a.latency);
}

function ratio(a: { mean: number } | undefined, b: { mean: number } | undefined): string {
  return a === undefined || b === undefined || b.mean === 0 ? "" : formatRatio(a.mean / b.mean);
}

/** Slowest worker by fastest: 1.00 is perfectly fair. */
function fairness(run: MeasuredRun): string {
  return run.cpus === 1 || run.readers !== undefined || run.max === 0
    ? ""
    : (run.min / run.max).toFixed(2);
}

function rateOf(row: PublishedRow | undefined): string {
  if (row === undefined) return "";
  return `${row.quality === "upper-bound" ? "< " : ""}${mops(row.mean)}`;
}
