// What a sweep over two presets showed, in words: how each scaled, which was faster, whether that
// is more than noise, and what the published table saw at the same CPU counts. It says no more than
// the figures do: on a busy host nothing is judged.

import { jointDeviation } from "../base/stats.js";
import { formatRate, formatRatio } from "../base/units.js";
import { HOST_CONTROL } from "./cases.js";
import { publishedRow, publishedSeries, type PublishedRow } from "./published.js";
import { isMeasured, type MeasuredRun, type SweepRun } from "./result.js";

/** What private counters must reach at two CPUs, or workers share a core. */
export const CONTROL_SCALING_MIN = 1.8;
/** Joint deviations that two means must be apart to count as different. */
const NOISE_FACTOR = 2;

interface Pair {
  bench: string;
  /** The baseline and the one compared with it: "before" and "after". */
  presets: [string, string];
  runs: [MeasuredRun[], MeasuredRun[]];
}

/** The closing sentences of a sweep; one paragraph. */
export function verdict(all: readonly SweepRun[]): string {
  const measured = all.filter(isMeasured);
  const pair = pairOf(measured);
  if (pair === undefined) return "Too little was measured to compare two presets.";
  const common = commonCounts(pair);
  const most = common.at(-1);
  if (most === undefined) {
    const both = pair.presets.join(" and ");
    return `${both} were not measured at the same CPU count: nothing to compare.`;
  }
  const busy = busyText(measured, pair, most);
  if (busy !== undefined) return busy;
  const sentences = [scalingText(pair, common, measured)];
  const sides = [at(pair.runs[0], most), at(pair.runs[1], most)] as const;
  if (sides[0] !== undefined && sides[1] !== undefined) {
    sentences.push(...winnerTexts(sides[0], sides[1]));
  }
  sentences.push(...publishedTexts(pair, most));
  return sentences.join(" ");
}

function pairOf(runs: readonly MeasuredRun[]): Pair | undefined {
  const first = runs.find((run) => run.preset !== null);
  if (first === undefined) return undefined;
  const { bench, probes, trapNs, on } = first;
  const own = runs.filter(
    (r) => r.bench === bench && r.probes === probes && r.trapNs === trapNs && r.on === on,
  );
  const [a, b] = new Set(own.map((run) => run.preset).filter((p) => p !== null));
  if (a === undefined || b === undefined) return undefined;
  const of = (preset: string): MeasuredRun[] => own.filter((run) => run.preset === preset);
  return { bench, presets: [a, b], runs: [of(a), of(b)] };
}

/** CPU counts that both presets were measured at; oversubscribed ones say nothing about scaling. */
function commonCounts(pair: Pair): number[] {
  const usable = pair.runs.map((runs) => runs.filter((run) => run.oversubscribed === undefined));
  const [a = [], b = []] = usable.map((runs) => runs.map((run) => run.cpus));
  return a.filter((cpus) => b.includes(cpus)).sort((x, y) => x - y);
}

function at(runs: readonly MeasuredRun[], cpus: number): MeasuredRun | undefined {
  return runs.find((run) => run.cpus === cpus);
}

function controlScaling(runs: readonly MeasuredRun[], cpus: number): number | undefined {
  const control = runs.filter((run) => run.bench === HOST_CONTROL);
  const [one, many] = [at(control, 1), at(control, cpus)];
  if (cpus === 1 || one === undefined || many === undefined) return undefined;
  return many.mean / one.mean;
}

function busyText(all: readonly MeasuredRun[], pair: Pair, most: number): string | undefined {
  const why = "Nothing is judged, since the host is busy";
  const scaling = controlScaling(all, 2);
  if (scaling !== undefined && scaling < CONTROL_SCALING_MIN) {
    return (
      `${why}: even private counters (${HOST_CONTROL}) scaled only ${formatRatio(scaling)} ` +
      `at 2 cpus, where ${formatRatio(CONTROL_SCALING_MIN)} is the least that a free host shows.`
    );
  }
  const shared = pair.runs.flat().some((run) => run.sharedCore && run.cpus === most);
  if (!shared) return undefined;
  return `${why}: workers shared a core while ${pair.bench} was measured at ${cpusText(most)}.`;
}

function scalingText(pair: Pair, counts: readonly number[], all: readonly MeasuredRun[]): string {
  const { bench, presets, runs } = pair;
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  if (least === most) {
    const rates = presets.map((name, i) => `${name} ${rateAt(runs[i], most)}`);
    return (
      `At ${cpusText(most)}, ${bench} ran at ${rates.join(" and ")}; ` +
      `how they scale takes a second CPU count.`
    );
  }
  const curves = presets.map((name, i) => {
    const scaling = (at(runs[i] ?? [], most)?.mean ?? 0) / (at(runs[i] ?? [], least)?.mean ?? 1);
    return (
      `from ${rateAt(runs[i], least)} to ${rateAt(runs[i], most)} under ${name} ` +
      `(${formatRatio(scaling)})`
    );
  });
  const control = least === 1 ? controlScaling(all, most) : undefined;
  const beside =
    control === undefined
      ? ""
      : `; private counters (${HOST_CONTROL}) scaled ${formatRatio(control)}`;
  return `From ${cpusText(least)} to ${most}, ${bench} went ${curves.join(" and ")}${beside}.`;
}

function rateAt(runs: readonly MeasuredRun[] | undefined, cpus: number): string {
  return formatRate(at(runs ?? [], cpus)?.mean ?? 0);
}

function winnerTexts(before: MeasuredRun, after: MeasuredRun): string[] {
  const [slow, fast] = before.mean <= after.mean ? [before, after] : [after, before];
  const where = `At ${cpusText(after.cpus)}${trapText(after)}`;
  const lead = percent(fast.mean / slow.mean - 1);
  const joint = jointDeviation(before, after);
  const gap = fast.mean - slow.mean;
  if (joint === undefined) {
    const than = `${where} ${fast.preset} was ${lead} faster than ${slow.preset}`;
    const note = fast === after ? [] : rawNote(after);
    return [`${than}, from single samples: how much of it is noise is unknown.`, ...note];
  }
  if (gap <= NOISE_FACTOR * joint) {
    const noise = `${where} ${before.preset} and ${after.preset} differ by ${lead}`;
    return [`${noise}, which is within the noise: neither won.`, ...rawNote(after)];
  }
  const times = joint === 0 ? "" : ` (${(gap / joint).toFixed(0)} joint deviations)`;
  const won = `${where} ${fast.preset} was ${lead} faster than ${slow.preset}`;
  const note = fast === after ? [] : rawNote(after);
  return [`${won}, more than the noise${times}.`, ...note];
}

function trapText(run: MeasuredRun): string {
  return run.trapNs === 0 ? ", raw," : `, with ${run.trapNs} ns per exception,`;
}

/** Why a reader of the published table need not be surprised. */
function rawNote(run: MeasuredRun): string[] {
  if (run.preset !== "rwlock" || run.trapNs > 0 || run.cpus !== 2) return [];
  return [
    "Raw, at two CPUs, the reader-writer lock need not win: its readers still write the lock " +
      "word, and nothing but the hit itself lies between two of them. The published gain was " +
      "measured with the cost of an exception in between (try --trap-ns 250).",
  ];
}

function publishedTexts(pair: Pair, most: number): string[] {
  const { bench, presets } = pair;
  const rows = (cpus: number): [PublishedRow, PublishedRow] | undefined => {
    const [a, b] = presets.map((preset) => publishedRow(preset, bench, cpus));
    return a === undefined || b === undefined ? undefined : [a, b];
  };
  const counts = publishedSeries(presets[0], bench).map((row) => row.cpus);
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
  return [`${sentence}${best.cpus > nearest ? peak : ""}.`];
}

function gainOf(rows: [PublishedRow, PublishedRow] | undefined): number {
  return rows === undefined ? 0 : rows[1].mean / rows[0].mean;
}

function leadText(gain: number): string {
  return gain >= 1 ? `ahead by ${percent(gain - 1)}` : `behind by ${percent(1 / gain - 1)}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

function cpusText(cpus: number): string {
  return cpus === 1 ? "1 cpu" : `${cpus} cpus`;
}
