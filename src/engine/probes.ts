// Probes: a consumer at a place of a file, for the entries of a function, its returns, or both.

import { WasmprobeError } from "../base/errors.js";
import { unknownName } from "../base/text.js";
import * as abi from "./abi.js";
import type { Consumer } from "./consumers.js";
import { type EngineCore, type Refusals, whole } from "./core.js";
import type { AddressSpace, CodeFile } from "./spaces.js";

const KINDS = {
  entry: abi.CONSUMER_ENTRY,
  return: abi.CONSUMER_RETURN,
  session: abi.CONSUMER_SESSION,
} as const;

/** Which exceptions of a call a consumer is given. */
export type ProbeEnd = keyof typeof KINDS;

export interface RegisterOptions {
  file: CodeFile;
  /** Where in the file: the instruction there is probed. */
  offset: number;
  consumer: Consumer;
  /**
   * `entry`: a hit each time the instruction is executed. `return`: when the function that begins
   * there returns; argument and value then are the function's value. `session`: both; a function of
   * yours decides at the entry, by its answer, whether the return is wanted, and the answer is the
   * session's cookie. @default "entry"; "session" for a consumer of latencies
   */
  on?: ProbeEnd;
  /** Of a session: where its returns go. @default `consumer` */
  returns?: Consumer;
  /**
   * Where in the file, at an even offset, the program keeps a 16-bit counter of this probe's
   * breakpoints (USDT semaphore): raised in each address space while the probe is there, so that
   * the program can skip what only probes need. @default none
   */
  refCtrOffset?: number;
  /** What the consumer is told about this probe: in events, and as a handler's first argument. */
  cookie?: number;
  /** Only hits of tasks with this process number count; others are filtered. */
  pid?: number;
  /** Only here is there a breakpoint; it stays open meanwhile. @default wherever the file is */
  addressSpace?: AddressSpace;
  /**
   * Is given exactly so many hits, those counted that its ring loses or its function does not take;
   * afterwards there is no breakpoint any more. @default all
   */
  limit?: number;
}

function refuse(line: string): WasmprobeError {
  return new WasmprobeError("E_VALUE", line);
}

// Functions are called with so many parameters as they have, and the time of an entry is the
// session's cookie: what does not fit is refused here.
function checkRoles(on: ProbeEnd, { consumer, returns }: RegisterOptions): void {
  const last = returns ?? consumer;
  if (returns !== undefined && on !== "session") {
    throw refuse(`"returns" is for sessions; this is on "${on}"`);
  }
  if (consumer.role === "session" || last.role === "session") {
    if (on === "session" && consumer === last) return;
    throw refuse(`${consumer.role === "session" ? consumer : last} needs a session of its own`);
  }
  if (consumer.role === "session-return") {
    throw refuse(`${consumer} ends sessions; it can only be what "returns" names`);
  }
  if (on === "session" && last.role === "plain") {
    throw refuse(`${last} cannot end a session: its function does not take the session's cookie`);
  }
}

// The arguments of OP_REGISTER, checked.
function argumentsOf(core: EngineCore, options: RegisterOptions): number[] {
  const { file, offset, consumer, returns, cookie = 0, pid = 0, addressSpace, limit = 0 } = options;
  const { refCtrOffset = 0, on = consumer.role === "session" ? "session" : "entry" } = options;
  file.belongsTo(core);
  consumer.belongsTo(core);
  returns?.belongsTo(core);
  addressSpace?.belongsTo(core);
  if (!Object.hasOwn(KINDS, on)) throw unknownName("end of a call", on, Object.keys(KINDS));
  checkRoles(on, options);
  whole("offset", offset, 0, file.bytes - 1);
  whole("cookie", cookie, -0x8000_0000, 0x7fff_ffff);
  whole("pid", pid, -0x8000_0000, 0x7fff_ffff);
  whole("limit", limit, 0, 0x7fff_ffff);
  if (options.refCtrOffset !== undefined) {
    whole("refCtrOffset", refCtrOffset, 2, file.bytes - 2);
    if (refCtrOffset % 2 !== 0) throw refuse(`refCtrOffset is ${refCtrOffset}; it must be even`);
  }
  const mm = addressSpace?.mm ?? 0;
  const ends = [KINDS[on], returns?.sink ?? 0, refCtrOffset];
  return [file.inode, offset, consumer.sink, pid, mm, limit, cookie, ...ends];
}

// What must not be closed while a probe has it.
function uses({ consumer, returns, addressSpace }: RegisterOptions): { probes: number }[] {
  return [consumer, returns, addressSpace].filter((used) => used !== undefined);
}

function hold(all: readonly RegisterOptions[]): void {
  for (const used of all.flatMap(uses)) used.probes++;
}

function release(all: readonly RegisterOptions[]): void {
  for (const used of all.flatMap(uses)) used.probes--;
}

function refusalsOf(core: EngineCore): Refusals {
  return {
    [abi.EINVAL]: () => refuse("a probe at that place is there with another refCtrOffset"),
    [abi.ENOSPC]: () =>
      new WasmprobeError(
        "E_FULL",
        `the table is full: it has its ${core.probesMax} probes (probesMax)`,
      ),
  };
}

/** Bytes of the engine's memory for as long as `body` takes. */
async function withBytes<T>(
  core: EngineCore,
  bytes: number,
  body: (address: number) => Promise<T>,
): Promise<T> {
  const address = await core.command(abi.OP_ALLOC, [bytes]);
  try {
    return await body(address);
  } finally {
    const gone = core.stopped || core.failure !== undefined;
    if (!gone) await core.command(abi.OP_FREE, [address, bytes]);
  }
}

/** A consumer at a place of a file. */
export class Probe {
  readonly file: CodeFile;
  readonly offset: number;
  readonly consumer: Consumer;
  readonly cookie: number;
  readonly #core: EngineCore;
  readonly #handle: number;
  readonly #options: RegisterOptions;
  #registered = true;

  private constructor(core: EngineCore, handle: number, options: RegisterOptions) {
    this.#core = core;
    this.#handle = handle;
    this.#options = options;
    this.file = options.file;
    this.offset = options.offset;
    this.consumer = options.consumer;
    this.cookie = options.cookie ?? 0;
  }

  /** @internal */
  static async register(core: EngineCore, given: RegisterOptions): Promise<Probe> {
    core.check();
    const options = { ...given };
    const args = argumentsOf(core, options);
    hold([options]); // at once: none of them may be closed meanwhile
    try {
      const handle = await core.command(abi.OP_REGISTER, args, refusalsOf(core));
      return new Probe(core, handle, options);
    } catch (error) {
      release([options]);
      throw error;
    }
  }

  /** All of them, or none. @internal */
  static async registerAll(core: EngineCore, given: readonly RegisterOptions[]): Promise<Probe[]> {
    core.check();
    const all = given.map((options) => ({ ...options }));
    const entries = all.map((options) => argumentsOf(core, options));
    if (all.length === 0) return [];
    hold(all);
    try {
      return await withBytes(core, all.length * abi.BATCH_BYTES, async (list) => {
        const at = (i: number): number => list + i * abi.BATCH_BYTES;
        for (const [i, args] of entries.entries()) {
          for (const [word, value] of args.entries()) core.memory.store(at(i) + 4 * word, value);
        }
        await core.command(abi.OP_REGISTER_BATCH, [list, all.length], refusalsOf(core));
        return all.map((options, i) => {
          const handle = core.memory.load(at(i) + abi.BATCH_RESULT) >>> 0;
          return new Probe(core, handle, options);
        });
      });
    } catch (error) {
      release(all);
      throw error;
    }
  }

  /** With one grace period. @internal */
  static async unregisterAll(core: EngineCore, probes: readonly Probe[]): Promise<void> {
    core.check();
    if (probes.length === 0) return;
    if (new Set(probes).size !== probes.length) throw refuse("a probe is in the batch twice");
    for (const probe of probes) {
      if (probe.#core !== core) throw refuse("a probe of the batch is another engine's");
      probe.#check();
    }
    await withBytes(core, 4 * probes.length, async (list) => {
      for (const probe of probes) probe.#check(); // one may have gone while the list was asked for
      for (const [i, probe] of probes.entries()) {
        probe.#registered = false;
        core.memory.store(list + 4 * i, probe.#handle);
      }
      await core.command(abi.OP_UNREGISTER_MANY, [list, probes.length]);
    });
    release(probes.map((probe) => probe.#options));
  }

  get registered(): boolean {
    return this.#registered;
  }

  /**
   * Takes the consumer from there. When this resolves no handler of it runs for this probe, and
   * none will: a grace period has passed. CPUs go on meanwhile. Calls that have not returned yet
   * return unseen; it waits at most the lease's time for them.
   */
  async unregister(): Promise<void> {
    this.#core.check();
    this.#check();
    this.#registered = false;
    await this.#core.command(abi.OP_UNREGISTER, [this.#handle]);
    release([this.#options]);
  }

  #check(): void {
    if (this.#registered) return;
    throw new WasmprobeError("E_STATE", `the probe at offset ${this.offset} is unregistered`);
  }
}
