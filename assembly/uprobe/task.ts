// A task: the user thread that hits probes, and its struct uprobe_task.
//
//   offset  bytes  content
//        0     32  ip, sp, bp, di (i64): the registers that nop, push, ret and a handler use
//       32      8  mm, pid
//       40      8  text: where the byte of address 0 would lie; sites' first address
//       48     16  stride, number of sites, random state, return address of its calls
//       64     64  counters (layout.ts: TASK_TRIGGERS ...); two more at 152
//      128      8  utask: state, address of the trap
//      136      8  utask: uprobe being stepped, copy of its displaced instruction
//      256    256  stack, growing down from the end
//
// plain: `TASK_*`: a task is executed by one CPU at a time, and only its counters are read by
// others; they are 8-byte aligned words of which a stale value is as good as a fresh one.

import { TASK_BYTES, TASK_SP, TASK_STACK_TOP } from "../layout";
import { arena_alloc, arena_free } from "../mm/arena";
import { mmap_read_lock, mmap_read_unlock, text_ptr, vma_lookup } from "../mm/mm";

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
export const UTASK_VADDR = 132;
export const UTASK_ACTIVE_UPROBE = 136;
export const UTASK_XOL_INSN = 140;

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
  return task;
}

export function task_destroy(arena: usize, task: usize): void {
  arena_free(arena, task, TASK_BYTES);
}
