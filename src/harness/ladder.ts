// What a sweep over three presets or more showed, in words: under which further CPUs helped, each
// step against the one before, and what the published tables saw of the same steps. Every
// sentence follows from the figures, whichever way they came out.

import { formatRate, formatRatio } from "../base/units.js";
import { HOST_CONTROL } from "./cases.js";
import { publishedBefore, publishedRow } from "./published.js";
import type { MeasuredRun } from "./result.js";
import { compared, cpusText, listText, rawNote, runAt, trapClause } from "./words.js";

/** A preset with its runs at the CPU counts that all presets have. */
export interface Rung {
  preset: string;
  runs: readonly MeasuredRun[];
}

export interface Ladder {
  /** "uprobe-nop", or with what tells it from other rows: "uprobe-nop with 1000 probes". */
  subject: string;
  rungs: readonly Rung[];
  /** CPU counts that all were measured at, ascending; at least one. */
  counts: readonly number[];
  /** How the control scaled from 1 CPU to the most, where it was measured. */
  control: number | undefined;
}

export function ladderTexts(ladder: Ladder): string[] {
  const most = ladder.counts.at(-1);
  if (most === undefined) return [];
  const top = ladder.rungs.map(({ runs }) => runAt(runs, most)).filter((run) => run !== undefined);
  return [
    ...scalingTexts(ladder, most),
    ...stepTexts(top),
    ...leadTexts(top),
    ...rwlockTexts(top),
    ...publishedTexts(top),
  ];
}

function scalingTexts({ subject, rungs, counts, control }: Ladder, most: number): string[] {
  const [least = most] = counts;
  if (least === most) {
    const where = `${subject} was measured at ${cpusText(most)} only`;
    return [`${where}: how it scales takes a second CPU count.`];
  }
  const groups = new Map<string, string[]>();
  for (const { preset, runs } of rungs) {
    const [one, many] = [runAt(runs, least), runAt(runs, most)];
    if (one === undefined || many === undefined) continue;
    const names = groups.get(compared(one, many)) ?? [];
    names.push(`${preset} (${formatRatio(many.mean / one.mean)})`);
    groups.set(compared(one, many), names);
  }
  const parts = [
    ["more", "gained under"],
    ["less", "lost under"],
    ["same", "stayed within the noise under"],
    ["unknown", "went, noise unknown, under"],
  ].flatMap(([outcome = "", verb]) => {
    const names = groups.get(outcome);
    return names === undefined ? [] : [`${verb} ${listText(names)}`];
  });
  const beside =
    least !== 1 || control === undefined
      ? ""
      : `; private counters (${HOST_CONTROL}) scaled ${formatRatio(control)}`;
  return [`From ${cpusText(least)} to ${most}, ${subject} ${parts.join("; it ")}${beside}.`];
}

const REMARKS = { more: "", less: "", same: " (within the noise)", unknown: " (noise unknown)" };

function stepTexts(top: readonly MeasuredRun[]): string[] {
  const [first] = top;
  if (first === undefined) return [];
  const steps = top.slice(1).map((run, i) => {
    const before = top[i] ?? first;
    const ratio = formatRatio(run.mean / before.mean);
    return `${run.preset} ran at ${ratio} of ${before.preset}${REMARKS[compared(before, run)]}`;
  });
  const where = `At ${cpusText(first.cpus)}${trapClause(first)} step by step`;
  return [`${where}: ${steps.join(", ")}.`];
}

function leadTexts(top: readonly MeasuredRun[]): string[] {
  const [best, ...others] = [...top].sort((a, b) => b.mean - a.mean);
  if (best === undefined) return [];
  const behind = (run: MeasuredRun) => compared(best, run) === "less";
  const beside = others.filter((run) => !behind(run));
  if (beside.some((run) => compared(best, run) === "unknown")) {
    return [
      `The highest figure is ${best.preset}'s; single samples do not tell how certain it is.`,
    ];
  }
  if (beside.length === 0) {
    const rate = formatRate(best.mean);
    return [`In the lead by more than the noise: ${best.preset}, with ${rate}.`];
  }
  const names = listText([best, ...beside].map((run) => String(run.preset)));
  return [`None leads: ${names} differ by no more than the noise.`];
}

function rwlockTexts(top: readonly MeasuredRun[]): string[] {
  const [spinlock, rwlock] = ["spinlock", "rwlock"].map((name) =>
    top.find((run) => run.preset === name),
  );
  if (spinlock === undefined || rwlock === undefined) return [];
  return compared(spinlock, rwlock) === "more" ? [] : rawNote(spinlock, rwlock);
}

/** Steps that a table was published of, both sides of which were measured here. */
function publishedTexts(top: readonly MeasuredRun[]): string[] {
  const steps = top.flatMap((after) => {
    const row = publishedRow(after.preset, after.bench, after.cpus, after.arch);
    const old = row === undefined ? undefined : publishedBefore(row);
    if (row === undefined || old === undefined) return [];
    const before = top.find((run) => {
      const own = publishedRow(run.preset, run.bench, run.cpus, run.arch);
      return own?.table === old.table && own.variant === old.variant;
    });
    if (before === undefined) return [];
    const [theirs, ours] = [row.mean / old.mean, after.mean / before.mean].map(formatRatio);
    return [`${after.preset} at ${theirs} of ${before.preset} (here ${ours})`];
  });
  if (steps.length === 0) return [];
  const whose = "The published tables, of other machines and with real exceptions";
  return [`${whose}, saw at ${cpusText(top[0]?.cpus ?? 1)} ${listText(steps)}.`];
}
