// The Runner interface: CPUs that run workloads of the engine. Real threads implement it (the
// virtual machine will too); the harness knows only this.

import type { EngineInstance } from "./instance.js";
import type { EngineMemory } from "./memory.js";

/** What one CPU does: calls exports[entry](...args, n) in batches of 0.1 to 1 ms. */
export interface Job {
  /** An exported function: of the engine, or of the loaded module with this number. */
  entry: string;
  module?: number;
  args: readonly number[];
  /** Iterations to do, then leave; without it: until the run is stopped. */
  count?: number;
  /** Iterations a batch; without it the worker finds out. */
  batch?: number;
}

/** Capacities of an engine, all fixed at its start. */
export interface EngineOptions {
  /** Measuring CPUs, 1 to 256. */
  cpus: number;
  /** Strategy of the hit path: a PRESET_ constant. @default PRESET_SPINLOCK */
  strategy?: number;
  /** CPUs whose workers come up now; the others' do when they get a job. @default cpus */
  workers?: number;
  /** Most probes at a time. @default 1024 */
  uprobesMax?: number;
  /** Iterations of cpu.delay per exception. @default 0 */
  trapUnits?: number;
  /** Which instructions are stepped: an ARCH_ constant. @default ARCH_X86 */
  arch?: number;
  /** Slots of an address space's XOL area, one of them the trampoline's. @default all that fit */
  xolSlots?: number;
  /** How long a return probe keeps its lease, microseconds. @default 100 000 */
  leaseUs?: number;
}

/** A run that has passed its start barrier on all CPUs. */
export interface Run {
  /** Asks all CPUs to leave at their next batch and waits, bounded, until they have. */
  stop(): Promise<void>;
  /** Resolves when all CPUs have left; rejects when one died, was stuck, or failed. */
  readonly done: Promise<void>;
}

export interface Runner {
  /** Where the workloads run, as results name it: "threads". */
  readonly on: string;
  /** CPUs of the engine as it is formatted now. */
  readonly cpus: number;
  readonly memory: EngineMemory;
  /** The orchestrator's own instance; never to be used for what may wait. */
  readonly host: EngineInstance;
  /** Which of the CPUs' workers were bound to a CPU of their own, in words for the header. */
  readonly affinity: string;
  /** Formats the memory as a new engine; nothing of the old one survives. Not during a run. */
  format(options: EngineOptions): Promise<void>;
  /**
   * Asks the housekeeper for a command (OP_ constant) and resolves with its result. Commands are
   * executed in order, one at a time. Rejects if the result is an errno; see also `tryCommand`.
   */
  command(op: number, ...args: number[]): Promise<number>;
  /** As `command`, but an errno is a result. */
  tryCommand(op: number, ...args: number[]): Promise<number>;
  /** Starts `jobs[i]` on CPU i, all at once behind a barrier. */
  run(jobs: readonly Job[]): Promise<Run>;
  close(): Promise<void>;
}
