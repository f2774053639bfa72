// The lease timer: return probes that are pending for long hold a reference instead of a lease, so
// that a call which never returns does not hold up grace periods (C19).
//
// Once a period it walks the pending returns of every task, in a read section: instances are freed
// after a grace period, or reused only if no walk is under way (C21, letters in uretprobe.ts). The
// housekeeper runs it; and so does whoever waits for leases, since that may be the housekeeper. A
// round ends every lease that began before it: one lasts at most a period, and what a round takes.
// CPUs need not agree on the time, and it may jump: a round that seems further away than a period
// is due, so that nobody waits for longer by his own clock. The price is a round too many.
//
// plain: `task`: under the mutex of the list of tasks. `HDR_*` never changes.

import { HDR_LEASE_US, HDR_RCU, HDR_TABLE, HDR_URET_SRCU, PCPU_URET_SRCU } from "../layout";
import { add32, cas32, fence, load32, load64, store32, store64 } from "../atomics";
import { cpu_now } from "../cpu";
import { mutex_lock, mutex_unlock } from "../sync/mutex";
import { grace_is_late, grace_pause } from "../rcu/grace";
import {
  srcu_gp_begin,
  srcu_gp_end,
  srcu_gp_flip,
  srcu_gp_is_over,
  srcu_gp_stalled,
} from "../rcu/srcu";
import { srcu_read_lock_at, srcu_read_unlock_at } from "../rcu/srcu";
import { rcu_is_online, rcu_offline, rcu_online } from "../rcu/tasks_trace";
import { rcu_read_lock_trace, rcu_read_unlock_trace } from "../rcu/tasks_trace";
import { this_engine } from "./fault";
import { has_leases, hprobe_expire } from "./hprobe";
import { RI_NEXT } from "./return_instance";
import { table_strategy, table_tasks, tasks_mutex, TIMER_BUSY, TIMER_NEXT } from "./table";
import { RETURN_INSTANCES, RETURN_SEQ, TASK_NEXT } from "./task";

// One task: in a read section, and with its sequence odd.
function expire_leases(table: usize, task: usize): void {
  add32(task + RETURN_SEQ, 1); // F in uretprobe.ts
  fence();
  const domain = this_engine() + HDR_URET_SRCU;
  const idx = srcu_read_lock_at(domain, PCPU_URET_SRCU);
  for (
    let ri = <usize>load32(task + RETURN_INSTANCES); // G in uretprobe.ts
    ri != 0;
    ri = <usize>load32(ri + RI_NEXT)
  ) {
    hprobe_expire(table, ri, false);
  }
  srcu_read_unlock_at(idx, PCPU_URET_SRCU);
  add32(task + RETURN_SEQ, 1);
}

function round(table: usize): void {
  const rcu = this_engine() + HDR_RCU;
  mutex_lock(tasks_mutex(table)); // before this CPU is online: nobody waits for one that sleeps
  const was_online = rcu_is_online();
  if (!was_online) rcu_online(rcu);
  let task = <usize>load<u32>(table_tasks(table)); // plain: under the mutex
  while (task != 0) {
    if (load32(task + RETURN_INSTANCES) != 0) {
      rcu_read_lock_trace();
      expire_leases(table, task);
      rcu_read_unlock_trace(rcu);
    }
    task = <usize>load<u32>(task, TASK_NEXT);
  }
  if (!was_online) rcu_offline();
  mutex_unlock(tasks_mutex(table));
}

// @ts-ignore: decorator
@inline
function period_ns(): i64 {
  return <i64>load<i32>(this_engine(), HDR_LEASE_US) * 1000;
}

/** Nanoseconds until the next round is due; negative: there is never one. */
export function ri_timer_due(table: usize): i64 {
  if (!has_leases(table_strategy(table))) return -1;
  const left = load64(table + TIMER_NEXT) - cpu_now();
  return left < 0 || left > period_ns() ? 0 : left;
}

/** A round, if one is due and nobody else is at it. Not in a read section. */
export function ri_timer_run(table: usize): void {
  if (ri_timer_due(table) != 0 || cas32(table + TIMER_BUSY, 0, 1) != 0) return;
  store64(table + TIMER_NEXT, cpu_now() + period_ns());
  round(table);
  store32(table + TIMER_BUSY, 0);
}

/** `n` rounds, whatever the clock says, for those who look for races with them. */
export function ri_timer_rounds(n: i32): void {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  for (let i = n; i > 0; i--) {
    if (cas32(table + TIMER_BUSY, 0, 1) != 0) continue;
    round(table);
    store32(table + TIMER_BUSY, 0);
  }
}

/**
 * Returns when every lease that had been taken before the call has ended: at most a period and a
 * round later. Blocks; not in a section.
 */
export function synchronize_leases(table: usize): void {
  if (!has_leases(table_strategy(table))) return;
  const domain = this_engine() + HDR_URET_SRCU;
  srcu_gp_begin(domain);
  for (let flip = 0; flip < 2; flip++) {
    const idx = srcu_gp_flip(domain);
    const since = cpu_now();
    let late = false;
    for (let i = 0; !srcu_gp_is_over(domain, idx); i++) {
      grace_pause(i);
      ri_timer_run(table);
      if (late || !grace_is_late(domain, i, since)) continue;
      late = true;
      srcu_gp_stalled(domain, idx);
    }
  }
  srcu_gp_end(domain);
}
