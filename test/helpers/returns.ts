// Calls whose returns are probed, on a Solo engine, and what came of them.

import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import type { EngineMemory } from "../../src/engine/memory.js";
import { entryOf, findPreset, PRESET_NAMES, type PresetName } from "../../src/engine/presets.js";
import { Probes, VADDR } from "./probes.js";
import type { SoloOptions } from "./solo.js";

/** Places in a task, and in a return instance: assembly/uprobe/task.ts, return_instance.ts. */
export const RETURN_INSTANCES = 384;
export const RETURN_SEQ = 396;
export const RI_STATE = 4;
export const [LEASED, STABLE, GONE, CONSUMED] = [0, 1, 2, 3] as const;

/** Presets whose pending returns have a lease that a timer ends. */
export const LEASING = PRESET_NAMES.filter((preset) => {
  const kind = (findPreset(preset)?.strategy ?? 0) & abi.RETURN_MASK;
  return kind === abi.RETURN_ALLOC || kind === abi.RETURN_POOL;
});

const COUNTERS = {
  entries: abi.TASK_RETURN_ENTRIES,
  returns: abi.TASK_RETURNS,
  depth: abi.TASK_RETURN_DEPTH,
  memory: abi.TASK_RETURN_MEMORY,
  longjmp: abi.TASK_RETURN_LONGJMP,
  gone: abi.TASK_RETURN_GONE,
  "no-consumer": abi.TASK_RETURN_NO_CONSUMER,
  "ring-full": abi.TASK_RETURN_RING_FULL,
  filtered: abi.TASK_RETURN_FILTERED,
} as const;

export class Returns extends Probes {
  readonly preset: PresetName;
  constructor(preset: PresetName, opcode = abi.INSN_NOP, options: SoloOptions = {}) {
    super(opcode, { strategy: findPreset(preset)?.strategy ?? 0, leaseUs: 1000, ...options });
    this.preset = preset;
    assert.is(this.map(), 0);
  }
  nested(sites = 100): number {
    return this.ok(abi.OP_TASK_CREATE, this.mm, 1, VADDR, 16, sites, 1, 8192);
  }
  probe(offset: number, sink: number, kind = abi.CONSUMER_RETURN, returnSink = 0): number {
    return this.ok(abi.OP_REGISTER, this.inode, offset, sink, 0, 0, 0, 0, kind, returnSink);
  }
  go(what: "call" | "enter" | "jump" | "leave", task: number, ...args: number[]): number {
    return this.call(0, entryOf(this.preset, what), task, ...args) as number;
  }
  /** Non-zero counters of a task; throws if they do not add up. */
  counts(task: number): Record<string, number> {
    return returnCounts(this.memory, task);
  }
  /** The newest pending return of a task. */
  newest(task: number): number {
    return this.memory.load(task + RETURN_INSTANCES);
  }
  stateOf(task: number): number {
    return this.memory.load(this.newest(task) + RI_STATE);
  }
}

/** Non-zero counters of a task's returns; throws if they do not add up. */
export function returnCounts(memory: EngineMemory, task: number): Record<string, number> {
  const all = Object.entries(COUNTERS).map(
    ([name, at]) => [name, memory.load64(task + at)] as const,
  );
  const pending = memory.load(task + abi.TASK_RETURN_PENDING);
  const [entries, ...ends] = all.map(([, n]) => n);
  assert.is(
    entries,
    ends.reduce((a, b) => a + b, pending),
    "entries = ends + pending",
  );
  return Object.fromEntries([...all, ["pending", pending] as const].filter(([, n]) => n !== 0));
}
