// Sleeping on a word: the only file above the waist that blocks or wakes.
//
// Two kinds of waiting, for two kinds of lock (design rule 6):
//  - spin_wait: of spinlocks. Their unlock never notifies, so a waiter spins, and after a bound
//    sleeps for a limited time only (100 us, doubling to 2 ms). With a core for each CPU the bound
//    is never reached; with more CPUs than cores the holder gets the core, so all make progress.
//  - park / unpark: of sleeping locks. Unlock notifies when, and only when, it saw a waiter.

import { load32, notify, wait32 } from "../atomics";
import { cpu_may_block, cpu_note_sleep } from "../cpu";

/**
 * Iterations a spinlock's waiter spins before its first sleep, some 250 us: less than a time slice,
 * and more than the first sleep with its wake-up. Were it less, two CPUs that once slept would stay
 * in a convoy: each would find the other asleep, and fall asleep itself before the other wakes
 * (bench/README.md has the figures).
 */
export const SPIN_BOUND = 200_000;
// First sleep, doubled by each further one up to the longest.
const YIELD_NS_MIN: i64 = 100_000;
const YIELD_NS_MAX: i64 = 2_000_000;

/**
 * One step of waiting for the word at `p` (4-aligned) to change from `seen`. `i` counts the steps
 * of this wait from 0. Returns at once while i < SPIN_BOUND, else sleeps at most 2 ms, or until
 * the word is no longer `seen` at the moment of going to sleep. The caller re-reads and decides.
 */
// @ts-ignore: decorator
@inline
export function spin_wait(p: usize, seen: i32, i: i32): void {
  if (i >= SPIN_BOUND) spin_yield_slow(p, seen, i);
}

function spin_yield_slow(p: usize, seen: i32, i: i32): void {
  if (!cpu_may_block()) return;
  cpu_note_sleep();
  const doublings = min(i - SPIN_BOUND, 5);
  wait32(p, seen, min(YIELD_NS_MIN << (<i64>doublings), YIELD_NS_MAX));
}

/**
 * Sleeps while the word at `p` is `seen`, at most `timeoutNs` (negative: for ever). May return
 * early; the caller re-reads in a loop.
 *
 * Never inlined (scripts/engine.mjs): V8's baseline compiler (seen in Node 20.20) spills a wait's
 * 32-bit operand over half of a 64-bit local of the same function, so that a deadline or a start
 * that lives across the wait would lose its low 32 bits. Here no local does.
 */
export function park(p: usize, seen: i32, timeoutNs: i64): void {
  if (load32(p) != seen) return;
  cpu_note_sleep();
  wait32(p, seen, timeoutNs);
}

/** Wakes one sleeper of the word at `p`, if there is one. */
export function unpark(p: usize): void {
  notify(p, 1);
}

/** Wakes all of them. */
export function unpark_all(p: usize): void {
  notify(p, -1);
}
