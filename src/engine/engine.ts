// The engine as a library: probes on functions that CPUs, each a thread, execute.
//
//   const engine = await Engine.start({ cpus: 2 });
//   const file = await engine.file({ bytes: 4096 });
//   const space = await engine.addressSpace();
//   await space.map(file, { address: 0x400000 });
//   const hits = await engine.counter();
//   const probe = await engine.register({ file, offset: 16, consumer: hits });
//   const run = await engine.run([{ task: await space.task({ address: 0x400010 }) }]);
//   ... hits.total() ...
//   await probe.unregister();
//   await run.stop();
//   await engine.stop();
//
// Everything that changes something is asked of the housekeeper, a thread of its own, and done in
// the order in which it was asked for; promises resolve in that order. Reading counts asks nobody.

import { WasmprobeError } from "../base/errors.js";
import { unknownName } from "../base/text.js";
import { loadPlatform } from "../platform/index.js";
import * as abi from "./abi.js";
import { Consumer, Emitter, HistogramConsumer, LatencyConsumer } from "./consumers.js";
import { type EmitterOptions, LoadedModule, type LoadOptions } from "./consumers.js";
import { EngineCore, whole } from "./core.js";
import { type Arch, ARCH_NAMES, archOf, entryOf, findPreset } from "./presets.js";
import { PRESET_NAMES, type PresetName } from "./presets.js";
import { Probe, type RegisterOptions } from "./probes.js";
import type { RegionOptions } from "./region.js";
import type { Job } from "./runner.js";
import { AddressSpace, CodeFile, type FileOptions, Task } from "./spaces.js";
import { startThreads } from "./threads.js";

const SLOTS_MOST: Readonly<Record<Arch, number>> = {
  x86: abi.XOL_AREA_BYTES / abi.XOL_SLOT_BYTES_X86,
  arm64: abi.XOL_AREA_BYTES / abi.XOL_SLOT_BYTES_ARM64,
};

export interface EngineStart extends RegionOptions {
  /** CPUs, each a thread, 1 to 256. */
  cpus: number;
  /** Strategy of the hit path. @default "fastest" */
  preset?: PresetName;
  /** Which instructions are emulated and which are stepped. @default "x86" */
  arch?: Arch;
  /**
   * Slots for stepped instructions in an address space, one of them the return trampoline's; so
   * many tasks less one can step at a time, others wait. 2 to 32 (x86), 1024 (arm64). @default all
   */
  xolSlots?: number;
  /**
   * How long a call that has not returned may keep a probe from being taken away: afterwards its
   * return holds a reference instead, microseconds. Presets before mmap-lock, and fastest, have no
   * leases. @default 100000
   */
  leaseUs?: number;
  /** Threads that come up now; the others do when their CPU joins a run. @default cpus */
  workers?: number;
  /** Most probes at a time. @default 1024 */
  probesMax?: number;
  /** Bind CPU i's thread to the i-th CPU that this process may use. @default false */
  affinity?: boolean;
  /** What CPUs and commands may take to end once they are asked to, ms. @default 10000 */
  leaveLimitMs?: number;
  /** The engine's module, for one of your own build. @default the one of this package */
  wasm?: URL;
}

/** What one CPU does in a run. */
export type Work = {
  /** Calls to make, then leave; without it until the run is stopped. */
  count?: number;
} & (
  | {
      /** Calls the task's functions. */
      task: Task;
    }
  | {
      /** Calls a workload of your module, again and again: (...args, n), n iterations. */
      module: LoadedModule;
      workload: string;
      /** i32 values before n; a task stands for its handle. */
      args?: readonly (number | Task)[];
    }
);

/** CPUs at work. */
export interface EngineRun {
  /** Resolves when all CPUs have left; rejects if one failed, with its number and why. */
  readonly done: Promise<void>;
  /** CPUs that have, or had, work in this run. */
  readonly cpus: number;
  /** One CPU more, while the others go on. Resolves when it has begun. */
  join(work: Work): Promise<void>;
  /** Asks all CPUs to leave, and resolves when they have: within a batch, about 1 ms. */
  stop(): Promise<void>;
}

export class Engine {
  readonly cpus: number;
  readonly preset: PresetName;
  readonly #core: EngineCore;
  #stopping: Promise<void> | undefined;
  #modules = 0;

  private constructor(core: EngineCore, cpus: number) {
    this.#core = core;
    this.cpus = cpus;
    this.preset = core.preset;
  }

  /**
   * Starts the threads. With `memory` the engine lies in your own, shared one, in
   * [base, base + bytes), and touches nothing else of it. E_FULL: that is too little; E_VALUE: not
   * a region; E_WORKER: a thread did not come up within 10 s.
   */
  static async start(options: EngineStart): Promise<Engine> {
    const { preset = "fastest", probesMax = 1024, cpus, workers = cpus, ...others } = options;
    const { arch = "x86", ...rest } = others;
    whole("cpus", cpus, 1, abi.CPUS_MAX);
    whole("workers", workers, 0, cpus);
    whole("probesMax", probesMax, 1, 0x7fff_ffff);
    const found = findPreset(preset);
    if (found === undefined) throw unknownName("preset", preset, PRESET_NAMES);
    if (!ARCH_NAMES.includes(arch)) throw unknownName("architecture", arch, ARCH_NAMES);
    if (rest.xolSlots !== undefined) whole("xolSlots", rest.xolSlots, 2, SLOTS_MOST[arch]);
    if (rest.leaseUs !== undefined) whole("leaseUs", rest.leaseUs, 1, 0x7fff_ffff);
    const runner = await startThreads({
      ...rest,
      cpus,
      workers,
      platform: await loadPlatform(),
      strategy: found.strategy,
      arch: archOf(arch),
      uprobesMax: probesMax,
    });
    return new Engine(new EngineCore(runner, found.name, probesMax), cpus);
  }

  /** The memory that it lies in. */
  get memory(): WebAssembly.Memory {
    return this.#core.memory.memory;
  }

  /** A file of instructions, to be mapped and probed. */
  file(options: FileOptions): Promise<CodeFile> {
    return CodeFile.create(this.#core, options);
  }

  /** An empty address space. `mappingsMax`: room for so many mappings. @default 16 */
  addressSpace(options: { mappingsMax?: number } = {}): Promise<AddressSpace> {
    return AddressSpace.create(this.#core, options.mappingsMax ?? 16);
  }

  /** A consumer that counts. */
  async counter(): Promise<Consumer> {
    const sink = await this.#core.command(abi.OP_SINK_CREATE, [abi.HANDLER_COUNT]);
    return new Consumer(this.#core, sink, "the counter");
  }

  /**
   * A consumer that counts returns by the nanoseconds from entry to return, of calls on any CPU: of
   * what a function calls, too. It is always both ends of a session, and asks the clock at each.
   */
  async latency(): Promise<LatencyConsumer> {
    const sink = await this.#core.command(abi.OP_SINK_CREATE, [abi.HANDLER_LATENCY]);
    return new LatencyConsumer(this.#core, sink);
  }

  /** A consumer that counts by size: of the function's first argument, or of what it returns. */
  async histogram(): Promise<HistogramConsumer> {
    const sink = await this.#core.command(abi.OP_SINK_CREATE, [abi.HANDLER_HIST]);
    return new HistogramConsumer(this.#core, sink, "the histogram");
  }

  /** A consumer that writes events, to be read while CPUs run. */
  emitter(options: EmitterOptions = {}): Promise<Emitter> {
    return Emitter.create(this.#core, options);
  }

  /**
   * A consumer that calls a function of your module on the CPU that hit, Wasm to Wasm:
   * (cookie i32, pid i32, address i32, argument i64) -> i32, 0 for a hit that it does not take.
   * On "return" the last is what the function returned; at the end of a session there is one more,
   * session i64, what the entry's function answered. It must not wait, nor call probed functions.
   * If it traps, the run fails, and the engine is good for nothing but to be stopped.
   */
  async caller(module: LoadedModule, handler: string): Promise<Consumer> {
    const place = module.place(this.#core, handler);
    const sink = await this.#core.command(abi.OP_SINK_CREATE, [abi.HANDLER_CALL, place]);
    const what = `the caller of "${handler}"`;
    return new Consumer(this.#core, sink, what, module.roleOf(handler));
  }

  /**
   * Gives every CPU an instance of your module, those that join later too. Not during a run. It
   * imports env.memory and, as it likes, wasmprobe.cpu, an i32 global, and functions of i32:
   *   call (task, address, argument)   a whole call; 1 if a consumer took its entry, else 0
   *   enter (task, address, argument)  its first half: afterwards the task is in that function;
   *                                    1: taken, + 2: its instruction was the return, it is over
   *   jump (task, address, argument)   a tail call by the innermost function; as enter
   *   leave (task, value)              the innermost function returns `value`; 0
   *   longjmp (task, levels)           leaves so many functions without a return; how many it did
   * Negative: -22 no function of the task's, or it is in none; -28 its stack is full (stackBytes);
   * -16 this is a handler. A task's calls may be entered in one batch and left in another.
   * E_VALUE: it imports something else, has active data segments, or cannot be instantiated.
   */
  load(bytes: Uint8Array, options: LoadOptions = {}): Promise<LoadedModule> {
    const name = options.name ?? `module ${this.#modules}`;
    this.#modules++;
    return LoadedModule.load(this.#core, bytes, name, options.constants ?? {});
  }

  /**
   * Puts a consumer at a place of a file: resolves when every mapping of it has the breakpoint, so
   * that no later call is missed. CPUs may hit meanwhile. E_FULL: the table or the memory is full.
   */
  register(options: RegisterOptions): Promise<Probe> {
    return Probe.register(this.#core, options);
  }

  /**
   * As register, all of them or none; if one cannot be, its error is the answer. Asked for in two
   * steps: what must come after it waits for its promise.
   */
  registerAll(options: readonly RegisterOptions[]): Promise<Probe[]> {
    return Probe.registerAll(this.#core, options);
  }

  /** As unregister of each, with one grace period for all of them. In two steps, as registerAll. */
  unregisterAll(probes: readonly Probe[]): Promise<void> {
    return Probe.unregisterAll(this.#core, probes);
  }

  /** `work[i]` on CPU i, all begin at once. One run at a time; others can join it. */
  async run(work: readonly Work[]): Promise<EngineRun> {
    const core = this.#core;
    core.check();
    const tasks = new Set<Task>();
    const jobs = this.#jobs(work, 0, tasks);
    const run = await core.runner.run(jobs).catch((error: unknown) => {
      release(tasks);
      throw error;
    });
    run.done.then(
      () => release(tasks),
      (error: WasmprobeError) => {
        core.failure ??= error;
        release(tasks);
      },
    );
    return {
      done: run.done,
      stop: () => run.stop(),
      get cpus() {
        return run.cpus;
      },
      join: async (one) => {
        core.check();
        const mine = new Set<Task>();
        const [job] = this.#jobs([one], run.cpus, mine);
        for (const task of mine) tasks.add(task);
        await run.join(job as Job).catch((error: unknown) => {
          release(mine);
          throw error;
        });
      },
    };
  }

  /** Impossible things that it saw, by name: empty in a healthy engine. */
  faults(): Record<string, number> {
    this.#core.check();
    return this.#core.memory.faults();
  }

  /** Bytes in use of its memory, and the most there ever were. */
  usage(): { liveBytes: number; peakBytes: number } {
    this.#core.check();
    const { liveBytes, peakBytes } = this.#core.memory.arena();
    return { liveBytes, peakBytes };
  }

  /**
   * Ends its run, its commands and its threads; what was read stays read, everything else of it
   * says "stopped" from now on. Again: the same promise. E_FAULT if it saw an impossible thing.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #stop(): Promise<void> {
    const core = this.#core;
    core.stopped = true;
    await core.runner.close();
    const faults = Object.entries(core.memory.faults());
    if (faults.length === 0) return;
    const list = faults.map(([name, count]) => `${name} ${count} times`).join(", ");
    throw new WasmprobeError("E_FAULT", `the engine saw the impossible: ${list}`);
  }

  /** What workers are told. The tasks in it are those CPUs' from now on; added to `tasks`. */
  #jobs(work: readonly Work[], firstCpu: number, tasks: Set<Task>): Job[] {
    try {
      return work.map((one, i) => this.#job(one, firstCpu + i, tasks));
    } catch (error) {
      release(tasks);
      throw error;
    }
  }

  #job(work: Work, cpu: number, tasks: Set<Task>): Job {
    const core = this.#core;
    const take = (task: Task): number => {
      task.belongsTo(core);
      if (task.cpu !== undefined) {
        const line = `${task} is executed by CPU ${task.cpu}; a task runs on one CPU at a time`;
        throw new WasmprobeError("E_STATE", line);
      }
      task.cpu = cpu;
      tasks.add(task);
      return task.handle;
    };
    const { count } = work;
    if (count !== undefined) whole("count", count, 1, Number.MAX_SAFE_INTEGER);
    const limit = count === undefined ? {} : { count };
    if ("task" in work) {
      const entry = entryOf(core.preset, work.task.functions > 1 ? "trigger_many" : "trigger");
      return { entry, args: [take(work.task)], ...limit };
    }
    work.module.checkWorkload(core, work.workload);
    const args = (work.args ?? []).map((arg) => (arg instanceof Task ? take(arg) : arg));
    return { entry: work.workload, module: work.module.number, args, ...limit };
  }
}

function release(tasks: Iterable<Task>): void {
  for (const task of tasks) task.cpu = undefined;
}
