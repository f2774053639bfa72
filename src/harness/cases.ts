// The catalogue of benches and presets, as data. How a case is run is not decided here.

import { type Arch, PRESET_NAMES, type PresetName } from "../engine/presets.js";

export {
  type Arch,
  ARCH_NAMES,
  findPreset,
  PRESET_NAMES,
  PRESETS,
  type Preset,
  type PresetName,
} from "../engine/presets.js";

export type Family = "uprobe" | "uretprobe" | "control" | "lock" | "rcu" | "grace" | "registration";

export interface Case {
  name: string;
  description: string;
  /** What one operation is; rates are these per second. */
  unit: string;
  family: Family;
  /** Presets the case can be measured under; empty when it has no such axis. */
  presets: readonly PresetName[];
  /** Those of them that a sweep measures if none is named. */
  shown: readonly PresetName[];
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

/** From the spinlock to what no kernel has: each step takes a shared write from a hit. */
export const LADDER_PRESETS: readonly PresetName[] = [
  "spinlock",
  "rwlock",
  "srcu",
  "tasks-trace",
  "mmap-lock",
  "speculative",
  "fastest",
];
/** Of these a return probe makes something else; what is left of the ladder is the way there. */
const RETURN_PRESETS: readonly PresetName[] = [
  "spinlock",
  "rwlock",
  "srcu",
  "tasks-trace",
  "mmap-lock",
  "uret-alloc",
  "uret-pool",
  "fastest",
];
/** What differs only where instructions are stepped. */
const STEP_PRESETS: readonly PresetName[] = ["siglock", "signal-flag"];

function uprobe(name: string, description: string): Case {
  return {
    name,
    description,
    unit: "hits",
    family: "uprobe",
    presets: PRESET_NAMES,
    shown: LADDER_PRESETS,
    control: "usermode-count",
  };
}

function uretprobe(name: string, insn: string): Case {
  return {
    name,
    description: `call a ${insn} whose return is probed: 2 exceptions, 3 where it is stepped`,
    unit: "hits",
    family: "uretprobe",
    presets: PRESET_NAMES,
    shown: RETURN_PRESETS,
    control: "usermode-count",
  };
}

function control(name: string, description: string, unit: string): Case {
  return { name, description, unit, family: "control", presets: [], shown: [], control: null };
}

function lock(name: string, description: string): Case {
  const unit = "pairs";
  const family = "lock";
  return { name, description, unit, family, presets: [], shown: [], control: "count-atomic" };
}

function rcu(name: string, description: string): Case {
  const unit = "sections";
  const family = "rcu";
  return { name, description, unit, family, presets: [], shown: [], control: "count-percpu" };
}

function grace(name: string, flavour: string): Case {
  const description = `${flavour}: synchronize, timed; all other CPUs read (on one CPU: nobody)`;
  return {
    name,
    description,
    unit: "grace periods",
    family: "grace",
    presets: [],
    shown: [],
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
    shown: LADDER_PRESETS,
    control: null,
    readers: "hits",
  };
}

export const CASES: readonly Case[] = [
  uprobe("uprobe-nop", "hit a probe on a nop: emulated on x86, stepped on arm64 before 6.13"),
  uprobe("uprobe-push", "hit a probe on a push: emulated on x86, stepped on arm64"),
  uprobe("uprobe-ret", "hit a probe on a ret: stepped on x86, simulated on arm64"),
  uretprobe("uretprobe-nop", "nop"),
  uretprobe("uretprobe-push", "push"),
  uretprobe("uretprobe-ret", "ret"),
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

/** What a sweep of this bench measures if no preset is named. */
export function shownPresets(bench: Case, arch: Arch): readonly PresetName[] {
  if (arch === "x86" || bench.family !== "uprobe") return bench.shown;
  return bench.presets.filter((name) => bench.shown.includes(name) || STEP_PRESETS.includes(name));
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
