// Torture of waits that give up: timed locks of the mutex, and the spin queue by itself (C26). What
// is checked, and where: locktorture.ts, torture.ts.

import { cpu_begin_batch, cpu_now, cpu_slept } from "../cpu";
import { TORTURE_TIMEOUTS } from "../layout";
import { mutex_lock, mutex_lock_timeout, mutex_unlock } from "../sync/mutex";
import { OSQ_SPINS, osq_lock, osq_unlock } from "../sync/osq";
import { between, count, judge_wait, look_for_sleepers, random } from "./torture";
import { torture_block, write_section } from "./torture";

/** A timed lock, whose failure is judged by the clock; false if it failed. */
function lock_in_time(p: usize, t: usize, ns: i64): bool {
  const start = cpu_now();
  if (mutex_lock_timeout(p, ns) != 0) return true;
  judge_wait(t, ns, cpu_now() - start);
  count(t, TORTURE_TIMEOUTS);
  return false;
}

/**
 * A storm of timed locks that give up: waits of 0 to some 130 us against sections that are
 * sometimes longer, through spinning, the spin queue and the wait list alike.
 */
export function torture_mutex_timed(p: usize, seed: i32, n: i32): i32 {
  const t = torture_block(seed);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const r = random(t);
    const ns: i64 = (r & 0x6000) == 0 ? <i64>(r >>> 25) : <i64>(r >>> 15);
    if ((r & 0x1c00) == 0) mutex_lock(p);
    else if (!lock_in_time(p, t, ns)) continue;
    write_section(p, t, r, 16);
    mutex_unlock(p);
    between(random(t));
    // Seldom: only a CPU that comes back at once overtakes a waiter, which then asks for hand-over.
    if ((r & 28) == 0) look_for_sleepers(p, t, r, ~7, 1);
  }
  return i;
}

/** Timed locks only, of up to 4 ms: for a mutex that somebody else holds all the time. */
export function torture_mutex_expired(p: usize, seed: i32, n: i32): i32 {
  const t = torture_block(seed);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const r = random(t);
    if (!lock_in_time(p, t, <i64>(r >>> 10))) continue;
    write_section(p, t, r, 0);
    mutex_unlock(p);
  }
  return i;
}

/** The spin queue alone, as a lock, with waiters that give up after any number of steps. */
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
