// XOL areas: where displaced instructions are executed out of line.
//
// One an address space, made when the first instruction is to be stepped there. As the kernel's
// struct xol_area: slot_count is on the line that everybody reads on the way to the bitmap, the
// bitmap and the page are elsewhere.
//
//   offset  bytes  content
//        0      8  wait queue: CPUs in it; what they sleep on, raised by each wake-up
//        8      4  slot_count: slots in use, the trampoline's among them (STEP_OLD; else not kept)
//       12      8  slots, shift of a slot's bytes
//       64    128  bitmap: 1 in use. Bits behind the last slot are 1 for ever
//      256   4096  the page; slot 0 is the trampoline's
//
// A slot is owned from test_and_set_bit to clear_bit (C15). Its bytes stay what they were.
//
//   waiting  [C] WAITERS + 1, then [D] is there a slot? If not, sleep on WOKEN as before D
//   freeing  [A] clear_bit (and slot_count - 1), then [B] WAITERS: if there are, WOKEN + 1, wake
// Forbidden: D sees no slot and B no waiter: it would sleep for ever. A and C are locked operations
// and B and D atomic loads behind them, so the fence that the kernel has between A and B
// (smp_mb__after_atomic) and between C and D (prepare_to_wait) is in A and C.
// A search may lose a slot that it saw to another CPU, and wait although there is one: then that
// CPU has taken it since, and wakes whoever waits when it lets go.
//
// plain: `SLOTS`, `SHIFT`: written before the area is shown, by a compare-exchange. `slot`: its
// owner's alone.

import { ARCH_X86, FAULT_SLOT, HDR_ARCH, HDR_XOL_SLOTS, MM_XOL_AREA, STEP_MASK } from "../layout";
import { STEP_OLD, TRAMPOLINE, XOL_BITMAP, XOL_PAGE, XOL_SLOT_BYTES_ARM64 } from "../layout";
import { XOL_SLOT_BYTES_X86, XOL_SLOT_COUNT, XOL_WAITERS, XOL_WOKEN } from "../layout";
import { add32, and32, cas32, load32, or32, store32 } from "../atomics";
import { arena_alloc, arena_free } from "../mm/arena";
import { mm_arena, XOL_BYTES } from "../mm/mm";
import { park, spin_wait, unpark_all } from "../sync/park";
import { raise_slow, this_engine } from "./fault";

const SLOTS = 12;
const SHIFT = 16;
const BITMAP_BITS: i32 = 1024;

/** get_xol_area: the area of the address space, made if there is none yet; 0: no memory for it. */
// @ts-ignore: decorator
@inline
export function get_xol_area(mm: usize): usize {
  const area = <usize>load32(mm + MM_XOL_AREA);
  return area != 0 ? area : create_xol_area_slow(mm);
}

function create_xol_area_slow(mm: usize): usize {
  const arena = mm_arena(mm);
  const area = arena_alloc(arena, XOL_BYTES);
  if (area == 0) return 0;
  const slots = load<i32>(this_engine(), HDR_XOL_SLOTS); // plain: never changes
  const x86 = load<i32>(this_engine(), HDR_ARCH) == ARCH_X86; // plain: never changes
  store<i32>(area, slots, SLOTS);
  store<i32>(area, <i32>ctz(x86 ? XOL_SLOT_BYTES_X86 : XOL_SLOT_BYTES_ARM64), SHIFT);
  set_bit(area, 0);
  for (let bit = slots; bit < BITMAP_BITS; bit++) set_bit(area, bit);
  store32(area + XOL_SLOT_COUNT, 1);
  const first = <usize>cas32(mm + MM_XOL_AREA, 0, <i32>area);
  if (first == 0) return area;
  arena_free(arena, area, XOL_BYTES); // another thread of the process was faster
  return first;
}

// @ts-ignore: decorator
@inline
function word_of(area: usize, nr: i32): usize {
  return area + XOL_BITMAP + <usize>((nr >> 5) << 2);
}

function set_bit(area: usize, nr: i32): void {
  or32(word_of(area, nr), 1 << (nr & 31));
}

// @ts-ignore: decorator
@inline
function test_and_set_bit(area: usize, nr: i32): bool {
  const bit = 1 << (nr & 31);
  return (or32(word_of(area, nr), bit) & bit) != 0;
}

// The first slot that is free, or `slots`.
// @ts-ignore: decorator
@inline
function find_first_zero_bit(area: usize, slots: i32): i32 {
  for (let nr = 0; nr < slots; nr += 32) {
    const bits = load32(word_of(area, nr)); // D
    if (bits != -1) return nr + <i32>ctz(~bits);
  }
  return slots;
}

// xol_get_slot_nr of v6.13: a slot, or `slots`: none was free, or another CPU was faster.
// @ts-ignore: decorator
@inline
function xol_get_slot_nr(area: usize, slots: i32): i32 {
  const nr = find_first_zero_bit(area, slots);
  return nr < slots && !test_and_set_bit(area, nr) ? nr : slots;
}

// wait_event(wq, (slot = xol_get_slot_nr()) < slots).
function wait_for_slot_slow(area: usize, slots: i32): i32 {
  add32(area + XOL_WAITERS, 1); // C
  let nr: i32;
  while (true) {
    const woken = load32(area + XOL_WOKEN);
    nr = xol_get_slot_nr(area, slots); // D
    if (nr < slots) break;
    park(area + XOL_WOKEN, woken, -1);
  }
  add32(area + XOL_WAITERS, -1);
  return nr;
}

// wait_event(wq, slot_count < slots); the caller then searches again, for the `i`th time. The count
// lags behind the bitmap: it may say at once that there is a slot.
function wait_for_count_slow(area: usize, slots: i32, i: i32): void {
  const seen = load32(area + XOL_SLOT_COUNT);
  if (seen < slots) {
    spin_wait(area + XOL_SLOT_COUNT, seen, i);
    return;
  }
  add32(area + XOL_WAITERS, 1); // C
  while (true) {
    const woken = load32(area + XOL_WOKEN);
    if (load32(area + XOL_SLOT_COUNT) < slots) break; // D
    park(area + XOL_WOKEN, woken, -1);
  }
  add32(area + XOL_WAITERS, -1);
}

// xol_take_insn_slot of v6.9.
// @ts-ignore: decorator
@inline
function xol_take_insn_slot(area: usize, slots: i32): i32 {
  let i = 0;
  while (true) {
    const nr = find_first_zero_bit(area, slots);
    if (nr < slots) {
      if (!test_and_set_bit(area, nr)) return nr;
    } else {
      wait_for_count_slow(area, slots, i++);
    }
  }
}

/**
 * A slot for the caller alone; waits until there is one, so not in a read section. `preferred`: the
 * one to try first, or 0.
 */
// @ts-ignore: decorator
@inline
export function xol_get_slot(strategy: i32, area: usize, preferred: i32): i32 {
  const slots = load<i32>(area, SLOTS);
  let nr = preferred;
  if ((strategy & STEP_MASK) == STEP_OLD) {
    if (nr == 0 || test_and_set_bit(area, nr)) nr = xol_take_insn_slot(area, slots);
    add32(area + XOL_SLOT_COUNT, 1);
    return nr;
  }
  nr = xol_get_slot_nr(area, slots);
  return nr < slots ? nr : wait_for_slot_slow(area, slots);
}

/** Gives it back. */
// @ts-ignore: decorator
@inline
export function xol_free_slot(strategy: i32, area: usize, nr: i32): void {
  const bit = 1 << (nr & 31);
  // Of two holders of a slot one clears what is clear already.
  if ((and32(word_of(area, nr), ~bit) & bit) == 0) raise_slow(FAULT_SLOT); // A
  if ((strategy & STEP_MASK) == STEP_OLD) add32(area + XOL_SLOT_COUNT, -1); // A
  if (load32(area + XOL_WAITERS) != 0) wake_slow(area); // B
}

// wake_up: all of them, since wait_event does not wait exclusively.
function wake_slow(area: usize): void {
  add32(area + XOL_WOKEN, 1);
  unpark_all(area + XOL_WOKEN);
}

/** Where the slot's bytes lie; and the address at which the task sees them. */
// @ts-ignore: decorator
@inline
export function xol_slot(area: usize, nr: i32): usize {
  return area + XOL_PAGE + <usize>(nr << load<i32>(area, SHIFT));
}
// @ts-ignore: decorator
@inline
export function xol_vaddr(area: usize, nr: i32): u32 {
  return TRAMPOLINE + <u32>(nr << load<i32>(area, SHIFT));
}

/** arch_uprobe_copy_ixol: an instruction to a slot of the caller's. */
// @ts-ignore: decorator
@inline
export function xol_copy(slot: usize, opcode: i32): void {
  store<i32>(slot, opcode);
}

/** The same, unless it is there already: on the machines that need it, the instruction cache has
 *  to be told of every copy. */
// @ts-ignore: decorator
@inline
export function xol_copy_if_other(slot: usize, opcode: i32): void {
  if (load<i32>(slot) != opcode) store<i32>(slot, opcode);
}
