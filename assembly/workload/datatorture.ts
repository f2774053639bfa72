// Torture of what protects data without a lock: the sequence count and the reference count. What is
// checked, and where: locktorture.ts, torture.ts.
//
// plain: `LOCK_DATA`, `CHECK_A`, `CHECK_B`: protected by what is under test, as in torture.ts; the
// seqcount's readers load them beside a writer, on purpose, and use them only after validation.

import { add32, cas32, load32, store32 } from "../atomics";
import { cpu_begin_batch, cpu_slept } from "../cpu";
import { CHECK_A, CHECK_B, CHECK_READERS, CHECK_WRITER, LOCK_CHECK, LOCK_DATA } from "../layout";
import { TORTURE_READS, TORTURE_TRYFAILS, TORTURE_WRITES } from "../layout";
import { refcount_dec_and_test, refcount_inc, refcount_inc_not_zero } from "../sync/refcount";
import { refcount_saturated, refcount_set } from "../sync/refcount";
import { read_seqcount_begin, read_seqcount_retry } from "../sync/seqcount";
import { write_seqcount_begin, write_seqcount_end } from "../sync/seqcount";
import { spin_lock, spin_unlock } from "../sync/spinlock";
import { between, count, fail_slow, inside, random, torture_block } from "./torture";

/** Where seqcount keeps the lock of its writers, a spinlock. */
const SEQ_LOCK: usize = 64;

/** Sections that read A and B by plain loads, against writers that hold the count odd. */
export function torture_seqcount(p: usize, seed: i32, n: i32): i32 {
  const t = torture_block(seed);
  cpu_begin_batch();
  const c = p + LOCK_CHECK;
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const r = random(t);
    if (((r >>> 13) & 7) < 2) {
      spin_lock(p + SEQ_LOCK);
      write_seqcount_begin(p);
      const a = load<i32>(c, CHECK_A);
      store<i32>(c, a + 1, CHECK_A);
      inside(r, 0);
      store<i32>(c, a + 1, CHECK_B);
      store<i64>(p, load<i64>(p, LOCK_DATA) + 1, LOCK_DATA);
      write_seqcount_end(p);
      spin_unlock(p + SEQ_LOCK);
      count(t, TORTURE_WRITES);
    } else {
      let a = 0;
      let b = 0;
      let seen = read_seqcount_begin(p);
      while (true) {
        b = load<i32>(c, CHECK_B);
        if ((r & 3) == 0) inside(r, 0);
        a = load<i32>(c, CHECK_A);
        if (!read_seqcount_retry(p, seen)) break;
        count(t, TORTURE_TRYFAILS);
        seen = read_seqcount_begin(p);
      }
      if (a != b) fail_slow(t);
      count(t, TORTURE_READS);
    }
    between(random(t));
  }
  return i;
}

/**
 * An object that dies and is born again. CHECK_READERS != 0 says it is dead: whoever holds a
 * reference must not see that. CHECK_WRITER is 1 once somebody took the object's own reference, so
 * that it is dropped once a life. WRITES counts lives, TRYFAILS references that came too late.
 */
export function torture_refcount(p: usize, seed: i32, n: i32): i32 {
  const t = torture_block(seed);
  cpu_begin_batch();
  const c = p + LOCK_CHECK;
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const r = random(t);
    if ((r & 0x1c00) == 0) {
      if (cas32(c + CHECK_WRITER, 0, 1) == 0) drop_reference(p, t, r);
    } else if (refcount_inc_not_zero(p)) {
      if (load32(c + CHECK_READERS) != 0) fail_slow(t);
      if ((r & 0x2000) != 0) {
        if (!refcount_inc(p) || refcount_dec_and_test(p)) fail_slow(t);
      }
      inside(r, 0);
      if (load32(c + CHECK_READERS) != 0) fail_slow(t);
      count(t, TORTURE_READS);
      drop_reference(p, t, r);
    } else {
      count(t, TORTURE_TRYFAILS);
    }
    between(random(t));
  }
  return i;
}

function drop_reference(p: usize, t: usize, r: u32): void {
  const c = p + LOCK_CHECK;
  if (refcount_dec_and_test(p)) {
    if (add32(c + CHECK_READERS, 1) != 0) fail_slow(t);
    store<i64>(p, load<i64>(p, LOCK_DATA) + 1, LOCK_DATA);
    inside(r, 0);
    if (add32(c + CHECK_READERS, -1) != 1) fail_slow(t);
    count(t, TORTURE_WRITES);
    refcount_set(p, 1);
    store32(c + CHECK_WRITER, 0);
  } else if (refcount_saturated(p)) {
    fail_slow(t);
  }
}
