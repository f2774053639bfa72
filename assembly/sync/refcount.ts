// Reference count: the kernel's refcount_t. One i32 word.
//
//   1 .. 2^31-1   references
//   0             final: the object is being freed. Nobody may take a reference again
//   negative      saturated: the count was wrong once (inc of 0, a drop below 0, an overflow). It
//                 stays about -2^30, never reaches 0, so the object leaks instead of being freed
//                 under somebody. refcount_saturated is the visible fault flag: the caller raises
//                 FAULT_REFCOUNT, since this file knows no absolute address.
//
// Each operation is one read-modify-write when nothing is wrong. A drop to 0 is ordered after all
// earlier uses of the object by those who dropped before ([D] is a full barrier).

import { add32, cas32, load32, store32 } from "../atomics";

const SATURATED: i32 = -0x40000000;

export function refcount_set(p: usize, n: i32): void {
  store32(p, n);
}

// @ts-ignore: decorator
@inline
export function refcount_read(p: usize): i32 {
  return load32(p);
}

/** Whether the count was ever used wrongly. */
// @ts-ignore: decorator
@inline
export function refcount_saturated(p: usize): bool {
  return load32(p) < 0;
}

/**
 * Takes one more reference; the caller holds one already. False, and saturated for ever, if there
 * was none: the object may be freed, which is a bug of the caller.
 */
// @ts-ignore: decorator
@inline
export function refcount_inc(p: usize): bool {
  const before = add32(p, 1);
  // 0, negative and 2^31-1 are the three wrong ones; one unsigned comparison finds them all.
  if (<u32>(before - 1) < 0x7ffffffe) return true;
  return refcount_saturate_slow(p);
}

/** Takes a reference unless the count is 0, which is final (C3). For lookups. */
// @ts-ignore: decorator
@inline
export function refcount_inc_not_zero(p: usize): bool {
  let seen = load32(p);
  for (;;) {
    if (seen == 0) return false;
    const before = cas32(p, seen, seen + 1);
    if (before == seen) break;
    seen = before;
  }
  // Saturated counts give references too: they are never freed.
  if (seen < 0 || seen == 0x7fffffff) refcount_saturate_slow(p);
  return true;
}

/** Drops a reference; true when it was the last one: the caller now frees the object. */
// @ts-ignore: decorator
@inline
export function refcount_dec_and_test(p: usize): bool {
  const before = add32(p, -1); // [D]
  if (before == 1) return true;
  if (before <= 0) refcount_saturate_slow(p);
  return false;
}

function refcount_saturate_slow(p: usize): bool {
  store32(p, SATURATED);
  return false;
}
