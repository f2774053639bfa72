// A cell: one bench under one preset on so many CPUs, set up on a runner and ready to run.

import { WasmprobeError } from "../base/errors.js";
import * as abi from "../engine/abi.js";
import { identityGap, sumHits } from "../engine/memory.js";
import { strategyOf } from "../engine/presets.js";
import type { Job, Runner } from "../engine/runner.js";
import type { Case, PresetName } from "./cases.js";
import { delayUnits } from "./delay.js";
import { createRecorder, createSampler, type Recorder } from "./latency.js";

/** What to set up. */
export interface CellSpec {
  bench: Case;
  /** Null for benches without presets. */
  preset: PresetName | null;
  cpus: number;
  /** Probes in the table; counts for uprobe benches only. */
  probes: number;
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

/** First address of the probed functions, and the distance between two of them. */
export const SITE_VADDR = 0x400000;
export const SITE_STRIDE = 16;
const PAGE = 4096;
const MAPS_MAX = 16;

const OPCODES: Readonly<Record<string, number>> = {
  "uprobe-nop": abi.INSN_NOP,
  "uprobe-push": abi.INSN_PUSH,
  "uprobe-ret": abi.INSN_RET,
  "usermode-count": abi.INSN_NOP,
};

/** The engine's specialised entry of a preset: hits of one site, or of many in random order. */
export function triggerEntry(preset: PresetName, many: boolean, kind = "trigger"): string {
  return `${kind}_${preset.replaceAll("-", "_")}${many ? "_many" : ""}`;
}

/** Bytes of memory that cells with up to so many probes and CPUs need. */
export function cellMemoryBytes(probes: number, cpus: number): number {
  // A uprobe and a consumer of three lines each, a site's text, and the file's copy of it.
  return (16 << 20) + probes * (6 * abi.LINE + 2 * SITE_STRIDE) + cpus * 64 * 1024;
}

/** Formats the runner's engine for the cell and registers its probes. */
export async function setUpCell(runner: Runner, spec: CellSpec, unitNs: number): Promise<Cell> {
  const { bench, cpus } = spec;
  const traps = bench.family === "uprobe" && spec.trapNs > 0;
  const probes = bench.family === "uprobe" ? spec.probes : 0;
  await runner.format({
    cpus,
    strategy: spec.preset === null ? abi.PRESET_SPINLOCK : strategyOf(spec.preset),
    uprobesMax: Math.max(probes, 1),
    trapUnits: traps ? delayUnits(spec.trapNs, unitNs) : 0,
  });
  if (bench.family === "uprobe" || bench.name === "usermode-count") {
    return uprobeCell(runner, spec, probes);
  }
  if (bench.family === "rcu") return rcuCell(runner, spec);
  if (bench.family === "grace") return graceCell(runner, spec);
  return bench.family === "lock" ? lockCell(runner, spec) : countCell(runner, spec);
}

async function uprobeCell(runner: Runner, spec: CellSpec, probes: number): Promise<Cell> {
  const { bench, cpus } = spec;
  const { memory } = runner;
  const sites = Math.max(probes, 1);
  const bytes = Math.ceil((sites * SITE_STRIDE) / PAGE) * PAGE;
  const opcode = OPCODES[bench.name] ?? abi.INSN_NOP;
  const inode = await runner.command(abi.OP_INODE_CREATE, bytes, opcode);
  const mm = await runner.command(abi.OP_MM_CREATE, MAPS_MAX);
  await runner.command(abi.OP_MMAP, mm, inode, SITE_VADDR, bytes, 0);
  const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
  if (probes > 0) {
    const made = await runner.command(abi.OP_REGISTER_MANY, inode, 0, SITE_STRIDE, probes, sink);
    if (made !== probes) {
      const { liveBytes } = memory.arena();
      throw new WasmprobeError(
        "E_FULL",
        `only ${made} of ${probes} probes could be registered: ${liveBytes} bytes are in use`,
      );
    }
  }
  const tasks: number[] = [];
  for (let cpu = 0; cpu < cpus; cpu++) {
    const seed = spec.seed + cpu * 0x9e3779b9;
    tasks.push(
      await runner.command(abi.OP_TASK_CREATE, mm, cpu + 1, SITE_VADDR, SITE_STRIDE, sites, seed),
    );
  }
  const hits = probes > 0;
  const recorder = hits && spec.latency ? await createSampler(runner, cpus) : undefined;
  const kind = recorder === undefined ? "trigger" : "latency";
  const entry = triggerEntry(spec.preset ?? "spinlock", sites > 1, kind);
  return {
    spec,
    jobs: tasks.map((task, cpu) => ({ entry, args: [task, ...histogramOf(recorder, cpu)] })),
    ...(recorder === undefined ? {} : { recorder }),
    progress: () =>
      tasks.map((task) => memory.load64(task + (hits ? abi.TASK_HANDLED : abi.TASK_TRIGGERS))),
    drops: () => {
      if (!hits) return 0;
      // Not triggers minus handled: a hit that is under way is no drop.
      const { filtered, missed } = sumHits(tasks.map((task) => memory.task(task)));
      return Object.values(missed).reduce((a, b) => a + b, filtered);
    },
    counts: () => {
      checkFaults(runner, spec);
      const sum = sumHits(tasks.map((task) => memory.task(task)));
      const gap = identityGap(sum);
      const taken = memory.sinkHits(sink, cpus + 1).reduce((a, b) => a + b, 0);
      if (gap !== 0) {
        throw new WasmprobeError(
          "E_FAULT",
          `${title(spec)}: triggers and outcomes differ by ${gap} of ${sum.triggers}`,
        );
      }
      if (taken !== sum.handled) {
        throw new WasmprobeError(
          "E_FAULT",
          `${title(spec)}: ${sum.handled} hits were handled, the consumer counted ${taken}`,
        );
      }
      const missed = Object.entries(sum.missed).filter(([, n]) => n > 0);
      const { triggers, handled, filtered } = sum;
      return { triggers, handled, filtered, missed: Object.fromEntries(missed) };
    },
  };
}

function histogramOf(recorder: { addresses: number[] } | undefined, cpu: number): number[] {
  return recorder?.addresses.slice(cpu, cpu + 1) ?? [];
}

/** Progress as the workers tell it: operations of all batches that have returned. */
function batchProgress(runner: Runner, cpus: number): number[] {
  const { memory } = runner;
  return Array.from({ length: cpus }, (_, cpu) => memory.load64(memory.perCpu(abi.PCPU_OPS, cpu)));
}

/** A cell whose operations are counted by the workers and, independently, in memory. */
function countedCell(
  runner: Runner,
  spec: CellSpec,
  jobs: Job[],
  counted: (() => number) | undefined,
): Cell {
  const progress = () => batchProgress(runner, spec.cpus);
  return {
    spec,
    jobs,
    progress,
    drops: () => 0,
    counts: () => {
      checkFaults(runner, spec);
      const done = progress().reduce((a, b) => a + b, 0);
      const handled = counted?.() ?? done;
      if (handled !== done) {
        throw new WasmprobeError(
          "E_FAULT",
          `${title(spec)}: ${done} operations were done, memory counted ${handled}`,
        );
      }
      return { triggers: done, handled, filtered: 0, missed: {} };
    },
  };
}

const COUNT_ENTRIES: Readonly<Record<string, string>> = {
  "count-percpu": "count_percpu",
  "count-atomic": "count_atomic",
  "count-shared": "count_atomic",
  "import-count": "import_count",
};

async function countCell(runner: Runner, spec: CellSpec): Promise<Cell> {
  const { memory } = runner;
  const entry = COUNT_ENTRIES[spec.bench.name];
  if (entry === undefined) throw new WasmprobeError("E_NAME", `no bench "${spec.bench.name}"`);
  const cpus = Array.from({ length: spec.cpus }, (_, cpu) => cpu);
  if (entry === "import_count") {
    const jobs = cpus.map(() => ({ entry, args: [] }));
    return countedCell(runner, spec, jobs, undefined);
  }
  let words = cpus.map((cpu) => memory.perCpu(abi.PCPU_COUNT, cpu));
  if (spec.bench.name === "count-shared") {
    const shared = await runner.command(abi.OP_ALLOC, abi.STRIDE);
    words = cpus.map(() => shared);
  }
  const jobs = words.map((word) => ({ entry, args: [word] }));
  const total = () => [...new Set(words)].reduce((sum, word) => sum + memory.load64(word), 0);
  return countedCell(runner, spec, jobs, total);
}

/** Lock benches that only read what the lock protects; their counts are per CPU. */
const SHARED_SIDES = new Set(["lock-rwlock", "lock-rwsem", "lock-seqcount", "lock-refcount"]);

async function lockCell(runner: Runner, spec: CellSpec): Promise<Cell> {
  const { memory } = runner;
  const { name } = spec.bench;
  const p = await runner.command(abi.OP_ALLOC, abi.LOCK_AREA_BYTES);
  // Every lock's initial state is all zeroes, except a reference count, which somebody must hold.
  if (name === "lock-refcount") memory.store(p, 1);
  const entry = name.replace("lock-", "bench_").replaceAll("-", "_");
  const jobs = Array.from({ length: spec.cpus }, () => ({ entry, args: [p] }));
  const counts = Array.from({ length: spec.cpus }, (_, cpu) => memory.perCpu(abi.PCPU_COUNT, cpu));
  const total = SHARED_SIDES.has(name)
    ? () => counts.reduce((sum, word) => sum + memory.load64(word), 0)
    : () => memory.load64(p + abi.LOCK_DATA);
  return countedCell(runner, spec, jobs, total);
}

/** Kinds of rcu_area_init by the flavour's name. */
export const RCU_KINDS: Readonly<Record<string, number>> = { srcu: 0, "tasks-trace": 1, qsbr: 2 };

async function rcuCell(runner: Runner, spec: CellSpec): Promise<Cell> {
  const { memory } = runner;
  const flavour = spec.bench.name.replace("rcu-read-", "");
  const p = await runner.command(abi.OP_ALLOC, abi.RCU_AREA_BYTES);
  runner.host.exports.rcu_area_init(p, RCU_KINDS[flavour] ?? 0, runner.cpus + 2);
  const entry = `rcu_read_${flavour.replace("-", "_")}`;
  const jobs = Array.from({ length: spec.cpus }, () => ({ entry, args: [p] }));
  const counts = jobs.map((_, cpu) => memory.perCpu(abi.PCPU_COUNT, cpu));
  const total = () => counts.reduce((sum, word) => sum + memory.load64(word), 0);
  return countedCell(runner, spec, jobs, total);
}

/** CPU 0 synchronizes, the others read. */
async function graceCell(runner: Runner, spec: CellSpec): Promise<Cell> {
  const flavour = spec.bench.name.replace("gp-", "");
  const p = await runner.command(abi.OP_ALLOC, abi.RCU_AREA_BYTES);
  runner.host.exports.rcu_area_init(p, RCU_KINDS[flavour] ?? 0, runner.cpus + 2);
  const recorder = await createRecorder(runner, 1);
  const name = flavour.replace("-", "_");
  const updater = { entry: `gp_${name}`, args: [p, ...recorder.addresses] };
  const reader = { entry: `rcu_read_${name}`, args: [p] };
  return withReaders(runner, spec, updater, reader, recorder);
}

/** A cell in which CPU 0 does the operations; each job counts what it does in PCPU_COUNT, too. */
function withReaders(
  runner: Runner,
  spec: CellSpec,
  updater: Job,
  reader: Job,
  recorder: Recorder,
): Cell {
  const { memory } = runner;
  const readers = Array.from({ length: spec.cpus - 1 }, () => reader);
  const done = () => batchProgress(runner, spec.cpus);
  return {
    spec,
    jobs: [updater, ...readers],
    recorder,
    progress: () => done().slice(0, 1),
    reads: () =>
      done()
        .slice(1)
        .reduce((a, b) => a + b, 0),
    drops: () => 0,
    counts: () => {
      checkFaults(runner, spec);
      for (const [cpu, n] of done().entries()) {
        const counted = memory.load64(memory.perCpu(abi.PCPU_COUNT, cpu));
        if (counted === n) continue;
        throw new WasmprobeError(
          "E_FAULT",
          `${title(spec)}: CPU ${cpu} did ${n} operations, memory counted ${counted}`,
        );
      }
      const [operations = 0] = done();
      return { triggers: operations, handled: operations, filtered: 0, missed: {} };
    },
  };
}

function title(spec: CellSpec): string {
  const preset = spec.preset === null ? "" : ` ${spec.preset}`;
  return `${spec.bench.name}${preset} on ${spec.cpus} CPUs`;
}

function checkFaults(runner: Runner, spec: CellSpec): void {
  const faults = Object.entries(runner.memory.faults());
  if (faults.length === 0) return;
  const list = faults.map(([name, count]) => `${name} ${count} times`).join(", ");
  throw new WasmprobeError("E_FAULT", `${title(spec)}: the engine saw the impossible: ${list}`);
}
