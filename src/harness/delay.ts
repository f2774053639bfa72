// What one unit of cpu.delay takes on this machine: the trap's cost is asked for in nanoseconds and
// given to the engine in units.

import { WasmprobeError } from "../base/errors.js";
import type { EngineInstance } from "../engine/instance.js";

/** Iterations a trial: long against the clock's step, short against a time slice. */
const UNITS = 50_000;
/** The engine's optimised code takes over after some calls; the fastest trials are of it. */
const TRIALS = 60;

/** Nanoseconds a unit, as the fastest of many trials: the only one without an interruption. */
export function measureDelayUnit(instance: EngineInstance, nowMs: () => number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let trial = 0; trial < TRIALS; trial++) {
    const before = nowMs();
    instance.exports.cpu_delay(UNITS);
    best = Math.min(best, nowMs() - before);
  }
  const ns = (best * 1e6) / UNITS;
  if (!(ns > 0)) {
    throw new WasmprobeError("E_PLATFORM", "the clock's step is too coarse to calibrate a delay");
  }
  return ns;
}

/** What a delay of `ns` was found to take, nanoseconds: the least and the most of the trials. */
export type MeasuredDelay = [least: number, most: number];

/** Delays one after the other in a trial, and trials. */
const DELAYS_NS = 200_000;
const DELAY_TRIALS = 15;

/**
 * Tries the delay of `ns` as an exception has it: one call each, many in a row. Told is what calls
 * of twice the delay take longer: the way into the engine, which an exception does not have, is in
 * both. The spread is of trials without an interruption: the slowest third is left out.
 */
export function tryDelay(
  instance: EngineInstance,
  nowMs: () => number,
  ns: number,
  unitNs: number,
): MeasuredDelay {
  const units = delayUnits(ns, unitNs);
  const calls = Math.max(1, Math.round(DELAYS_NS / ns));
  const each = (delay: number): number => {
    const before = nowMs();
    for (let i = 0; i < calls; i++) instance.exports.cpu_delay(delay);
    return ((nowMs() - before) * 1e6) / calls;
  };
  for (let i = 0; i < DELAY_TRIALS; i++) each(units); // until the loop itself is optimised code
  const both = Array.from({ length: DELAY_TRIALS }, () => [each(units), each(2 * units)] as const);
  const once = Math.min(...both.map(([one]) => one));
  const trials = both.map(([, twice]) => Math.max(0, twice - once));
  trials.sort((a, b) => a - b);
  const kept = trials.slice(0, Math.ceil((DELAY_TRIALS * 2) / 3));
  return [kept[0] ?? ns, kept.at(-1) ?? ns];
}

/** Units that take `ns` nanoseconds; 0 for 0, at least 1 for anything else. */
export function delayUnits(ns: number, unitNs: number): number {
  return ns === 0 ? 0 : Math.max(1, Math.round(ns / unitNs));
}
