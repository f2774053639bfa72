// A whole engine on this thread: one instance that becomes each of its CPUs in turn, housekeeper
// included. Commands and hits happen when they are called, in that order, so that a test can say
// exactly what must be there afterwards. Nothing contends; a lock that is left locked hangs, and
// the test runner's time limit ends it.

import { readFileSync } from "node:fs";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { errnoText, instantiateEngine, isErrno } from "../../src/engine/instance.js";
import type { EngineInstance } from "../../src/engine/instance.js";
import { EngineMemory, type HitCounts } from "../../src/engine/memory.js";
import type { EngineOptions, Job, Run, Runner } from "../../src/engine/runner.js";
import { WASM } from "./engine.js";

const module = new WebAssembly.Module(readFileSync(WASM));

export interface SoloOptions extends Partial<EngineOptions> {
  /** @default 4 MiB */
  memoryBytes?: number;
  /** Instead: where the engine is to be. */
  memory?: EngineMemory;
  /** The engine's clock, milliseconds. @default performance.now */
  now?: () => number;
}

export class Solo implements Runner {
  readonly on = "solo";
  readonly affinity = "none";
  readonly memory: EngineMemory;
  readonly host: EngineInstance;
  cpus = 0;

  constructor(options: SoloOptions = {}) {
    const { memory, memoryBytes = 4 << 20 } = options;
    this.memory = memory ?? new EngineMemory(EngineMemory.create(memoryBytes));
    this.host = instantiateEngine(
      module,
      this.memory.memory,
      options.now ?? (() => performance.now()),
    );
    this.formatNow({ cpus: 1, ...options });
  }

  formatNow(options: EngineOptions): void {
    const { base, memory } = this.memory;
    const rc = this.host.exports.engine_init(
      base,
      memory.buffer.byteLength - base,
      options.cpus,
      options.strategy ?? abi.PRESET_SPINLOCK,
      options.uprobesMax ?? 1024,
      options.trapUnits ?? 0,
      options.arch ?? abi.ARCH_X86,
      options.xolSlots ?? 0,
      options.leaseUs ?? 0,
    );
    assert.is(rc, 0, `engine_init: ${errnoText(rc)}`);
    this.cpus = options.cpus;
  }

  /** The result of a command, whatever it is. */
  op(op: number, ...args: number[]): number {
    const { memory } = this;
    this.#become(this.cpus);
    const ring = memory.base + abi.HEADER_BYTES;
    const head = memory.load(ring + abi.RING_HEAD);
    const slot = ring + abi.RING_SLOTS_AT + (head & (abi.RING_SLOTS - 1)) * abi.RING_SLOT_BYTES;
    memory.store(slot + abi.SLOT_OP, op);
    for (let i = 0; i < 13; i++) memory.store(slot + abi.SLOT_ARGS + 4 * i, args[i] ?? 0);
    memory.store(ring + abi.RING_HEAD, (head + 1) | 0);
    assert.is(this.host.exports.housekeeper_run(0n), 1);
    return memory.load(slot + abi.SLOT_RESULT);
  }

  /** The result of a command that must succeed. */
  ok(op: number, ...args: number[]): number {
    const result = this.op(op, ...args);
    if (isErrno(result)) throw new Error(`command ${op}(${args.join(", ")}): ${errnoText(result)}`);
    return result;
  }

  /** Calls a workload as CPU `cpu`. */
  call(cpu: number, entry: string, ...args: number[]): unknown {
    this.#become(cpu);
    return this.host.workload(entry)(...args);
  }

  /** `n` triggers of a task by CPU 0: what came of them. */
  trigger(task: number, n = 1, entry = "trigger_spinlock"): HitCounts {
    const before = this.memory.task(task);
    this.call(0, entry, task, n);
    return countsSince(this.memory.task(task), before);
  }

  /** Raised faults, none of which may ever be. */
  checkFaults(): void {
    assert.equal(this.memory.faults(), {});
  }

  // The Runner's half, for what is written against it: jobs run one after the other, once.

  async format(options: EngineOptions): Promise<void> {
    this.formatNow(options);
  }
  async tryCommand(op: number, ...args: number[]): Promise<number> {
    return this.op(op, ...args);
  }
  async command(op: number, ...args: number[]): Promise<number> {
    return this.ok(op, ...args);
  }
  async run(jobs: readonly Job[]): Promise<Run> {
    for (const [cpu, job] of jobs.entries()) {
      const n = job.count ?? 100;
      this.call(cpu, job.entry, ...job.args, n);
      const ops = this.memory.perCpu(abi.PCPU_OPS, cpu) >> 3;
      Atomics.store(this.memory.i64, ops, BigInt(n));
    }
    return { done: Promise.resolve(), stop: async () => {} };
  }
  async close(): Promise<void> {}

  #become(cpu: number): void {
    assert.is(this.host.exports.engine_attach(this.memory.base, cpu), 0);
  }
}

/** What was counted between two looks at a task. */
export function countsSince(after: HitCounts, before: HitCounts): HitCounts {
  return {
    triggers: after.triggers - before.triggers,
    handled: after.handled - before.handled,
    filtered: after.filtered - before.filtered,
    missed: {
      "no-probe": after.missed["no-probe"] - before.missed["no-probe"],
      "no-consumer": after.missed["no-consumer"] - before.missed["no-consumer"],
      sigtrap: after.missed.sigtrap - before.missed.sigtrap,
      "ring-full": after.missed["ring-full"] - before.missed["ring-full"],
    },
    restarts: after.restarts - before.restarts,
  };
}

/** Counts of `n` triggers that all came to the same end. */
export function all(
  outcome: "handled" | "filtered" | "no-probe" | "no-consumer" | "sigtrap" | "ring-full",
  n = 1,
): HitCounts {
  const counts: HitCounts = {
    triggers: n,
    handled: 0,
    filtered: 0,
    missed: { "no-probe": 0, "no-consumer": 0, sigtrap: 0, "ring-full": 0 },
    restarts: 0,
  };
  if (outcome === "handled" || outcome === "filtered") counts[outcome] = n;
  else counts.missed[outcome] = n;
  return counts;
}

/**
 * What must be as before once everything was taken back. Not counted: the XOL areas that address
 * spaces (`mms`) have got with their first steps, and keep.
 */
export function leftovers(memory: EngineMemory, ...mms: number[]): Record<string, number> {
  const { liveBytes, liveObjects } = memory.arena();
  const areas = mms.filter((mm) => memory.load(mm + abi.MM_XOL_AREA) !== 0).length;
  return {
    liveBytes: liveBytes - areas * (abi.XOL_PAGE + abi.XOL_AREA_BYTES),
    liveObjects: liveObjects - areas,
    ...memory.uprobes(),
  };
}
