// The rounds of `torture probes`: which preset, which part, under which conditions. All of it
// follows from the seed and the number of the round.

import * as abi from "../../engine/abi.js";
import { PRESETS, type PresetName, strategyOf } from "../../engine/presets.js";
import type { EngineOptions } from "../../engine/runner.js";

/** Of two presets with one strategy the first is enough. */
const PLAYED: readonly PresetName[] = PRESETS.filter(
  ({ strategy }, i) => PRESETS.findIndex((other) => other.strategy === strategy) === i,
).map(({ name }) => name);

/** In the first cycle through all presets, and later: long enough for what is rare. */
const FIRST_MS = 200;
const ROUND_MS = 1000;
/** Lease times of return probes, microseconds: a timer that is always under way finds races. */
const LEASES_US = [10, 100, 30, 100_000] as const;
/** Slots of an XOL area, the trampoline's among them; undefined: all that fit. */
const SLOTS = [undefined, 2, undefined, 4, 3] as const;
const ARCHS = [abi.ARCH_X86, abi.ARCH_ARM64] as const;

export interface RoundPlan {
  preset: PresetName;
  part: "churn" | "stress";
  /** Whose turn it is: roles are shifted by it. */
  turn: number;
  seed: number;
  ms: number;
  arch: number;
  leaseUs: number;
  xolSlots: number | undefined;
}

function pick<T>(from: readonly T[], i: number): T {
  const index = ((i % from.length) + from.length) % from.length;
  return from[index] as T;
}

/** The newest, the oldest, the next newest ...: a run that ends early has had them both. */
function fromBothEnds(at: number): number {
  const into = Math.floor(at / 2);
  return at % 2 === 0 ? PLAYED.length - 1 - into : into;
}

/** The `round`-th round: both parts of a preset, then the next preset. */
export function planOf(round: number, seed: number): RoundPlan {
  const pair = Math.floor(round / 2);
  const cycle = Math.floor(pair / PLAYED.length);
  const at = pair % PLAYED.length;
  const index = cycle % 2 === 0 ? at : fromBothEnds(at);
  const turn = index + cycle;
  return {
    preset: pick(PLAYED, index),
    part: round % 2 === 0 ? "churn" : "stress",
    turn,
    seed: (seed + round * 7919) | 0,
    ms: cycle === 0 ? FIRST_MS : ROUND_MS,
    // Both of every preset within two cycles.
    arch: pick(ARCHS, turn),
    leaseUs: pick(LEASES_US, turn + seed),
    xolSlots: pick(SLOTS, turn + seed),
  };
}

/** How the engine is formatted for a round. */
export function optionsOf(plan: RoundPlan, cpus: number): EngineOptions {
  const { preset, arch, leaseUs, xolSlots } = plan;
  const options = { cpus, strategy: strategyOf(preset), arch, leaseUs };
  return xolSlots === undefined ? options : { ...options, xolSlots };
}
