// Lock benches: `n` times lock, one plain access to the protected line, unlock.
//
//   p + 0          the lock, initialised
//   p + LOCK_DATA  i64, the protected word on a line of its own
//
// Exclusive locks increment the word, so that the host can check it against the operations of all
// CPUs: one lost update is one violated exclusion. Shared sides only read it, and count into
// PCPU_COUNT of their CPU, where the host finds the same sum.
//
// plain: `LOCK_DATA`: the protected word; the lock under measurement is what orders its accesses.
// `count`: PCPU_COUNT is the CPU's own, read by the host after the run.

import { cpu_begin_batch, cpu_slept, this_cpu_ptr } from "../cpu";
import { LOCK_DATA, PCPU_COUNT } from "../layout";
import { mutex_lock, mutex_unlock } from "../sync/mutex";
import { qspin_lock, qspin_unlock } from "../sync/qspinlock";
import { refcount_dec_and_test, refcount_inc } from "../sync/refcount";
import { read_lock, read_unlock, write_lock, write_unlock } from "../sync/rwlock";
import { down_read, down_write, up_read, up_write } from "../sync/rwsem";
import { read_seqcount_begin, read_seqcount_retry } from "../sync/seqcount";
import { spin_lock, spin_unlock } from "../sync/spinlock";
import { ticket_lock, ticket_unlock } from "../sync/ticket";

// @ts-ignore: decorator
@inline
function raise_data(p: usize): void {
  store<i64>(p, load<i64>(p, LOCK_DATA) + 1, LOCK_DATA);
}

/** Counts one, plus what the protected word says: 0, but the compiler cannot know. */
// @ts-ignore: decorator
@inline
function count_read(count: usize, p: usize): void {
  store<i64>(count, load<i64>(count) + 1 + load<i64>(p, LOCK_DATA));
}

export function bench_spinlock(p: usize, n: i32): i32 {
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    spin_lock(p);
    raise_data(p);
    spin_unlock(p);
  }
  return i;
}

export function bench_ticket(p: usize, n: i32): i32 {
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    ticket_lock(p);
    raise_data(p);
    ticket_unlock(p);
  }
  return i;
}

export function bench_qspinlock(p: usize, n: i32): i32 {
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    qspin_lock(p);
    raise_data(p);
    qspin_unlock(p);
  }
  return i;
}

export function bench_rwlock(p: usize, n: i32): i32 {
  cpu_begin_batch();
  const count = this_cpu_ptr(PCPU_COUNT);
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    read_lock(p);
    count_read(count, p);
    read_unlock(p);
  }
  return i;
}

export function bench_rwlock_write(p: usize, n: i32): i32 {
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    write_lock(p);
    raise_data(p);
    write_unlock(p);
  }
  return i;
}

export function bench_rwsem(p: usize, n: i32): i32 {
  cpu_begin_batch();
  const count = this_cpu_ptr(PCPU_COUNT);
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    down_read(p);
    count_read(count, p);
    up_read(p);
  }
  return i;
}

export function bench_rwsem_write(p: usize, n: i32): i32 {
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    down_write(p);
    raise_data(p);
    up_write(p);
  }
  return i;
}

export function bench_mutex(p: usize, n: i32): i32 {
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    mutex_lock(p);
    raise_data(p);
    mutex_unlock(p);
  }
  return i;
}

export function bench_seqcount(p: usize, n: i32): i32 {
  cpu_begin_batch();
  const count = this_cpu_ptr(PCPU_COUNT);
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    let data: i64;
    let seen: i32;
    do {
      seen = read_seqcount_begin(p);
      data = load<i64>(p, LOCK_DATA);
    } while (read_seqcount_retry(p, seen));
    store<i64>(count, load<i64>(count) + 1 + data);
  }
  return i;
}

/** The count must be at least 1 before, or the first increment saturates it. */
export function bench_refcount(p: usize, n: i32): i32 {
  cpu_begin_batch();
  const count = this_cpu_ptr(PCPU_COUNT);
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    refcount_inc(p);
    // Never the last one: the host holds a reference. If it were, the sum would be wrong.
    if (!refcount_dec_and_test(p)) count_read(count, p);
  }
  return i;
}
