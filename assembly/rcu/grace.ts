// What the updaters of all flavours share: waiting for a reader without burning its core, and
// saying which CPU it is when that takes long.
//
//   offset  bytes  content, at the start of every flavour's struct
//        0      4  CPU that the updater waits for now, plus 1; 0: none
//        4      4  grace periods that were held up for longer than STALL_NS
//        8      4  CPU of the last of those, plus 1
//       12      4  grace periods completed

import { GP_COMPLETED, GP_STALLS, GP_STALL_CPU, GP_WAITS_FOR } from "../layout";
import { add32, store32 } from "../atomics";
import { cpu_now, this_cpu_ptr } from "../cpu";
import { PCPU_GP_SLEEP } from "../layout";
import { park } from "../sync/park";

/** A reader that takes longer is reported: an engine's own sections last microseconds. */
const STALL_NS: i64 = 1_000_000_000;
/** Looks at a CPU before the first sleep: readers of microseconds pass within. */
const LOOKS = 500;
const SLEEP_NS_MIN: i64 = 20_000;
const SLEEP_NS_MAX: i64 = 500_000;

/** The updater begins to wait for `cpu`. Returns the time, for grace_pause. */
export function grace_waits(p: usize, cpu: i32): i64 {
  store32(p + GP_WAITS_FOR, cpu + 1);
  return cpu_now();
}

/**
 * One pause of a wait, the `i`-th. Returns true once, when the wait has become a stall: the caller
 * goes on waiting.
 */
export function grace_pause(p: usize, i: i32, since: i64, reported: bool): bool {
  if (i < LOOKS) return false;
  const doublings = <i64>min(i - LOOKS, 5);
  park(this_cpu_ptr(PCPU_GP_SLEEP), 0, min(SLEEP_NS_MIN << doublings, SLEEP_NS_MAX));
  if (reported || cpu_now() - since < STALL_NS) return false;
  add32(p + GP_STALLS, 1);
  // plain: this updater's own word, under gp_mutex
  store32(p + GP_STALL_CPU, load<i32>(p, GP_WAITS_FOR));
  return true;
}

/** The grace period is over. */
export function grace_done(p: usize): void {
  store32(p + GP_WAITS_FOR, 0);
  add32(p + GP_COMPLETED, 1);
}
