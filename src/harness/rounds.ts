// Interleaved rounds: A B C A B C ..., so that a machine that drifts drifts for all of them. Goals
// are judged by ratios inside a round, and by the median of those.

import { mean, median } from "../base/stats.js";
import type { Runner } from "../engine/runner.js";
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
