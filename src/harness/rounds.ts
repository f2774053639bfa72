// Interleaved rounds: A B C A B C ..., so that a machine that drifts drifts for all of them. Goals
// are judged by ratios inside a round, and by the median of those.

import { WasmprobeError } from "../base/errors.js";
import { mean, median } from "../base/stats.js";
import type { Runner } from "../engine/runner.js";
import { findCase, HOST_CONTROL } from "./cases.js";
import { type CellSpec, setUpCell } from "./cell.js";
import { type Interrupt, measure } from "./measure.js";

export interface RoundsOptions {
  runner: Runner;
  nowMs(): number;
  /** Nanoseconds of one unit of cpu.delay. */
  unitNs: number;
  interrupt: Interrupt;
  rounds: number;
  warmupSec: number;
  durationSec: number;
  onRound?(round: number): void;
}

/** Rate of each cell in each round, operations per second: [cell][round]. */
export async function interleave(
  specs: readonly CellSpec[],
  options: RoundsOptions,
): Promise<number[][]> {
  const { runner, nowMs, interrupt, warmupSec, durationSec } = options;
  const rates = specs.map((): number[] => []);
  for (let round = 0; round < options.rounds && !interrupt.aborted; round++) {
    options.onRound?.(round);
    for (const [i, spec] of specs.entries()) {
      const cell = await setUpCell(runner, spec, options.unitNs);
      const { samples } = await measure(runner, cell, {
        nowMs,
        warmupSec,
        durationSec,
        sampleSec: durationSec,
        interrupt,
      });
      const perSecond = samples.map(
        ({ ops, elapsedNs }) => (ops.reduce((a, b) => a + b, 0) * 1e9) / elapsedNs,
      );
      if (perSecond.length > 0) rates[i]?.push(mean(perSecond));
    }
  }
  return rates;
}

/** Share of linear scaling that private counters must reach: 1.8 at two CPUs. */
export const CONTROL_SHARE_MIN = 0.9;
/** How often a round is measured that neighbours disturb, until the host counts as too busy. */
const ROUND_TRIES = 4;

export interface KeptRounds {
  /** Rate of each cell in each round kept, as of interleave. */
  rates: number[][];
  /** By how much the control scaled from one CPU to two, round by round. */
  scaling: number[];
  dropped: number;
  /** A round was disturbed every time: there are too few, and nothing can be judged. */
  busy: boolean;
}

/**
 * Interleaved rounds between runs of the control on one and on two CPUs. A round in which it did
 * not scale, before or after, is measured again, at most three times.
 */
export async function undisturbed(
  specs: readonly CellSpec[],
  options: RoundsOptions & { onDropped?(scaling: number): void },
): Promise<KeptRounds> {
  const bench = findCase(HOST_CONTROL);
  if (bench === undefined) throw new WasmprobeError("E_NAME", `no bench "${HOST_CONTROL}"`);
  const control = (cpus: number): CellSpec => {
    return { bench, preset: null, cpus, probes: 0, trapNs: 0, seed: 1 };
  };
  const all = [control(1), control(2), ...specs, control(2)];
  const kept: KeptRounds = { rates: specs.map(() => []), scaling: [], dropped: 0, busy: false };
  let tries = 0;
  while (kept.scaling.length < options.rounds && !options.interrupt.aborted) {
    options.onRound?.(kept.scaling.length);
    const { onRound: _, ...rest } = options;
    const round = (await interleave(all, { ...rest, rounds: 1 })).map((rates) => rates[0] ?? 0);
    if (options.interrupt.aborted) break;
    const [one = 0, before = 0] = round;
    const after = round.at(-1) ?? 0;
    const least = Math.min(before, after) / one;
    if (!(least >= 2 * CONTROL_SHARE_MIN)) {
      kept.dropped++;
      options.onDropped?.(least);
      if (++tries < ROUND_TRIES) continue;
      kept.busy = true;
      break;
    }
    tries = 0;
    kept.scaling.push(mean([before, after]) / one);
    for (const [i, rates] of kept.rates.entries()) rates.push(round[i + 2] ?? 0);
  }
  return kept;
}

/** Ratios of two cells, round by round, and their spread. */
export function ratios(
  a: readonly number[],
  b: readonly number[],
): { median: number; min: number; max: number; rounds: number } {
  const each = a.slice(0, b.length).map((rate, round) => rate / (b[round] ?? Number.NaN));
  return {
    median: median(each),
    min: Math.min(...each),
    max: Math.max(...each),
    rounds: each.length,
  };
}
