// Views over an engine's shared memory, and reading what the engine publishes in it.

import { WasmprobeError } from "../base/errors.js";
import * as abi from "./abi.js";

/** Bytes of one WebAssembly page. */
const PAGE_BYTES = 65_536;

/** Names of the fault words, in their order. */
const FAULT_NAMES: readonly string[] = [
  "refcount",
  "double-erase",
  "consumer-freed",
  "uprobe-freed",
  "exclusion",
  "late-handler",
  "timeout",
  "duplicate-key",
  "tree",
  "lost-hit",
  "order",
  "grace-period",
  "lookup",
  "mixed-lookup",
  "slot",
  "signal",
  "return",
  "lease",
  "reference-counter",
];

/** Terms of the counting identity, summed over tasks or of one task. */
export interface HitCounts {
  triggers: number;
  handled: number;
  filtered: number;
  missed: { "no-probe": number; "no-consumer": number; sigtrap: number; "ring-full": number };
  /** Traps that ended by executing the instruction again; not a term of the identity. */
  restarts: number;
}

/** Where a probed return can end that no handler sees. */
const RETURN_MISSES = {
  depth: abi.TASK_RETURN_DEPTH,
  memory: abi.TASK_RETURN_MEMORY,
  longjmp: abi.TASK_RETURN_LONGJMP,
  gone: abi.TASK_RETURN_GONE,
  "no-consumer": abi.TASK_RETURN_NO_CONSUMER,
  "ring-full": abi.TASK_RETURN_RING_FULL,
} as const;

/** Terms of the identity of return probes, summed over tasks or of one task. */
export interface ReturnCounts {
  /** Calls whose return was wanted. */
  entries: number;
  /** Returns that a handler saw. */
  returns: number;
  filtered: number;
  missed: Record<keyof typeof RETURN_MISSES, number>;
  /** Calls that have not returned yet. */
  pending: number;
}

/** What an updater of an RCU flavour says of itself. */
export interface GracePeriods {
  completed: number;
  /** CPU that the current one waits for; undefined: none, or several that change. */
  waitsFor: number | undefined;
  /** How many took longer than a second (GP_STALL_MS). */
  stalls: number;
  /** CPU that held up the last of those, if it can be told. */
  stalledBy: number | undefined;
}

/** The grace periods of the domain at `domain`. A hint while they run. */
export function gracePeriodsIn(i32: Int32Array, domain: number): GracePeriods {
  const word = (offset: number): number => Atomics.load(i32, (domain + offset) >>> 2);
  const cpu = (offset: number): number | undefined => {
    const plusOne = word(offset);
    return plusOne === 0 ? undefined : plusOne - 1;
  };
  return {
    completed: word(abi.GP_COMPLETED) >>> 0,
    waitsFor: cpu(abi.GP_WAITS_FOR),
    stalls: word(abi.GP_STALLS),
    stalledBy: cpu(abi.GP_STALL_CPU),
  };
}

export class EngineMemory {
  readonly memory: WebAssembly.Memory;
  /** Address of the engine's header in the memory. */
  readonly base: number;
  readonly i32: Int32Array;
  readonly i64: BigInt64Array;

  constructor(memory: WebAssembly.Memory, base = 0) {
    this.memory = memory;
    this.base = base;
    this.i32 = new Int32Array(memory.buffer);
    this.i64 = new BigInt64Array(memory.buffer);
  }

  /** A shared memory of at least `bytes`, which never grows. */
  static create(bytes: number): WebAssembly.Memory {
    const pages = Math.ceil(bytes / PAGE_BYTES);
    try {
      return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    } catch (cause) {
      throw new WasmprobeError(
        "E_PLATFORM",
        `cannot reserve ${bytes} bytes of shared memory: ${(cause as Error).message}`,
        cause,
      );
    }
  }

  /**
   * Sequentially consistent load of the i32 at `address`. An address that was itself loaded is
   * negative from 2 GiB on: the unsigned shift is right for both.
   */
  load(address: number): number {
    return Atomics.load(this.i32, address >>> 2);
  }

  store(address: number, value: number): void {
    Atomics.store(this.i32, address >>> 2, value);
  }

  /** The i64 at `address` as a number; exact up to 2^53, which counters never reach. */
  load64(address: number): number {
    return Number(Atomics.load(this.i64, address >>> 3));
  }

  header(offset: number): number {
    return this.load(this.base + offset);
  }

  /** Address of a CPU's block at a PCPU_ offset. */
  perCpu(offset: number, cpu: number): number {
    return this.header(abi.HDR_PERCPU) + cpu * abi.PERCPU_BYTES + offset;
  }

  /** Faults that were raised: name and count. Empty in a healthy engine. */
  faults(): Record<string, number> {
    const found: Record<string, number> = {};
    FAULT_NAMES.forEach((name, index) => {
      const count = this.header(abi.HDR_FAULTS + 4 * index);
      if (count !== 0) found[name] = count;
    });
    return found;
  }

  /** The grace periods of an RCU domain, SRCU or other, at `domain`. A hint while they run. */
  gracePeriods(domain: number): GracePeriods {
    return gracePeriodsIn(this.i32, domain);
  }

  /** The engine's own domains: that of preset `srcu`, and that of Tasks Trace and QSBR. */
  graceOfEngine(): Record<"srcu" | "tasks-trace", GracePeriods> {
    return {
      srcu: this.gracePeriods(this.base + abi.HDR_SRCU),
      "tasks-trace": this.gracePeriods(this.base + abi.HDR_RCU),
    };
  }

  /** The arena's accounting, bytes; exact while no CPU allocates. */
  arena(): { liveBytes: number; liveObjects: number; peakBytes: number; failedBytes: number } {
    const arena = this.header(abi.HDR_ARENA);
    return {
      liveBytes: this.load(arena + abi.ARENA_LIVE_BYTES),
      liveObjects: this.load(arena + abi.ARENA_LIVE_OBJECTS),
      peakBytes: this.load(arena + abi.ARENA_PEAK_BYTES),
      failedBytes: this.load(arena + abi.ARENA_FAILED),
    };
  }

  /** Uprobes allocated and not yet freed, and those in the tree. */
  uprobes(): { alive: number; inTree: number } {
    const table = this.header(abi.HDR_TABLE);
    return {
      alive: this.load(table + abi.TABLE_ALIVE),
      inTree: this.load(table + abi.TABLE_IN_TREE),
    };
  }

  /** A task's counters. While its CPU runs: a snapshot, whose terms may be one hit apart. */
  task(task: number): HitCounts {
    return {
      triggers: this.load64(task + abi.TASK_TRIGGERS),
      handled: this.load64(task + abi.TASK_HANDLED),
      filtered: this.load64(task + abi.TASK_FILTERED),
      missed: {
        "no-probe": this.load64(task + abi.TASK_MISSED_NO_PROBE),
        "no-consumer": this.load64(task + abi.TASK_MISSED_NO_CONSUMER),
        sigtrap: this.load64(task + abi.TASK_MISSED_SIGTRAP),
        "ring-full": this.load64(task + abi.TASK_MISSED_RING_FULL),
      },
      restarts: this.load64(task + abi.TASK_RESTARTS),
    };
  }

  /** A task's counters of return probes; as of task(). */
  returns(task: number): ReturnCounts {
    const missed = Object.entries(RETURN_MISSES).map(([name, at]) => [
      name,
      this.load64(task + at),
    ]);
    return {
      entries: this.load64(task + abi.TASK_RETURN_ENTRIES),
      returns: this.load64(task + abi.TASK_RETURNS),
      filtered: this.load64(task + abi.TASK_RETURN_FILTERED),
      missed: Object.fromEntries(missed) as ReturnCounts["missed"],
      pending: this.load(task + abi.TASK_RETURN_PENDING),
    };
  }

  /** Instructions of a task that were executed out of line, and signals delivered to it. */
  steps(task: number): { steps: number; signals: number } {
    return {
      steps: this.load64(task + abi.TASK_STEPS),
      signals: this.load64(task + abi.TASK_SIGNALS),
    };
  }

  /** Hits in a sink, a number for each CPU (the last: the housekeeper). */
  sinkHits(sink: number, cpus: number): number[] {
    const area = this.load(sink + abi.SINK_AREA);
    const stride = this.load(sink + abi.SINK_STRIDE);
    return Array.from({ length: cpus }, (_, cpu) => this.load64(area + cpu * stride));
  }

  /** A sink's log2 histogram, summed over `cpus`: entry b counts values of b significant bits. */
  sinkHistogram(sink: number, cpus: number): number[] {
    const area = this.load(sink + abi.SINK_AREA);
    const stride = this.load(sink + abi.SINK_STRIDE);
    return Array.from({ length: abi.SINK_BUCKET_COUNT }, (_, bucket) => {
      let sum = 0;
      for (let cpu = 0; cpu < cpus; cpu++) {
        sum += this.load64(area + cpu * stride + abi.SINK_BUCKETS + 8 * bucket);
      }
      return sum;
    });
  }
}

/** Sum of tasks' counters. */
export function sumHits(all: readonly HitCounts[]): HitCounts {
  const sum: HitCounts = {
    triggers: 0,
    handled: 0,
    filtered: 0,
    missed: { "no-probe": 0, "no-consumer": 0, sigtrap: 0, "ring-full": 0 },
    restarts: 0,
  };
  for (const one of all) {
    sum.triggers += one.triggers;
    sum.handled += one.handled;
    sum.filtered += one.filtered;
    sum.missed["no-probe"] += one.missed["no-probe"];
    sum.missed["no-consumer"] += one.missed["no-consumer"];
    sum.missed.sigtrap += one.missed.sigtrap;
    sum.missed["ring-full"] += one.missed["ring-full"];
    sum.restarts += one.restarts;
  }
  return sum;
}

/** triggers minus all outcomes: 0, or the identity is broken. Exact once the CPUs have left. */
export function identityGap(c: HitCounts): number {
  const missed = Object.values(c.missed).reduce((a, b) => a + b, 0);
  return c.triggers - c.handled - c.filtered - missed;
}

/** Sum of tasks' counters of return probes. */
export function sumReturns(all: readonly ReturnCounts[]): ReturnCounts {
  const sum = (of: (one: ReturnCounts) => number): number => all.reduce((n, one) => n + of(one), 0);
  const causes = Object.keys(RETURN_MISSES) as (keyof ReturnCounts["missed"])[];
  const missed = causes.map((cause) => [cause, sum((one) => one.missed[cause])]);
  return {
    entries: sum((one) => one.entries),
    returns: sum((one) => one.returns),
    filtered: sum((one) => one.filtered),
    missed: Object.fromEntries(missed) as ReturnCounts["missed"],
    pending: sum((one) => one.pending),
  };
}

/** entries minus all they can come to: 0, or the identity is broken. Exact as identityGap. */
export function returnGap(c: ReturnCounts): number {
  const missed = Object.values(c.missed).reduce((a, b) => a + b, 0);
  return c.entries - c.returns - c.filtered - missed - c.pending;
}
