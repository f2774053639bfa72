// SRCU, as the kernel's of 6.12: readers count themselves in and out in one of two halves, on lines
// of their own, with a full fence each way; the updater turns new readers over to the other half
// and waits until the old one is empty.
//
//   offset  bytes  struct at p, SRCU_BYTES         offset  per CPU, at `counts`
//        0     16  see grace.ts                      0, 4  lock counts of half 0 and 1
//       16      4  CPUs                             8, 12  unlock counts of half 0 and 1
//       20      4  see grace.ts
//       24      4  counts
//       32     32  gp_mutex: one at a time
//       64      4  idx: its low bit is the half of
//                  new readers; on its own line
//
// A reader may unlock on another CPU than it locked on: only the sums over all CPUs mean anything,
// and they wrap. The counts are the CPUs', not the domain's: a set of CPUs has as many domains as
// there are places for counts in their areas. The public functions are for the one at PCPU_SRCU.
//
// Reader: [A] idx, [B] lock count, fence, its section, fence, [C] unlock count.
// Updater, after the unlink: fence, [D] sum of unlocks, fence, [E] sum of locks, fence; for each
// half once it is left by new readers.
// Forbidden: memory freed after the grace period while a section that began before can reach it.
//   B's fence pairs with the one before D (store buffering: not both "I did not see the reader"
//   and "I did not see the unlink"). C's fence pairs with the one after E (message passing: what
//   the section read was read before C was seen).
//   Unlocks before locks (C13): whoever is seen leaving at D was in before, and E, later, sees that
//   entry too. So an entry that E counts without its exit makes the sums differ; the other way
//   round, a section that begins and ends between the sums would stand for one still inside.
// Both halves, one after the other (C13): a reader may read idx [A], be delayed past whole grace
// periods, and count itself [B] into either. With one flip a grace period would look at one half
// only, and free what such a reader found in the other.
// A section in which D missed B began after the fence: it sees the unlink, whichever half it is in.
//
// plain: `at`: a count has one writer, its CPU; what the updater may miss of it the fences say
//
// plain: `CPUS`, `COUNTS`: set by srcu_init, before there are readers; never change
//
// plain: `p`, `counts`: in srcu_init, before there are readers

import { LINE, PCPU_SRCU } from "../layout";
import { fence, load32, store32 } from "../atomics";
import { per_cpu_ptr, this_cpu_ptr } from "../cpu";
import { mutex_init, mutex_lock, mutex_unlock } from "../sync/mutex";
import { grace_done, grace_is_late, grace_pause, grace_stalled, grace_waits } from "./grace";

const CPUS = 16;
const COUNTS = 24;
const GP_MUTEX = 32;
const IDX = 64;
const UNLOCKS = 8;

/** `cpus`: how many CPUs' blocks there are. Zeroes their counts: before the first reader. */
export function srcu_init(p: usize, cpus: i32): void {
  srcu_init_at(p, cpus, PCPU_SRCU);
}
/** A domain whose counts are at `counts` of each CPU's area (a PCPU_ constant). */
export function srcu_init_at(p: usize, cpus: i32, counts: i32): void {
  memory.fill(p, 0, 2 * LINE);
  store<i32>(p, cpus, CPUS);
  store<i32>(p, counts, COUNTS);
  mutex_init(p + GP_MUTEX);
  for (let cpu = 0; cpu < cpus; cpu++) memory.fill(per_cpu_ptr(counts, cpu), 0, 16);
}

/** Enters a read section; returns what the matching unlock wants. Nests. */
// @ts-ignore: decorator
@inline
export function srcu_read_lock(p: usize): i32 {
  return srcu_read_lock_at(p, PCPU_SRCU);
}
/** The same; `counts`: the domain's, here a constant. */
// @ts-ignore: decorator
@inline
export function srcu_read_lock_at(p: usize, counts: i32): i32 {
  const idx = load32(p + IDX) & 1; // A
  const at = this_cpu_ptr(counts) + <usize>(idx << 2);
  store<i32>(at, load<i32>(at) + 1); // B
  fence();
  return idx;
}

/**
 * The same; what the unlock wants is stored at `idx_at`, behind the fence as all that was stored
 * before: a plain store that follows publishes it.
 */
// @ts-ignore: decorator
@inline
export function srcu_read_lock_into(p: usize, counts: i32, idx_at: usize): void {
  const idx = load32(p + IDX) & 1; // A
  const at = this_cpu_ptr(counts) + <usize>(idx << 2);
  store<i32>(at, load<i32>(at) + 1); // B
  store<i32>(idx_at, idx); // plain: the caller's own
  fence();
}

// @ts-ignore: decorator
@inline
export function srcu_read_unlock(p: usize, idx: i32): void {
  srcu_read_unlock_at(idx, PCPU_SRCU);
}
// @ts-ignore: decorator
@inline
export function srcu_read_unlock_at(idx: i32, counts: i32): void {
  fence();
  const at = this_cpu_ptr(counts) + <usize>(UNLOCKS + (idx << 2));
  store<i32>(at, load<i32>(at) + 1); // C
}

/** Entries minus exits over all CPUs: 0 when nobody is inside, and nobody comes or goes. */
export function srcu_readers(p: usize): i32 {
  const cpus = load<i32>(p, CPUS);
  const counts = load<i32>(p, COUNTS);
  let inside = 0;
  for (let cpu = 0; cpu < cpus; cpu++) {
    const at = per_cpu_ptr(counts, cpu);
    inside += load32(at) + load32(at + 4) - load32(at + UNLOCKS) - load32(at + UNLOCKS + 4);
  }
  return inside;
}

// Whether nobody was inside at some moment between D and E.
function half_is_empty(p: usize, idx: i32): bool {
  const cpus = load<i32>(p, CPUS);
  const counts = load<i32>(p, COUNTS);
  let unlocks = 0;
  for (let cpu = 0; cpu < cpus; cpu++) {
    unlocks += load32(per_cpu_ptr(counts, cpu) + <usize>(UNLOCKS + (idx << 2))); // D
  }
  fence();
  let locks = 0;
  for (let cpu = 0; cpu < cpus; cpu++) {
    locks += load32(per_cpu_ptr(counts, cpu) + <usize>(idx << 2)); // E
  }
  return locks == unlocks;
}

// A CPU with more entries than exits, for the report: right unless a section moved between CPUs.
// -1: there is none now.
function busy_cpu(p: usize, idx: i32): i32 {
  const cpus = load<i32>(p, CPUS);
  const counts = load<i32>(p, COUNTS);
  for (let cpu = 0; cpu < cpus; cpu++) {
    const at = per_cpu_ptr(counts, cpu) + <usize>(idx << 2);
    const out = load32(at + UNLOCKS);
    if (load32(at) - out > 0) return cpu;
  }
  return -1;
}

function wait_for_half(p: usize, idx: i32): void {
  if (half_is_empty(p, idx)) return;
  const since = grace_waits(p, busy_cpu(p, idx));
  let late = false;
  for (let i = 0; !half_is_empty(p, idx); i++) {
    grace_pause(i);
    if (late || !grace_is_late(p, i, since)) continue;
    late = true;
    grace_stalled(p, busy_cpu(p, idx));
  }
}

// The grace period in steps, for those who have something else to do while they wait: begin, twice
// (flip, until it is over), end. What lies between begin and end excludes other grace periods.

export function srcu_gp_begin(p: usize): void {
  fence();
  mutex_lock(p + GP_MUTEX);
}
/** New readers go to the other half; returns the one to be waited for. */
export function srcu_gp_flip(p: usize): i32 {
  const idx = load32(p + IDX);
  store32(p + IDX, idx + 1);
  fence();
  return idx & 1;
}
export function srcu_gp_is_over(p: usize, idx: i32): bool {
  if (!half_is_empty(p, idx)) return false;
  fence();
  return true;
}
export function srcu_gp_stalled(p: usize, idx: i32): void {
  grace_stalled(p, busy_cpu(p, idx));
}
export function srcu_gp_end(p: usize): void {
  grace_done(p);
  mutex_unlock(p + GP_MUTEX);
}

/**
 * Returns when every section that had begun before the call has ended, on any CPU. Sections that
 * begin later are not waited for, but for one a CPU, counted into the half that it was about to
 * leave. Blocks; not to be called in a section: it would wait for itself.
 */
export function synchronize_srcu(p: usize): void {
  srcu_gp_begin(p);
  for (let flip = 0; flip < 2; flip++) {
    wait_for_half(p, srcu_gp_flip(p));
    fence();
  }
  srcu_gp_end(p);
}
