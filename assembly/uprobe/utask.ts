// The life of a task beyond its creation: fork and exit, with what uprobes keep for it.
//
// plain: `TASK_*`, `RETURN_*` of a task that its own CPU forks, or that nobody executes
// any more; `child`, `copy`, `stack`: nobody else's yet. `RI_*` as in return_instance.ts. `HDR_*`
// never changes.

import { HDR_ARENA, HDR_RCU, HDR_URET_SRCU, PCPU_URET_SRCU, RETURN_MASK } from "../layout";
import { RETURN_SECTION } from "../layout";
import { TASK_BYTES, TASK_RETURN_ENTRIES } from "../layout";
import { TASK_RETURN_PENDING, TASK_SP, TASK_TRIGGERS } from "../layout";
import { arena_alloc, arena_free } from "../mm/arena";
import { srcu_read_lock_at, srcu_read_unlock_at } from "../rcu/srcu";
import { rcu_is_online, rcu_offline, rcu_online } from "../rcu/tasks_trace";
import { rcu_read_lock_trace, rcu_read_unlock_trace } from "../rcu/tasks_trace";
import { this_engine } from "./fault";
import { has_leases, HPROBE_STABLE, hprobe_expire, hprobe_init_stable } from "./hprobe";
import { ri_alloc, RI_CHAINED, RI_COOKIE, RI_FUNC, RI_MORE, RI_NEXT } from "./return_instance";
import { ri_of_stack, RI_ORIG, RI_SESSION, RI_STACK, RI_STATE, RI_UPROBE } from "./return_instance";
import { get_uprobe, table_strategy } from "./table";
import { RETURN_INSTANCES, TASK_FRAME, task_link, TASK_MM } from "./task";
import { TASK_PID, TASK_SITE0, TASK_SITES, TASK_STACK_AT, TASK_STACK_SIZE } from "./task";
import { TASK_STRIDE, TASK_TEXT, task_text, task_unlink } from "./task";
import { del_thread_breakpoints, TASK_BREAKPOINTS_LOCK } from "./thread_breakpoints";
import { thread_breakpoints_init } from "./thread_breakpoints";
import { returns_free, returns_settle } from "./uretprobe";

function free_memory(arena: usize, task: usize): void {
  const stack = <usize>load<u32>(task, TASK_STACK_AT);
  if (stack != 0) arena_free(arena, stack, load<i32>(task, TASK_STACK_SIZE));
  arena_free(arena, task, TASK_BYTES);
}

/** The task ends: nobody executes it any more. Its pending returns will never come. */
export function task_destroy(table: usize, task: usize): void {
  task_unlink(task);
  returns_free(table_strategy(table), table, task);
  del_thread_breakpoints(table, task, 0, u32.MAX_VALUE);
  free_memory(<usize>load<u32>(this_engine(), HDR_ARENA), task);
}

// dup_return_instance: the child's copy holds a reference, or nothing: a lease cannot be shared.
function copy_instance(strategy: i32, table: usize, ri: usize, copy: usize, delta: i32): void {
  store<u32>(copy, load<u32>(ri, RI_FUNC), RI_FUNC);
  store<u32>(copy, load<u32>(ri, RI_STACK) + delta, RI_STACK);
  store<u32>(copy, load<u32>(ri, RI_ORIG), RI_ORIG);
  store<i32>(copy, load<i32>(ri, RI_CHAINED), RI_CHAINED);
  store<i32>(copy, load<i32>(ri, RI_SESSION), RI_SESSION);
  store<i64>(copy, load<i64>(ri, RI_COOKIE), RI_COOKIE);
  let u: usize = 0;
  if (has_leases(strategy)) {
    const rcu = this_engine() + HDR_RCU;
    const was_online = rcu_is_online();
    if (!was_online) rcu_online(rcu);
    rcu_read_lock_trace();
    const idx = srcu_read_lock_at(this_engine() + HDR_URET_SRCU, PCPU_URET_SRCU);
    u = hprobe_expire(table, ri, true);
    srcu_read_unlock_at(idx, PCPU_URET_SRCU);
    rcu_read_unlock_trace(rcu);
    if (!was_online) rcu_offline();
  } else if (load<i32>(ri, RI_STATE) == HPROBE_STABLE) {
    // The parent, whose CPU this is, holds it.
    u = <usize>load<u32>(ri, RI_UPROBE);
    get_uprobe(u);
  }
  hprobe_init_stable(copy, u);
}

// dup_utask. False: there is no memory for all of them.
function copy_instances(
  strategy: i32,
  table: usize,
  parent: usize,
  child: usize,
  delta: i32,
): bool {
  const pending = load<i32>(parent, TASK_RETURN_PENDING);
  let newer: usize = 0;
  let ri = <usize>load<u32>(parent, RETURN_INSTANCES);
  for (let i = pending - 1; i >= 0; i--) {
    const in_stack = (strategy & RETURN_MASK) == RETURN_SECTION;
    const copy = in_stack ? ri_of_stack(child, i) : ri_alloc();
    if (copy == 0) return false;
    copy_instance(strategy, table, ri, copy, delta);
    copy_sessions(ri, copy);
    store<u32>(copy, 0, RI_NEXT);
    if (newer != 0) store<u32>(newer, <u32>copy, RI_NEXT);
    else store<u32>(child, <u32>copy, RETURN_INSTANCES);
    store<i32>(child, load<i32>(child, TASK_RETURN_PENDING) + 1, TASK_RETURN_PENDING);
    newer = copy;
    ri = <usize>load<u32>(ri, RI_NEXT);
  }
  return true;
}

// Without memory a session's return is not seen in the child, as at an entry.
function copy_sessions(ri: usize, copy: usize): void {
  for (let more = <usize>load<u32>(ri, RI_MORE); more != 0;) {
    const at = ri_alloc();
    if (at == 0) return;
    store<i32>(at, load<i32>(more, RI_SESSION), RI_SESSION);
    store<i64>(at, load<i64>(more, RI_COOKIE), RI_COOKIE);
    store<u32>(at, load<u32>(copy, RI_MORE), RI_MORE);
    store<u32>(copy, <u32>at, RI_MORE);
    more = <usize>load<u32>(more, RI_MORE);
  }
}

/** Whether `mm` has what a task executes. */
export function task_fits(task: usize, mm: usize): bool {
  const sites = load<i32>(task, TASK_SITES);
  return task_text(mm, load<u32>(task, TASK_SITE0), load<i32>(task, TASK_STRIDE), sites) != 0;
}

/**
 * A child of `parent` in the address space `mm`, a copy of the parent's (the parent's own for a
 * thread), at the same place of the program, with a copy of the stack: its pending returns are its
 * own, and it will meet the trampoline as the parent does. On the parent's CPU, or while nobody
 * executes it. Its counters begin with the entries that it inherits. 0: the arena is full, or `mm`
 * has not what the parent executes.
 */
export function task_fork(table: usize, parent: usize, mm: usize, pid: i32): usize {
  const arena = <usize>load<u32>(this_engine(), HDR_ARENA);
  const strategy = table_strategy(table);
  const site0 = load<u32>(parent, TASK_SITE0);
  const text = task_text(mm, site0, load<i32>(parent, TASK_STRIDE), load<i32>(parent, TASK_SITES));
  if (text == 0) return 0;
  returns_settle(strategy, parent);
  const child = arena_alloc(arena, TASK_BYTES);
  if (child == 0) return 0;
  memory.copy(child, parent, TASK_BYTES); // registers, program, stack
  // Counters, and what only the parent has: its instances, signals and breakpoints.
  memory.fill(child + TASK_TRIGGERS, 0, TASK_BREAKPOINTS_LOCK + 8 - TASK_TRIGGERS);
  thread_breakpoints_init(child);
  let delta = <i32>(child - parent);
  const size = load<i32>(parent, TASK_STACK_SIZE);
  if (size != 0) {
    const stack = arena_alloc(arena, size);
    if (stack == 0) {
      arena_free(arena, child, TASK_BYTES);
      return 0;
    }
    const from = <usize>load<u32>(parent, TASK_STACK_AT);
    memory.copy(stack, from, size);
    store<u32>(child, <u32>stack, TASK_STACK_AT);
    delta = <i32>(stack - from);
  }
  store<i64>(child, load<i64>(parent, TASK_SP) + <i64>delta, TASK_SP);
  move_frames(child, delta);
  store<u32>(child, <u32>mm, TASK_MM);
  store<u32>(child, <u32>text - site0, TASK_TEXT);
  store<i32>(child, pid, TASK_PID);
  if (!copy_instances(strategy, table, parent, child, delta)) {
    // A frame whose return nobody knows would go to the trampoline, and nowhere from there.
    returns_free(strategy, table, child);
    free_memory(arena, child);
    return 0;
  }
  store<i64>(child, <i64>load<i32>(child, TASK_RETURN_PENDING), TASK_RETURN_ENTRIES);
  task_link(child);
  return child;
}

// The saved frames in the copied stack (workload/call.ts) are addresses in it.
function move_frames(child: usize, delta: i32): void {
  let at = child + TASK_FRAME;
  let frame = load<u32>(at); // plain: `child`
  while (frame != 0) {
    frame += <u32>delta;
    store<u32>(at, frame); // plain: `child`
    at = <usize>frame + 8;
    frame = load<u32>(at); // plain: `child`
  }
}
