// Runs as curves: one series per bench, preset, probes, delay and place, over CPU counts.

import { at } from "../../base/list.js";
import { distanceOf, distanceText, type RunKey, type SweepRun } from "../result.js";

export interface Series<R extends SweepRun = SweepRun> {
  /** What tells this series from the others of the result, and nothing more. */
  label: string;
  bench: string;
  preset: string | null;
  probes: number;
  siteBytes: number;
  arch: string;
  trapNs: number;
  on: string;
  /** In ascending CPU counts. */
  runs: R[];
}

export type Axis = "bench" | "preset" | "on" | "probes" | "siteBytes" | "arch" | "trapNs";
const AXES: readonly Axis[] = ["bench", "preset", "on", "probes", "siteBytes", "arch", "trapNs"];

/**
 * Axes along which the runs differ, CPUs aside. Benches without a probe table know neither probes
 * nor exceptions, so that a control beside a sweep adds no axis.
 */
export function varyingAxes(runs: readonly RunKey[]): Set<Axis> {
  const found = new Set<Axis>();
  for (const axis of AXES) {
    const table = axis === "probes" || axis === "arch" || axis === "trapNs";
    const values = new Set(
      axis === "siteBytes"
        ? runs.map(distanceOf).filter((distance) => distance > 0)
        : runs.filter((run) => !table || run.probes > 0).map((run) => run[axis]),
    );
    if (values.size > 1) found.add(axis);
  }
  return found;
}

/** The series of `runs`, in order of appearance. */
export function seriesOf<R extends SweepRun>(runs: readonly R[]): Series<R>[] {
  const axes = varyingAxes(runs);
  const byKey = new Map<string, Series<R>>();
  for (const run of runs) {
    const { bench, preset, on, probes, siteBytes, arch, trapNs } = run;
    const key = JSON.stringify([bench, preset, on, probes, distanceOf(run), arch, trapNs]);
    let series = byKey.get(key);
    if (series === undefined) {
      const conditions = { on, probes, siteBytes, arch, trapNs };
      series = { label: labelOf(run, axes), bench, preset, ...conditions, runs: [] };
      byKey.set(key, series);
    }
    series.runs.push(run);
  }
  for (const { runs: own } of byKey.values()) own.sort((a, b) => a.cpus - b.cpus);
  return [...byKey.values()];
}

function labelOf(run: RunKey, axes: ReadonlySet<Axis>): string {
  const parts: string[] = [];
  if (axes.has("bench") || run.preset === null) parts.push(run.bench);
  if (run.preset !== null) parts.push(run.preset);
  return [...parts, ...conditionsOf(run, axes)].join(" ");
}

export function conditionsOf(run: RunKey, axes: ReadonlySet<Axis>): string[] {
  const parts: string[] = [];
  if (axes.has("probes") && run.probes > 0) parts.push(probesText(run.probes));
  const distance = distanceOf(run);
  if (axes.has("siteBytes") && distance > 0) parts.push(distanceText(distance));
  if (axes.has("arch") && run.probes > 0) parts.push(run.arch);
  if (axes.has("trapNs") && run.probes > 0) parts.push(trapText(run.trapNs));
  if (axes.has("on")) parts.push(`on ${run.on}`);
  return parts;
}

export function probesText(probes: number): string {
  return probes === 1 ? "1 probe" : `${probes} probes`;
}

export function trapText(trapNs: number): string {
  return trapNs === 0 ? "raw" : `trap ${trapNs} ns`;
}

export interface Block<R extends SweepRun = SweepRun> {
  /** The preset and whatever else varies; empty for benches without presets. */
  title: string;
  runs: R[];
}

/** Runs by preset and conditions, as the published tables group them. */
export function blocksOf<R extends SweepRun>(runs: readonly R[]): Block<R>[] {
  const axes = varyingAxes(runs);
  const byTitle = new Map<string, Block<R>>();
  for (const series of seriesOf(runs)) {
    const first = at(series.runs, 0);
    const parts = first.preset === null ? [] : [first.preset];
    const title = [...parts, ...conditionsOf(first, axes)].join(", ");
    const block = byTitle.get(title) ?? { title, runs: [] };
    block.runs.push(...series.runs);
    byTitle.set(title, block);
  }
  return [...byTitle.values()];
}

/** What a reader must know about a run before trusting its figure. */
export function remarks(run: SweepRun): string[] {
  if (run.state !== "measured") return [run.state];
  const found: string[] = [];
  if (run.oversubscribed !== undefined) found.push(`oversubscribed ${run.oversubscribed}`);
  if (run.sharedCore) found.push("shared core");
  if (run.flat === false) found.push("not flat");
  if (run.readers?.cpus === 0) found.push("nobody reads");
  return found;
}
