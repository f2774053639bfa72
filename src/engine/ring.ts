// The orchestrator's end of the command ring (assembly/workload/housekeeper.ts has the other).

import type { WasmprobeError } from "../base/errors.js";
import * as abi from "./abi.js";
import type { EngineMemory } from "./memory.js";

/** Most arguments of a command; those not given are 0, not what the slot held before. */
const ARGS_MAX = 13;

interface Pending {
  sequence: number;
  resolve(result: number): void;
  reject(error: WasmprobeError): void;
}

export class CommandRing {
  readonly #memory: EngineMemory;
  readonly #ring: number;
  #sequence = 0;
  #completed = 0;
  /** Issued and not completed, in order. */
  #pending: Pending[] = [];
  /** Not issued yet: the ring has no free slot. */
  #waiting: (() => void)[] = [];
  #broken: WasmprobeError | undefined;

  /** Of a freshly formatted engine. */
  constructor(memory: EngineMemory) {
    this.#memory = memory;
    this.#ring = memory.base + abi.HEADER_BYTES;
  }

  issue(op: number, args: readonly number[]): Promise<number> {
    return new Promise((resolve, reject) => {
      const send = () => {
        if (this.#broken !== undefined) {
          reject(this.#broken);
          return;
        }
        this.#pending.push({ sequence: this.#sequence, resolve, reject });
        this.#fill(op, args);
      };
      if (this.#pending.length < abi.RING_SLOTS) send();
      else this.#waiting.push(send);
    });
  }

  /** The last command. Also when no other is accepted any more: the housekeeper may be alive. */
  stop(): void {
    if (this.#broken === undefined) {
      this.issue(abi.OP_STOP, []).catch(() => {}); // who waits for it waits for the housekeeper
      return;
    }
    const tail = this.#memory.load(this.#ring + abi.RING_TAIL);
    if (((this.#sequence - tail) | 0) < abi.RING_SLOTS) this.#fill(abi.OP_STOP, []);
  }

  #fill(op: number, args: readonly number[]): void {
    const slot = this.#slot(this.#sequence);
    // [A] the slot, [B] HEAD, [C] the bell: see housekeeper.ts. Atomic stores, since B's order
    // after A is the point.
    this.#memory.store(slot + abi.SLOT_OP, op);
    for (let i = 0; i < ARGS_MAX; i++) {
      this.#memory.store(slot + abi.SLOT_ARGS + 4 * i, (args[i] ?? 0) | 0);
    }
    this.#sequence = (this.#sequence + 1) | 0;
    this.#memory.store(this.#ring + abi.RING_HEAD, this.#sequence);
    const bell = (this.#memory.base + abi.HDR_BELL) >> 2;
    Atomics.add(this.#memory.i32, bell, 1);
    Atomics.notify(this.#memory.i32, bell);
  }

  /** The housekeeper has completed all commands before `tail`. */
  served(tail: number): void {
    while (this.#completed !== tail) {
      const first = this.#pending.shift();
      if (first === undefined) break;
      this.#completed = (first.sequence + 1) | 0;
      first.resolve(this.#memory.load(this.#slot(first.sequence) + abi.SLOT_RESULT));
    }
    while (this.#waiting.length > 0 && this.#pending.length < abi.RING_SLOTS) {
      this.#waiting.shift()?.();
    }
  }

  /** No command will be completed any more. */
  break(error: WasmprobeError): void {
    this.#broken ??= error;
    for (const pending of this.#pending.splice(0)) pending.reject(this.#broken);
    for (const send of this.#waiting.splice(0)) send();
  }

  #slot(sequence: number): number {
    const index = sequence & (abi.RING_SLOTS - 1);
    return this.#ring + abi.RING_SLOTS_AT + index * abi.RING_SLOT_BYTES;
  }
}
