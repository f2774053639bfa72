// The stated speeds of the hit path, as data: each a ratio of rates inside one round. What measures
// them is bench/goals.ts.

import { median } from "../base/stats.js";
import { findCase, type PresetName } from "./cases.js";
import type { CellSpec } from "./cell.js";

/** Rates of one round, operations per second, by cell name (cellName). */
export type Round = (cell: string) => number;

/** The bench that goals are about unless they name another. */
const HIT = "uprobe-nop";

export interface Goal {
  name: string;
  /** What must hold of the median; null: the figure is stated, and not judged. */
  wanted: Wanted | null;
  /** Cells it is made of; each is measured once a round, however many goals name it. */
  cells: readonly CellSpec[];
  /** `scaling`: the control's, from one CPU to two. */
  ratio(round: Round, scaling: number): number;
}

/** On one side of a bound, or between two that belong to it: what must make no difference. */
export type Wanted =
  | { sign: "<" | "<=" | ">" | ">="; value: number }
  | { sign: "within"; least: number; most: number };

export interface Judged {
  median: number;
  min: number;
  max: number;
  rounds: number;
  /** Null where nothing is wanted. */
  met: boolean | null;
}

export function cellOf(
  name: string,
  cpus: number,
  preset: PresetName | null = null,
  more: Partial<CellSpec> = {},
): CellSpec {
  const bench = findCase(name);
  if (bench === undefined) throw new Error(`no bench ${name}`);
  const probes = preset === null ? 0 : 1;
  return { bench, preset, cpus, probes, trapNs: 0, seed: 1, ...more };
}

/**
 * The same text for the same cell, another for another: "fastest x2" (of uprobe-nop), "count-atomic
 * x1", "uretprobe-nop fastest x1", "uprobe-ret siglock x2, arm64", "fastest x1, 64 apart".
 */
export function cellName(spec: CellSpec): string {
  const { bench, preset, cpus, arch = "x86", probes, siteBytes, trapNs } = spec;
  const words = bench.name === HIT && preset !== null ? [preset] : [bench.name, preset ?? ""];
  const parts = [`${words.join(" ").trim()} x${cpus}`];
  if (arch !== "x86") parts.push(arch);
  if (probes > 1) parts.push(`${probes} probes`);
  if (siteBytes !== undefined) parts.push(`${siteBytes} apart`);
  if (trapNs > 0) parts.push(`trap ${trapNs} ns`);
  return parts.join(", ");
}

const MANY = 100_000;

const atomic = cellOf("count-atomic", 1);
const hit = (preset: PresetName, cpus: number, more: Partial<CellSpec> = {}): CellSpec =>
  cellOf(HIT, cpus, preset, more);

function over(name: string, a: CellSpec, b: CellSpec, wanted: Wanted | null): Goal {
  const ratio = (round: Round): number => round(cellName(a)) / round(cellName(b));
  return { name, wanted, cells: [a, b], ratio };
}

/** `fastest` on one CPU, in units of a locked operation. */
export const FASTEST_GOALS: readonly Goal[] = [
  over("fastest / count-atomic, 1 probe, 1 CPU", hit("fastest", 1), atomic, {
    sign: ">=",
    value: 1.2,
  }),
  over(
    "fastest / count-atomic, 100 000 probes, sites 16 bytes apart",
    hit("fastest", 1, { probes: MANY, siteBytes: 16 }),
    atomic,
    { sign: ">=", value: 0.3 },
  ),
  over(
    "fastest / count-atomic, 100 000 probes, sites 64 bytes apart",
    hit("fastest", 1, { probes: MANY, siteBytes: 64 }),
    atomic,
    null,
  ),
];

function scales(preset: PresetName, bench = HIT): Goal {
  const [one, two] = [cellOf(bench, 1, preset), cellOf(bench, 2, preset)];
  const what = bench === HIT ? preset : `${bench} ${preset}`;
  return {
    name: `${what}, scaling to 2 CPUs / that of count-percpu`,
    wanted: { sign: ">=", value: 0.95 },
    cells: [one, two],
    ratio: (round, scaling) => round(cellName(two)) / round(cellName(one)) / scaling,
  };
}

/** Each step of the ladder at two CPUs, and what scales as private counters do. */
export const LADDER_GOALS: readonly Goal[] = [
  scales("speculative"),
  scales("fastest"),
  {
    name: "ladder, 2 CPUs: srcu / max(spinlock, rwlock)",
    wanted: { sign: ">", value: 1 },
    cells: [hit("spinlock", 2), hit("rwlock", 2), hit("srcu", 2)],
    ratio: (round) => round("srcu x2") / Math.max(round("spinlock x2"), round("rwlock x2")),
  },
  over("ladder, 2 CPUs: srcu / tasks-trace", hit("srcu", 2), hit("tasks-trace", 2), {
    sign: "<=",
    value: 1.05,
  }),
  over("ladder, 2 CPUs: mmap-lock / tasks-trace", hit("mmap-lock", 2), hit("tasks-trace", 2), {
    sign: ">",
    value: 1,
  }),
  over("ladder, 2 CPUs: mmap-lock / speculative", hit("mmap-lock", 2), hit("speculative", 2), {
    sign: "<",
    value: 0.5,
  }),
  over("ladder, 2 CPUs: fastest / speculative", hit("fastest", 2), hit("speculative", 2), {
    sign: ">=",
    value: 1,
  }),
  ...[0, 250].map((trapNs) =>
    over(
      `rwlock / spinlock, 2 CPUs, ${trapNs === 0 ? "raw" : `trap ${trapNs} ns`}`,
      hit("rwlock", 2, { trapNs }),
      hit("spinlock", 2, { trapNs }),
      null,
    ),
  ),
];

const RETURN = "uretprobe-nop";

/** Return probes: what a return adds to a hit, and what reusing its instance is worth. */
export const RETURN_GOALS: readonly Goal[] = [
  over(
    "returns, 1 CPU: uretprobe-nop fastest / uprobe-nop fastest",
    cellOf(RETURN, 1, "fastest"),
    hit("fastest", 1),
    { sign: ">=", value: 0.4 },
  ),
  ...[1, 2].map((cpus) =>
    over(
      `returns, ${cpus} ${cpus === 1 ? "CPU" : "CPUs"}: uretprobe-nop uret-pool / uret-alloc`,
      cellOf(RETURN, cpus, "uret-pool"),
      cellOf(RETURN, cpus, "uret-alloc"),
      { sign: ">", value: 1 },
    ),
  ),
  scales("uret-alloc", RETURN),
  scales("uret-pool", RETURN),
];

/**
 * arm64 on two CPUs, raw: what siglock costs a step. nop and push are stepped there; ret is not, so
 * it must make no difference to it, or what the other two show is not the lock.
 */
export const SIGNAL_GOALS: readonly Goal[] = [
  ...["uprobe-nop", "uprobe-push"].map((bench) => flagOverLock(bench, { sign: ">=", value: 1 })),
  flagOverLock("uprobe-ret", { sign: "within", least: 0.95, most: 1.05 }),
];

function flagOverLock(bench: string, wanted: Wanted): Goal {
  const cell = (preset: PresetName): CellSpec => cellOf(bench, 2, preset, { arch: "arm64" });
  const name = `arm64, 2 CPUs: ${bench} signal-flag / siglock`;
  return over(name, cell("signal-flag"), cell("siglock"), wanted);
}

/** Every cell of these goals, once. */
export function cellsOf(goals: readonly Goal[]): CellSpec[] {
  const cells = goals.flatMap((goal) => goal.cells);
  return [...new Map(cells.map((cell) => [cellName(cell), cell])).values()];
}

export function holds(wanted: Wanted, figure: number): boolean {
  if (wanted.sign === "within") return figure >= wanted.least && figure <= wanted.most;
  const { sign, value } = wanted;
  if (sign === "<") return figure < value;
  if (sign === "<=") return figure <= value;
  return sign === ">" ? figure > value : figure >= value;
}

/** What is wanted, in words: ">= 1.2 x", "0.95..1.05 x", or "-" where nothing is. */
export function wantedText(wanted: Wanted | null): string {
  if (wanted === null) return "-";
  if (wanted.sign === "within") return `${wanted.least}..${wanted.most} x`;
  return `${wanted.sign} ${wanted.value} x`;
}

/** `rates` as measured, [cell][round], in the order of `cells`. Undefined without any round. */
export function judgeGoal(
  goal: Goal,
  cells: readonly CellSpec[],
  rates: readonly (readonly number[])[],
  scaling: readonly number[],
): Judged | undefined {
  const index = new Map(cells.map((cell, i) => [cellName(cell), i]));
  const each = scaling.map((control, round) => {
    const of: Round = (name) => rates[index.get(name) ?? -1]?.[round] ?? Number.NaN;
    return goal.ratio(of, control);
  });
  if (each.length === 0) return undefined;
  const middle = median(each);
  const met = goal.wanted === null ? null : holds(goal.wanted, middle);
  const [min, max] = [Math.min(...each), Math.max(...each)];
  return { median: middle, min, max, rounds: each.length, met };
}
