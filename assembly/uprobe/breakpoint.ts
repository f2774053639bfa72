// Breakpoints in mappings: one trap byte in a mapping's private text per probed instruction.
//
// The byte is accessed atomically by all sides: running tasks fetch it, registration sets and
// clears it under mmap_lock held for writing, a handler's removal clears it under mmap_lock held
// for reading (of two such removals, one finds it).

import { EEXIST, ENOMEM, INSN_TRAP, LOOKUP_PER_THREAD } from "../layout";
import { TABLE_HASH, TABLE_MASK } from "../layout";
import { cas8, load32, load8, store32, store8 } from "../atomics";
import { INODE_DATA } from "../mm/inode";
import { mm_set_has_uprobes, mmap_region, mmap_write_lock, mmap_write_unlock } from "../mm/mm";
import { munmap_region, vaddr_to_offset, vma_lookup } from "../mm/mm";
import { offset_to_vaddr, text_ptr, vma_first_offset, vma_length, VM_INODE, VM_MM } from "../mm/mm";
import { mutex_lock, mutex_unlock } from "../sync/mutex";
import { down_write, up_write } from "../sync/rwsem";
import { filter_chain, sole_counter } from "./consumer";
import { add_breakpoint, del_breakpoint, set_place_count } from "./breakpoints";
import { ref_ctr_mmap, ref_ctr_munmap, update_ref_ctr } from "./ref_ctr";
import { analyze_insn } from "./step";
import { CONSUMER_RWSEM, FLAGS, INSN, mmap_mutex, put_uprobe, table_strategy } from "./table";
import { first_at_or_after, treelock_read, treeunlock_read, try_get_uprobe } from "./table";
import { UPROBE_INODE, UPROBE_OFFSET } from "./table";
import { tasks_del_breakpoints } from "./task";

/** UPROBE_COPY_INSN: the displaced instruction has been copied and analysed. */
export const COPY_INSN = 1;

/** The file's byte where the uprobe is. */
export function original_insn(u: usize): i32 {
  // plain: neither the uprobe's key nor the file and its bytes ever change.
  const inode = <usize>load<u32>(u, UPROBE_INODE);
  const data = <usize>load<u32>(inode, INODE_DATA);
  return <i32>load<u8>(data + <usize>load<i32>(u, UPROBE_OFFSET));
}

/**
 * prepare_uprobe: copies the displaced instruction, once. EINVAL: not an instruction that can be
 * probed; EEXIST: the file itself has a trap there.
 */
export function prepare_uprobe(u: usize): i32 {
  if ((load32(u + FLAGS) & COPY_INSN) != 0) return 0;
  let rc = 0;
  down_write(u + CONSUMER_RWSEM);
  if ((load32(u + FLAGS) & COPY_INSN) == 0) {
    const opcode = original_insn(u);
    const insn = opcode == INSN_TRAP ? EEXIST : analyze_insn(opcode);
    if (insn < 0) {
      rc = insn;
    } else {
      // plain: [A] the instruction first, [B] then the flag that lets hits read it. Pairs with [C]
      // [D] in hit.ts: no hit sees the flag and an instruction that is not there yet (C5).
      store<u16>(u, <u16>insn, INSN); // A
      store32(u + FLAGS, load32(u + FLAGS) | COPY_INSN); // B
    }
  }
  up_write(u + CONSUMER_RWSEM);
  return rc;
}

/**
 * Whether the file itself has a trap where the uprobe is. Such a uprobe is never prepared, and its
 * trap never goes: to execute it again would be to execute it for ever.
 */
export function is_file_trap_slow(u: usize): bool {
  return original_insn(u) == INSN_TRAP;
}

function has_thread_breakpoints(table: usize): bool {
  return (table_strategy(table) & LOOKUP_PER_THREAD) != 0;
}

function has_hash(table: usize): bool {
  return (table_strategy(table) & TABLE_MASK) == TABLE_HASH;
}

/** install_breakpoint: mmap_lock held for writing. ENOMEM: it has a reference counter to note. */
export function install_breakpoint(table: usize, u: usize, vma: usize, vaddr: u32): i32 {
  const rc = prepare_uprobe(u);
  if (rc != 0) return rc;
  // plain: the VMA's fields, under mmap_lock.
  const mm = <usize>load<u32>(vma, VM_MM);
  if (!is_trap_at(vma, vaddr) && !update_ref_ctr(mm, u, 1)) return ENOMEM;
  mm_set_has_uprobes(mm);
  // plain: written before COPY_INSN, which prepare_uprobe saw or set.
  if (has_hash(table)) add_breakpoint(table, mm, vaddr, u, sole_counter(u, <i32>load<u8>(u, INSN)));
  store8(text_ptr(vma, vaddr), INSN_TRAP);
  return 0;
}

/** The consumers of a breakpoint that stays have changed; mmap_lock held for writing. */
export function refresh_breakpoint(table: usize, u: usize, vma: usize, vaddr: u32): void {
  if (!has_hash(table) || (load32(u + FLAGS) & COPY_INSN) == 0) return;
  // plain: the VMA's fields, under mmap_lock; written before COPY_INSN.
  const count = sole_counter(u, <i32>load<u8>(u, INSN));
  set_place_count(<usize>load<u32>(vma, VM_MM), vaddr, count);
}

/** remove_breakpoint: mmap_lock held for writing. */
export function remove_breakpoint(table: usize, u: usize, vma: usize, vaddr: u32): void {
  restore_insn(u, vma, vaddr);
  const mm = <usize>load<u32>(vma, VM_MM); // plain: the VMA's fields, under mmap_lock
  if (has_hash(table)) del_breakpoint(mm, vaddr);
  if (has_thread_breakpoints(table)) tasks_del_breakpoints(table, mm, vaddr, vaddr);
}

/** The original instruction is back. mmap_lock held, also for reading only. */
export function restore_insn(u: usize, vma: usize, vaddr: u32): void {
  // Never installed anywhere: what is there is the program's own.
  if ((load32(u + FLAGS) & COPY_INSN) == 0) return;
  // plain: written before COPY_INSN, which was set before the breakpoint was.
  const there = cas8(text_ptr(vma, vaddr), INSN_TRAP, <i32>load<u8>(u, INSN));
  // plain: the VMA's fields, under mmap_lock.
  if (there == INSN_TRAP) update_ref_ctr(<usize>load<u32>(vma, VM_MM), u, -1);
}

/** is_trap_at_addr; mmap_lock held. */
// @ts-ignore: decorator
@inline
export function is_trap_at(vma: usize, vaddr: u32): bool {
  return load8(text_ptr(vma, vaddr)) == INSN_TRAP;
}

/**
 * uprobe_mmap: patches a new mapping with the breakpoints of all probes of its file. mmap_lock
 * held for writing; the caller has just linked the VMA into its inode's i_mmap, so that a
 * registration that comes later finds it there, and one that came before is in the tree (C12).
 */
function uprobe_mmap(table: usize, vma: usize): void {
  // plain: VMA and keys never change while linked; the walk is under treelock.
  const mm = <usize>load<u32>(vma, VM_MM);
  const inode = <usize>load<u32>(vma, VM_INODE);
  const first = vma_first_offset(vma);
  const end = first + vma_length(vma);
  const strategy = table_strategy(table);
  mutex_lock(mmap_mutex(table, inode));
  // One probe at a time instead of the kernel's list of them: no memory is needed, and the next
  // key is found again after the lock was dropped.
  let offset = first;
  while (offset < end) {
    treelock_read(table, strategy);
    const u = first_at_or_after(table, inode, offset);
    if (u == 0 || load<i32>(u, UPROBE_OFFSET) >= end) {
      treeunlock_read(table, strategy);
      break;
    }
    offset = load<i32>(u, UPROBE_OFFSET) + 1;
    const alive = try_get_uprobe(u); // a dead one has no consumers: it is about to be erased (C3)
    treeunlock_read(table, strategy);
    if (!alive) continue;
    if (filter_chain(u, mm)) {
      // A probe whose instruction cannot be probed is no reason not to map the file (the kernel's).
      install_breakpoint(table, u, vma, offset_to_vaddr(vma, offset - 1));
    }
    put_uprobe(table, u);
  }
  mutex_unlock(mmap_mutex(table, inode));
}

/** mmap: maps a part of a file and patches it. Errors as mmap_region's; `out` is scratch. */
export function vm_mmap(
  table: usize,
  mm: usize,
  inode: usize,
  vaddr: u32,
  length: i32,
  pgoff: i32,
  out: usize,
): i32 {
  mmap_write_lock(mm);
  const rc = mmap_region(mm, inode, vaddr, length, pgoff, out);
  const vma = <usize>load<u32>(out); // plain: just written by this CPU
  if (rc == 0) {
    ref_ctr_mmap(mm, vma);
    uprobe_mmap(table, vma);
  }
  mmap_write_unlock(mm);
  return rc;
}

// The entries of a mapping's breakpoints leave the hash with it: the next mapping there is
// another's. Before it is gone, since it says which they are.
function uprobe_munmap(table: usize, vma: usize): void {
  // plain: VMA and keys never change while linked; the walk is under treelock.
  const mm = <usize>load<u32>(vma, VM_MM);
  const inode = <usize>load<u32>(vma, VM_INODE);
  const end = vma_first_offset(vma) + vma_length(vma);
  const strategy = table_strategy(table);
  let offset = vma_first_offset(vma);
  treelock_read(table, strategy);
  while (offset < end) {
    const u = first_at_or_after(table, inode, offset);
    if (u == 0 || load<i32>(u, UPROBE_OFFSET) >= end) break;
    offset = load<i32>(u, UPROBE_OFFSET) + 1;
    del_breakpoint(mm, offset_to_vaddr(vma, offset - 1));
  }
  treeunlock_read(table, strategy);
}

/** munmap: removes the mapping that begins at `vaddr`. EINVAL: there is none. */
export function vm_munmap(table: usize, mm: usize, vaddr: u32): i32 {
  mmap_write_lock(mm);
  const vma = vma_lookup(mm, vaddr);
  const is_start = vma != 0 && vaddr_to_offset(vma, vaddr) == vma_first_offset(vma);
  if (is_start) ref_ctr_munmap(mm, vma);
  if (is_start && has_hash(table)) uprobe_munmap(table, vma);
  if (is_start && has_thread_breakpoints(table)) {
    tasks_del_breakpoints(table, mm, vaddr, vaddr + <u32>(vma_length(vma) - 1));
  }
  const rc = munmap_region(mm, vaddr);
  mmap_write_unlock(mm);
  return rc;
}
