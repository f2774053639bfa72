// One hit: handle_swbp of v6.9, step by step (kernel.md 4.1).
//
//   1  the exception (a delay of trap_units; 0 is "raw")
//   2  mmap_lock for reading; VMA -> (inode, offset)
//   3  treelock; search; reference; unlock          <- the strategy: spinlock or rwlock
//   4  mmap_lock released
//   5  register_rwsem for reading; consumers; released
//   6  the displaced instruction: emulated or stepped
//   7  reference dropped
//
// plain: `VM_INODE` under mmap_lock; `CONSUMERS`, `CONSUMER_NEXT` under register_rwsem; `UPROBE_*`,
// `HDR_*` never change; `MAGIC` while a reference is held; `TASK_*`, `UTASK_*`: the executing
// task's own. The uprobe's instruction: at its place.

import { FAULT_UPROBE_FREED, HDR_TRAP_UNITS, TASK_IP, UPROBE_MAGIC } from "../layout";
import { load32 } from "../atomics";
import { cpu_delay } from "../cpu";
import { mmap_read_lock, mmap_read_unlock, vaddr_to_offset, vma_lookup, VM_INODE } from "../mm/mm";
import { offset_to_vaddr } from "../mm/mm";
import { down_read, up_read } from "../sync/rwsem";
import { COPY_INSN, is_file_trap_slow, is_trap_at, remove_breakpoint } from "./breakpoint";
import { CONSUMER_NEXT, filter_chain, RC_HANDLED, RC_REMOVE, uprobe_dispatcher } from "./consumer";
import { raise_slow, this_engine } from "./fault";
import { single_step_slow, skip_sstep } from "./step";
import { CONSUMERS, find_uprobe, FLAGS, INSN, MAGIC, put_uprobe, REGISTER_RWSEM } from "./table";
import { UPROBE_INODE, UPROBE_OFFSET } from "./table";
import { TASK_MM, UTASK_VADDR } from "./task";

// How a trap ended.
/** At least one consumer took it. */
export const HIT_HANDLED = 0;
/** There were consumers, and all of them filtered it. */
export const HIT_FILTERED = 1;
/** The last consumer was just taken away, the breakpoint not yet. */
export const HIT_NO_CONSUMER = 2;
/** The breakpoint is gone, or not ready: execute the instruction again (C10). */
export const HIT_RESTART = 3;
/** A trap that no probe put there: the task gets SIGTRAP. */
export const HIT_SIGTRAP = 4;

// unapply_uprobe: takes the breakpoint from this address space only.
function unapply_uprobe_slow(u: usize, mm: usize, vaddr: u32): void {
  mmap_read_lock(mm);
  const vma = vma_lookup(mm, vaddr);
  const same =
    vma != 0 &&
    load<u32>(vma, VM_INODE) == load<u32>(u, UPROBE_INODE) &&
    offset_to_vaddr(vma, load<i32>(u, UPROBE_OFFSET)) == vaddr;
  if (same) remove_breakpoint(u, vma, vaddr);
  mmap_read_unlock(mm);
}

// handler_chain: HIT_HANDLED, HIT_FILTERED or HIT_NO_CONSUMER.
function handler_chain(u: usize, task: usize, mm: usize, vaddr: u32): i32 {
  down_read(u + REGISTER_RWSEM);
  let any = 0;
  let all = RC_REMOVE;
  const first = <usize>load<u32>(u, CONSUMERS);
  for (let c = first; c != 0; c = <usize>load<u32>(c, CONSUMER_NEXT)) {
    const rc = uprobe_dispatcher(c, task);
    any |= rc;
    all &= rc;
  }
  // UPROBE_HANDLER_REMOVE by all of them. Still under register_rwsem, so no consumer can be added
  // in between, and asked again: one that wants other address spaces only has no say (C11).
  if (first != 0 && all != 0 && !filter_chain(u, mm)) unapply_uprobe_slow(u, mm, vaddr);
  up_read(u + REGISTER_RWSEM);
  if (first == 0) return HIT_NO_CONSUMER;
  return (any & RC_HANDLED) != 0 ? HIT_HANDLED : HIT_FILTERED;
}

/** handle_swbp: the task has executed a trap byte at its ip. Returns a HIT_ constant. */
// @ts-ignore: decorator
@inline
export function handle_swbp(table: usize, kind: i32, task: usize): i32 {
  const trap_units = load<i32>(this_engine(), HDR_TRAP_UNITS);
  cpu_delay(trap_units);
  const mm = <usize>load<u32>(task, TASK_MM);
  const vaddr = <u32>load<i64>(task, TASK_IP);
  store<u32>(task, vaddr, UTASK_VADDR);

  // find_active_uprobe
  let u: usize = 0;
  let is_swbp: bool = false;
  mmap_read_lock(mm);
  const vma = vma_lookup(mm, vaddr);
  if (vma != 0) {
    u = find_uprobe(table, kind, <usize>load<u32>(vma, VM_INODE), vaddr_to_offset(vma, vaddr));
    if (u == 0) is_swbp = is_trap_at(vma, vaddr);
  }
  mmap_read_unlock(mm);
  if (u == 0) return is_swbp ? HIT_SIGTRAP : HIT_RESTART;

  if (load<i32>(u, MAGIC) != UPROBE_MAGIC) raise_slow(FAULT_UPROBE_FREED);
  // [C] the flag, [D] then the instruction. Pairs with [A][B] in breakpoint.ts (C5).
  if ((load32(u + FLAGS) & COPY_INSN) == 0) {
    const own = is_file_trap_slow(u);
    put_uprobe(table, u);
    return own ? HIT_SIGTRAP : HIT_RESTART;
  }
  const opcode = <i32>load<u8>(u, INSN); // D
  const outcome = handler_chain(u, task, mm, vaddr);
  if (!skip_sstep(task, opcode)) single_step_slow(task, u, opcode, trap_units);
  put_uprobe(table, u);
  return outcome;
}
