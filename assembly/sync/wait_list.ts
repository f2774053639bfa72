// The wait list of the sleeping locks (mutex, rwsem): a FIFO of per-CPU nodes, and the hand-over
// of a wake-up to one of them.
//
// Head (16 bytes): first 0, last 8: addresses of nodes, 0 when empty.
// Node (PCPU_WAITER of its CPU):
//   0  next     address or 0   \  links and kind: only under the lock's wait_lock, or by the one
//   4  prev     address or 0    > CPU that took the node off the list
//   8  kind     WAIT_READ, WAIT_WRITE
//   12 handoff  1: this waiter asked for the lock to be handed over
//   16 woken    0: its CPU may sleep on this word · 1: somebody woke it
//   20 cpu      number of its CPU
//   24 timeout  i64, cpu_now() after which it asks for hand-over
//
// Reuse. A CPU has one node, for whatever lock it sleeps on next, so a late *store* to it would
// break another lock. There is none: `woken` is stored either under wait_lock while the node is on
// the list (it leaves the list only under wait_lock), or as the last access by the CPU that took it
// off the list (its owner does not leave before it sees that store). The notify comes after, maybe
// late, when the node serves another lock: then a sleeper wakes for nothing and looks again.

import { load32, store32 } from "../atomics";
import { this_cpu } from "../cpu";
import { unpark } from "./park";

export const WAIT_READ: i32 = 0;
export const WAIT_WRITE: i32 = 1;

const FIRST: usize = 0;
const LAST: usize = 8;
const NEXT: usize = 0;
const PREV: usize = 4;
const KIND: usize = 8;
const HANDOFF: usize = 12;
const WOKEN: usize = 16;
const CPU: usize = 20;
const TIMEOUT: usize = 24;

export function wait_list_init(list: usize): void {
  store32(list + FIRST, 0);
  store32(list + LAST, 0);
}

/** First node, 0 if there is none. Atomic: mutex_lock_slow asks without wait_lock. */
// @ts-ignore: decorator
@inline
export function wait_list_first(list: usize): usize {
  return <usize>load32(list + FIRST);
}
/** Node behind `node`, 0 if it is the last. Under wait_lock. */
// @ts-ignore: decorator
@inline
export function wait_next(node: usize): usize {
  return load<usize>(node + NEXT); // plain: under wait_lock, or the node is ours alone
}
// @ts-ignore: decorator
@inline
export function wait_set_next(node: usize, next: usize): void {
  store<usize>(node + NEXT, next); // plain: the node is off every list and ours alone
}
// @ts-ignore: decorator
@inline
export function wait_kind(node: usize): i32 {
  return load<i32>(node + KIND); // plain: written before the node was added, under wait_lock
}
// @ts-ignore: decorator
@inline
export function wait_cpu(node: usize): i32 {
  return load<i32>(node + CPU); // plain: as kind
}
// @ts-ignore: decorator
@inline
export function wait_timeout(node: usize): i64 {
  return load<i64>(node + TIMEOUT); // plain: as kind
}
// @ts-ignore: decorator
@inline
export function wait_handoff(node: usize): bool {
  return load<i32>(node + HANDOFF) != 0; // plain: set and read under wait_lock
}
// @ts-ignore: decorator
@inline
export function wait_set_handoff(node: usize): void {
  store<i32>(node + HANDOFF, 1); // plain: under wait_lock
}
/** Address of the word its CPU sleeps on. */
// @ts-ignore: decorator
@inline
export function wait_word(node: usize): usize {
  return node + WOKEN;
}

/**
 * Announces "I am going to sleep": from here on a wake-up is not lost. [A] store woken = 0, then
 * look at the lock. Pairs with [B] in wait_wake: the waker changes the lock, then stores woken = 1.
 * "I saw the lock still taken" and "my sleep missed the store" cannot both happen.
 */
// @ts-ignore: decorator
@inline
export function wait_prepare(node: usize): void {
  store32(node + WOKEN, 0); // [A]
}
/** Marks `node` woken; the caller notifies wait_word(node) once it has dropped wait_lock. */
// @ts-ignore: decorator
@inline
export function wait_wake(node: usize): void {
  store32(node + WOKEN, 1); // [B]
}

/** Appends this CPU's node. Under wait_lock. Returns true if the list was empty. */
export function wait_list_add(list: usize, node: usize, kind: i32, timeout: i64): bool {
  // plain: all under wait_lock; `first` alone is read outside, so it is stored atomically
  const last = load<usize>(list + LAST);
  store<usize>(node + NEXT, 0);
  store<usize>(node + PREV, last);
  store<i32>(node + KIND, kind);
  store<i32>(node + HANDOFF, 0);
  store<i32>(node + CPU, this_cpu());
  store<i64>(node + TIMEOUT, timeout);
  store<usize>(list + LAST, node);
  if (last != 0) {
    store<usize>(last + NEXT, node);
    return false;
  }
  store32(list + FIRST, <i32>node);
  return true;
}

/** Takes `node` off the list. Under wait_lock. Returns true if the list is empty now. */
export function wait_list_del(list: usize, node: usize): bool {
  // plain: as in wait_list_add
  const next = load<usize>(node + NEXT);
  const prev = load<usize>(node + PREV);
  if (next != 0) store<usize>(next + PREV, prev);
  else store<usize>(list + LAST, prev);
  if (prev != 0) store<usize>(prev + NEXT, next);
  else store32(list + FIRST, <i32>next);
  return next == 0 && prev == 0;
}

/** Notifies a CPU that wait_wake marked. Without wait_lock: a system call may be slow. */
export function wait_notify(node: usize): void {
  unpark(node + WOKEN);
}
