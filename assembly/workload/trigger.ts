// The bench's trigger: a task that calls one-instruction functions, some of them probed.
//
// Each round counts its trigger, calls a function, fetches its instruction and executes it, and
// returns; a trap byte is a hit, and so is a return address that a return probe has swapped.
// Exactly one counter of outcome is raised per round, at the point where that outcome is known:
// triggers = handled + filtered + missed.
//
// A batch ends early if its CPU slept (cpu.ts); every entry returns the triggers it has done.
//
// One entry a preset: the strategy is a compile-time constant. A second one for more than one site,
// which draws the next site from the task's generator.
//
// plain: `TASK_*` and a task's stack (`sp`) are private to its CPU (uprobe/task.ts); `HDR_*` is
// read-only while CPUs run.

import { HDR_TABLE, INSN_TRAP, PRESET_MMAP_LOCK } from "../layout";
import { PRESET_RWLOCK, PRESET_SPECULATIVE, PRESET_SPINLOCK, PRESET_SRCU } from "../layout";
import {
  PRESET_SIGLOCK,
  PRESET_SIGNAL_FLAG,
  PRESET_TASKS_TRACE,
  PRESET_URET_POOL,
} from "../layout";
import { TASK_HANDLED, TASK_MISSED_NO_PROBE, TASK_SP } from "../layout";
import { TASK_TRIGGERS } from "../layout";
import { load8 } from "../atomics";
import { cpu_begin_batch, cpu_slept } from "../cpu";
import { this_engine } from "../uprobe/fault";
import { HIT_HANDLED } from "../uprobe/hit";
import { readers_offline, readers_online, readers_quiescent } from "../uprobe/readers";
import { return_to_user } from "../uprobe/signal";
import { RETURN_ADDRESS, TASK_SITE0, TASK_SITES, TASK_STRIDE, TASK_TEXT } from "../uprobe/task";
import {
  count,
  count_outcome,
  next_site,
  QUIET_ROUNDS,
  trap,
  trap_return,
  user_execute,
} from "./user";

// Two loops: the inner one is user mode, without a call out of it, so that all it uses stays in
// registers; a trap leaves it. Its two counters are locals that are stored every round, not words
// that are loaded again. It is left every QUIET_ROUNDS even so, for the readers' sake.
// @ts-ignore: decorator
@inline
function trigger(strategy: i32, many: bool, task: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  const text = <usize>load<u32>(task, TASK_TEXT);
  const site0 = load<u32>(task, TASK_SITE0);
  const stride = load<u32>(task, TASK_STRIDE);
  const sites = load<u32>(task, TASK_SITES);
  const caller = load<i64>(task, TASK_SP);
  const sp = <usize>caller - 8;
  cpu_begin_batch();
  readers_online(strategy);
  return_to_user(strategy, task); // a loop without a trap looks once a batch
  let i = 0;
  while (i < n && !cpu_slept()) {
    readers_quiescent(strategy);
    const until = min(i + QUIET_ROUNDS, n);
    let triggers = load<i64>(task, TASK_TRIGGERS);
    let no_probe = load<i64>(task, TASK_MISSED_NO_PROBE);
    let vaddr = site0;
    let trapped = false;
    do {
      if (many) vaddr = site0 + next_site(task, sites) * stride;
      store<i64>(task, ++triggers, TASK_TRIGGERS);
      store<i64>(sp, <i64>RETURN_ADDRESS);
      i++;
      const opcode = load8(text + <usize>vaddr);
      if (opcode == INSN_TRAP) {
        trapped = true;
        break;
      }
      user_execute(task, sp, opcode);
      store<i64>(task, ++no_probe, TASK_MISSED_NO_PROBE);
    } while (i < until);
    if (!trapped) continue;
    const outcome = trap(strategy, table, task, text + <usize>vaddr, vaddr, sp, i);
    if (outcome == HIT_HANDLED) count(task, TASK_HANDLED);
    else count_outcome(task, outcome);
    trap_return(strategy, table, task, sp);
  }
  store<i64>(task, caller, TASK_SP);
  readers_offline(strategy);
  return i;
}

// `n` triggers of the task's first site, by preset; and of its sites in random order.

export function trigger_spinlock(task: usize, n: i32): i32 {
  return trigger(PRESET_SPINLOCK, false, task, n);
}
export function trigger_spinlock_many(task: usize, n: i32): i32 {
  return trigger(PRESET_SPINLOCK, true, task, n);
}
export function trigger_rwlock(task: usize, n: i32): i32 {
  return trigger(PRESET_RWLOCK, false, task, n);
}
export function trigger_rwlock_many(task: usize, n: i32): i32 {
  return trigger(PRESET_RWLOCK, true, task, n);
}
export function trigger_srcu(task: usize, n: i32): i32 {
  return trigger(PRESET_SRCU, false, task, n);
}
export function trigger_srcu_many(task: usize, n: i32): i32 {
  return trigger(PRESET_SRCU, true, task, n);
}
export function trigger_tasks_trace(task: usize, n: i32): i32 {
  return trigger(PRESET_TASKS_TRACE, false, task, n);
}
export function trigger_tasks_trace_many(task: usize, n: i32): i32 {
  return trigger(PRESET_TASKS_TRACE, true, task, n);
}
export function trigger_mmap_lock(task: usize, n: i32): i32 {
  return trigger(PRESET_MMAP_LOCK, false, task, n);
}
export function trigger_mmap_lock_many(task: usize, n: i32): i32 {
  return trigger(PRESET_MMAP_LOCK, true, task, n);
}
export function trigger_speculative(task: usize, n: i32): i32 {
  return trigger(PRESET_SPECULATIVE, false, task, n);
}
export function trigger_speculative_many(task: usize, n: i32): i32 {
  return trigger(PRESET_SPECULATIVE, true, task, n);
}
export function trigger_siglock(task: usize, n: i32): i32 {
  return trigger(PRESET_SIGLOCK, false, task, n);
}
export function trigger_siglock_many(task: usize, n: i32): i32 {
  return trigger(PRESET_SIGLOCK, true, task, n);
}
export function trigger_signal_flag(task: usize, n: i32): i32 {
  return trigger(PRESET_SIGNAL_FLAG, false, task, n);
}
export function trigger_signal_flag_many(task: usize, n: i32): i32 {
  return trigger(PRESET_SIGNAL_FLAG, true, task, n);
}
export function trigger_uret_pool(task: usize, n: i32): i32 {
  return trigger(PRESET_URET_POOL, false, task, n);
}
export function trigger_uret_pool_many(task: usize, n: i32): i32 {
  return trigger(PRESET_URET_POOL, true, task, n);
}
