// What the parts of an Engine share: its runner, whether it still is one, and commands whose
// errors say what was asked for.

import { WasmprobeError } from "../base/errors.js";
import * as abi from "./abi.js";
import { errnoText, isErrno } from "./instance.js";
import type { EngineMemory } from "./memory.js";
import type { PresetName } from "./presets.js";
import type { ThreadsRunner } from "./threads.js";

/** What is to be said instead of an errno; the arena being full is said alike everywhere. */
export type Refusals = Readonly<Record<number, () => WasmprobeError>>;

export class EngineCore {
  readonly runner: ThreadsRunner;
  readonly preset: PresetName;
  readonly probesMax: number;
  /** Set by the first stop. */
  stopped = false;
  /** Why nothing can be trusted any more: a CPU was lost, or failed in the middle of a hit. */
  failure: WasmprobeError | undefined;

  constructor(runner: ThreadsRunner, preset: PresetName, probesMax: number) {
    this.runner = runner;
    this.preset = preset;
    this.probesMax = probesMax;
  }

  get memory(): EngineMemory {
    return this.runner.memory;
  }

  /** Throws unless the engine can be used. */
  check(): void {
    if (this.stopped) throw new WasmprobeError("E_STATE", "the engine is stopped");
    if (this.failure !== undefined) throw this.failure;
  }

  /** Result of a command: an address, or 0. */
  async command(op: number, args: readonly number[], refusals: Refusals = {}): Promise<number> {
    this.check();
    const result = await this.runner.tryCommand(op, ...args);
    if (!isErrno(result)) return result >>> 0;
    const refusal = refusals[result];
    if (refusal !== undefined) throw refusal();
    if (result === abi.ENOMEM) {
      const { liveBytes, failedBytes } = this.memory.arena();
      const line = `${failedBytes} bytes were asked for, ${liveBytes} are in use`;
      throw new WasmprobeError("E_FULL", `the engine's memory is full: ${line}`);
    }
    throw new WasmprobeError("E_VALUE", errnoText(result));
  }
}

/** Something of an engine's that can be given back once. */
export abstract class Owned {
  readonly #core: EngineCore;
  readonly #what: string;
  #open = true;

  /** `what`: its name in errors, "task 3". */
  constructor(core: EngineCore, what: string) {
    this.#core = core;
    this.#what = what;
  }

  /** The engine's parts; throws if it, or this, is gone. */
  protected use(): EngineCore {
    this.#core.check();
    if (!this.#open) throw new WasmprobeError("E_STATE", `${this.#what} is closed`);
    return this.#core;
  }

  /** Throws unless this is open, and of the engine that `core` belongs to. */
  belongsTo(core: EngineCore): void {
    this.use();
    if (core === this.#core) return;
    throw new WasmprobeError("E_VALUE", `${this.#what} is another engine's`);
  }

  /** Gives it back: from now on it is closed, unless `giving` fails. */
  protected async giveBack(giving: (core: EngineCore) => Promise<unknown>): Promise<void> {
    const core = this.use();
    this.#open = false;
    try {
      await giving(core);
    } catch (error) {
      this.#open = true;
      throw error;
    }
  }

  /** The error for what still uses it. */
  protected inUse(why: string): WasmprobeError {
    return new WasmprobeError("E_STATE", `${this.#what} ${why}`);
  }

  toString(): string {
    return this.#what;
  }
}

/** Throws unless `value` is a whole number of [least, most]. */
export function whole(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  const valid = `a whole number from ${least} to ${most}`;
  throw new WasmprobeError("E_VALUE", `${name} is ${value}; it must be ${valid}`);
}
