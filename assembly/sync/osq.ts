// Optimistic spin queue: the kernel's osq_lock. An MCS queue whose waiters may give up, used by
// mutex and rwsem so that only one CPU at a time spins on the lock's owner.
//
// The word (4 bytes): CPU number + 1 of the last in the queue, 0: nobody is in.
// Node (PCPU_OSQ of its CPU): next 0, prev 4 (addresses, 0: none), locked 8, cpu + 1 at 12.
//
// (C26) The node is the CPU's own and serves the next queue as soon as osq_lock returned false or
// osq_unlock returned. Giving up takes three steps, so that no other CPU still has the node's
// address when it is reused:
//   A  undo prev->next = node. Now prev, if it leaves, waits for a new `next`: it is stable.
//   B  take away our own next, or move the tail back to prev if we are the last. Now our successor,
//      if it gives up too, waits in its step A: it is stable.
//   C  link the two stable neighbours.

import { cas32, load32, store32, xchg32 } from "../atomics";
import { cpu_now, per_cpu_ptr, this_cpu, this_cpu_ptr } from "../cpu";
import { PCPU_OSQ } from "../layout";
import { spin_wait } from "./park";

/** Iterations a CPU waits for its turn to spin, before it rather sleeps: no core, no hurry. */
export const OSQ_SPINS: i32 = 40_000;

const NEXT: usize = 0;
const PREV: usize = 4;
const LOCKED: usize = 8;
const CPU: usize = 12;
/** cpu_now costs a call out of Wasm: a deadline is looked at once in so many iterations. */
const CLOCK_MASK: i32 = 127;

export function osq_init(p: usize): void {
  store32(p, 0);
}

/**
 * Queues up and waits for the turn. False: `spins` iterations passed, or it became later than
 * `deadline` (cpu_now; 0: none); this CPU is out of the queue then.
 */
export function osq_lock(p: usize, spins: i32, deadline: i64): bool {
  const node = this_cpu_ptr(PCPU_OSQ);
  const me = this_cpu() + 1;
  store32(node + LOCKED, 0);
  store32(node + NEXT, 0);
  store32(node + CPU, me);
  // [Q] publishes the node: everything above is seen by whoever finds our number in the tail.
  const tail = xchg32(p, me);
  if (tail == 0) return true;

  let prev = per_cpu_ptr(PCPU_OSQ, tail - 1);
  // [P] prev before [N]: once linked, prev's step C may write node.prev, and must write it last.
  store32(node + PREV, <i32>prev);
  store32(prev + NEXT, <i32>node); // [N]

  for (let i = 0; ; i++) {
    if (load32(node + LOCKED) != 0) return true; // pairs with [L]
    if (i >= spins) break;
    if (deadline != 0 && (i & CLOCK_MASK) == CLOCK_MASK && cpu_now() >= deadline) break;
  }

  // Step A: stabilise prev. It fails only against an osq_unlock, which then sets our `locked`, or
  // against the step B of a prev that gives up, whose step C then gives us another prev.
  for (let i = 0; ; i++) {
    if (<usize>load32(prev + NEXT) == node) {
      if (<usize>cas32(prev + NEXT, <i32>node, 0) == node) break; // [A]
    }
    if (load32(node + LOCKED) != 0) return true; // pairs with [L]
    spin_wait(node + LOCKED, 0, i);
    prev = <usize>load32(node + PREV); // pairs with [C]
  }

  // Step B: stabilise next, or move the tail back.
  const next = osq_wait_next_slow(p, node, me, load32(prev + CPU));
  if (next == 0) return false;

  // Step C: unlink. prev waits for a new next, next waits for a new prev.
  store32(next + PREV, <i32>prev); // [C]
  store32(prev + NEXT, <i32>next);
  return false;
}

export function osq_unlock(p: usize): void {
  const me = this_cpu() + 1;
  if (cas32(p, me, 0) == me) return;
  const node = this_cpu_ptr(PCPU_OSQ);
  // [B] taking next away makes a successor that gives up fail at [A], and see [L] instead.
  let next = <usize>xchg32(node + NEXT, 0);
  if (next == 0) next = osq_wait_next_slow(p, node, me, 0);
  if (next != 0) store32(next + LOCKED, 1); // [L] last access to a node that is not ours
}

/**
 * Step B: takes our successor away, or, if we are the last, sets the tail to `left` (prev's CPU
 * number + 1, or 0) and returns 0. Waits while a successor is between [Q] and [N], or between its
 * own steps A and C.
 */
function osq_wait_next_slow(p: usize, node: usize, me: i32, left: i32): usize {
  let i = 0;
  while (true) {
    if (load32(p) == me && cas32(p, me, left) == me) return 0;
    if (load32(node + NEXT) != 0) {
      const next = <usize>xchg32(node + NEXT, 0); // [B]
      if (next != 0) return next;
    }
    spin_wait(node + NEXT, 0, i++);
  }
}
