// The workers of a runner on threads: they come up when they are needed, become CPUs of the engine,
// and all of them have the same modules, in the same order.

import { WasmprobeError } from "../base/errors.js";
import type { Platform } from "../platform/platform.js";
import type { EngineMemory } from "./memory.js";
import type { UserModule } from "./protocol.js";
import { Seat } from "./seat.js";

/** What all workers are made from. */
export interface Nursery {
  platform: Platform;
  url: URL;
  module: WebAssembly.Module;
  memory: EngineMemory;
  /** Bind worker i to the i-th allowed CPU. */
  pin: boolean;
  /** What a worker may take to come up, to attach, or to load a module, milliseconds. */
  startMs: number;
  onDeath(error: WasmprobeError): void;
}

export class Seats {
  /** Worker i is CPU i, once it is attached. */
  readonly cpus: Seat[] = [];
  housekeeper: Seat | undefined;
  /** How many of them are attached to the engine as it is formatted now: the first ones. */
  attached = 0;
  affinity = "not pinned";
  readonly #nursery: Nursery;
  readonly #modules: UserModule[] = [];
  /** Modules that the first workers could not load: nobody has them. */
  readonly #failed = new Set<UserModule>();

  constructor(nursery: Nursery) {
    this.#nursery = nursery;
  }

  get all(): Seat[] {
    return [...this.cpus, ...(this.housekeeper === undefined ? [] : [this.housekeeper])];
  }

  /** Attaches `cpus` workers and the housekeeper to the engine that was just formatted. */
  async attachAll(cpus: number, housekeeperCpu: number): Promise<void> {
    this.attached = 0;
    await this.#spawn(cpus);
    const { housekeeper } = this;
    if (housekeeper === undefined) return;
    await Promise.all([this.bringUp(cpus), this.#attach(housekeeper, housekeeperCpu)]);
  }

  /** Afterwards the first `cpus` workers are there, attached, and have every module. */
  async bringUp(cpus: number): Promise<void> {
    await this.#spawn(cpus);
    const from = this.attached;
    const late = this.cpus.slice(from, cpus);
    await Promise.all(late.map((seat, i) => this.#attach(seat, from + i)));
    this.attached = Math.max(this.attached, cpus);
  }

  /** Gives a module to every worker that is attached; `yielding` makes the housekeeper look up. */
  async load(what: UserModule, yielding: () => Promise<void>): Promise<void> {
    this.#modules.push(what);
    const seats = this.cpus.slice(0, this.attached);
    const { housekeeper } = this;
    const loads = [...seats, ...(housekeeper === undefined ? [] : [housekeeper])].map((seat) =>
      this.#catchUp(seat),
    );
    loads.push(yielding());
    try {
      await Promise.all(loads);
    } catch (error) {
      this.#failed.add(what);
      await Promise.allSettled(loads);
      throw error;
    }
  }

  async close(limitMs: number): Promise<void> {
    await Promise.all(this.all.map((seat) => seat.close(limitMs)));
  }

  async #attach(seat: Seat, cpu: number): Promise<void> {
    const { memory, startMs } = this.#nursery;
    const attached = seat.expect("attached", "attach to the engine", startMs);
    seat.post({ type: "attach", base: memory.base, cpu });
    await attached;
    await this.#catchUp(seat);
  }

  /** Loads what the others have and this one has not, in order: places in the table follow it. */
  async #catchUp(seat: Seat): Promise<void> {
    const missing = this.#modules.slice(seat.modules);
    seat.modules = this.#modules.length;
    await Promise.all(
      missing.map(async (what) => {
        const loaded = seat.expect(
          "loaded",
          `load module "${what.name}"`,
          this.#nursery.startMs,
          ({ name }) => name === what.name,
        );
        seat.post({ type: "load", what });
        const { error } = await loaded;
        if (error === undefined || this.#failed.has(what)) return;
        throw new WasmprobeError(
          "E_VALUE",
          `module "${what.name}" cannot be instantiated by ${seat.name}: ${error}`,
        );
      }),
    );
  }

  /** Brings the pool up to `cpus` workers and a housekeeper. */
  async #spawn(cpus: number): Promise<void> {
    const { platform, url, module, memory, startMs, onDeath } = this.#nursery;
    const born: Promise<void>[] = [];
    const spawn = (name: number | "housekeeper") => {
      const seat = new Seat(platform, url, { module, memory: memory.memory, seat: name });
      seat.onDeath = onDeath;
      born.push(
        seat.expect("born", "come up", startMs).then((message) => {
          seat.threadId = message.threadId;
        }),
      );
      return seat;
    };
    this.housekeeper ??= spawn("housekeeper");
    while (this.cpus.length < cpus) this.cpus.push(spawn(this.cpus.length));
    await Promise.all(born);
    if (this.#nursery.pin && born.length > 0) await this.#pin();
  }

  async #pin(): Promise<void> {
    const { platform } = this.#nursery;
    const allowed = platform.host().allowedCpus;
    const pinned = await Promise.all(
      this.cpus.map(async (seat, i) => {
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
