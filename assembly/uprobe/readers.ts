// What keeps a uprobe and its consumers alive during a hit, by strategy: a read section of SRCU, of
// RCU Tasks Trace, or, with QSBR, simply the time until the CPU's next quiet moment. Where hits
// take references instead (READERS_REFCOUNT) all of this folds to nothing.

import { HDR_RCU, HDR_SRCU, READERS_MASK, READERS_QSBR, READERS_SRCU } from "../layout";
import { READERS_TRACE } from "../layout";
import { srcu_read_lock, srcu_read_unlock, synchronize_srcu } from "../rcu/srcu";
import { rcu_offline, rcu_online, rcu_quiescent } from "../rcu/tasks_trace";
import { rcu_read_lock_trace, rcu_read_unlock_trace } from "../rcu/tasks_trace";
import { synchronize_rcu_qsbr, synchronize_rcu_tasks_trace } from "../rcu/tasks_trace";
import { this_engine } from "./fault";

/** Before this CPU's first hit of a batch. */
// @ts-ignore: decorator
@inline
export function readers_online(strategy: i32): void {
  const readers = strategy & READERS_MASK;
  if (readers == READERS_TRACE || readers == READERS_QSBR) rcu_online(this_engine() + HDR_RCU);
}

/** After its last: nobody waits for this CPU until it is online again. */
// @ts-ignore: decorator
@inline
export function readers_offline(strategy: i32): void {
  const readers = strategy & READERS_MASK;
  if (readers == READERS_TRACE || readers == READERS_QSBR) rcu_offline();
}

/** Between two hits: this CPU holds nothing. What QSBR lives on; the others say it themselves. */
// @ts-ignore: decorator
@inline
export function readers_quiescent(strategy: i32): void {
  const readers = strategy & READERS_MASK;
  if (readers == READERS_TRACE || readers == READERS_QSBR) rcu_quiescent(this_engine() + HDR_RCU);
}

/** Enters a read section; returns what readers_exit wants. */
// @ts-ignore: decorator
@inline
export function readers_enter(strategy: i32): i32 {
  const readers = strategy & READERS_MASK;
  if (readers == READERS_SRCU) return srcu_read_lock(this_engine() + HDR_SRCU);
  if (readers == READERS_TRACE) rcu_read_lock_trace();
  return 0;
}

// @ts-ignore: decorator
@inline
export function readers_exit(strategy: i32, idx: i32): void {
  const readers = strategy & READERS_MASK;
  if (readers == READERS_SRCU) srcu_read_unlock(this_engine() + HDR_SRCU, idx);
  else if (readers == READERS_TRACE) rcu_read_unlock_trace(this_engine() + HDR_RCU);
}

/** Returns when every hit that had begun has ended. Blocks; not to be called in a section. */
export function readers_synchronize(strategy: i32): void {
  const readers = strategy & READERS_MASK;
  if (readers == READERS_SRCU) synchronize_srcu(this_engine() + HDR_SRCU);
  else if (readers == READERS_TRACE) synchronize_rcu_tasks_trace(this_engine() + HDR_RCU);
  else if (readers == READERS_QSBR) synchronize_rcu_qsbr(this_engine() + HDR_RCU);
}
