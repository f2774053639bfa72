// Lock torture, after the kernel's locktorture: every lock under random use, with its promises
// checked inside the section. One exported function per kind, specialised at compile time:
// torture_KIND(p, seed, n) does `n` random operations; any number of CPUs may run it on one `p`.
//
//   p + 0           the lock (refcount: set to 1 by the host; all others: zero is initialised)
//   p + LOCK_DATA   i64, raised by one plain increment per exclusive section: the host compares
//   p + LOCK_CHECK  what the checks look at: the words below, then A and B on lines of their own
//
// What is checked:
//   exclusion   a writer finds no writer and no reader, at both ends of the section; a reader finds
//               no writer. A and B, raised one after the other by plain accesses, are equal to
//               whoever is inside. (FAILS, FAULT_EXCLUSION)
//   order       who asks after a CPU was seen waiting gets in after that CPU: a section was entered
//               in between. For ticket, qspinlock; rwlock with a writer waiting (C25); mutex with
//               HANDOFF or PICKUP set. (BARGES)
//   time        a timed lock that failed did so not before its time, and not absurdly late; a free
//               sleeping lock with sleepers does not stay so: no wake-up is lost. (LATE)
// Counters are the CPU's own, at PCPU_TORTURE (layout.ts).
//
// plain: `TORTURE_*`, `counter`: the CPU's own block. `LOCK_DATA`, `CHECK_A`, `CHECK_B`: protected
// by the lock under test; they have to be plain, or the test would order what the lock fails to.

import { add32, cas32, load32, store32 } from "../atomics";
import { cpu_begin_batch, cpu_delay, cpu_now, cpu_slept, this_cpu, this_cpu_ptr } from "../cpu";
import { CHECK_A, CHECK_B, CHECK_READERS, CHECK_SECTIONS, CHECK_WRITER } from "../layout";
import { FAULT_EXCLUSION, FAULT_TIMEOUT, LOCK_CHECK, LOCK_DATA, PCPU_TORTURE } from "../layout";
import { TORTURE_BARGES, TORTURE_FAILS, TORTURE_LATE, TORTURE_RANDOM } from "../layout";
import { TORTURE_READS, TORTURE_TIMEOUTS, TORTURE_TRYFAILS, TORTURE_WRITES } from "../layout";
import { mutex_lock, mutex_lock_timeout, mutex_trylock, mutex_unlock } from "../sync/mutex";
import { OSQ_SPINS, osq_lock, osq_unlock } from "../sync/osq";
import { qspin_lock, qspin_trylock, qspin_unlock } from "../sync/qspinlock";
import { refcount_dec_and_test, refcount_inc, refcount_inc_not_zero } from "../sync/refcount";
import { refcount_saturated, refcount_set } from "../sync/refcount";
import { read_lock, read_trylock, read_unlock } from "../sync/rwlock";
import { write_lock, write_trylock, write_unlock } from "../sync/rwlock";
import { down_read, down_read_trylock, up_read } from "../sync/rwsem";
import { down_write, down_write_trylock, up_write } from "../sync/rwsem";
import { read_seqcount_begin, read_seqcount_retry } from "../sync/seqcount";
import { write_seqcount_begin, write_seqcount_end } from "../sync/seqcount";
import { spin_lock, spin_trylock, spin_unlock } from "../sync/spinlock";
import { ticket_lock, ticket_trylock, ticket_unlock } from "../sync/ticket";
import { raise_slow } from "../uprobe/fault";

const SPINLOCK: i32 = 0;
const TICKET: i32 = 1;
const QSPINLOCK: i32 = 2;
const RWLOCK: i32 = 3;
const RWSEM: i32 = 4;
const MUTEX: i32 = 5;

/** A timed lock may be this late before anybody is blamed: the host may be busy, nanoseconds. */
const LATE_NS: i64 = 1_000_000_000;
/** Where seqcount keeps the lock of its writers, a spinlock. */
const SEQ_LOCK: usize = 64;

// -- Random choices and delays -------------------------------------------------------------------

/** The CPU's counters, with its random state set up from `seed` on first use. */
function torture_block(seed: i32): usize {
  const t = this_cpu_ptr(PCPU_TORTURE);
  if (load<u32>(t, TORTURE_RANDOM) == 0) {
    const mixed = (<u32>seed + 1) * 0x9e3779b9 + <u32>(this_cpu() + 1) * 0x85ebca6b;
    store<u32>(t, mixed | 1, TORTURE_RANDOM);
  }
  return t;
}

function random(t: usize): u32 {
  let x = load<u32>(t, TORTURE_RANDOM);
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  store<u32>(t, x, TORTURE_RANDOM);
  return x;
}

// @ts-ignore: decorator
@inline
function count(t: usize, counter: usize): void {
  store<i64>(t + counter, load<i64>(t + counter) + 1);
}

function fail_slow(t: usize): void {
  count(t, TORTURE_FAILS);
  raise_slow(FAULT_EXCLUSION);
}

/**
 * A delay inside a section: mostly none or short; one in 512 some microseconds; one in 8192 longer
 * than any spin. `sleepy`: one in so many (a power of 2, 0: none) takes about as long as a sleeping lock's waiters spin, so
 * that they give up, fall asleep and are woken just when the lock comes free.
 */
function inside(r: u32, sleepy: i32): void {
  const kind = r >>> 19;
  if (kind == 0) cpu_delay(100_000);
  else if (sleepy != 0 && (kind & (sleepy - 1)) == 2) cpu_delay(<i32>(r & 0x7fff));
  else if ((kind & 511) == 1) cpu_delay(4_000);
  else if ((r & 3) != 0) cpu_delay(<i32>((r >>> 8) & 63));
}

/** A delay between sections, so that the lock is sometimes free and sometimes fought over. */
function between(r: u32): void {
  if ((r & 0x30000) != 0) cpu_delay(<i32>((r >>> 18) & 127));
}

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

// -- The sections --------------------------------------------------------------------------------

function write_section(p: usize, t: usize, r: u32, sleepy: i32): void {
  const c = p + LOCK_CHECK;
  let wrong = add32(c + CHECK_WRITER, 1) != 0 || load32(c + CHECK_READERS) != 0;
  add32(c + CHECK_SECTIONS, 1);
  store<i64>(p, load<i64>(p, LOCK_DATA) + 1, LOCK_DATA);
  const a = load<i32>(c, CHECK_A);
  store<i32>(c, a + 1, CHECK_A);
  inside(r, sleepy);
  if (load<i32>(c, CHECK_B) != a) wrong = true;
  store<i32>(c, a + 1, CHECK_B);
  if (load32(c + CHECK_READERS) != 0 || add32(c + CHECK_WRITER, -1) != 1) wrong = true;
  if (wrong) fail_slow(t);
  count(t, TORTURE_WRITES);
}

function read_section(p: usize, t: usize, r: u32, sleepy: i32): void {
  const c = p + LOCK_CHECK;
  add32(c + CHECK_READERS, 1);
  let wrong = load32(c + CHECK_WRITER) != 0;
  const a = load<i32>(c, CHECK_A);
  inside(r, sleepy);
  if (load<i32>(c, CHECK_B) != a || load32(c + CHECK_WRITER) != 0) wrong = true;
  add32(c + CHECK_READERS, -1);
  if (wrong) fail_slow(t);
  count(t, TORTURE_READS);
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
  if (queued && load32(p + LOCK_CHECK + CHECK_SECTIONS) == sections) {
    count(t, TORTURE_BARGES); // [D]
  }
  write_section(p, t, r, kind == MUTEX || kind == RWSEM ? 256 : 0);
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
  if (queued && load32(p + LOCK_CHECK + CHECK_SECTIONS) == sections) {
    count(t, TORTURE_BARGES); // [D]
  }
  read_section(p, t, r, kind == RWSEM ? 256 : 0);
  if (kind == RWLOCK) read_unlock(p);
  else up_read(p);
}

/**
 * Now and then a CPU that found the lock free, but with sleepers, keeps off until somebody takes
 * it. A lost wake-up would otherwise hide: the next unlock would make good for it.
 */
// @ts-ignore: decorator
@inline
function look_for_sleepers(kind: i32, p: usize, t: usize, r: u32): void {
  if ((kind == MUTEX || kind == RWSEM) && (r & 3) == 0) {
    const word = load32(p);
    const held = kind == MUTEX ? word & ~7 : word & ~6;
    const slept = kind == MUTEX ? word & 1 : word & 2;
    if (held == 0 && slept != 0) keep_off_slow(p, t, word);
  }
}

function keep_off_slow(p: usize, t: usize, word: i32): void {
  const sections = load32(p + LOCK_CHECK + CHECK_SECTIONS);
  const until = cpu_now() + LATE_NS;
  while (load32(p) == word && load32(p + LOCK_CHECK + CHECK_SECTIONS) == sections) {
    if (cpu_now() > until) {
      count(t, TORTURE_LATE);
      return raise_slow(FAULT_TIMEOUT);
    }
  }
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
    look_for_sleepers(kind, p, t, r);
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
  return torture(RWSEM, 2, p, seed, n);
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

/** A timed lock, whose failure is judged by the clock; false if it failed. */
function lock_in_time(p: usize, t: usize, ns: i64): bool {
  const start = cpu_now();
  if (mutex_lock_timeout(p, ns) != 0) return true;
  const took = cpu_now() - start;
  if (took < ns || took > ns + LATE_NS) {
    count(t, TORTURE_LATE);
    raise_slow(FAULT_TIMEOUT);
  }
  count(t, TORTURE_TIMEOUTS);
  return false;
}

/**
 * A storm of timed locks that give up (C26): waits of 0 to some 130 us against sections that are
 * sometimes longer, through spinning, the spin queue and the wait list alike.
 */
export function torture_mutex_timed(p: usize, seed: i32, n: i32): void {
  const t = torture_block(seed);
  for (let i = n; i > 0; i--) {
    const r = random(t);
    const ns: i64 = (r & 0x6000) == 0 ? <i64>(r >>> 25) : <i64>(r >>> 15);
    if ((r & 0x1c00) == 0) mutex_lock(p);
    else if (!lock_in_time(p, t, ns)) continue;
    write_section(p, t, r, 64);
    mutex_unlock(p);
    between(random(t));
    look_for_sleepers(MUTEX, p, t, r);
  }
}

/** Timed locks only, of up to 4 ms: for a mutex that somebody else holds all the time. */
export function torture_mutex_expired(p: usize, seed: i32, n: i32): void {
  const t = torture_block(seed);
  for (let i = n; i > 0; i--) {
    const r = random(t);
    if (!lock_in_time(p, t, <i64>(r >>> 10))) continue;
    write_section(p, t, r, 0);
    mutex_unlock(p);
  }
}

/** The spin queue alone, as a lock, with waiters that give up after any number of steps (C26). */
export function torture_osq(p: usize, seed: i32, n: i32): i32 {
  const t = torture_block(seed);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const r = random(t);
    const spins = (r & 0x1c00) == 0 ? OSQ_SPINS : <i32>((r >>> 13) & 255);
    if (osq_lock(p, spins, 0)) {
      write_section(p, t, r, 256);
      osq_unlock(p);
    } else {
      count(t, TORTURE_TIMEOUTS);
    }
    between(random(t));
  }
  return i;
}

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
