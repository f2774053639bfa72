// The Runner on real threads: one worker per CPU and one for the housekeeper, over one memory.

import { WasmprobeError } from "../base/errors.js";
import type { Platform } from "../platform/platform.js";
import * as abi from "./abi.js";
import { compileEngine, errnoText, instantiateEngine, isErrno } from "./instance.js";
import type { EngineInstance } from "./instance.js";
import type { EngineMemory } from "./memory.js";
import { CommandRing } from "./ring.js";
import type { UserModule } from "./protocol.js";
import { regionOf, type Region, type RegionOptions } from "./region.js";
import type { EngineOptions, Job, Run, Runner } from "./runner.js";
import { Seats } from "./seats.js";
import { ThreadRun } from "./thread-run.js";

/** What a worker may take to come up, to attach, and to arrive at a barrier. */
const START_LIMIT_MS = 10_000;
/** What a CPU may take to leave its run after it was asked: a batch lasts 1 ms, a lock may not. */
const LEAVE_LIMIT_MS = 10_000;
/** What a worker may take to end by itself before it is ended by force. */
const CLOSE_LIMIT_MS = 1_000;
const UPROBES_MAX = 1024;

export interface ThreadsOptions extends EngineOptions, RegionOptions {
  platform: Platform;
  /** The engine's module. @default the one that was built beside this file */
  wasm?: URL;
  /** The worker's script. @default the one that was built beside this file */
  workerUrl?: URL;
  /** Bind worker i to the i-th allowed CPU, where the system can. @default false */
  affinity?: boolean;
  /** Limits in milliseconds; tests shorten them. */
  startLimitMs?: number;
  leaveLimitMs?: number;
}

/** A run that CPUs can join while it is under way. */
export interface ThreadsRun extends Run {
  /**
   * One CPU more takes part, the next one without a job; its worker comes up if there is none yet.
   * Resolves when it has begun. The others go on meanwhile.
   */
  join(job: Job): Promise<void>;
  /** CPUs that have, or had, a job of this run. */
  readonly cpus: number;
}

/** A module of the user's before it has places in the function table. */
export type NewModule = Omit<UserModule, "firstPlace">;

export interface ThreadsRunner extends Runner {
  run(jobs: readonly Job[]): Promise<ThreadsRun>;
  /** Gives every CPU an instance of the module. Not during a run. Where its handlers are. */
  load(what: NewModule): Promise<{ number: number; firstPlace: number }>;
}

/** Starts the workers and formats a first engine; in bounded time, or it names who is missing. */
export async function startThreads(options: ThreadsOptions): Promise<ThreadsRunner> {
  const { platform } = options;
  const region = regionOf(options);
  const wasm = options.wasm ?? new URL("../engine.wasm", import.meta.url);
  let bytes: Uint8Array;
  try {
    bytes = await platform.readBytes(wasm);
  } catch (cause) {
    throw new WasmprobeError(
      "E_FILE",
      `cannot read the engine: ${(cause as Error).message}`,
      cause,
    );
  }
  const module = await compileEngine(bytes);
  const threads = new Threads(options, module, region);
  try {
    await threads.format(options);
  } catch (error) {
    await threads.close();
    throw error;
  }
  return threads;
}

function notFormatted(): WasmprobeError {
  return new WasmprobeError(
    "E_STATE",
    "no engine: it is being formatted, or the last format failed",
  );
}

class Threads implements ThreadsRunner {
  readonly on = "threads";
  readonly memory: EngineMemory;
  readonly host: EngineInstance;
  cpus = 0;
  readonly #options: ThreadsOptions;
  readonly #bytes: number;
  readonly #seats: Seats;
  /** Of the engine that is served; undefined from the beginning of a format to its end. */
  #ring: CommandRing | undefined;
  #formatting = false;
  #generation = 0;
  #running: ThreadRun | undefined;
  /** Workers come up one request after the other. */
  #coming: Promise<unknown> = Promise.resolve();
  #modules = 0;
  /** The next free place of every instance's function table. */
  #place: number;
  /** Whether a run has failed. */
  #failed = false;
  /** Set for good when a worker was lost: nothing can run on this pool any more. */
  #broken: WasmprobeError | undefined;

  constructor(options: ThreadsOptions, module: WebAssembly.Module, region: Region) {
    const { platform } = options;
    this.#options = options;
    this.memory = region.memory;
    this.#bytes = region.bytes;
    this.host = instantiateEngine(module, region.memory.memory, platform.nowMs);
    this.#place = this.host.exports.table.length;
    this.#seats = new Seats({
      platform,
      url: options.workerUrl ?? new URL("./worker.js", import.meta.url),
      module,
      memory: region.memory,
      pin: options.affinity === true,
      startMs: options.startLimitMs ?? START_LIMIT_MS,
      onDeath: (error) => this.#break(error),
    });
  }

  get affinity(): string {
    return this.#seats.affinity;
  }

  async format(options: EngineOptions): Promise<void> {
    this.#check();
    const { cpus } = options;
    if (!Number.isInteger(cpus) || cpus < 1 || cpus > abi.CPUS_MAX) {
      const valid = `a whole number from 1 to ${abi.CPUS_MAX}`;
      throw new WasmprobeError("E_VALUE", `cpus is ${cpus}; it must be ${valid}`);
    }
    if (this.#running !== undefined) {
      throw new WasmprobeError("E_STATE", "a run is under way; stop it before formatting");
    }
    if (this.#formatting) {
      throw new WasmprobeError("E_STATE", "a format is under way; wait for it before the next");
    }
    this.#formatting = true;
    try {
      await this.#format(options);
    } finally {
      this.#formatting = false;
    }
  }

  async #format(options: EngineOptions): Promise<void> {
    const { cpus } = options;
    // Until the new engine stands there is none: a format that fails must not leave half of one.
    await this.#stopServing();
    this.cpus = 0;
    const rc = this.host.exports.engine_init(
      this.memory.base,
      this.#bytes,
      cpus,
      options.strategy ?? abi.PRESET_SPINLOCK,
      options.uprobesMax ?? UPROBES_MAX,
      options.trapUnits ?? 0,
      options.arch ?? abi.ARCH_X86,
      options.xolSlots ?? 0,
      options.leaseUs ?? 0,
    );
    if (rc !== 0) {
      const asked = `${cpus} CPUs in ${this.#bytes} bytes`;
      throw new WasmprobeError("E_FULL", `cannot format an engine of ${asked}: ${errnoText(rc)}`);
    }
    this.host.exports.engine_attach(this.memory.base, cpus + 1);
    await this.#seats.attachAll(Math.min(options.workers ?? cpus, cpus), cpus);
    const { housekeeper } = this.#seats;
    if (housekeeper === undefined) return;
    this.#check(); // a close, or the end of a worker, may have come between
    const ring = new CommandRing(this.memory);
    this.#ring = ring;
    this.cpus = cpus;
    housekeeper.onMessage = (message) => {
      if (message.type === "served") ring.served(message.tail);
    };
    housekeeper.post({ type: "serve" });
  }

  async command(op: number, ...args: number[]): Promise<number> {
    const result = await this.tryCommand(op, ...args);
    if (!isErrno(result)) return result;
    const { liveBytes, failedBytes } = this.memory.arena();
    const detail =
      result === abi.ENOMEM
        ? ` (${failedBytes} bytes were asked for, ${liveBytes} are in use)`
        : result === abi.ENOSPC
          ? ` (${this.memory.uprobes().alive} probes)`
          : "";
    throw new WasmprobeError("E_FULL", `command ${op} failed: ${errnoText(result)}${detail}`);
  }

  async tryCommand(op: number, ...args: number[]): Promise<number> {
    this.#check();
    if (this.#ring === undefined) throw notFormatted();
    return this.#ring.issue(op, args);
  }

  async run(jobs: readonly Job[]): Promise<ThreadsRun> {
    this.#check();
    if (this.#running !== undefined) {
      throw new WasmprobeError("E_STATE", "a run is under way; stop it before the next");
    }
    if (this.#ring === undefined) throw notFormatted();
    if (jobs.length < 1 || jobs.length > this.cpus) {
      throw new WasmprobeError("E_VALUE", `${jobs.length} jobs for ${this.cpus} CPUs`);
    }
    for (const job of jobs) this.#checkJob(job);
    await this.#bringUp(jobs.length);
    if (this.#running !== undefined) {
      throw new WasmprobeError("E_STATE", "a run is under way; stop it before the next");
    }
    this.#generation++;
    this.memory.store(this.memory.base + abi.HDR_STOP, 0);
    const limits = {
      startMs: this.#options.startLimitMs ?? START_LIMIT_MS,
      leaveMs: this.#options.leaveLimitMs ?? LEAVE_LIMIT_MS,
    };
    const run = new ThreadRun(this.memory, this.#seats.cpus, jobs, this.#generation, limits);
    this.#running = run;
    const ended = () => {
      this.#running = undefined;
      if (run.lost !== undefined) this.#break(run.lost);
    };
    run.done.then(ended, () => {
      this.#failed = true;
      ended();
    });
    await run.start();
    return {
      done: run.done,
      stop: () => run.stop(),
      join: (job) => this.#join(run, job),
      get cpus() {
        return run.cpus;
      },
    };
  }

  async load(what: NewModule): Promise<{ number: number; firstPlace: number }> {
    this.#check();
    if (this.#running !== undefined) {
      throw new WasmprobeError("E_STATE", "a run is under way; stop it before loading a module");
    }
    const ring = this.#ring;
    if (ring === undefined) throw notFormatted();
    const firstPlace = this.#place;
    const number = this.#modules++;
    this.#place += what.handlers.length;
    const loaded = this.#coming.then(() =>
      this.#seats.load({ ...what, firstPlace }, () => this.#lookUp(ring)),
    );
    this.#coming = loaded.catch(() => {});
    await loaded;
    return { number, firstPlace };
  }

  async close(): Promise<void> {
    if (this.#running !== undefined) await this.#running.stop().catch(() => {});
    // A CPU that was lost, or failed, may have left a lock behind that the housekeeper waits for.
    const limit = this.#broken === undefined && !this.#failed ? undefined : CLOSE_LIMIT_MS;
    await this.#stopServing(limit).catch(() => {});
    this.#broken ??= new WasmprobeError("E_STATE", "the engine is closed");
    await this.#seats.close(CLOSE_LIMIT_MS);
  }

  #check(): void {
    if (this.#broken !== undefined) throw this.#broken;
  }

  #break(error: WasmprobeError): void {
    this.#broken ??= error;
    this.#ring?.break(error);
    this.memory.store(this.memory.base + abi.HDR_STOP, 1);
    this.#running?.abandon(error);
  }

  async #stopServing(limitMs?: number): Promise<void> {
    const ring = this.#ring;
    const { housekeeper } = this.#seats;
    if (ring === undefined || housekeeper === undefined) return;
    // From here on no command is taken. Behind the last one it would never be done; and once the
    // memory is formatted it would raise HEAD of the next engine's ring, by this one's count.
    this.#ring = undefined;
    const limit = limitMs ?? this.#options.leaveLimitMs ?? LEAVE_LIMIT_MS;
    try {
      const stopped = housekeeper.expect("stopped-serving", "stop serving", limit);
      ring.stop();
      await stopped;
    } finally {
      ring.break(new WasmprobeError("E_STATE", "the engine ended before the command was done"));
    }
  }

  /** The housekeeper leaves its loop, handles its messages, and serves again. */
  async #lookUp(ring: CommandRing): Promise<void> {
    const { housekeeper } = this.#seats;
    if (housekeeper === undefined) return;
    const limit = this.#options.leaveLimitMs ?? LEAVE_LIMIT_MS;
    const stopped = housekeeper.expect("stopped-serving", "look up from serving", limit);
    housekeeper.post({ type: "serve" });
    ring.stop();
    await stopped;
  }

  #checkJob(job: Job): void {
    if (job.module === undefined) this.host.workload(job.entry);
  }

  async #join(run: ThreadRun, job: Job): Promise<void> {
    this.#check();
    this.#checkJob(job);
    const joined = this.#coming.then(async () => {
      this.#check();
      run.checkJoin();
      const cpu = run.cpus;
      if (cpu >= this.cpus) {
        throw new WasmprobeError("E_VALUE", `all ${this.cpus} CPUs have a job in this run`);
      }
      await this.#seats.bringUp(cpu + 1);
      const seat = this.#seats.cpus[cpu];
      if (seat !== undefined) await run.join(seat, job);
    });
    this.#coming = joined.catch(() => {});
    await joined;
  }

  async #bringUp(cpus: number): Promise<void> {
    const up = this.#coming.then(() => this.#seats.bringUp(cpus));
    this.#coming = up.catch(() => {});
    await up;
    this.#check();
  }
}
