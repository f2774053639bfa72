// XOL areas as a test sees them, and slots that it holds itself: whoever steps has to wait then.

import * as abi from "../../src/engine/abi.js";
import type { EngineMemory } from "../../src/engine/memory.js";

/** Offset of a task's state, and its value while an instruction is stepped. */
export const UTASK_STATE = 128;
export const UTASK_SSTEP = 1;

export class XolArea {
  readonly memory: EngineMemory;
  readonly at: number;

  /** The area of an address space in which something was stepped. */
  constructor(memory: EngineMemory, mm: number) {
    this.memory = memory;
    this.at = memory.load(mm + abi.MM_XOL_AREA) >>> 0;
    if (this.at === 0) throw new Error("the address space has no XOL area");
  }

  waiters(): number {
    return this.memory.load(this.at + abi.XOL_WAITERS);
  }
  /** How often waiters were woken. */
  wakeUps(): number {
    return this.memory.load(this.at + abi.XOL_WOKEN);
  }
  /** Slots in use, the trampoline's among them: as the count says, and as the bitmap. */
  inUse(): { count: number; bits: number[] } {
    const bits: number[] = [];
    for (let nr = 0; nr < 32; nr++) if ((this.#word() & (1 << nr)) !== 0) bits.push(nr);
    return { count: this.memory.load(this.at + abi.XOL_SLOT_COUNT), bits };
  }
  /** The byte at the beginning of a slot. */
  opcode(nr: number, slotBytes: number): number {
    return this.memory.load(this.at + abi.XOL_PAGE + nr * slotBytes) & 0xff;
  }

  /** Takes a slot that is free. */
  hold(nr: number): void {
    Atomics.or(this.memory.i32, (this.at + abi.XOL_BITMAP) >> 2, 1 << nr);
    Atomics.add(this.memory.i32, (this.at + abi.XOL_SLOT_COUNT) >> 2, 1);
  }
  /** Gives it back, as xol_free_slot does. */
  release(nr: number): void {
    const { i32 } = this.memory;
    Atomics.and(i32, (this.at + abi.XOL_BITMAP) >> 2, ~(1 << nr));
    Atomics.sub(i32, (this.at + abi.XOL_SLOT_COUNT) >> 2, 1);
    if (this.waiters() === 0) return;
    Atomics.add(i32, (this.at + abi.XOL_WOKEN) >> 2, 1);
    Atomics.notify(i32, (this.at + abi.XOL_WOKEN) >> 2);
  }

  /** Is about to wait for a slot, as the engine's CPUs do; false: there is one. */
  announce(): boolean {
    Atomics.add(this.memory.i32, (this.at + abi.XOL_WAITERS) >> 2, 1);
    return this.isFull();
  }
  leave(): void {
    Atomics.sub(this.memory.i32, (this.at + abi.XOL_WAITERS) >> 2, 1);
  }
  isFull(): boolean {
    return this.#word() === -1;
  }

  #word(): number {
    return this.memory.load(this.at + abi.XOL_BITMAP);
  }
}
