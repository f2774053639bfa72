// Lock torture, after the kernel's locktorture: every lock under random use, with its promises
// checked inside the section. One exported function per kind, specialised at compile time:
// torture_KIND(p, seed, n) does `n` random operations; any number of CPUs may run it on one `p`
// (torture.ts says what is where).
//
// What is checked:
//   exclusion   a writer finds no writer and no reader, at both ends of the section; a reader finds
//               no writer. A and B, raised one after the other by plain accesses, are equal to
//               whoever is inside. (FAILS, FAULT_EXCLUSION)
//   order       who asks after a CPU was seen waiting gets in after that CPU: a section was entered
//               in between. For ticket, qspinlock; rwlock with a writer waiting (C25); mutex with
//               HANDOFF or PICKUP set. (BARGES, FAULT_ORDER)
//   time        a free sleeping lock with sleepers does not stay so: no wake-up is lost. A timed
//               lock that fails did so not before its time. (LATE, FAULT_TIMEOUT)

import { load32 } from "../atomics";
import { cpu_begin_batch, cpu_slept } from "../cpu";
import { CHECK_SECTIONS, LOCK_CHECK, TORTURE_TRYFAILS } from "../layout";
import { mutex_lock, mutex_trylock, mutex_unlock } from "../sync/mutex";
import { qspin_lock, qspin_trylock, qspin_unlock } from "../sync/qspinlock";
import { read_lock, read_trylock, read_unlock } from "../sync/rwlock";
import { write_lock, write_trylock, write_unlock } from "../sync/rwlock";
import { down_read, down_read_trylock, up_read } from "../sync/rwsem";
import { down_write, down_write_trylock, up_write } from "../sync/rwsem";
import { spin_lock, spin_trylock, spin_unlock } from "../sync/spinlock";
import { ticket_lock, ticket_trylock, ticket_unlock } from "../sync/ticket";
import { between, count, look_for_sleepers, overtook_slow, random } from "./torture";
import { read_section, torture_block, write_section } from "./torture";

const SPINLOCK: i32 = 0;
const TICKET: i32 = 1;
const QSPINLOCK: i32 = 2;
const RWLOCK: i32 = 3;
const RWSEM: i32 = 4;
const MUTEX: i32 = 5;

// -- One name for all locks; `kind` is a constant in every caller, so each call folds ------------

// @ts-ignore: decorator
@inline
function lock(kind: i32, p: usize): void {
  if (kind == SPINLOCK) spin_lock(p);
  else if (kind == TICKET) ticket_lock(p);
  else if (kind == QSPINLOCK) qspin_lock(p);
  else if (kind == RWLOCK) write_lock(p);
  else if (kind == RWSEM) down_write(p);
  else mutex_lock(p);
}

// @ts-ignore: decorator
@inline
function trylock(kind: i32, p: usize): bool {
  if (kind == SPINLOCK) return spin_trylock(p);
  else if (kind == TICKET) return ticket_trylock(p);
  else if (kind == QSPINLOCK) return qspin_trylock(p);
  else if (kind == RWLOCK) return write_trylock(p);
  else if (kind == RWSEM) return down_write_trylock(p);
  else return mutex_trylock(p);
}

// @ts-ignore: decorator
@inline
function unlock(kind: i32, p: usize): void {
  if (kind == SPINLOCK) spin_unlock(p);
  else if (kind == TICKET) ticket_unlock(p);
  else if (kind == QSPINLOCK) qspin_unlock(p);
  else if (kind == RWLOCK) write_unlock(p);
  else if (kind == RWSEM) up_write(p);
  else mutex_unlock(p);
}

/** Whether a CPU waits now that nobody who asks later may overtake. Reads the word's bits. */
// @ts-ignore: decorator
@inline
function is_queued(kind: i32, p: usize): bool {
  const word = load32(p);
  if (kind == TICKET) return (((word >>> 16) - word) & 0xffff) >= 2;
  if (kind == QSPINLOCK) return word >>> 16 != 0;
  if (kind == RWLOCK) return (word & 0x100) != 0;
  if (kind == MUTEX) return (word & 6) != 0;
  return false;
}

// Order. [A] the sections entered so far, [B] is somebody waiting, [C] get the lock, [D] the
// sections again. Whoever waited at [B] had not entered its section, so not raised the count; it is
// served before us, so it has raised it at [D]. Same count: overtaken.

// @ts-ignore: decorator
@inline
function write_once(kind: i32, p: usize, t: usize, r: u32): void {
  const sections = load32(p + LOCK_CHECK + CHECK_SECTIONS); // [A]
  const queued = is_queued(kind, p); // [B]
  if ((r & 0x1c00) == 0) {
    if (!trylock(kind, p)) return count(t, TORTURE_TRYFAILS);
  } else {
    lock(kind, p); // [C]
  }
  if (queued && load32(p + LOCK_CHECK + CHECK_SECTIONS) == sections) overtook_slow(t); // [D]
  write_section(p, t, r, kind == MUTEX ? 32 : kind == RWSEM ? 64 : 0);
  unlock(kind, p);
}

// @ts-ignore: decorator
@inline
function read_once(kind: i32, p: usize, t: usize, r: u32): void {
  const sections = load32(p + LOCK_CHECK + CHECK_SECTIONS); // [A]
  const queued = is_queued(kind, p); // [B]
  if ((r & 0x1c00) == 0) {
    const got = kind == RWLOCK ? read_trylock(p) : down_read_trylock(p);
    if (!got) return count(t, TORTURE_TRYFAILS);
  } else if (kind == RWLOCK) {
    read_lock(p); // [C]
  } else {
    down_read(p); // [C]
  }
  if (queued && load32(p + LOCK_CHECK + CHECK_SECTIONS) == sections) overtook_slow(t); // [D]
  read_section(p, t, r, kind == RWSEM ? 64 : 0);
  if (kind == RWLOCK) read_unlock(p);
  else up_read(p);
}

/** `writes` of 8 operations write. */
// @ts-ignore: decorator
@inline
function torture(kind: i32, writes: u32, p: usize, seed: i32, n: i32): i32 {
  const t = torture_block(seed);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const r = random(t);
    if (writes == 8 || ((r >>> 13) & 7) < writes) write_once(kind, p, t, r);
    else read_once(kind, p, t, r);
    between(random(t));
    if (kind == MUTEX) look_for_sleepers(p, t, r, ~7, 1);
    if (kind == RWSEM) look_for_sleepers(p, t, r, ~6, 2);
  }
  return i;
}

export function torture_spinlock(p: usize, seed: i32, n: i32): i32 {
  return torture(SPINLOCK, 8, p, seed, n);
}
export function torture_ticket(p: usize, seed: i32, n: i32): i32 {
  return torture(TICKET, 8, p, seed, n);
}
export function torture_qspinlock(p: usize, seed: i32, n: i32): i32 {
  return torture(QSPINLOCK, 8, p, seed, n);
}
export function torture_rwlock(p: usize, seed: i32, n: i32): i32 {
  return torture(RWLOCK, 2, p, seed, n);
}
export function torture_rwsem(p: usize, seed: i32, n: i32): i32 {
  return torture(RWSEM, 3, p, seed, n);
}
export function torture_mutex(p: usize, seed: i32, n: i32): i32 {
  return torture(MUTEX, 8, p, seed, n);
}

// Readers that follow each other without a gap, and writers among them (C25).
export function torture_rwlock_readers(p: usize, seed: i32, n: i32): i32 {
  return torture_readers(RWLOCK, p, seed, n);
}
export function torture_rwsem_readers(p: usize, seed: i32, n: i32): i32 {
  return torture_readers(RWSEM, p, seed, n);
}
export function torture_rwlock_writers(p: usize, seed: i32, n: i32): i32 {
  return torture(RWLOCK, 8, p, seed, n);
}
export function torture_rwsem_writers(p: usize, seed: i32, n: i32): i32 {
  return torture(RWSEM, 8, p, seed, n);
}

// @ts-ignore: decorator
@inline
function torture_readers(kind: i32, p: usize, seed: i32, n: i32): i32 {
  const t = torture_block(seed);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    read_once(kind, p, t, random(t));
  }
  return i;
}
