// The catalogue of benches and presets, as data. How a case is run is not decided here.

import { PRESET_NAMES, type PresetName } from "../engine/presets.js";

export {
  findPreset,
  PRESET_NAMES,
  PRESETS,
  type Preset,
  type PresetName,
} from "../engine/presets.js";

export type Family = "uprobe" | "control" | "lock" | "rcu" | "grace" | "registration";

export interface Case {
  name: string;
  description: string;
  /** What one operation is; rates are these per second. */
  unit: string;
  family: Family;
  /** Presets the case is measured under; empty when it has no such axis. */
  presets: readonly PresetName[];
  /** The case that says what this one costs beyond an empty loop of its kind, or null. */
  control: string | null;
  /**
   * Where CPU 0 alone does the operations: what one round of the other CPUs is. They do it all the
   * time, and it is no operation.
   */
  readers?: string;
}

/** Distance of two probed sites where none is asked for, bytes: functions are often so aligned. */
export const SITE_STRIDE = 16;

/** What `bench` takes when no preset was named. */
export const DEFAULT_PRESET: PresetName = "rwlock";

function uprobe(name: string, description: string): Case {
  return {
    name,
    description,
    unit: "hits",
    family: "uprobe",
    presets: PRESET_NAMES,
    control: "usermode-count",
  };
}

function control(name: string, description: string, unit: string): Case {
  return { name, description, unit, family: "control", presets: [], control: null };
}

function lock(name: string, description: string): Case {
  const unit = "pairs";
  return { name, description, unit, family: "lock", presets: [], control: "count-atomic" };
}

function rcu(name: string, description: string): Case {
  const unit = "sections";
  return { name, description, unit, family: "rcu", presets: [], control: "count-percpu" };
}

function grace(name: string, flavour: string): Case {
  const description = `${flavour}: synchronize, timed; all other CPUs read (on one CPU: nobody)`;
  return {
    name,
    description,
    unit: "grace periods",
    family: "grace",
    presets: [],
    control: null,
    readers: "sections",
  };
}

function registration(name: string, what: string, unit: string): Case {
  return {
    name,
    description: `${what}; all other CPUs hit another probe (on one CPU: nobody)`,
    unit,
    family: "registration",
    presets: PRESET_NAMES,
    control: null,
    readers: "hits",
  };
}

export const CASES: readonly Case[] = [
  uprobe("uprobe-nop", "hit a probe on a nop, which is emulated"),
  uprobe("uprobe-push", "hit a probe on a push, which is emulated on the task's stack"),
  uprobe("uprobe-ret", "hit a probe on a ret, which is stepped"),
  control("usermode-count", "the trigger loop without a probe", "triggers"),
  control("count-percpu", "one plain increment on the CPU's own line", "increments"),
  control("count-atomic", "one atomic add on the CPU's own line", "increments"),
  control("count-shared", "one atomic add on a word all CPUs share", "increments"),
  control("import-count", "one call out of Wasm to an empty JavaScript function", "calls"),
  lock("lock-spinlock", "test-and-test-and-set spinlock: lock and unlock"),
  lock("lock-ticket", "ticket spinlock: lock and unlock"),
  lock("lock-qspinlock", "queued spinlock: lock and unlock"),
  lock("lock-rwlock", "queued reader-writer spinlock: read lock and unlock"),
  lock("lock-rwlock-write", "queued reader-writer spinlock: write lock and unlock"),
  lock("lock-rwsem", "reader-writer semaphore: read lock and unlock"),
  lock("lock-rwsem-write", "reader-writer semaphore: write lock and unlock"),
  lock("lock-mutex", "mutex with optimistic spinning: lock and unlock"),
  lock("lock-seqcount", "sequence count: one read section"),
  lock("lock-refcount", "saturating reference count: increment and decrement"),
  rcu("rcu-read-srcu", "SRCU: one read section, two fences and two private counts"),
  rcu("rcu-read-tasks-trace", "RCU Tasks Trace: one read section, a private nesting count"),
  rcu("rcu-read-qsbr", "QSBR: one read section and the quiet moment after it"),
  grace("gp-srcu", "SRCU"),
  grace("gp-tasks-trace", "RCU Tasks Trace"),
  grace("gp-qsbr", "QSBR"),
  registration("register", "one probe registered, timed", "registrations"),
  registration(
    "unregister-batch",
    "64 probes taken away with one grace period, timed per probe",
    "batches",
  ),
];

/** Benches whose operations can be timed one by one, or always are. */
export function hasLatency(bench: Case): boolean {
  return bench.family === "grace" || hasProbes(bench);
}

/** Benches with a probe table: they have presets, a number of probes, and exceptions. */
export function hasProbes(bench: Case): boolean {
  return bench.presets.length > 0;
}

export const CASE_NAMES: readonly string[] = CASES.map((c) => c.name);

/** Runs beside every comparison: if even private lines do not scale, the host is shared. */
export const HOST_CONTROL = "count-percpu";

/** The case of this exact name. */
export function findCase(name: string): Case | undefined {
  return CASES.find((c) => c.name === name);
}

/** The kernel's bench calls uprobe-nop trig-uprobe-nop; both are accepted. */
export function plainName(name: string): string {
  return name.startsWith("trig-") ? name.slice("trig-".length) : name;
}
