// Cells of benches whose CPUs hit probes, and the mapped file that these are in.

import { WasmprobeError } from "../../base/errors.js";
import * as abi from "../../engine/abi.js";
import { type ReturnCounts, sumHits, sumReturns } from "../../engine/memory.js";
import { entryOf, type Verb } from "../../engine/presets.js";
import type { Runner } from "../../engine/runner.js";
import { type PresetName, SITE_STRIDE } from "../cases.js";
import { createSampler } from "../latency.js";
import { checkFaults, hitCounts } from "./common.js";
import type { Cell, CellSpec } from "./types.js";

/** First address of the probed functions. */
export const SITE_VADDR = 0x400000;

/** Distance of two probed functions of a cell, bytes. */
export function siteBytesOf({ siteBytes = SITE_STRIDE }: Pick<CellSpec, "siteBytes">): number {
  return siteBytes;
}
const PAGE = 4096;
const MAPS_MAX = 16;

const OPCODES: Readonly<Record<string, number>> = {
  "uprobe-nop": abi.INSN_NOP,
  "uprobe-push": abi.INSN_PUSH,
  "uprobe-ret": abi.INSN_RET,
  "uretprobe-nop": abi.INSN_NOP,
  "uretprobe-push": abi.INSN_PUSH,
  "uretprobe-ret": abi.INSN_RET,
  "usermode-count": abi.INSN_NOP,
};

/** The engine's specialised entry of a preset: hits of one site, or of many in random order. */
export function triggerEntry(preset: PresetName, many: boolean, kind: Verb = "trigger"): string {
  return entryOf(preset, many ? `${kind}_many` : kind);
}

/** A file of one-instruction functions, mapped into an address space. */
export interface Program {
  mm: number;
  inode: number;
  /** Distance of two functions. */
  siteBytes: number;
}

/** With so many functions, `siteBytes` apart from SITE_VADDR on. */
export async function createProgram(
  runner: Runner,
  sites: number,
  opcode: number,
  siteBytes: number,
): Promise<Program> {
  const bytes = Math.ceil((sites * siteBytes) / PAGE) * PAGE;
  const inode = await runner.command(abi.OP_INODE_CREATE, bytes, opcode);
  const mm = await runner.command(abi.OP_MM_CREATE, MAPS_MAX);
  await runner.command(abi.OP_MMAP, mm, inode, SITE_VADDR, bytes, 0);
  return { mm, inode, siteBytes };
}

/** Registers a probe on each of the first `probes` functions; `kind`: CONSUMER_ constant. */
export async function registerProbes(
  runner: Runner,
  { inode, siteBytes }: Program,
  probes: number,
  sink: number,
  kind = abi.CONSUMER_ENTRY,
): Promise<void> {
  const args = [inode, 0, siteBytes, probes, sink, kind];
  const made = await runner.command(abi.OP_REGISTER_MANY, ...args);
  if (made === probes) return;
  const { liveBytes } = runner.memory.arena();
  throw new WasmprobeError(
    "E_FULL",
    `only ${made} of ${probes} probes could be registered: ${liveBytes} bytes are in use`,
  );
}

/** A task of CPU `cpu` that calls the first `sites` functions. */
export function createTask(
  runner: Runner,
  spec: CellSpec,
  { mm, siteBytes }: Program,
  cpu: number,
  sites: number,
): Promise<number> {
  const seed = spec.seed + cpu * 0x9e3779b9;
  return runner.command(abi.OP_TASK_CREATE, mm, cpu + 1, SITE_VADDR, siteBytes, sites, seed);
}

export async function uprobeCell(runner: Runner, spec: CellSpec, probes: number): Promise<Cell> {
  const { bench, cpus } = spec;
  const { memory } = runner;
  const sites = Math.max(probes, 1);
  const opcode = OPCODES[bench.name] ?? abi.INSN_NOP;
  const program = await createProgram(runner, sites, opcode, siteBytesOf(spec));
  const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
  const returns = bench.family === "uretprobe";
  const consumer = returns ? abi.CONSUMER_RETURN : abi.CONSUMER_ENTRY;
  if (probes > 0) await registerProbes(runner, program, probes, sink, consumer);
  const tasks: number[] = [];
  for (let cpu = 0; cpu < cpus; cpu++) {
    tasks.push(await createTask(runner, spec, program, cpu, sites));
  }
  const hits = probes > 0;
  const recorder = hits && spec.latency ? await createSampler(runner, cpus) : undefined;
  const kind = recorder === undefined ? "trigger" : "latency";
  const entry = triggerEntry(spec.preset ?? "spinlock", sites > 1, kind);
  return {
    spec,
    jobs: tasks.map((task, cpu) => ({ entry, args: [task, ...histogramOf(recorder, cpu)] })),
    ...(recorder === undefined ? {} : { recorder }),
    progress: () => tasks.map((task) => memory.load64(task + operation(hits, returns))),
    drops: () => {
      if (!hits) return 0;
      // Not triggers minus handled: a hit that is under way is no drop.
      const { filtered, missed } = sumHits(tasks.map((task) => memory.task(task)));
      const lost = returns ? lostReturns(tasks.map((task) => memory.returns(task))) : 0;
      return Object.values(missed).reduce((a, b) => a + b, filtered + lost);
    },
    counts: () => {
      checkFaults(runner, spec);
      return hitCounts(runner, spec, tasks, sink);
    },
  };
}

// The counter that one operation raises.
function operation(hits: boolean, returns: boolean): number {
  if (returns) return abi.TASK_RETURNS;
  return hits ? abi.TASK_HANDLED : abi.TASK_TRIGGERS;
}

function lostReturns(all: readonly ReturnCounts[]): number {
  const { filtered, missed } = sumReturns(all);
  return Object.values(missed).reduce((a, b) => a + b, filtered);
}

function histogramOf(recorder: { addresses: number[] } | undefined, cpu: number): number[] {
  return recorder?.addresses.slice(cpu, cpu + 1) ?? [];
}
