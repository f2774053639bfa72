// What each command was asked to do: plain objects, every default filled in.

import type { Arch, PresetName } from "../harness/cases.js";
import type { FormatName } from "../harness/format/names.js";

export const TORTURE_NAMES = ["locks", "probes", "lookup", "rcu"] as const;
export const LIST_TOPICS = ["benches", "presets", "machines", "tables"] as const;
/** Where a sweep can run. */
export const RUNNER_NAMES = ["threads"] as const;

export type TortureName = (typeof TORTURE_NAMES)[number];
export type ListTopic = (typeof LIST_TOPICS)[number];

export interface BenchOptions {
  command: "bench";
  name: string;
  /** Null when the bench has no presets. */
  preset: PresetName | null;
  /** -p: workers, one per CPU. */
  cpus: number;
  warmupSec: number;
  durationSec: number;
  affinity: boolean;
  quiet: boolean;
  verbose: boolean;
  /** -L: also time a sample of all hits. */
  latency: boolean;
  probes: number;
  /** Distance of two probed sites. */
  siteBytes: number;
  arch: Arch;
  trapNs: number;
  seed: number;
  /** Another engine binary (hidden: for mutants), or null. */
  wasm: string | null;
}

export interface SweepOptions {
  command: "sweep";
  /** Empty when none was named: the default sweep. */
  names: string[];
  /** Null: those that each bench shows. */
  presets: PresetName[] | null;
  /** Null: 1, 2, 4, ... and the most this process may use. */
  cpus: number[] | null;
  on: "threads";
  probes: number[];
  /** Distances of two probed sites. */
  siteBytes: number[];
  arch: Arch;
  trapNs: number;
  /** Null where not given: chosen so that the sweep fits its time budget. */
  warmupSec: number | null;
  durationSec: number | null;
  repeat: number | null;
  seed: number;
  format: FormatName;
  out: string | null;
  compare: string | null;
  affinity: boolean;
  quiet: boolean;
  wasm: string | null;
}

export interface TortureOptions {
  command: "torture";
  name: TortureName;
  /** `torture locks` of one lock only, or null. */
  lock: string | null;
  seconds: number;
  /** Null: drawn at start, and printed. */
  seed: number | null;
  /** Null: as many as this process may use. */
  cpus: number | null;
  quiet: boolean;
  wasm: string | null;
}

export interface ListOptions {
  command: "list";
  /** Null: everything. */
  topic: ListTopic | null;
}

/** --help and --version: print this and end well. */
export interface TextOptions {
  command: "text";
  text: string;
}

export type CliOptions = BenchOptions | SweepOptions | TortureOptions | ListOptions | TextOptions;
