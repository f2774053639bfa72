// The Runner on real threads: one worker per CPU and one for the housekeeper, over one memory.

import { WasmprobeError } from "../base/errors.js";
import type { Platform } from "../platform/platform.js";
import * as abi from "./abi.js";
import { compileEngine, errnoText, instantiateEngine, isErrno } from "./instance.js";
import type { EngineInstance } from "./instance.js";
import { EngineMemory } from "./memory.js";
import { CommandRing } from "./ring.js";
import type { EngineOptions, Job, Run, Runner } from "./runner.js";
import { Seat } from "./seat.js";
import { ThreadRun } from "./thread-run.js";

/** What a worker may take to come up, to attach, and to arrive at a barrier. */
const START_LIMIT_MS = 10_000;
/** What a CPU may take to leave its run after it was asked: a batch lasts 1 ms, a lock may not. */
const LEAVE_LIMIT_MS = 10_000;
/** What a worker may take to end by itself before it is ended by force. */
const CLOSE_LIMIT_MS = 1_000;
/** Room for the engine's own structures and a few thousand probes. */
const MEMORY_BYTES = 64 << 20;
const UPROBES_MAX = 1024;

export interface ThreadsOptions extends EngineOptions {
  platform: Platform;
  /** Whole memory of the engine, bytes; reserved once. @default 64 MiB */
  memoryBytes?: number;
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

/** Starts the workers and formats a first engine; in bounded time, or it names who is missing. */
export async function startThreads(options: ThreadsOptions): Promise<Runner> {
  const { platform } = options;
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
  const memory = new EngineMemory(EngineMemory.create(options.memoryBytes ?? MEMORY_BYTES));
  const host = instantiateEngine(module, memory.memory, platform.nowMs);
  const threads = new Threads(options, module, memory, host);
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

class Threads implements Runner {
  readonly on = "threads";
  readonly memory: EngineMemory;
  readonly host: EngineInstance;
  cpus = 0;
  affinity = "not pinned";
  readonly #options: ThreadsOptions;
  readonly #module: WebAssembly.Module;
  readonly #seats: Seat[] = [];
  #housekeeper: Seat | undefined;
  /** Of the engine that is served; undefined from the beginning of a format to its end. */
  #ring: CommandRing | undefined;
  #formatting = false;
  #generation = 0;
  #running: ThreadRun | undefined;
  /** Set for good when a worker was lost: nothing can run on this pool any more. */
  #broken: WasmprobeError | undefined;

  constructor(
    options: ThreadsOptions,
    module: WebAssembly.Module,
    memory: EngineMemory,
    host: EngineInstance,
  ) {
    this.#options = options;
    this.#module = module;
    this.memory = memory;
    this.host = host;
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
    const bytes = this.memory.memory.buffer.byteLength;
    const rc = this.host.exports.engine_init(
      this.memory.base,
      bytes - this.memory.base,
      cpus,
      options.strategy ?? abi.PRESET_SPINLOCK,
      options.uprobesMax ?? UPROBES_MAX,
      options.trapUnits ?? 0,
    );
    if (rc !== 0) {
      const asked = `${cpus} CPUs in ${bytes} bytes`;
      throw new WasmprobeError("E_FULL", `cannot format an engine of ${asked}: ${errnoText(rc)}`);
    }
    this.host.exports.engine_attach(this.memory.base, cpus + 1);
    await this.#seat(cpus);
    const housekeeper = this.#housekeeper;
    if (housekeeper === undefined) return;
    const seats = [...this.#seats.slice(0, cpus), housekeeper];
    const limit = this.#options.startLimitMs ?? START_LIMIT_MS;
    await Promise.all(
      seats.map((seat, cpu) => {
        const attached = seat.expect("attached", "attach to the engine", limit);
        seat.post({ type: "attach", base: this.memory.base, cpu });
        return attached;
      }),
    );
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

  async run(jobs: readonly Job[]): Promise<Run> {
    this.#check();
    if (this.#running !== undefined) {
      throw new WasmprobeError("E_STATE", "a run is under way; stop it before the next");
    }
    if (this.#ring === undefined) throw notFormatted();
    if (jobs.length < 1 || jobs.length > this.cpus) {
      throw new WasmprobeError("E_VALUE", `${jobs.length} jobs for ${this.cpus} CPUs`);
    }
    for (const job of jobs) this.host.workload(job.entry);
    this.#generation++;
    this.memory.store(this.memory.base + abi.HDR_STOP, 0);
    const limits = {
      startMs: this.#options.startLimitMs ?? START_LIMIT_MS,
      leaveMs: this.#options.leaveLimitMs ?? LEAVE_LIMIT_MS,
    };
    const run = new ThreadRun(this.memory, this.#seats, jobs, this.#generation, limits);
    this.#running = run;
    const ended = () => {
      this.#running = undefined;
      if (run.lost !== undefined) this.#break(run.lost);
    };
    run.done.then(ended, ended);
    await run.start();
    return run;
  }

  async close(): Promise<void> {
    if (this.#running !== undefined) await this.#running.stop().catch(() => {});
    // A pool that lost a CPU may have lost it with a lock that the housekeeper waits for.
    const limit = this.#broken === undefined ? undefined : CLOSE_LIMIT_MS;
    await this.#stopServing(limit).catch(() => {});
    const seats = [...this.#seats, ...(this.#housekeeper === undefined ? [] : [this.#housekeeper])];
    this.#broken ??= new WasmprobeError("E_STATE", "the engine is closed");
    await Promise.all(seats.map((seat) => seat.close(CLOSE_LIMIT_MS)));
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
    if (ring === undefined || this.#housekeeper === undefined) return;
    // From here on no command is taken. Behind the last one it would never be done; and once the
    // memory is formatted it would raise HEAD of the next engine's ring, by this one's count.
    this.#ring = undefined;
    const limit = limitMs ?? this.#options.leaveLimitMs ?? LEAVE_LIMIT_MS;
    try {
      const stopped = this.#housekeeper.expect("stopped-serving", "stop serving", limit);
      ring.stop();
      await stopped;
    } finally {
      ring.break(new WasmprobeError("E_STATE", "the engine ended before the command was done"));
    }
  }

  /** Brings the pool up to `cpus` workers and a housekeeper. */
  async #seat(cpus: number): Promise<void> {
    const { platform, workerUrl } = this.#options;
    const url = workerUrl ?? new URL("./worker.js", import.meta.url);
    const limit = this.#options.startLimitMs ?? START_LIMIT_MS;
    const born: Promise<void>[] = [];
    const spawn = (name: number | "housekeeper") => {
      const birth = { module: this.#module, memory: this.memory.memory, seat: name };
      const seat = new Seat(platform, url, birth);
      seat.onDeath = (error) => this.#break(error);
      born.push(
        seat.expect("born", "come up", limit).then((message) => {
          seat.threadId = message.threadId;
        }),
      );
      return seat;
    };
    this.#housekeeper ??= spawn("housekeeper");
    while (this.#seats.length < cpus) this.#seats.push(spawn(this.#seats.length));
    await Promise.all(born);
    if (this.#options.affinity === true && born.length > 0) await this.#pin();
  }

  async #pin(): Promise<void> {
    const { platform } = this.#options;
    const allowed = platform.host().allowedCpus;
    const pinned = await Promise.all(
      this.#seats.map(async (seat, i) => {
        const cpu = allowed[i % allowed.length];
        if (cpu === undefined || seat.threadId === undefined) return false;
        return platform.pinThread(seat.threadId, cpu);
      }),
    );
    const ok = pinned.filter(Boolean).length;
    this.affinity =
      ok === pinned.length
        ? "each worker pinned to one CPU"
        : `not pinned: this system bound ${ok} of ${pinned.length} threads`;
  }
}
