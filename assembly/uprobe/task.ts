// A task: the user thread that hits probes, and its struct uprobe_task.
//
//   offset  bytes  content
//        0     32  ip, sp, bp, di (i64): the registers that nop, push, ret and a handler use
//       32      8  mm, pid
//       40      8  text: where the byte of address 0 would lie; sites' first address
//       48     16  stride, number of sites, random state, return address of its calls
//       64     64  counters (layout.ts: TASK_TRIGGERS ...); two more at 152
//      128      8  utask: state, address of the trap
//      136      4  utask: uprobe being stepped
//      140      4  utask: address of the XOL slot in use, or 0
//      144      4  utask: signal_denied
//      256     96  counters of return probes, steps and signals; ax
//      384     32  return instances: list (read by the lease timer), how many, pool, sequence;
//                  at 404 the stack of instances (RETURN_SECTION)
//      448     16  what others write: thread flags (TIF_), pending signals, signals ever sent
//      512     24  in the table's list of tasks; own breakpoints (LOOKUP_PER_THREAD)
//      536     12  frame of the call it is in; a larger stack, its bytes
//      768    256  stack, growing down from the end
//
// plain: `TASK_NEXT`, `TASK_PREVIOUS`, `list`, `table`: under the mutex of the list. `HDR_*` never
// changes.
//
// plain: `TASK_*`: a task is executed by one CPU at a time, and only its counters are read by
// others; they are 8-byte aligned words of which a stale value is as good as a fresh one.

import { HDR_TABLE, TASK_BYTES, TASK_SP, TASK_STACK_TOP } from "../layout";
import { arena_alloc } from "../mm/arena";
import { mmap_read_lock, mmap_read_unlock, text_ptr, vma_lookup } from "../mm/mm";
import { mutex_lock, mutex_unlock } from "../sync/mutex";
import { this_engine } from "./fault";
import { table_tasks, tasks_mutex } from "./table";
import { del_thread_breakpoints, thread_breakpoints_init } from "./thread_breakpoints";

export const TASK_MM = 32;
export const TASK_PID = 36;
/** text + address is where an instruction byte lies: the task's translation (its TLB). */
export const TASK_TEXT = 40;
export const TASK_SITE0 = 44;
export const TASK_STRIDE = 48;
export const TASK_SITES = 52;
export const TASK_RANDOM = 56;

// enum uprobe_task_state
export const UTASK_STATE = 128;
export const UTASK_RUNNING = 0;
export const UTASK_SSTEP = 1;
export const UTASK_SSTEP_ACK = 2;
export const UTASK_VADDR = 132;
export const UTASK_ACTIVE_UPROBE = 136;
export const UTASK_XOL_VADDR = 140;
export const UTASK_SIGNAL_DENIED = 144;

/** Where a session's entry handler leaves its cookie. */
export const UTASK_COOKIE = 352;

export const RETURN_INSTANCES = 384;
export const RETURN_POOL_AT = 392;
export const RETURN_SEQ = 396;
export const RETURN_STACK = 404;

export const TASK_NEXT = 512;
export const TASK_PREVIOUS = 516;

/** sp at the entry of the call that the task is in (workload/call.ts), 0: in none. */
export const TASK_FRAME = 536;
/** A stack of its own, where the one in the task is too small: address, bytes. */
export const TASK_STACK_AT = 540;
export const TASK_STACK_SIZE = 544;

/** The address that a called function returns to: outside of every mapping. */
export const RETURN_ADDRESS: u32 = 0x7000_0000;

/** Where the text of `sites` functions from `vaddr` on lies, or 0: not all in one mapping. */
export function task_text(mm: usize, vaddr: u32, stride: i32, sites: i32): usize {
  mmap_read_lock(mm);
  const vma = vma_lookup(mm, vaddr);
  const last = vaddr + <u32>(stride * (sites - 1));
  const text = vma != 0 && sites > 0 && vma_lookup(mm, last) == vma ? text_ptr(vma, vaddr) : 0;
  mmap_read_unlock(mm);
  return text;
}

/** A stack of `bytes` in the place of the task's own 256. False: the arena is full. */
export function task_set_stack(arena: usize, task: usize, bytes: i32): bool {
  const stack = arena_alloc(arena, bytes);
  if (stack == 0) return false;
  store<u32>(task, <u32>stack, TASK_STACK_AT);
  store<i32>(task, bytes, TASK_STACK_SIZE);
  store<i64>(task, <i64>(stack + <usize>bytes), TASK_SP);
  return true;
}

/**
 * A task of `mm` that calls `sites` one-instruction functions, `stride` bytes apart from `vaddr`
 * on. All must lie in one mapping, which must outlive the task. 0: the arena is full, or the
 * range is not mapped.
 */
export function task_create(
  arena: usize,
  mm: usize,
  pid: i32,
  vaddr: u32,
  stride: i32,
  sites: i32,
  seed: i32,
): usize {
  const text = task_text(mm, vaddr, stride, sites);
  if (text == 0) return 0;
  const task = arena_alloc(arena, TASK_BYTES);
  if (task == 0) return 0;
  store<u32>(task, <u32>mm, TASK_MM);
  store<i32>(task, pid, TASK_PID);
  store<u32>(task, <u32>text - vaddr, TASK_TEXT);
  store<u32>(task, vaddr, TASK_SITE0);
  store<i32>(task, stride, TASK_STRIDE);
  store<i32>(task, sites, TASK_SITES);
  store<i32>(task, seed | 1, TASK_RANDOM); // the generator's only dead state is 0
  store<i64>(task, <i64>(task + TASK_STACK_TOP), TASK_SP);
  thread_breakpoints_init(task);
  task_link(task);
  return task;
}

export function task_link(task: usize): void {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  const list = table_tasks(table);
  mutex_lock(tasks_mutex(table));
  const first = load<u32>(list);
  store<u32>(task, first, TASK_NEXT);
  if (first != 0) store<u32>(<usize>first, <u32>task, TASK_PREVIOUS);
  store<u32>(list, <u32>task);
  mutex_unlock(tasks_mutex(table));
}

/** Out of the list: whoever walks it holds its mutex, so that nobody else knows the task now. */
export function task_unlink(task: usize): void {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  mutex_lock(tasks_mutex(table));
  const next = load<u32>(task, TASK_NEXT);
  const previous = load<u32>(task, TASK_PREVIOUS);
  if (previous != 0) store<u32>(<usize>previous, next, TASK_NEXT);
  else store<u32>(table_tasks(table), next);
  if (next != 0) store<u32>(<usize>next, previous, TASK_PREVIOUS);
  mutex_unlock(tasks_mutex(table));
}

/**
 * The tasks of `mm` forget their own breakpoints of [first, last] (LOOKUP_PER_THREAD); mmap_lock
 * held for writing.
 */
export function tasks_del_breakpoints(table: usize, mm: usize, first: u32, last: u32): void {
  mutex_lock(tasks_mutex(table));
  for (let task = <usize>load<u32>(table_tasks(table)); task != 0;) {
    // plain: as `list`
    if (load<u32>(task, TASK_MM) == <u32>mm) del_thread_breakpoints(table, task, first, last);
    task = <usize>load<u32>(task, TASK_NEXT);
  }
  mutex_unlock(tasks_mutex(table));
}
