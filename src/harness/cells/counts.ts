// Cells of benches without a probe: controls, locks, RCU readers.

import { WasmprobeError } from "../../base/errors.js";
import * as abi from "../../engine/abi.js";
import type { Job, Runner } from "../../engine/runner.js";
import { batchProgress, checkFaults, title } from "./common.js";
import type { Cell, CellSpec } from "./types.js";

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

export async function countCell(runner: Runner, spec: CellSpec): Promise<Cell> {
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

export async function lockCell(runner: Runner, spec: CellSpec): Promise<Cell> {
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

export async function rcuCell(runner: Runner, spec: CellSpec): Promise<Cell> {
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
