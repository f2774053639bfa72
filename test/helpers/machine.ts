// A machine without threads and without time of its own: a Runner whose CPUs do what a test says,
// and timers that jump to the next one. What takes minutes on a clock takes none here, and comes
// out the same each time.

import { WasmprobeError } from "../../src/base/errors.js";
import * as abi from "../../src/engine/abi.js";
import { EngineMemory } from "../../src/engine/memory.js";
import type { EngineOptions, Job, Run, Runner } from "../../src/engine/runner.js";
import type { Interrupt } from "../../src/harness/measure.js";

const PERCPU_AT = 0x1000;
const HEAP_AT = 0x20000;
const MEMORY_BYTES = 0x40000;

interface Timer {
  atMs: number;
  fire: () => void;
}

export class Machine {
  /** Operations of a CPU in a millisecond, while `jobs` run. @default 1000 */
  rate: (entry: string, cpu: number, cpus: number, nowMs: number) => number = () => 1000;
  /** By how much a timer is late, milliseconds. */
  lateMs: () => number = () => 0;
  /** Called before an engine is formatted, a run is started; may throw. */
  onFormat: (cpus: number) => void = () => {};
  onRun: (entry: string, cpus: number) => void = () => {};
  /** Whether a run lets itself be stopped. */
  stopError: Error | undefined;
  /** Entries of all runs so far, with their CPUs: "count_percpu x2". */
  readonly runs: string[] = [];
  readonly runner: Runner;
  readonly memory: EngineMemory;
  /** Jobs that are running just now. */
  running: readonly Job[] | undefined;
  #nowMs = 1000;
  #timers: Timer[] = [];
  #pumping = false;
  #done: number[] = [];
  #die: (error: Error) => void = () => {};

  constructor() {
    const memory = new EngineMemory(EngineMemory.create(MEMORY_BYTES));
    this.memory = memory;
    let heap = HEAP_AT;
    const command = async (): Promise<number> => {
      heap += abi.LOCK_AREA_BYTES;
      return heap;
    };
    this.runner = {
      on: "threads",
      affinity: "none",
      memory,
      cpus: 0,
      get host(): never {
        throw new Error("this machine has no engine");
      },
      format: async ({ cpus }: EngineOptions) => {
        this.onFormat(cpus);
        memory.i32.fill(0);
        memory.store(abi.HDR_PERCPU, PERCPU_AT);
        Object.assign(this.runner, { cpus });
      },
      command,
      tryCommand: command,
      run: (jobs) => this.#run(jobs),
      close: async () => {},
    };
  }

  readonly nowMs = (): number => this.#nowMs;

  /** Operations that a CPU of the present run, or of the last, has done. */
  done(cpu: number): number {
    return Math.floor(this.#done[cpu] ?? 0);
  }

  /** A worker is lost. */
  die(error = new WasmprobeError("E_WORKER", "worker 1 ended: tired")): void {
    this.#die(error);
  }

  /** Calls `action` when the clock shows `nowMs` or more. */
  at(nowMs: number, action: () => void): void {
    this.#timers.push({ atMs: nowMs, fire: action });
  }

  /** Runs `body` on this machine's time. */
  async use<T>(body: () => Promise<T>): Promise<T> {
    const { setTimeout: realSet, clearTimeout: realClear } = globalThis;
    const set = (fire: () => void, ms = 0): Timer => {
      const timer = { atMs: this.#nowMs + ms + this.lateMs(), fire };
      this.#timers.push(timer);
      if (!this.#pumping) this.#pump();
      return timer;
    };
    const clear = (timer: Timer | undefined): void => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
    Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
    try {
      return await body();
    } finally {
      Object.assign(globalThis, { setTimeout: realSet, clearTimeout: realClear });
      this.#timers = [];
    }
  }

  // One timer at a time; between two all that was waiting for the first goes on.
  #pump(): void {
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      const next = this.#timers.toSorted((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) return;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#advance(next.atMs);
      next.fire();
      this.#pump();
    });
  }

  #advance(toMs: number): void {
    // In small steps, since a rate may change between two timers.
    while (this.#nowMs < toMs) {
      const stepMs = Math.min(1, toMs - this.#nowMs);
      const jobs = this.running ?? [];
      for (const [cpu, job] of jobs.entries()) {
        const ops = this.rate(job.entry, cpu, jobs.length, this.#nowMs) * stepMs;
        const before = this.done(cpu);
        this.#done[cpu] = (this.#done[cpu] ?? 0) + ops;
        const fresh = BigInt(this.done(cpu) - before);
        // Where the harness looks for what was done: the worker's own count, and the workload's.
        const words = [this.memory.perCpu(abi.PCPU_OPS, cpu)];
        const p = job.args[0];
        if (job.entry.startsWith("bench_")) {
          words.push(this.memory.perCpu(abi.PCPU_COUNT, cpu), (p ?? 0) + abi.LOCK_DATA);
        } else if (p !== undefined) {
          words.push(p);
        }
        for (const word of words) Atomics.add(this.memory.i64, word >> 3, fresh);
      }
      this.#nowMs += stepMs;
    }
  }

  async #run(jobs: readonly Job[]): Promise<Run> {
    const entry = jobs[0]?.entry ?? "nothing";
    this.runs.push(`${entry} x${jobs.length}`);
    this.onRun(entry, jobs.length);
    this.#done = jobs.map(() => 0);
    this.running = jobs;
    let end: () => void = () => {};
    const done = new Promise<void>((resolve, reject) => {
      end = resolve;
      this.#die = reject;
    });
    done.catch(() => {});
    return {
      done,
      stop: async () => {
        this.running = undefined;
        if (this.stopError !== undefined) throw this.stopError;
        end();
        await done.catch(() => {});
      },
    };
  }
}

/** An interruption that a test brings about. */
export function interruptible(): Interrupt & { abort(): void } {
  let aborted = false;
  let listeners: (() => void)[] = [];
  return {
    get aborted() {
      return aborted;
    },
    onAbort(listener) {
      if (aborted) listener();
      else listeners.push(listener);
    },
    abort() {
      aborted = true;
      for (const listener of listeners) listener();
      listeners = [];
    },
  };
}
