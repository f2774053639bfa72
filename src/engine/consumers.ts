// Consumers of hits, and probes: a consumer can be registered at many places, each a probe.

import { WasmprobeError } from "../base/errors.js";
import * as abi from "./abi.js";
import { type EngineCore, Owned, whole } from "./core.js";
import { type EventCounts, EventRings, type ProbeEvent } from "./event-ring.js";
import { entryOf } from "./presets.js";
import type { AddressSpace, CodeFile } from "./spaces.js";
import { outlineOf, type ModuleConstants } from "./user-module.js";

/** Where hits go. Its counts are of all probes that it is registered at. */
export class Consumer extends Owned {
  /** @internal */
  readonly sink: number;
  /** Probes that are registered with it. @internal */
  probes = 0;
  readonly #blocks: number;

  /** @internal */
  constructor(core: EngineCore, sink: number, what = "the consumer") {
    super(core, what);
    this.sink = sink;
    this.#blocks = core.runner.cpus + 1; // and the housekeeper's
  }

  /** Hits that it took, by CPU. Live: each CPU's number is exact, and never falls. */
  perCpu(): number[] {
    return this.use().memory.sinkHits(this.sink, this.#blocks).slice(0, -1);
  }

  /** Hits that it took, on all CPUs. */
  total(): number {
    return this.use()
      .memory.sinkHits(this.sink, this.#blocks)
      .reduce((a, b) => a + b, 0);
  }

  /** Gives it back; its counts are gone. E_STATE while a probe has it. */
  close(): Promise<void> {
    return this.giveBack(async (core) => {
      if (this.probes > 0) throw this.inUse(`still has ${this.probes} probes`);
      await core.command(abi.OP_SINK_DESTROY, [this.sink]);
    });
  }
}

/** Counts, and sorts hits by the size of the function's first argument. */
export class HistogramConsumer extends Consumer {
  /** Entry b: hits whose argument has b significant bits, that is, from 2^(b-1) to 2^b - 1. */
  buckets(): number[] {
    const core = this.use();
    return core.memory.sinkHistogram(this.sink, core.runner.cpus + 1);
  }
}

export interface EmitterOptions {
  /** Room for so many events on each CPU, a power of two. @default 4096 */
  records?: number;
  /** Gives each event a time, for the cost of asking the runtime's clock. @default false */
  clock?: boolean;
}

/**
 * Writes an event for every hit to a ring of its CPU. A hit that finds the ring full leaves no
 * event; it is counted as lost, and, if no other consumer took it, in the task's `ring-full`.
 */
export class Emitter extends Consumer {
  readonly #rings: EventRings;

  private constructor(core: EngineCore, sink: number) {
    super(core, sink, "the emitter");
    this.#rings = new EventRings(core.memory, sink, core.runner.cpus + 1);
  }

  /** @internal */
  static async create(core: EngineCore, options: EmitterOptions): Promise<Emitter> {
    const { records = 4096, clock = false } = options;
    core.check();
    whole("records", records, 1, abi.EMIT_RECORDS_MAX);
    if ((records & (records - 1)) !== 0) {
      throw new WasmprobeError("E_VALUE", `records is ${records}; it must be a power of two`);
    }
    const args = [abi.HANDLER_EMIT, records, clock ? 1 : 0];
    return new Emitter(core, await core.command(abi.OP_SINK_CREATE, args));
  }

  /**
   * At most `most` events that were not read yet, CPU after CPU; each CPU's in the order of its
   * hits. With `most`, reads take turns in which CPU they begin with. CPUs go on meanwhile; what
   * was read makes room.
   */
  read(most?: number): ProbeEvent[] {
    this.use();
    return this.#rings.read(most);
  }

  /** emitted = read + pending, exactly once no CPU runs; lost ones are in none of them. */
  counts(): EventCounts {
    this.use();
    return this.#rings.counts();
  }
}

export interface LoadOptions {
  /** Its name in errors. @default "module N" */
  name?: string;
  /** Values for its imported globals, by module and name. */
  constants?: ModuleConstants;
}

/** A module of yours; every CPU has an instance of it, over the engine's memory. */
export class LoadedModule {
  readonly name: string;
  /** Exports that consumers can call. */
  readonly handlers: readonly string[];
  /** Exports that CPUs can run. */
  readonly workloads: readonly string[];
  /** @internal */
  readonly number: number;
  readonly #firstPlace: number;
  readonly #core: EngineCore;

  private constructor(
    core: EngineCore,
    name: string,
    offers: { handlers: string[]; workloads: string[] },
    places: { number: number; firstPlace: number },
  ) {
    this.#core = core;
    this.name = name;
    this.handlers = offers.handlers;
    this.workloads = offers.workloads;
    this.number = places.number;
    this.#firstPlace = places.firstPlace;
  }

  /** @internal */
  static async load(
    core: EngineCore,
    bytes: Uint8Array,
    name: string,
    constants: ModuleConstants,
  ): Promise<LoadedModule> {
    core.check();
    const offers = outlineOf(bytes, name, constants);
    let module: WebAssembly.Module;
    try {
      module = await WebAssembly.compile(bytes as BufferSource);
    } catch (cause) {
      const why = (cause as Error).message;
      throw new WasmprobeError("E_VALUE", `module "${name}" does not compile: ${why}`, cause);
    }
    core.check();
    const call = entryOf(core.preset, "call");
    const { handlers } = offers;
    const places = await core.runner.load({ name, module, constants, handlers, call });
    return new LoadedModule(core, name, offers, places);
  }

  /** Place of a handler in every instance's table. @internal */
  place(core: EngineCore, handler: string): number {
    this.belongsTo(core);
    return this.#firstPlace + this.#offered("handler", handler, this.handlers);
  }

  /** @internal */
  checkWorkload(core: EngineCore, name: string): void {
    this.belongsTo(core);
    this.#offered("workload", name, this.workloads);
  }

  private belongsTo(core: EngineCore): void {
    if (core === this.#core) return;
    throw new WasmprobeError("E_VALUE", `module "${this.name}" is another engine's`);
  }

  #offered(what: string, name: string, names: readonly string[]): number {
    const index = names.indexOf(name);
    if (index >= 0) return index;
    const valid = names.length === 0 ? "it has none" : `it has ${names.join(", ")}`;
    throw new WasmprobeError("E_NAME", `module "${this.name}" has no ${what} "${name}"; ${valid}`);
  }
}

export interface RegisterOptions {
  file: CodeFile;
  /** Where in the file: the instruction there is probed. */
  offset: number;
  consumer: Consumer;
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

/** A consumer at a place of a file. */
export class Probe {
  readonly file: CodeFile;
  readonly offset: number;
  readonly consumer: Consumer;
  readonly cookie: number;
  readonly #core: EngineCore;
  readonly #handle: number;
  readonly #space: AddressSpace | undefined;
  #registered = true;

  private constructor(core: EngineCore, handle: number, options: RegisterOptions) {
    this.#core = core;
    this.#handle = handle;
    this.#space = options.addressSpace;
    this.file = options.file;
    this.offset = options.offset;
    this.consumer = options.consumer;
    this.cookie = options.cookie ?? 0;
  }

  /** @internal */
  static async register(core: EngineCore, options: RegisterOptions): Promise<Probe> {
    const { file, offset, consumer, cookie = 0, pid = 0, addressSpace, limit = 0 } = options;
    core.check();
    file.belongsTo(core);
    consumer.belongsTo(core);
    addressSpace?.belongsTo(core);
    whole("offset", offset, 0, file.bytes - 1);
    whole("cookie", cookie, -0x8000_0000, 0x7fff_ffff);
    whole("pid", pid, -0x8000_0000, 0x7fff_ffff);
    whole("limit", limit, 0, 0x7fff_ffff);
    const mm = addressSpace?.mm ?? 0;
    consumer.probes++; // at once: neither must be closed meanwhile
    if (addressSpace !== undefined) addressSpace.probes++;
    try {
      const args = [file.inode, offset, consumer.sink, pid, mm, limit, cookie];
      const handle = await core.command(abi.OP_REGISTER, args, {
        [abi.ENOSPC]: () =>
          new WasmprobeError(
            "E_FULL",
            `the table is full: it has its ${core.probesMax} probes (probesMax)`,
          ),
      });
      return new Probe(core, handle, options);
    } catch (error) {
      consumer.probes--;
      if (addressSpace !== undefined) addressSpace.probes--;
      throw error;
    }
  }

  get registered(): boolean {
    return this.#registered;
  }

  /**
   * Takes the consumer from there. When this resolves no handler of it runs for this probe, and
   * none will: a grace period has passed. CPUs go on meanwhile.
   */
  async unregister(): Promise<void> {
    this.#core.check();
    if (!this.#registered) {
      throw new WasmprobeError("E_STATE", `the probe at offset ${this.offset} is unregistered`);
    }
    this.#registered = false;
    await this.#core.command(abi.OP_UNREGISTER, [this.#handle]);
    this.consumer.probes--;
    if (this.#space !== undefined) this.#space.probes--;
  }
}
