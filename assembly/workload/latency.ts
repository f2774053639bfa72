// What is timed one by one: grace periods while others read, and a sample of all hits.
//
// A sample goes from one reading of the clock to the next, so it holds one call of the clock, which
// takes longer than a hit does. What that is, time_nothing says (histogram.ts); of a hit also what
// its batch begins and ends with, so each comes with a sample of an empty batch.
//
// plain: `count` and `HIST_LEFT` are the CPU's own words.

import { HIST_BYTES, HIST_LEFT, LATENCY_PERIOD, PCPU_COUNT, PRESET_FASTEST } from "../layout";
import { PRESET_MMAP_LOCK, PRESET_RWLOCK, PRESET_SPECULATIVE, PRESET_SPINLOCK } from "../layout";
import { PRESET_SIGLOCK, PRESET_SIGNAL_FLAG, PRESET_URET_POOL } from "../layout";
import { PRESET_SRCU, PRESET_TASKS_TRACE } from "../layout";
import { cpu_begin_batch, cpu_now, cpu_slept, this_cpu_ptr } from "../cpu";
import { synchronize_srcu } from "../rcu/srcu";
import { synchronize_rcu_qsbr, synchronize_rcu_tasks_trace } from "../rcu/tasks_trace";
import { histogram_record } from "./histogram";
import { trigger_siglock, trigger_siglock_many } from "./trigger";
import { trigger_signal_flag, trigger_signal_flag_many } from "./trigger";
import { trigger_uret_pool, trigger_uret_pool_many } from "./trigger";
import { trigger_spinlock, trigger_spinlock_many } from "./trigger";
import { trigger_rwlock, trigger_rwlock_many } from "./trigger";
import { trigger_srcu, trigger_srcu_many } from "./trigger";
import { trigger_tasks_trace, trigger_tasks_trace_many } from "./trigger";
import { trigger_mmap_lock, trigger_mmap_lock_many } from "./trigger";
import { trigger_speculative, trigger_speculative_many } from "./trigger";
import { trigger_fastest, trigger_fastest_many } from "./trigger_fast";

const SRCU: i32 = 0;
const TRACE: i32 = 1;
const QSBR: i32 = 2;

// -- Grace periods -------------------------------------------------------------------------------
// The readers are the read benches of workload/rcu.ts, on the other CPUs.

// @ts-ignore: decorator
@inline
function grace_periods(kind: i32, p: usize, h: usize, n: i32): i32 {
  const count = this_cpu_ptr(PCPU_COUNT);
  cpu_begin_batch();
  let i = 0;
  let before = cpu_now();
  while (i < n && !cpu_slept()) {
    if (kind == SRCU) synchronize_srcu(p);
    else if (kind == TRACE) synchronize_rcu_tasks_trace(p);
    else synchronize_rcu_qsbr(p);
    const now = cpu_now();
    histogram_record(h, now - before);
    store<i64>(count, load<i64>(count) + 1);
    before = now;
    i++;
  }
  return i;
}

/** `n` grace periods of the domain `p`, each timed into `h` and counted in PCPU_COUNT. */
export function gp_srcu(p: usize, h: usize, n: i32): i32 {
  return grace_periods(SRCU, p, h, n);
}
export function gp_tasks_trace(p: usize, h: usize, n: i32): i32 {
  return grace_periods(TRACE, p, h, n);
}
export function gp_qsbr(p: usize, h: usize, n: i32): i32 {
  return grace_periods(QSBR, p, h, n);
}

// -- Hits ----------------------------------------------------------------------------------------
// The preset's own entry, called for all but one of each period, then for none and for one between
// readings of the clock: the loop that is measured knows nothing of it.

// The preset is a constant in every caller, so this folds to one call.
// @ts-ignore: decorator
@inline
function trigger_entry(preset: i32, many: bool, task: usize, n: i32): i32 {
  if (preset == PRESET_SPINLOCK)
    return many ? trigger_spinlock_many(task, n) : trigger_spinlock(task, n);
  if (preset == PRESET_RWLOCK) return many ? trigger_rwlock_many(task, n) : trigger_rwlock(task, n);
  if (preset == PRESET_SRCU) return many ? trigger_srcu_many(task, n) : trigger_srcu(task, n);
  if (preset == PRESET_TASKS_TRACE)
    return many ? trigger_tasks_trace_many(task, n) : trigger_tasks_trace(task, n);
  if (preset == PRESET_MMAP_LOCK)
    return many ? trigger_mmap_lock_many(task, n) : trigger_mmap_lock(task, n);
  if (preset == PRESET_SPECULATIVE)
    return many ? trigger_speculative_many(task, n) : trigger_speculative(task, n);
  if (preset == PRESET_SIGLOCK)
    return many ? trigger_siglock_many(task, n) : trigger_siglock(task, n);
  if (preset == PRESET_SIGNAL_FLAG)
    return many ? trigger_signal_flag_many(task, n) : trigger_signal_flag(task, n);
  if (preset == PRESET_URET_POOL)
    return many ? trigger_uret_pool_many(task, n) : trigger_uret_pool(task, n);
  return many ? trigger_fastest_many(task, n) : trigger_fastest(task, n);
}

// @ts-ignore: decorator
@inline
function sampled(preset: i32, many: bool, task: usize, h: usize, n: i32): i32 {
  let left = load<i32>(h, HIST_LEFT); // batches may be shorter than a period
  let i = 0;
  while (i < n) {
    const done = trigger_entry(preset, many, task, min(n - i, left));
    i += done;
    left -= done;
    // The entry begins its batch anew each time: whether it slept is to be asked in between.
    if (cpu_slept() || i == n) break;
    const begin = cpu_now();
    trigger_entry(preset, many, task, 0);
    const before = cpu_now();
    i += trigger_entry(preset, many, task, 1);
    const after = cpu_now();
    histogram_record(h, after - before);
    histogram_record(h + HIST_BYTES, before - begin);
    left = LATENCY_PERIOD - 1;
    if (cpu_slept()) break;
  }
  store<i32>(h, left, HIST_LEFT);
  return i;
}

/** As trigger_*, with one in LATENCY_PERIOD hits timed into `h`, and as many empty batches into the
 *  histogram behind it. */
export function latency_spinlock(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_SPINLOCK, false, task, h, n);
}
export function latency_spinlock_many(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_SPINLOCK, true, task, h, n);
}
export function latency_rwlock(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_RWLOCK, false, task, h, n);
}
export function latency_rwlock_many(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_RWLOCK, true, task, h, n);
}
export function latency_srcu(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_SRCU, false, task, h, n);
}
export function latency_srcu_many(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_SRCU, true, task, h, n);
}
export function latency_tasks_trace(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_TASKS_TRACE, false, task, h, n);
}
export function latency_tasks_trace_many(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_TASKS_TRACE, true, task, h, n);
}
export function latency_mmap_lock(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_MMAP_LOCK, false, task, h, n);
}
export function latency_mmap_lock_many(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_MMAP_LOCK, true, task, h, n);
}
export function latency_speculative(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_SPECULATIVE, false, task, h, n);
}
export function latency_speculative_many(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_SPECULATIVE, true, task, h, n);
}
export function latency_fastest(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_FASTEST, false, task, h, n);
}
export function latency_fastest_many(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_FASTEST, true, task, h, n);
}
export function latency_siglock(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_SIGLOCK, false, task, h, n);
}
export function latency_siglock_many(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_SIGLOCK, true, task, h, n);
}
export function latency_signal_flag(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_SIGNAL_FLAG, false, task, h, n);
}
export function latency_signal_flag_many(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_SIGNAL_FLAG, true, task, h, n);
}
export function latency_uret_pool(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_URET_POOL, false, task, h, n);
}
export function latency_uret_pool_many(task: usize, h: usize, n: i32): i32 {
  return sampled(PRESET_URET_POOL, true, task, h, n);
}
