// The lines of the kernel's bench (tools/testing/selftests/bpf), to the letter.
//
// One difference in the figures: the kernel's Summary assumes that every sample took exactly one
// second and divides by the number of samples. Here every sample is divided by the time it really
// took, so that a late timer does not count as a fast lock. Iter lines agree, since the kernel's
// use real time too. A deviation needs two samples; with one, "n/a" stands in its place.

import { mean, sampleDeviation } from "../../base/stats.js";
import { fixed } from "../../base/units.js";

/** What happened in one interval on all producers together. */
export interface BenchSample {
  /** Real length of the interval. */
  elapsedNs: number;
  hits: number;
  /** Triggers that no handler saw: everything missed. */
  drops: number;
}

/** The interval the kernel's timer asks for; Iter lines print by how much it was missed. */
export const BENCH_INTERVAL_NS = 1e9;

export function setupLine(name: string): string {
  return `Setting up benchmark '${name}'...`;
}

export function startedLine(name: string): string {
  return `Benchmark '${name}' started.`;
}

/** Sample number `iter`, from 0, warm-up included. */
export function iterLine(
  iter: number,
  sample: BenchSample,
  producers: number,
  intervalNs = BENCH_INTERVAL_NS,
): string {
  const late = fixed((sample.elapsedNs - intervalNs) / 1e3, 7, 3);
  const { hits, drops } = ratesOf(sample);
  return (
    `Iter ${String(iter).padStart(3)} (${late}us): ` +
    `hits ${fixed(hits, 8, 3)}M/s (${fixed(hits / producers, 7, 3)}M/prod), ` +
    `drops ${fixed(drops, 8, 3)}M/s, total operations ${fixed(hits + drops, 8, 3)}M/s`
  );
}

/** The closing line over the samples after the warm-up; there must be at least one. */
export function summaryLine(samples: readonly BenchSample[], producers: number): string {
  const rates = samples.map(ratesOf);
  const hits = rates.map((rate) => rate.hits);
  const drops = rates.map((rate) => rate.drops);
  const total = rates.map((rate) => rate.hits + rate.drops);
  const perProducer = fixed(mean(hits) / producers, 7, 3);
  return (
    `Summary: hits ${spread(hits)}M/s (${perProducer}M/prod), ` +
    `drops ${spread(drops)}M/s, total operations ${spread(total)}M/s`
  );
}

function ratesOf(sample: BenchSample): { hits: number; drops: number } {
  const perSecond = 1e9 / sample.elapsedNs / 1e6;
  return { hits: sample.hits * perSecond, drops: sample.drops * perSecond };
}

function spread(rates: readonly number[]): string {
  const deviation = sampleDeviation(rates);
  const text = deviation === undefined ? "n/a".padStart(5) : fixed(deviation, 5, 3);
  return `${fixed(mean(rates), 8, 3)} ± ${text}`;
}
