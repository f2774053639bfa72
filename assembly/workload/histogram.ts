// A histogram of nanoseconds: log-linear, so that percentiles of any size are right to a share of
// themselves. One for each CPU that times something; the host merges them (src/harness/latency.ts).
//
//   offset  bytes             content
//        0     24             samples, their sum, the largest: i64
//       24      8             on: 0 drops what is recorded (a warm-up), set by the host; hits to go
//                           until the next one is timed
//       64  HIST_BUCKETS * 8  samples by size, i64
//
// Values below 128 have a bucket each. Above, each power of two is cut into 64 equal buckets: a
// bucket is never wider than 1/64 of its values, and reporting its upper end errs by at most 1.6 %,
// never to the better side. Values from 2^40 ns (18 minutes) on share a last bucket of their own;
// the largest and the sum are exact whatever the size.
//
// plain: `h`, `bucket`: its CPU's own; the host reads when the CPU has left, or takes a snapshot.

import { HIST_BITS, HIST_BUCKETS, HIST_BUCKETS_AT, HIST_COUNT, HIST_MAX } from "../layout";
import { HIST_ON, HIST_SUB_BITS, HIST_SUM } from "../layout";
import { load32 } from "../atomics";
import { cpu_now } from "../cpu";

/** Index of a value's bucket; the host has the same in src/harness/latency.ts. */
// @ts-ignore: decorator
@inline
function bucket_of(ns: i64): i32 {
  if (ns >> HIST_BITS != 0) return HIST_BUCKETS - 1;
  // Bits beyond the HIST_SUB_BITS + 1 leading ones are what a bucket does not tell apart.
  const shift = max(0, 63 - HIST_SUB_BITS - <i32>clz(ns));
  return (shift << HIST_SUB_BITS) + <i32>(ns >> shift);
}

/** One sample of the CPU that owns `h`. A clock that went backwards counts as 0. */
export function histogram_record(h: usize, ns: i64): void {
  if (load32(h + HIST_ON) == 0) return;
  const value: i64 = ns < 0 ? 0 : ns;
  store<i64>(h, load<i64>(h, HIST_COUNT) + 1, HIST_COUNT);
  store<i64>(h, load<i64>(h, HIST_SUM) + value, HIST_SUM);
  if (value > load<i64>(h, HIST_MAX)) store<i64>(h, value, HIST_MAX);
  const bucket = h + HIST_BUCKETS_AT + <usize>(bucket_of(value) << 3);
  store<i64>(bucket, load<i64>(bucket) + 1);
}

/** `n` samples of nothing: what every other sample has of the clock in it. */
export function time_nothing(h: usize, n: i32): void {
  for (let i = n; i > 0; i--) {
    const before = cpu_now();
    histogram_record(h, cpu_now() - before);
  }
}
