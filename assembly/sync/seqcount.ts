// Sequence count: readers write nothing and start over if a writer was there.
//
// The word (4 bytes): even, nobody writes · odd, a write section is open. Grows by 2 per section
// and wraps. Writers exclude each other by a lock of their own: this file does not.
//
// Guarantee: G1 a read section whose retry says false saw no store of any write section, or all of
// it. Between begin and retry a reader may see a mixture: it may compare what it read, and use it
// only after retry said false. Progress: writers wait-free, readers wait while a section is open.

import { fence, load32, store32 } from "../atomics";
import { spin_wait } from "./park";

export function seqcount_init(p: usize): void {
  store32(p, 0);
}

/** Opens a write section. The caller holds the lock that excludes other writers. */
// @ts-ignore: decorator
@inline
export function write_seqcount_begin(p: usize): void {
  // plain: only writers store, one at a time; the fence puts it before the section's stores, or a
  // reader could see new data under the old even count ([A] before data, pairs with [D])
  store<i32>(p, load<i32>(p) + 1); // [A]
  fence();
}

// @ts-ignore: decorator
@inline
export function write_seqcount_end(p: usize): void {
  // plain: the load, as above. The store is atomic: all stores of the section come before it.
  store32(p, load<i32>(p) + 1); // [B] pairs with [C]
}

/** Waits until no write section is open; returns the count for read_seqcount_retry. */
// @ts-ignore: decorator
@inline
export function read_seqcount_begin(p: usize): i32 {
  const seen = load32(p); // [C]
  return (seen & 1) == 0 ? seen : read_seqcount_slow(p);
}

/** Whether a write section was open since begin: then what was read is not to be used. */
// @ts-ignore: decorator
@inline
export function read_seqcount_retry(p: usize, begin: i32): bool {
  // The section's loads are plain and could otherwise sink below the atomic load on arm64
  // (an acquire orders only what follows it): "old data, and no change seen" would be possible.
  fence();
  return load32(p) != begin; // [D]
}

export function read_seqcount_slow(p: usize): i32 {
  let i = 0;
  let seen = 0;
  while (((seen = load32(p)) & 1) != 0) spin_wait(p, seen, i++); // [C]
  return seen;
}
