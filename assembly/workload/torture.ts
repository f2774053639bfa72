// What all torture of locks shares: random choices, delays, checked sections, the CPU's counters.
//
//   p + 0           the lock (refcount: set to 1 by the host; all others: zero is initialised)
//   p + LOCK_DATA   i64, raised by one plain increment per exclusive section: the host compares
//   p + LOCK_CHECK  what the checks look at: the words below, then A and B on lines of their own
//
// Counters are the CPU's own, at PCPU_TORTURE (layout.ts).
//
// plain: `TORTURE_*`, `counter`: the CPU's own block. `LOCK_DATA`, `CHECK_A`, `CHECK_B`: protected
// by the lock under test; they have to be plain, or the test would order what the lock fails to.

import { add32, load32 } from "../atomics";
import { cpu_delay, cpu_now, this_cpu, this_cpu_ptr } from "../cpu";
import { CHECK_A, CHECK_B, CHECK_READERS, CHECK_SECTIONS, CHECK_WRITER } from "../layout";
import { FAULT_EXCLUSION, FAULT_ORDER, FAULT_TIMEOUT, LOCK_CHECK, LOCK_DATA } from "../layout";
import { PCPU_TORTURE, TORTURE_BARGES, TORTURE_FAILS, TORTURE_LATE } from "../layout";
import { TORTURE_RANDOM, TORTURE_READS, TORTURE_WRITES } from "../layout";
import { raise_slow } from "../uprobe/fault";

/** A wait may be this late before anybody is blamed: the host may be busy, nanoseconds. */
const LATE_NS: i64 = 1_000_000_000;

// -- Random choices and delays -------------------------------------------------------------------

/** The CPU's counters, with its random state set up from `seed` on first use. */
export function torture_block(seed: i32): usize {
  const t = this_cpu_ptr(PCPU_TORTURE);
  if (load<u32>(t, TORTURE_RANDOM) == 0) {
    const mixed = (<u32>seed + 1) * 0x9e3779b9 + <u32>(this_cpu() + 1) * 0x85ebca6b;
    store<u32>(t, mixed | 1, TORTURE_RANDOM);
  }
  return t;
}

export function random(t: usize): u32 {
  let x = load<u32>(t, TORTURE_RANDOM);
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  store<u32>(t, x, TORTURE_RANDOM);
  return x;
}

// @ts-ignore: decorator
@inline
export function count(t: usize, counter: usize): void {
  store<i64>(t + counter, load<i64>(t + counter) + 1);
}

export function fail_slow(t: usize): void {
  count(t, TORTURE_FAILS);
  raise_slow(FAULT_EXCLUSION);
}

export function overtook_slow(t: usize): void {
  count(t, TORTURE_BARGES);
  raise_slow(FAULT_ORDER);
}

/**
 * A delay inside a section: mostly none or short; one in 512 some microseconds; one in 8192 longer
 * than any spin. `sleepy`: one in so many (a power of 2; 0: none) takes about as long as a sleeping
 * lock's waiters spin, so that they fall asleep and are woken just when the lock comes free.
 */
export function inside(r: u32, sleepy: i32): void {
  const kind = r >>> 19;
  if (kind == 0) cpu_delay(100_000);
  else if (sleepy != 0 && (kind & (sleepy - 1)) == 2) cpu_delay(<i32>(r & 0x7fff));
  else if ((kind & 511) == 1) cpu_delay(4_000);
  else if ((r & 3) != 0) cpu_delay(<i32>((r >>> 8) & 63));
}

/** A delay between sections, so that the lock is sometimes free and sometimes fought over. */
export function between(r: u32): void {
  if ((r & 0x30000) != 0) cpu_delay(<i32>((r >>> 18) & 127));
}

// -- The sections --------------------------------------------------------------------------------

export function write_section(p: usize, t: usize, r: u32, sleepy: i32): void {
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

export function read_section(p: usize, t: usize, r: u32, sleepy: i32): void {
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

/** The clock's verdict on a wait of `ns` that took `took`: not early, not absurdly late. */
export function judge_wait(t: usize, ns: i64, took: i64): void {
  if (took < ns || took > ns + LATE_NS) late_slow(t);
}

function late_slow(t: usize): void {
  count(t, TORTURE_LATE);
  raise_slow(FAULT_TIMEOUT);
}

/**
 * Now and then a CPU that finds a sleeping lock free (no bit of `held`), but with sleepers (bit
 * `slept`), keeps off until somebody takes it. A lost wake-up would otherwise hide: the next unlock
 * would make good for it.
 */
// @ts-ignore: decorator
@inline
export function look_for_sleepers(p: usize, t: usize, r: u32, held: i32, slept: i32): void {
  if ((r & 3) == 3) return;
  const word = load32(p);
  if ((word & held) == 0 && (word & slept) != 0) keep_off_slow(p, t, word);
}

function keep_off_slow(p: usize, t: usize, word: i32): void {
  const sections = load32(p + LOCK_CHECK + CHECK_SECTIONS);
  const until = cpu_now() + LATE_NS;
  while (load32(p) == word && load32(p + LOCK_CHECK + CHECK_SECTIONS) == sections) {
    if (cpu_now() > until) return late_slow(t);
  }
}
