// Cells in which CPU 0 alone does the operations, each timed, while all other CPUs read: what the
// cheap readers cost the writers.

import { WasmprobeError } from "../../base/errors.js";
import * as abi from "../../engine/abi.js";
import type { Runner } from "../../engine/runner.js";
import { createRecorder } from "../latency.js";
import { batchProgress, checkFaults, hitCounts, title } from "./common.js";
import { RCU_KINDS } from "./counts.js";
import { createProgram, createTask, registerProbes, SITE_VADDR, siteBytesOf } from "./hits.js";
import { triggerEntry } from "./hits.js";
import type { Cell, CellCounts, CellSpec } from "./types.js";

/** CPU 0 synchronizes, the others run read sections. */
export async function graceCell(runner: Runner, spec: CellSpec): Promise<Cell> {
  const flavour = spec.bench.name.replace("gp-", "");
  const p = await runner.command(abi.OP_ALLOC, abi.RCU_AREA_BYTES);
  runner.host.exports.rcu_area_init(p, RCU_KINDS[flavour] ?? 0, runner.cpus + 2);
  const recorder = await createRecorder(runner, 1);
  const name = flavour.replace("-", "_");
  const readers = readersOf(spec).map(() => ({ entry: `rcu_read_${name}`, args: [p] }));
  return {
    ...common(runner, spec),
    jobs: [{ entry: `gp_${name}`, args: [p, ...recorder.addresses] }, ...readers],
    recorder,
    counts: () => {
      for (const cpu of readersOf(spec)) checkCounted(runner, spec, cpu);
      return operations(runner, spec);
    },
  };
}

const REGISTRATION_ENTRIES: Readonly<Record<string, string>> = {
  register: "register_probes",
  "unregister-batch": "unregister_batches",
};

/**
 * CPU 0 registers probes of its own and takes them away; the others hit the first of the permanent
 * ones, in the same file and address space.
 */
export async function registrationCell(runner: Runner, spec: CellSpec): Promise<Cell> {
  const { memory } = runner;
  const { bench, probes } = spec;
  const preset = spec.preset ?? "spinlock";
  const entry = REGISTRATION_ENTRIES[bench.name];
  if (entry === undefined) throw new WasmprobeError("E_NAME", `no bench "${bench.name}"`);
  const sites = probes + abi.REGISTRATION_BATCH;
  const siteBytes = siteBytesOf(spec);
  const program = await createProgram(runner, sites, abi.INSN_NOP, siteBytes);
  const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
  await registerProbes(runner, program, probes, sink);
  const own = probes * siteBytes;
  const state = await runner.command(
    abi.OP_REGISTRATION_CREATE,
    program.mm,
    program.inode,
    SITE_VADDR + own,
    own,
    siteBytes,
  );
  const batch = bench.name === "unregister-batch" ? abi.REGISTRATION_BATCH : 1;
  const recorder = await createRecorder(runner, 1, batch);
  const tasks: number[] = [];
  for (const cpu of readersOf(spec)) tasks.push(await createTask(runner, spec, program, cpu, 1));
  const hit = triggerEntry(preset, false);
  return {
    ...common(runner, spec),
    jobs: [
      { entry, args: [state, ...recorder.addresses] },
      ...tasks.map((task) => ({ entry: hit, args: [task] })),
    ],
    recorder,
    reads: () => tasks.reduce((sum, task) => sum + memory.load64(task + abi.TASK_HANDLED), 0),
    counts: () => {
      const counts = operations(runner, spec);
      hitCounts(runner, spec, tasks, sink);
      const errors = memory.load(state + abi.REGISTRATION_ERRORS);
      const left = memory.uprobes().inTree - probes;
      if (errors !== 0 || left !== 0) {
        throw new WasmprobeError(
          "E_FAULT",
          `${title(spec)}: ${errors} registrations failed, ${left} probes were left behind`,
        );
      }
      return counts;
    },
  };
}

function readersOf(spec: CellSpec): number[] {
  return Array.from({ length: spec.cpus - 1 }, (_, i) => i + 1);
}

/** Progress of CPU 0 and of the readers as the workers tell it, batch by batch. */
function common(
  runner: Runner,
  spec: CellSpec,
): Pick<Cell, "spec" | "progress" | "reads" | "drops"> {
  return {
    spec,
    progress: () => batchProgress(runner, 1),
    reads: () =>
      batchProgress(runner, spec.cpus)
        .slice(1)
        .reduce((a, b) => a + b, 0),
    drops: () => 0,
  };
}

/** CPU 0's operations, counted by its worker and, independently, in memory. */
function operations(runner: Runner, spec: CellSpec): CellCounts {
  checkFaults(runner, spec);
  const triggers = checkCounted(runner, spec, 0);
  return { triggers, handled: triggers, filtered: 0, missed: {} };
}

function checkCounted(runner: Runner, spec: CellSpec, cpu: number): number {
  const { memory } = runner;
  const done = batchProgress(runner, spec.cpus)[cpu] ?? 0;
  const counted = memory.load64(memory.perCpu(abi.PCPU_COUNT, cpu));
  if (counted === done) return done;
  throw new WasmprobeError(
    "E_FAULT",
    `${title(spec)}: CPU ${cpu} did ${done} operations, memory counted ${counted}`,
  );
}
