// Queued spinlock: the kernel's qspinlock, its word, algorithm and order of accesses.
//
// The word (4 bytes, 4-aligned):
//   [7:0]    locked   1 while somebody holds the lock
//   [15:8]   pending  1 while one waiter spins on the word itself, without a node
//   [31:16]  tail     CPU number + 1 of the last waiter in the queue of per-CPU nodes, 0: none
// Legal (tail, pending, locked):
//   0,0,0 free · 0,0,1 held · 0,1,1 held, one waiter · 0,1,0 being taken by the pending waiter
//   n,0,1 n,1,1 held, a queue · n,1,0 being taken by the pending waiter · n,0,0 by the queue's head
//
// Guarantees: G1 mutual exclusion. G2 first come, first served from the moment a waiter is queued:
// the fast path wants the whole word zero, so a newcomer never overtakes. G3 waiters spin on a line
// of their own, apart from the queue's head and the pending waiter. Progress: blocking.
//
// Where it differs: the kernel unlocks by a store of the locked byte. Here that is a locked
// exchange on x86 anyway, and behind a word-sized compare-exchange it costs 2.7 ns more than a
// word-sized subtraction on Zen 4 (bench/README.md). Same line, same moment, same bits.
//
// One node per CPU is enough: it is in use only inside qspin_slow, and nothing nests in there.

import { add32, cas32, load32, or32, store16, store32, store8, xchg16 } from "../atomics";
import { per_cpu_ptr, this_cpu, this_cpu_ptr } from "../cpu";
import { PCPU_MCS } from "../layout";
import { spin_wait } from "./park";

const LOCKED: i32 = 1;
const LOCKED_MASK: i32 = 0xff;
const PENDING: i32 = 0x100;
const PENDING_MASK: i32 = 0xff00;
const TAIL_SHIFT: i32 = 16;
// Halves of the word with names of their own (little endian).
const PENDING_BYTE: usize = 1;
const TAIL_HALF: usize = 2;

// The node: next 0 (address, 0: none), locked 4 (1: you are the queue's head).
const NEXT: usize = 0;
const HEAD: usize = 4;

export function qspin_init(p: usize): void {
  store32(p, 0);
}

// @ts-ignore: decorator
@inline
export function qspin_lock(p: usize): void {
  const seen = cas32(p, 0, LOCKED); // [A] pairs with [R]: what the last holder wrote is seen
  if (seen != 0) qspin_slow(p, seen);
}

// @ts-ignore: decorator
@inline
export function qspin_trylock(p: usize): bool {
  return load32(p) == 0 && cas32(p, 0, LOCKED) == 0; // [A]
}

// @ts-ignore: decorator
@inline
export function qspin_unlock(p: usize): void {
  add32(p, -LOCKED); // [R] the locked byte only: pending and tail belong to the waiters
}

/** Whether anybody holds or waits; a hint, stale at once. */
// @ts-ignore: decorator
@inline
export function qspin_is_locked(p: usize): bool {
  return load32(p) != 0;
}

export function qspin_slow(p: usize, seen: i32): void {
  let val = seen;
  // A pending waiter is taking the lock this instant: one look more, then the queue.
  if (val == PENDING) val = load32(p);

  if ((val & ~LOCKED_MASK) == 0) {
    val = or32(p, PENDING); // [B] 0,0,* -> 0,1,*
    if ((val & ~LOCKED_MASK) == 0) {
      // We are the pending waiter. Nobody else changes the locked byte to 1 now: the fast path
      // wants the whole word zero, and a queue's head waits for pending to go.
      let i = 0;
      while (((val = load32(p)) & LOCKED_MASK) != 0) spin_wait(p, val, i++); // [A]
      store16(p, LOCKED); // 0,1,0 -> 0,0,1: clears pending and sets locked in one store
      return;
    }
    // Somebody was there first. Undo pending if [B] set it, then queue. A head that saw our
    // pending at [E] left the tail in place and waits for a successor: that will be us.
    if ((val & PENDING_MASK) == 0) store8(p + PENDING_BYTE, 0);
  }

  const node = this_cpu_ptr(PCPU_MCS);
  const tail = this_cpu() + 1;
  store32(node + NEXT, 0); // [C] before [D], or a successor's link could be wiped
  store32(node + HEAD, 0);
  // Touching the node took a while: perhaps the lock came free.
  if (qspin_trylock(p)) return;

  let next: usize = 0;
  const prev = xchg16(p + TAIL_HALF, tail); // [D] p,*,* -> n,*,*: from here on we are queued
  if (prev != 0) {
    store32(per_cpu_ptr(PCPU_MCS, prev - 1) + NEXT, <i32>node); // pairs with [F]
    let i = 0;
    while (load32(node + HEAD) == 0) spin_wait(node + HEAD, 0, i++); // pairs with [G]
    next = <usize>load32(node + NEXT);
  }

  // Head of the queue: wait until both the holder and the pending waiter are gone.
  let i = 0;
  while (((val = load32(p)) & (LOCKED_MASK | PENDING_MASK)) != 0) spin_wait(p, val, i++); // [A]

  // [E] Alone in the queue, n,0,0 -> 0,0,1. Fails if a waiter queued or set pending meanwhile.
  if (val >>> TAIL_SHIFT == tail && cas32(p, val, LOCKED) == val) return;
  store8(p, LOCKED); // n,*,0 -> n,*,1: the tail is a later waiter's, or will be

  // [F] Our successor has announced itself at [D] or is about to. Only when it is linked may this
  // CPU leave, since a link stored later would hit a node that is in use for another lock.
  i = 0;
  while (next == 0) {
    next = <usize>load32(node + NEXT);
    if (next == 0) spin_wait(node + NEXT, 0, i++);
  }
  store32(next + HEAD, 1); // [G] last access to a node that is not ours
}
