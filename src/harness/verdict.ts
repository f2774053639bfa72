// What a sweep over presets showed, in words: of two, how each scaled, which was faster, whether
// that is more than noise, and what the published table saw at the same CPU counts; of more, see
// ladder.ts. It says no more than the figures do: on a busy host nothing is judged.

import { jointDeviation } from "../base/stats.js";
import { formatRate, formatRatio } from "../base/units.js";
import { type Arch, HOST_CONTROL } from "./cases.js";
import { conditionsOf, varyingAxes } from "./format/series.js";
import { publishedRow, publishedSeries, type PublishedRow } from "./published.js";
import { ladderTexts, type Rung } from "./ladder.js";
import { distanceOf, isMeasured, type MeasuredRun, type SweepRun } from "./result.js";
import { cpusText, fasterThan, listText, NOISE_FACTOR, percent, rawNote } from "./words.js";
import { runAt, trapClause } from "./words.js";

/** What private counters must reach at two CPUs, or workers share a core. */
export const CONTROL_SCALING_MIN = 1.8;
/** More than this at two CPUs is no scaling: what ran on one was disturbed. */
const CONTROL_SCALING_MAX = 2.2;

/** What is compared: runs of one bench under the same conditions, by preset. */
interface Comparison {
  bench: string;
  /** The bench, with what tells these runs from others of it. */
  subject: string;
  arch: Arch;
  /** In the order of the sweep: of two, the first is the baseline. */
  rungs: Rung[];
}

/** The closing sentences of a sweep; one paragraph. */
export function verdict(all: readonly SweepRun[]): string {
  const measured = all.filter(isMeasured);
  const comparison = comparisonOf(measured);
  if (comparison === undefined) return "Too little was measured to compare two presets.";
  const { bench, arch, subject, rungs } = comparison;
  const counts = commonCounts(rungs);
  const most = counts.at(-1);
  if (most === undefined) {
    const names = listText(rungs.map((rung) => rung.preset));
    return `${names} were not measured at the same CPU count: nothing to compare.`;
  }
  const busy = busyText(measured, comparison, most);
  if (busy !== undefined) return busy;
  const control = controlScaling(measured, most);
  const [first, second, third] = rungs;
  if (first === undefined || second === undefined) return "";
  if (third !== undefined) return ladderTexts({ subject, rungs, counts, control }).join(" ");
  const pair: Pair = { bench, arch, subject, rungs: [first, second] };
  const sentences = [scalingText(pair, counts, control)];
  const sides = [runAt(first.runs, most), runAt(second.runs, most)] as const;
  if (sides[0] !== undefined && sides[1] !== undefined) {
    sentences.push(...winnerTexts(sides[0], sides[1]));
  }
  sentences.push(...publishedTexts(pair, most));
  return sentences.join(" ");
}

interface Pair extends Comparison {
  rungs: [Rung, Rung];
}

function comparisonOf(runs: readonly MeasuredRun[]): Comparison | undefined {
  const hits = runs.filter((run) => run.preset !== null);
  const [first] = hits;
  if (first === undefined) return undefined;
  const fields = ["bench", "probes", "arch", "trapNs", "on"] as const;
  const own = hits.filter(
    (run) =>
      distanceOf(run) === distanceOf(first) && fields.every((field) => run[field] === first[field]),
  );
  const presets = [...new Set(own.map((run) => run.preset).filter((p) => p !== null))];
  if (presets.length < 2) return undefined;
  const rungs = presets.map((preset) => ({
    preset,
    runs: own.filter((run) => run.preset === preset),
  }));
  // Of several tables in one result it is the first that is told; its conditions say which.
  const conditions = conditionsOf(first, varyingAxes(hits));
  const subject = [first.bench, ...conditions].join(", ");
  const told = conditions.length > 0 ? `${subject},` : subject;
  return { bench: first.bench, arch: first.arch, subject: told, rungs };
}

/** CPU counts that all presets were measured at; oversubscribed ones say nothing about scaling. */
function commonCounts(rungs: readonly Rung[]): number[] {
  const [first = [], ...others] = rungs.map(({ runs }) =>
    runs.filter((run) => run.oversubscribed === undefined).map((run) => run.cpus),
  );
  return first
    .filter((cpus) => others.every((counts) => counts.includes(cpus)))
    .sort((x, y) => x - y);
}

function controlScaling(runs: readonly MeasuredRun[], cpus: number): number | undefined {
  const control = runs.filter((run) => run.bench === HOST_CONTROL);
  const [one, many] = [runAt(control, 1), runAt(control, cpus)];
  if (cpus === 1 || one === undefined || many === undefined) return undefined;
  return many.mean / one.mean;
}

function busyText(
  all: readonly MeasuredRun[],
  comparison: Comparison,
  most: number,
): string | undefined {
  const why = "Nothing is judged, since the host is busy";
  const scaling = controlScaling(all, 2);
  if (scaling !== undefined && scaling < CONTROL_SCALING_MIN) {
    return (
      `${why}: even private counters (${HOST_CONTROL}) scaled only ${formatRatio(scaling)} ` +
      `at 2 cpus, where ${formatRatio(CONTROL_SCALING_MIN)} is the least that a free host shows.`
    );
  }
  if (scaling !== undefined && scaling > CONTROL_SCALING_MAX) {
    return (
      `${why}: private counters (${HOST_CONTROL}) seem to have scaled ${formatRatio(scaling)} ` +
      `at 2 cpus, so that what was measured on 1 cpu had less than one.`
    );
  }
  const { bench, rungs } = comparison;
  const shared = rungs.some(({ runs }) => runAt(runs, most)?.sharedCore === true);
  if (!shared) return undefined;
  return `${why}: workers shared a core while ${bench} was measured at ${cpusText(most)}.`;
}

function scalingText(
  { subject, rungs }: Pair,
  counts: readonly number[],
  control: number | undefined,
): string {
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  if (least === most) {
    const rates = rungs.map(({ preset, runs }) => `${preset} ${rateAt(runs, most)}`);
    return (
      `At ${cpusText(most)}, ${subject} ran at ${rates.join(" and ")}; ` +
      `how they scale takes a second CPU count.`
    );
  }
  const curves = rungs.map(({ preset, runs }) => {
    const scaling = (runAt(runs, most)?.mean ?? 0) / (runAt(runs, least)?.mean ?? 1);
    return (
      `from ${rateAt(runs, least)} to ${rateAt(runs, most)} under ${preset} ` +
      `(${formatRatio(scaling)})`
    );
  });
  const beside =
    control === undefined || least !== 1
      ? ""
      : `; private counters (${HOST_CONTROL}) scaled ${formatRatio(control)}`;
  return `From ${cpusText(least)} to ${most}, ${subject} went ${curves.join(" and ")}${beside}.`;
}

function rateAt(runs: readonly MeasuredRun[], cpus: number): string {
  return formatRate(runAt(runs, cpus)?.mean ?? 0);
}

function winnerTexts(before: MeasuredRun, after: MeasuredRun): string[] {
  const [slow, fast] = before.mean <= after.mean ? [before, after] : [after, before];
  const where = `At ${cpusText(after.cpus)}${trapClause(after)}`;
  const joint = jointDeviation(before, after);
  const gap = fast.mean - slow.mean;
  const won = `${where} ${fast.preset} was ${fasterThan(fast.mean / slow.mean)} ${slow.preset}`;
  const note = fast === after ? [] : rawNote(before, after);
  if (joint === undefined) {
    return [`${won}, from single samples: how much of it is noise is unknown.`, ...note];
  }
  if (gap <= NOISE_FACTOR * joint) {
    const lead = percent(fast.mean / slow.mean - 1);
    const noise = `${where} ${before.preset} and ${after.preset} differ by ${lead}`;
    return [`${noise}, which is within the noise: neither won.`, ...rawNote(before, after)];
  }
  const times = joint === 0 ? "" : ` (${(gap / joint).toFixed(0)} joint deviations)`;
  return [`${won}, more than the noise${times}.`, ...note];
}

function publishedTexts(pair: Pair, most: number): string[] {
  const { bench, arch, rungs } = pair;
  const presets = [rungs[0].preset, rungs[1].preset] as const;
  const rows = (cpus: number): [PublishedRow, PublishedRow] | undefined => {
    const [a, b] = presets.map((preset) => publishedRow(preset, bench, cpus, arch));
    // Rows of two tables are of two machines.
    return a === undefined || b === undefined || a.table !== b.table ? undefined : [a, b];
  };
  const counts = publishedSeries(presets[0], bench, arch).map((row) => row.cpus);
  const shared = counts.filter((cpus) => rows(cpus) !== undefined);
  const nearest = Math.max(...shared.filter((cpus) => cpus <= most));
  const found = rows(nearest);
  const one = rows(1);
  if (found === undefined || one === undefined) return [];
  const gains = shared.map((cpus) => ({ cpus, gain: gainOf(rows(cpus)) }));
  const best = gains.reduce((a, b) => (b.gain > a.gain ? b : a));
  const missing = nearest === most ? "" : `, which has no such rows for ${cpusText(most)},`;
  const scaled = (i: 0 | 1): string => formatRatio(found[i].mean / one[i].mean);
  const scaling =
    nearest === 1
      ? ""
      : `${presets[0]} at ${scaled(0)} and ${presets[1]} at ${scaled(1)} of 1 cpu, `;
  const sentence =
    `The published table (${found[0].table}, another machine)${missing} saw at ` +
    `${cpusText(nearest)} ${scaling}${presets[1]} ${leadText(gainOf(found))}`;
  const peak = `; its largest gain, ${percent(best.gain - 1)}, came at ${cpusText(best.cpus)}`;
  return [`${sentence}${best.cpus > nearest && best.gain > 1 ? peak : ""}.`];
}

function gainOf(rows: [PublishedRow, PublishedRow] | undefined): number {
  return rows === undefined ? 0 : rows[1].mean / rows[0].mean;
}

function leadText(gain: number): string {
  return gain >= 1 ? `ahead by ${percent(gain - 1)}` : `behind by ${percent(1 / gain - 1)}`;
}
