// What a cell is: one bench under one preset on so many CPUs.

import type { Job } from "../../engine/runner.js";
import type { Arch, Case, PresetName } from "../cases.js";
import type { Recorder } from "../latency.js";

/** What to set up. */
export interface CellSpec {
  bench: Case;
  /** Null for benches without presets. */
  preset: PresetName | null;
  cpus: number;
  /** Probes in the table; counts for uprobe benches only. */
  probes: number;
  /** Distance of two probed functions, bytes. @default SITE_STRIDE */
  siteBytes?: number;
  /** Which instructions are stepped; counts for benches of hits only. @default "x86" */
  arch?: Arch;
  /** Delay per exception, nanoseconds; counts for uprobe benches only. */
  trapNs: number;
  seed: number;
  /** Also time a sample of all hits; for uprobe benches only. @default false */
  latency?: boolean;
}

/** Everything that happened in a cell, each term counted at its own point. */
export interface CellCounts {
  triggers: number;
  handled: number;
  filtered: number;
  missed: Record<string, number>;
  /** Hits whose lookup ended under mmap_lock after all; no term of the identity, as `retries`. */
  fallbacks?: number;
  /** Searches of the tree that began again, since a writer came by. */
  retries?: number;
  /** Hits whose instruction was executed out of line, with a second exception. */
  steps?: number;
  /** What became of calls whose return is probed. */
  returns?: CellReturns;
}

/** entries = returns + filtered + missed + pending. */
export interface CellReturns {
  entries: number;
  returns: number;
  filtered: number;
  missed: Record<string, number>;
  pending: number;
}

export interface Cell {
  spec: CellSpec;
  jobs: Job[];
  /** Operations that each CPU has done so far: a snapshot. Only CPUs that are there to do them. */
  progress(): number[];
  /** Rounds of the CPUs that are not there for operations, together, so far: a snapshot. */
  reads?(): number;
  /** Where operations are timed. */
  recorder?: Recorder;
  /** Triggers without a handler, over all CPUs, so far: a snapshot. */
  drops(): number;
  /** After the run: the counts. Throws if they contradict each other or the engine saw a fault. */
  counts(): CellCounts;
}
