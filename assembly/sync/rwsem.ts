// Reader-writer semaphore: the kernel's rwsem, on one line on purpose (design rule 8): count, owner
// and the wait queue are neighbours, and the readers' store of the owner dirties the line a third
// time per pair, as it does there.
//
//   offset 0   count: [0] a writer holds it  [1] WAITERS, the list is not empty
//                     [2] HANDOFF, no more stealing: the first waiter is next
//                     [31:8] readers, in units of 256
//          8   owner, a hint: (CPU number + 1) << 2, [0] set: readers own it and the CPU was one of
//              them. Cleared by writers only, so it goes stale when readers leave
//          16  osq · 20 wait_lock · 24 wait_list (first 24, last 32)
// Legal counts: 0 · n*256 · 1, each with any of WAITERS, WAITERS|HANDOFF. Readers that failed add
//        n*256 for a moment on top of everything: whoever backs out looks whether it has to wake.
//
// Guarantees: G1 a writer excludes everybody. G2 no wake-up is lost: who leaves last with WAITERS
// set takes wait_lock and wakes the front of the list; who queues sets WAITERS first and then looks
// at the count once more. G3 a waiter that was overtaken for 4 ms sets HANDOFF when it next fails;
// then nobody overtakes. G4 with a writer waiting, a reader goes in only if no other reader is
// inside (else it queues), so readers cannot keep a writer out by overlapping.
// Progress: blocking.

import { add32, cas32, load32, or32, store32 } from "../atomics";
import { cpu_now, this_cpu, this_cpu_ptr } from "../cpu";
import { PCPU_WAITER } from "../layout";
import { OSQ_SPINS, osq_init, osq_lock, osq_unlock } from "./osq";
import { park } from "./park";
import { qspin_init, qspin_lock, qspin_unlock } from "./qspinlock";
import {
  WAIT_READ,
  WAIT_WRITE,
  wait_cpu,
  wait_handoff,
  wait_kind,
  wait_list_add,
  wait_list_del,
  wait_list_first,
  wait_list_init,
  wait_next,
  wait_notify,
  wait_prepare,
  wait_set_handoff,
  wait_set_next,
  wait_timeout,
  wait_wake,
  wait_word,
} from "./wait_list";

const WRITER: i32 = 1;
const WAITERS: i32 = 2;
const HANDOFF: i32 = 4;
const READER: i32 = 0x100;
const READER_SHIFT: i32 = 8;
const READERS: i32 = ~0xff;
const LOCKED: i32 = WRITER | READERS;
const READ_FAILED: i32 = WRITER | WAITERS | HANDOFF;

const OWNER: usize = 8;
const OSQ: usize = 16;
const WAIT_LOCK: usize = 20;
const WAIT_LIST: usize = 24;
const READER_OWNED: i32 = 1;
const OWNER_SHIFT: i32 = 2;

// What a waker knows about the lock: nobody is inside, readers are, or the caller is as a reader.
const FREE: i32 = 0;
const READ: i32 = 1;
const OURS: i32 = 2;

/** Looks at the count before a CPU rather sleeps: about as long as a sleep and a wake-up take. */
const OWNER_SPINS: i32 = 10_000;
/** How long a waiter lets itself be overtaken, nanoseconds (the kernel's 4 ms). */
const HANDOFF_NS: i64 = 4_000_000;

export function rwsem_init(p: usize): void {
  store32(p, 0);
  store32(p + OWNER, 0);
  osq_init(p + OSQ);
  qspin_init(p + WAIT_LOCK);
  wait_list_init(p + WAIT_LIST);
}

// plain: the owner is a hint that only decides how long to spin and whether to queue, never who is
// inside. It is stored between the two updates of count, which order it like everything inside.
// @ts-ignore: decorator
@inline
function set_reader_owned(p: usize, cpu: i32): void {
  store<i32>(p + OWNER, ((cpu + 1) << OWNER_SHIFT) | READER_OWNED);
}
// plain: as above
// @ts-ignore: decorator
@inline
function set_writer_owned(p: usize): void {
  store<i32>(p + OWNER, (this_cpu() + 1) << OWNER_SHIFT);
}

// @ts-ignore: decorator
@inline
export function down_read(p: usize): void {
  const count = add32(p, READER); // [A] announce and look at once: pairs with [W]
  if ((count & READ_FAILED) == 0) set_reader_owned(p, this_cpu());
  else down_read_slow(p, count + READER);
}

export function down_read_trylock(p: usize): bool {
  let count = load32(p);
  while ((count & READ_FAILED) == 0) {
    const before = cas32(p, count, count + READER); // [A]
    if (before == count) {
      set_reader_owned(p, this_cpu());
      return true;
    }
    count = before;
  }
  return false;
}

// @ts-ignore: decorator
@inline
export function up_read(p: usize): void {
  const count = add32(p, -READER) - READER; // [B]
  // Last one out, and somebody sleeps. A reader on its way out at [C] counts: it looks itself.
  if ((count & (LOCKED | WAITERS)) == WAITERS) rwsem_wake_slow(p);
}

// @ts-ignore: decorator
@inline
export function down_write(p: usize): void {
  if (cas32(p, 0, WRITER) == 0)
    set_writer_owned(p); // [W]
  else down_write_slow(p);
}

export function down_write_trylock(p: usize): bool {
  if (load32(p) != 0 || cas32(p, 0, WRITER) != 0) return false; // [W]
  set_writer_owned(p);
  return true;
}

// @ts-ignore: decorator
@inline
export function up_write(p: usize): void {
  store<i32>(p + OWNER, 0); // plain: a hint, ordered by [U]
  if ((add32(p, -WRITER) & WAITERS) != 0) rwsem_wake_slow(p); // [U]
}

/** `count`: what our own announcement [A] left in the word. */
export function down_read_slow(p: usize, count: i32): void {
  const readers = count >>> READER_SHIFT;
  const owner = load32(p + OWNER);
  const amongReaders = (owner & READER_OWNED) != 0 && readers > 1 && (count & WRITER) == 0;
  if (!amongReaders && (count & (WRITER | HANDOFF)) == 0) {
    // Steal: nobody is inside, and nobody insists. Take the other waiting readers along.
    set_reader_owned(p, this_cpu());
    if (readers == 1 && (count & WAITERS) != 0) {
      qspin_lock(p + WAIT_LOCK);
      let chain: usize = 0;
      if (wait_list_first(p + WAIT_LIST) != 0) chain = mark_wake(p, OURS);
      qspin_unlock(p + WAIT_LOCK);
      wake_slow(chain);
    }
    return;
  }

  const node = this_cpu_ptr(PCPU_WAITER);
  qspin_lock(p + WAIT_LOCK);
  let change = -READER;
  if (wait_list_first(p + WAIT_LIST) == 0) {
    // Nobody waits and no writer is inside any more: our announcement stands.
    if ((load32(p) & WRITER) == 0) {
      qspin_unlock(p + WAIT_LOCK);
      set_reader_owned(p, this_cpu());
      return;
    }
    change += WAITERS;
  }
  wait_prepare(node);
  wait_list_add(p + WAIT_LIST, node, WAIT_READ, cpu_now() + HANDOFF_NS);
  // [C] No longer announced, but waiting. Our announcement may have kept the last one out from
  // waking (it saw a reader): so whoever backs out wakes if the lock is free now.
  const chain = mark_wake_if_free(p, add32(p, change) + change);
  qspin_unlock(p + WAIT_LOCK);
  wake_slow(chain);
  // A grant ([G]) is the lock itself; nothing else stores `woken` of a waiting reader.
  while (load32(wait_word(node)) == 0) park(wait_word(node), 0, -1);
}

export function down_write_slow(p: usize): void {
  if (rwsem_spin_slow(p)) return;

  const node = this_cpu_ptr(PCPU_WAITER);
  qspin_lock(p + WAIT_LOCK);
  wait_prepare(node);
  if (wait_list_add(p + WAIT_LIST, node, WAIT_WRITE, cpu_now() + HANDOFF_NS)) {
    or32(p, WAITERS); // [D] then try below. Pairs with [B] and [U]: leave, then look at WAITERS
  } else {
    const chain = mark_wake_if_free(p, load32(p));
    if (chain != 0) {
      qspin_unlock(p + WAIT_LOCK);
      wake_slow(chain);
      qspin_lock(p + WAIT_LOCK);
    }
  }
  while (!try_write_lock(p, node)) {
    const spin = wait_handoff(node);
    qspin_unlock(p + WAIT_LOCK);
    // After asking for hand-over the lock is ours as soon as it is free: worth a short spin.
    if (!spin || !spin_until_free(p)) park(wait_word(node), 0, -1);
    // Before the next try: who leaves after that try stores `woken` after this.
    wait_prepare(node);
    qspin_lock(p + WAIT_LOCK);
  }
  qspin_unlock(p + WAIT_LOCK);
}

/** A waiting writer's attempt, under wait_lock. On success it is off the list. */
function try_write_lock(p: usize, node: usize): bool {
  const list = p + WAIT_LIST;
  const first = wait_list_first(list);
  let count = load32(p);
  let wanted = 0;
  for (;;) {
    if ((count & HANDOFF) != 0 && first != node && wait_handoff(first)) return false;
    wanted = count;
    if ((count & LOCKED) != 0) {
      if ((count & HANDOFF) != 0 || cpu_now() < wait_timeout(node)) return false;
      wanted |= HANDOFF;
    } else {
      wanted = (wanted | WRITER) & ~HANDOFF;
      if (first == node && wait_next(node) == 0) wanted &= ~WAITERS;
    }
    const before = cas32(p, count, wanted); // [W]
    if (before == count) break;
    count = before;
  }
  if ((wanted & HANDOFF) != 0) {
    wait_set_handoff(first);
    return false;
  }
  wait_list_del(list, node);
  set_writer_owned(p);
  return true;
}

/** Bounded wait for a lock that nobody may steal; true when it is free. */
function spin_until_free(p: usize): bool {
  for (let i = 0; i < OWNER_SPINS; i++) {
    if ((load32(p) & LOCKED) == 0) return true;
  }
  return false;
}

/**
 * Optimistic spinning of a writer that is not on the list, one at a time through the osq. The
 * kernel spins while the owner runs; user space cannot know that, so the spin has a bound.
 */
function rwsem_spin_slow(p: usize): bool {
  if (!osq_lock(p + OSQ, OSQ_SPINS, 0)) return false;
  let got = false;
  for (let i = 0; i < OWNER_SPINS; i++) {
    const count = load32(p);
    if ((count & (LOCKED | HANDOFF)) == 0 && cas32(p, count, count | WRITER) == count) {
      // [W]
      set_writer_owned(p);
      got = true;
      break;
    }
  }
  osq_unlock(p + OSQ);
  return got;
}

/** The last one out wakes the front of the list. */
export function rwsem_wake_slow(p: usize): void {
  let chain: usize = 0;
  qspin_lock(p + WAIT_LOCK);
  if (wait_list_first(p + WAIT_LIST) != 0) chain = mark_wake(p, FREE);
  qspin_unlock(p + WAIT_LOCK);
  wake_slow(chain);
}

/** Under wait_lock. `count`: the word as it was left by our own update of it. */
function mark_wake_if_free(p: usize, count: i32): usize {
  if ((count & WRITER) != 0) return 0;
  return mark_wake(p, (count & READERS) == 0 ? FREE : READ);
}

/**
 * Under wait_lock, list not empty; `state` says who is inside. Front is a writer: marks it, if
 * nobody is; it will try by itself. Front is a reader: gives the lock to all waiting readers.
 * Returns what wake_slow has to notify.
 */
function mark_wake(p: usize, state: i32): usize {
  const first = wait_list_first(p + WAIT_LIST);
  if (wait_kind(first) == WAIT_WRITE) {
    if (state != FREE) return 0;
    wait_wake(first); // on the list, under wait_lock (wait_list.ts)
    return first | 1;
  }
  return grant_readers(p, state != OURS);
}

/**
 * Under wait_lock. Takes all readers off the list and counts them in. `announce`: the first grant
 * comes before the rest is counted, to find out whether a writer stole the lock. Returns the chain
 * of nodes; they are ours alone until wake_slow stores their `woken`.
 */
function grant_readers(p: usize, announce: bool): usize {
  const list = p + WAIT_LIST;
  const first = wait_list_first(list);
  let change = 0;
  if (announce) {
    change = READER;
    const count = add32(p, READER); // [A]
    if ((count & WRITER) != 0) {
      // A writer was quicker; it will wake again. Too often: insist on hand-over.
      if (cpu_now() >= wait_timeout(first)) {
        if ((count & HANDOFF) == 0) change -= HANDOFF;
        wait_set_handoff(first);
      }
      add32(p, -change);
      return 0;
    }
    set_reader_owned(p, wait_cpu(first));
  }

  let chain: usize = 0;
  let tail: usize = 0;
  let granted = 0;
  let empty: bool = false;
  for (let node = first; node != 0;) {
    const next = wait_next(node);
    if (wait_kind(node) == WAIT_READ) {
      empty = wait_list_del(list, node);
      if (tail != 0) wait_set_next(tail, node);
      else chain = node;
      wait_set_next(node, 0);
      tail = node;
      granted++;
    }
    node = next;
  }
  // Counted in before any of them is told, or one could leave before it was counted.
  change = granted * READER - change;
  const count = load32(p);
  if (empty) change -= WAITERS;
  if ((empty || granted > 0) && (count & HANDOFF) != 0) change -= HANDOFF;
  if (change != 0) add32(p, change);
  return chain;
}

/** Without wait_lock: tells every granted reader of the chain, or notifies the marked writer. */
function wake_slow(chain: usize): void {
  if ((chain & 1) != 0) {
    wait_notify(chain & ~1);
    return;
  }
  while (chain != 0) {
    const node = chain;
    chain = wait_next(node); // before [G]: after it the node is its CPU's again
    wait_wake(node); // [G]
    wait_notify(node);
  }
}
