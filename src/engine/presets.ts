// The presets: which strategy of the hit path each is, and what it stands for.

import * as abi from "./abi.js";

export interface Preset {
  name: string;
  description: string;
  /** PRESET_ constant of the engine. */
  strategy: number;
  /** The preset whose entries it has, where two names stand for one strategy. @default its own */
  entries?: string;
}

/** One strategy per axis of the hit path; the engine has specialised entries for each. */
export const PRESETS = [
  {
    name: "spinlock",
    description: "probe table under one queued spinlock (Linux before 6.10)",
    strategy: abi.PRESET_SPINLOCK,
  },
  {
    name: "rwlock",
    description: "probe table under a queued reader-writer spinlock (Linux 6.10)",
    strategy: abi.PRESET_RWLOCK,
  },
  {
    name: "siglock",
    description: "as rwlock, a tree of breakpoints per task; steps take siglock (before 6.15)",
    strategy: abi.PRESET_SIGLOCK,
  },
  {
    name: "signal-flag",
    description: "as siglock, steps note a denied signal in the task instead (Linux 6.15)",
    strategy: abi.PRESET_SIGNAL_FLAG,
  },
  {
    name: "srcu",
    description: "lockless table, readers under SRCU (Linux 6.12)",
    strategy: abi.PRESET_SRCU,
  },
  {
    name: "tasks-trace",
    description: "lockless table, readers under RCU Tasks Trace (Linux 6.13)",
    strategy: abi.PRESET_TASKS_TRACE,
  },
  {
    name: "mmap-lock",
    description: "as tasks-trace, hits counted per CPU; mappings under mmap_lock",
    strategy: abi.PRESET_MMAP_LOCK,
  },
  {
    name: "speculative",
    description: "as mmap-lock, mappings looked up speculatively (Linux 6.14)",
    strategy: abi.PRESET_SPECULATIVE,
  },
  {
    name: "uret-alloc",
    description: "as speculative: leased return instances, freed after a grace period (Linux 6.14)",
    strategy: abi.PRESET_URET_ALLOC,
    entries: "speculative",
  },
  {
    name: "uret-pool",
    description: "as uret-alloc, return instances reused at once (Linux 6.14)",
    strategy: abi.PRESET_URET_POOL,
  },
  {
    name: "fastest",
    description: "hash of breakpoints, QSBR: no shared write, no fence, no locked operation a hit",
    strategy: abi.PRESET_FASTEST,
  },
] as const satisfies readonly Preset[];

/** Which instructions are emulated and which are stepped. */
export const ARCH_NAMES = ["x86", "arm64"] as const;
export type Arch = (typeof ARCH_NAMES)[number];

/** ARCH_ constant of the engine. */
export function archOf(name: Arch): number {
  return name === "arm64" ? abi.ARCH_ARM64 : abi.ARCH_X86;
}

export type PresetName = (typeof PRESETS)[number]["name"];

export const PRESET_NAMES: readonly PresetName[] = PRESETS.map((p) => p.name);

export function findPreset(name: string): (Preset & { name: PresetName }) | undefined {
  return PRESETS.find((p) => p.name === name);
}

/** Strategy of a preset, for EngineOptions. */
export function strategyOf(name: PresetName): number {
  return findPreset(name)?.strategy ?? abi.PRESET_SPINLOCK;
}

/** What the engine has specialised exports for. */
export type Verb = "trigger" | "latency";
type Entry = Verb | `${Verb}_many` | "call" | "enter" | "jump" | "leave";

/** The engine's specialised export of a preset: hits of one site or of many, or one single call. */
export function entryOf(name: PresetName, what: Entry): string {
  const [verb = "", many] = what.split("_");
  const preset: Preset | undefined = findPreset(name);
  const entries = (preset?.entries ?? name).replaceAll("-", "_");
  return [verb, entries, many].filter((word) => word !== undefined).join("_");
}
