// Controls: what counting alone costs on this machine, in four ways. No probe, no lock.
//
// plain: `p` of count_percpu is its CPU's own word; that is what it measures.

import { add64 } from "../atomics";

// @ts-ignore: decorator
@external("host", "empty")
declare function host_empty(): void;

/** `n` plain increments of the i64 at `p`, the CPU's own line. */
export function count_percpu(p: usize, n: i32): void {
  for (let i = n; i > 0; i--) store<i64>(p, load<i64>(p) + 1);
}

/**
 * `n` locked increments of the i64 at `p`. The loop is exactly one i64.atomic.rmw.add and one
 * branch (test/binary.test.ts reads the emitted body): the unit in which other costs are stated.
 * On a shared word it is the control count-shared. n >= 1.
 */
export function count_atomic(p: usize, n: i32): void {
  do {
    add64(p, 1);
  } while (--n);
}

/** `n` calls out of Wasm to an empty JavaScript function. */
export function import_count(n: i32): void {
  for (let i = n; i > 0; i--) host_empty();
}
