// What the updaters of all flavours share: waiting for a reader without burning its core, and
// saying which CPU it is when that takes long.
//
//   offset  bytes  content, at the start of every flavour's struct
//        0      4  CPU that the updater waits for now, plus 1; 0: none
//        4      4  grace periods that were held up for longer than the limit
//        8      4  CPU of the last of those, plus 1; 0: it cannot be told (grace_stalled)
//       12      4  grace periods completed
//       20      4  the limit, milliseconds; 0: STALL_MS
// Written under the flavour's gp_mutex; the host reads them at any time, to report.

import { GP_COMPLETED, GP_STALLS, GP_STALL_CPU, GP_STALL_MS, GP_WAITS_FOR } from "../layout";
import { PCPU_GP_SLEEP } from "../layout";
import { add32, load32, store32 } from "../atomics";
import { cpu_now, this_cpu_ptr } from "../cpu";
import { park } from "../sync/park";

/** A reader that takes longer is reported: an engine's own sections last microseconds. */
const STALL_MS = 1000;
/** Looks at a CPU before the first sleep: readers of microseconds pass within. */
export const GRACE_LOOKS = 500;
const SLEEP_NS_MIN: i64 = 20_000;
const SLEEP_NS_MAX: i64 = 500_000;

/** The updater begins to wait for `cpu`; -1: it does not know whom. Returns the time. */
export function grace_waits(p: usize, cpu: i32): i64 {
  const now = cpu_now();
  store32(p + GP_WAITS_FOR, cpu + 1);
  return now;
}

/** One pause of a wait, the `i`-th: none at first, then ever longer sleeps. */
export function grace_pause(i: i32): void {
  if (i < GRACE_LOOKS) return;
  const doublings = <i64>min(i - GRACE_LOOKS, 5);
  park(this_cpu_ptr(PCPU_GP_SLEEP), 0, min(SLEEP_NS_MIN << doublings, SLEEP_NS_MAX));
}

/** Whether a wait since `since` has become a stall; asked until it says so, once a sleep. */
export function grace_is_late(p: usize, i: i32, since: i64): bool {
  if (i < GRACE_LOOKS) return false;
  const ms = load32(p + GP_STALL_MS);
  return cpu_now() - since >= <i64>(ms == 0 ? STALL_MS : ms) * 1_000_000;
}

/** `cpu` holds up the grace period, which goes on waiting; -1: some CPU does. */
export function grace_stalled(p: usize, cpu: i32): void {
  store32(p + GP_WAITS_FOR, cpu + 1);
  store32(p + GP_STALL_CPU, cpu + 1);
  add32(p + GP_STALLS, 1);
}

/** The grace period is over. */
export function grace_done(p: usize): void {
  store32(p + GP_WAITS_FOR, 0);
  add32(p + GP_COMPLETED, 1);
}
