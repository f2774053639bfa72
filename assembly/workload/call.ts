// One counted call of a probed function, outside of the bench's loop: what churn checks itself
// with, and what users' modules import as wasmprobe.call. One entry a preset, as of the bench.
//
// Between two calls the CPU is offline: a user's loop may take as long as it likes, and sleep.
//
// plain: `TASK_*`, its stack (`sp`): private to its CPU (uprobe/task.ts); `HDR_*` is read-only
// while CPUs run.

import { EBUSY, EINVAL, HDR_STRATEGY, HDR_TABLE, INSN_TRAP, PRESET_FASTEST } from "../layout";
import { PRESET_MMAP_LOCK, PRESET_RWLOCK, PRESET_SPECULATIVE, PRESET_SPINLOCK } from "../layout";
import { PRESET_SIGLOCK, PRESET_SIGNAL_FLAG, PRESET_URET_POOL } from "../layout";
import { PRESET_SRCU, PRESET_TASKS_TRACE, TASK_HANDLED, TASK_MISSED_NO_PROBE } from "../layout";
import { TASK_STACK_TOP, TASK_TRIGGERS } from "../layout";
import { load8 } from "../atomics";
import { this_engine } from "../uprobe/fault";
import { HIT_HANDLED } from "../uprobe/hit";
import { readers_offline, readers_online } from "../uprobe/readers";
import { is_in_handler } from "../uprobe/sink";
import { RETURN_ADDRESS, TASK_SITE0, TASK_SITES, TASK_STRIDE, TASK_TEXT } from "../uprobe/task";
import { count, count_outcome, trap, user_execute } from "./user";

// 1 if a handler took it, 0 if not. EINVAL: not one of the task's functions. EBUSY: this CPU is in
// a handler, and a hit cannot hit.
// @ts-ignore: decorator
@inline
function call(strategy: i32, task: usize, vaddr: u32, argument: i32): i32 {
  const sites = load<u32>(task, TASK_SITES);
  if (vaddr - load<u32>(task, TASK_SITE0) > (sites - 1) * load<u32>(task, TASK_STRIDE)) {
    return EINVAL;
  }
  if (is_in_handler()) return EBUSY;
  count(task, TASK_TRIGGERS);
  const sp = task + TASK_STACK_TOP - 8;
  store<i64>(sp, <i64>RETURN_ADDRESS);
  const insn = <usize>load<u32>(task, TASK_TEXT) + <usize>vaddr;
  const opcode = load8(insn);
  if (opcode != INSN_TRAP) {
    user_execute(task, sp, opcode);
    count(task, TASK_MISSED_NO_PROBE);
    return 0;
  }
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  readers_online(strategy);
  const outcome = trap(strategy, table, task, insn, vaddr, argument);
  readers_offline(strategy);
  if (outcome != HIT_HANDLED) {
    count_outcome(task, outcome);
    return 0;
  }
  count(task, TASK_HANDLED);
  return 1;
}

export function call_spinlock(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_SPINLOCK, task, vaddr, argument);
}
export function call_rwlock(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_RWLOCK, task, vaddr, argument);
}
export function call_srcu(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_SRCU, task, vaddr, argument);
}
export function call_tasks_trace(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_TASKS_TRACE, task, vaddr, argument);
}
export function call_mmap_lock(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_MMAP_LOCK, task, vaddr, argument);
}
export function call_speculative(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_SPECULATIVE, task, vaddr, argument);
}
export function call_fastest(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_FASTEST, task, vaddr, argument);
}
export function call_siglock(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_SIGLOCK, task, vaddr, argument);
}
export function call_signal_flag(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_SIGNAL_FLAG, task, vaddr, argument);
}
export function call_uret_pool(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_URET_POOL, task, vaddr, argument);
}

/** One counted call by the engine's own strategy. */
export function trigger_call(task: usize, vaddr: u32): void {
  const strategy = load<i32>(this_engine(), HDR_STRATEGY);
  if (strategy == PRESET_SPINLOCK) call_spinlock(task, vaddr, 0);
  else if (strategy == PRESET_RWLOCK) call_rwlock(task, vaddr, 0);
  else if (strategy == PRESET_SRCU) call_srcu(task, vaddr, 0);
  else if (strategy == PRESET_TASKS_TRACE) call_tasks_trace(task, vaddr, 0);
  else if (strategy == PRESET_MMAP_LOCK) call_mmap_lock(task, vaddr, 0);
  else if (strategy == PRESET_SPECULATIVE) call_speculative(task, vaddr, 0);
  else if (strategy == PRESET_SIGLOCK) call_siglock(task, vaddr, 0);
  else if (strategy == PRESET_SIGNAL_FLAG) call_signal_flag(task, vaddr, 0);
  else if (strategy == PRESET_URET_POOL) call_uret_pool(task, vaddr, 0);
  else call_fastest(task, vaddr, 0);
}
