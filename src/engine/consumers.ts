// Consumers: where hits and returns go. One can be registered at many places, each a probe.

import { WasmprobeError } from "../base/errors.js";
import * as abi from "./abi.js";
import { type EngineCore, Owned, whole } from "./core.js";
import { type EventCounts, EventRings, type ProbeEvent } from "./event-ring.js";
import { entryOf, type PresetName } from "./presets.js";
import { type CallName, CALLS, outlineOf } from "./user-module.js";
import type { ModuleConstants, ModuleOutline } from "./user-module.js";

/**
 * Which ends of a call it can be registered for: any; the start of anything or a return without a
 * session; the end of a session; a whole session.
 */
export type ConsumerRole = "any" | "plain" | "session-return" | "session";

/**
 * Where hits go, and returns. Its counts are of all probes that it is registered at; one that is
 * both ends of a session counts a call twice.
 */
export class Consumer extends Owned {
  /** @internal */
  readonly sink: number;
  /** @internal */
  readonly role: ConsumerRole;
  /** Probes that are registered with it. @internal */
  probes = 0;
  readonly #blocks: number;

  /** @internal */
  constructor(core: EngineCore, sink: number, what: string, role: ConsumerRole = "any") {
    super(core, what);
    this.sink = sink;
    this.role = role;
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

/** Counts, and sorts by size: hits by the function's first argument, returns by its value. */
export class HistogramConsumer extends Consumer {
  /** Entry b: those whose number has b significant bits, that is, from 2^(b-1) to 2^b - 1. */
  buckets(): number[] {
    const core = this.use();
    return core.memory.sinkHistogram(this.sink, core.runner.cpus + 1);
  }
}

/** Counts returns, and sorts them by the nanoseconds since the entry of the same call. */
export class LatencyConsumer extends Consumer {
  /** @internal */
  constructor(core: EngineCore, sink: number) {
    super(core, sink, "the latency consumer", "session");
  }

  /** Entry b: calls that took from 2^(b-1) to 2^b - 1 ns; entry 0: less than the clock's step. */
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

/** The engine's exports that a module of yours imports, by the names that it knows them by. */
export function callsOf(preset: PresetName): Record<CallName, string> {
  const named = CALLS.map((name) => [
    name,
    name === "longjmp" ? "task_longjmp" : entryOf(preset, name),
  ]);
  return Object.fromEntries(named) as Record<CallName, string>;
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
  /** Those of them that can only be called at the end of a session: they take its cookie. */
  readonly sessionReturns: readonly string[];
  /** Exports that CPUs can run. */
  readonly workloads: readonly string[];
  /** @internal */
  readonly number: number;
  readonly #firstPlace: number;
  readonly #core: EngineCore;

  private constructor(
    core: EngineCore,
    name: string,
    offers: ModuleOutline,
    places: { number: number; firstPlace: number },
  ) {
    this.#core = core;
    this.name = name;
    this.handlers = offers.handlers;
    this.sessionReturns = offers.sessionReturns;
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
    const { handlers } = offers;
    const calls = callsOf(core.preset);
    const places = await core.runner.load({ name, module, constants, handlers, calls });
    return new LoadedModule(core, name, offers, places);
  }

  /** What a consumer that calls this handler can be registered for. @internal */
  roleOf(handler: string): ConsumerRole {
    return this.sessionReturns.includes(handler) ? "session-return" : "plain";
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
