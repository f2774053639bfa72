// One hit: handle_swbp, step by step (kernel.md 4.1, 3.1, 2.1, 2.2).
//
//      readers by reference (v6.9, v6.10)           readers by section (v6.12 on)
//   1  the exception (a delay of trap_units; 0 is "raw")
//   2                                               enters the read section
//   3  mmap_lock for reading; VMA -> (inode, offset); or, with LOOKUP_SPECULATIVE, first without
//      it; with LOOKUP_PER_THREAD the task's own tree first, and a reference on its entry
//   4  treelock; search; reference; unlock          lockless search; or the hash of breakpoints
//   5  mmap_lock released
//   6  register_rwsem for reading; consumers;       consumers
//      released
//   7  the displaced instruction: emulated or stepped. To step it, a reference is taken and the
//      section left first, since user code may take its time (C17)
//   8  reference dropped                            leaves the read section
//
// plain: `VM_INODE` under mmap_lock; `UPROBE_*`, `HDR_*` never change; `MAGIC` while a reference is
// held, or in a read section; `TASK_*`, `UTASK_*`: the executing
// task's own. The uprobe's instruction: at its place.

import { LOOKUP_PER_THREAD } from "../layout";
import { FAULT_UPROBE_FREED, HDR_TABLE, HDR_TRAP_UNITS, LOOKUP_SPECULATIVE } from "../layout";
import { NHIT_PERCPU } from "../layout";
import { PRESET_RWLOCK, PRESET_SPECULATIVE, PRESET_TASKS_TRACE, READERS_MASK } from "../layout";
import { PRESET_FASTEST, PRESET_SRCU, PRESET_URET_ALLOC, PRESET_URET_POOL } from "../layout";
import { READERS_SRCU, READERS_TRACE, RETURN_ALLOC, RETURN_MASK, RETURN_POOL } from "../layout";
import { RETURN_SECTION } from "../layout";
import { READERS_REFCOUNT, TABLE_HASH, TABLE_MASK } from "../layout";
import { TASK_FALLBACKS, TASK_IP, UPROBE_MAGIC } from "../layout";
import { load32 } from "../atomics";
import { cpu_delay } from "../cpu";
import { map_inode_speculative, map_lookup_speculative, map_offset_speculative } from "../mm/mm";
import { mmap_read_lock, mmap_read_unlock, mmap_speculate_begin } from "../mm/mm";
import { mmap_speculate_retry, offset_to_vaddr, vaddr_to_offset } from "../mm/mm";
import { vma_lookup, VM_INODE } from "../mm/mm";
import { down_read, up_read } from "../sync/rwsem";
import { find_breakpoint } from "./breakpoints";
import { COPY_INSN, is_file_trap_slow, is_trap_at, restore_insn } from "./breakpoint";
import { CONSUMER_NEXT, filter_chain, uprobe_dispatcher } from "./consumer";
import { raise_slow, this_engine } from "./fault";
import { readers_enter, readers_exit } from "./readers";
import { RC_HANDLED, RC_LOST, RC_REMOVE, RC_RETURN } from "./sink";
import { execute_insn, single_step, skip_sstep } from "./step";
import { CONSUMERS, find_uprobe, find_uprobe_rcu, FLAGS, INSN, INSN_OPCODE, MAGIC } from "./table";
import { put_uprobe, REGISTER_RWSEM, try_get_uprobe } from "./table";
import { UPROBE_INODE, UPROBE_OFFSET } from "./table";
import { TASK_MM, UTASK_VADDR } from "./task";
import { add_thread_breakpoint_slow, find_thread_breakpoint } from "./thread_breakpoints";
import { put_thread_breakpoint, thread_breakpoint_uprobe } from "./thread_breakpoints";
import { handle_trampoline, prepare_uretprobe, want_return } from "./uretprobe";

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
/** A consumer wanted it, but its ring was full; and nobody else took it. */
export const HIT_RING_FULL = 5;

// unapply_uprobe: takes the breakpoint from this address space only.
function unapply_uprobe_slow(u: usize, mm: usize, vaddr: u32): void {
  mmap_read_lock(mm);
  const vma = vma_lookup(mm, vaddr);
  const same =
    vma != 0 &&
    load<u32>(vma, VM_INODE) == load<u32>(u, UPROBE_INODE) &&
    offset_to_vaddr(vma, load<i32>(u, UPROBE_OFFSET)) == vaddr;
  if (same) restore_insn(u, vma, vaddr);
  mmap_read_unlock(mm);
}

// All consumers of `u`, and the return probe that they want: HIT_HANDLED, HIT_FILTERED or
// HIT_NO_CONSUMER, and whether all of them asked for the breakpoint's removal (WANTS_REMOVAL).
const WANTS_REMOVAL: i32 = 8;
// @ts-ignore: decorator
@inline
function consumers(strategy: i32, table: usize, u: usize, task: usize): i32 {
  const first = <usize>load32(u + CONSUMERS);
  if (first == 0) return HIT_NO_CONSUMER;
  let any = 0;
  let all = RC_REMOVE;
  let ri: usize = 0;
  for (let c = first; c != 0; c = <usize>load32(c + CONSUMER_NEXT)) {
    const rc = uprobe_dispatcher(strategy, c, task);
    any |= rc;
    all &= rc;
    if ((rc & RC_RETURN) != 0) ri = want_return(strategy, task, ri, c);
  }
  if (ri != 0) prepare_uretprobe(strategy, table, task, u, ri);
  let outcome = HIT_HANDLED;
  if ((any & RC_HANDLED) == 0) outcome = (any & RC_LOST) != 0 ? HIT_RING_FULL : HIT_FILTERED;
  return all != 0 ? outcome | WANTS_REMOVAL : outcome;
}

// handler_chain of v6.9: the list under register_rwsem.
function handler_chain(table: usize, u: usize, task: usize, mm: usize, vaddr: u32): i32 {
  down_read(u + REGISTER_RWSEM);
  const outcome = consumers(PRESET_RWLOCK, table, u, task);
  // UPROBE_HANDLER_REMOVE by all of them. Still under register_rwsem, so no consumer can be added
  // in between, and asked again: one that wants other address spaces only has no say (C11).
  if ((outcome & WANTS_REMOVAL) != 0 && !filter_chain(u, mm)) unapply_uprobe_slow(u, mm, vaddr);
  up_read(u + REGISTER_RWSEM);
  return outcome & ~WANTS_REMOVAL;
}

// UPROBE_HANDLER_REMOVE in a read section: under register_rwsem all are asked again, those too that
// were added meanwhile (C11). Not if the uprobe has died meanwhile, which the section allows: it
// has no breakpoint any more, and one that is there is the next uprobe's (C12). With the reference
// there is no next one: whoever registers takes this one, under register_rwsem.
function remove_if_unwanted_slow(u: usize, mm: usize, vaddr: u32): void {
  if (!try_get_uprobe(u)) return;
  down_read(u + REGISTER_RWSEM);
  if (!filter_chain(u, mm)) unapply_uprobe_slow(u, mm, vaddr);
  up_read(u + REGISTER_RWSEM);
  put_uprobe(<usize>load<u32>(this_engine(), HDR_TABLE), u);
}

// handler_chain of v6.12: the list in a read section.
// @ts-ignore: decorator
@inline
function chain_in_section(
  strategy: i32,
  table: usize,
  u: usize,
  task: usize,
  mm: usize,
  vaddr: u32,
): i32 {
  const outcome = consumers(strategy, table, u, task);
  if ((outcome & WANTS_REMOVAL) != 0) remove_if_unwanted_slow(u, mm, vaddr);
  return outcome & ~WANTS_REMOVAL;
}

function handler_chain_shared(table: usize, u: usize, task: usize, mm: usize, vaddr: u32): i32 {
  return chain_in_section(PRESET_TASKS_TRACE, table, u, task, mm, vaddr);
}

function handler_chain_percpu(table: usize, u: usize, task: usize, mm: usize, vaddr: u32): i32 {
  return chain_in_section(PRESET_SPECULATIVE, table, u, task, mm, vaddr);
}

function handler_chain_pool(table: usize, u: usize, task: usize, mm: usize, vaddr: u32): i32 {
  return chain_in_section(PRESET_URET_POOL, table, u, task, mm, vaddr);
}

/**
 * find_active_uprobe_speculative: the uprobe, or 0 for "ask under mmap_lock": a negative answer
 * counts only there. `pause`: units of delay between its loads, for torture; hits pass the constant
 * 0, and nothing of it is left there.
 */
// @ts-ignore: decorator
@inline
export function find_active_uprobe_speculative(
  table: usize,
  task: usize,
  mm: usize,
  vaddr: u32,
  pause: i32,
): usize {
  const seq = mmap_speculate_begin(mm);
  if ((seq & 1) != 0) return 0;
  if (pause != 0) cpu_delay(pause);
  const map = map_lookup_speculative(mm, vaddr);
  if (map == 0) return 0;
  const inode = map_inode_speculative(map);
  if (pause != 0) cpu_delay(pause);
  const u = find_uprobe_rcu(table, task, inode, map_offset_speculative(map, vaddr));
  return u != 0 && !mmap_speculate_retry(mm, seq) ? u : 0;
}

// What find_active_uprobe says instead of a uprobe, with no uprobe there.
/** No trap byte any more: the instruction is to be executed again. */
export const GONE: usize = 0;
/** A trap byte all the same. */
export const SWBP: usize = 1;

// The task's next hit at `vaddr` is to find `u` by itself; mmap_lock held for reading.
// @ts-ignore: decorator
@inline
function remember(table: usize, task: usize, vma: usize, vaddr: u32, u: usize): void {
  if (!is_trap_at(vma, vaddr) || (load32(u + FLAGS) & COPY_INSN) == 0) return;
  add_thread_breakpoint_slow(table, task, vaddr, u);
}

// find_active_uprobe under mmap_lock: a uprobe, GONE or SWBP. By strategy with a reference, or not.
// @ts-ignore: decorator
@inline
function find_active_uprobe(
  strategy: i32,
  table: usize,
  task: usize,
  mm: usize,
  vaddr: u32,
): usize {
  let u: usize = GONE;
  mmap_read_lock(mm);
  const vma = vma_lookup(mm, vaddr);
  if (vma != 0) {
    const inode = <usize>load<u32>(vma, VM_INODE);
    const offset = vaddr_to_offset(vma, vaddr);
    if ((strategy & READERS_MASK) == READERS_REFCOUNT) {
      u = find_uprobe(table, strategy, inode, offset);
    } else {
      u = find_uprobe_rcu(table, task, inode, offset);
    }
    if (u == 0) u = is_trap_at(vma, vaddr) ? SWBP : GONE;
    else if ((strategy & LOOKUP_PER_THREAD) != 0) remember(table, task, vma, vaddr, u);
  }
  mmap_read_unlock(mm);
  return u;
}

// Speculation did not answer: under mmap_lock, and counted.
export function find_active_uprobe_slow(table: usize, task: usize, mm: usize, vaddr: u32): usize {
  store<i64>(task, load<i64>(task, TASK_FALLBACKS) + 1, TASK_FALLBACKS);
  return find_active_uprobe(PRESET_SPECULATIVE, table, task, mm, vaddr);
}

// @ts-ignore: decorator
@inline
function lookup(strategy: i32, table: usize, task: usize, mm: usize, vaddr: u32): usize {
  if ((strategy & TABLE_MASK) == TABLE_HASH) {
    const u = find_breakpoint(mm, vaddr);
    return u != 0 ? u : find_active_uprobe_slow(table, task, mm, vaddr);
  }
  if ((strategy & LOOKUP_SPECULATIVE) != 0) {
    const u = find_active_uprobe_speculative(table, task, mm, vaddr, 0);
    return u != 0 ? u : find_active_uprobe_slow(table, task, mm, vaddr);
  }
  return find_active_uprobe(strategy, table, task, mm, vaddr);
}

// Steps 3 to 8 with references.
// @ts-ignore: decorator
@inline
function swbp_by_reference(
  strategy: i32,
  table: usize,
  task: usize,
  mm: usize,
  vaddr: u32,
  trap_units: i32,
): i32 {
  const own = (strategy & LOOKUP_PER_THREAD) != 0;
  const entry = own ? find_thread_breakpoint(task, vaddr) : 0;
  const u =
    own && entry != 0
      ? thread_breakpoint_uprobe(entry)
      : find_active_uprobe(strategy, table, task, mm, vaddr);
  if (u == GONE) return HIT_RESTART;
  if (u == SWBP) return HIT_SIGTRAP;
  if (load<i32>(u, MAGIC) != UPROBE_MAGIC) raise_slow(FAULT_UPROBE_FREED);
  // [C] the flag, [D] then the instruction. Pairs with [A][B] in breakpoint.ts (C5).
  if ((load32(u + FLAGS) & COPY_INSN) == 0) {
    // An entry of the task's own is not made for such a uprobe.
    const is_own = is_file_trap_slow(u);
    put_uprobe(table, u);
    return is_own ? HIT_SIGTRAP : HIT_RESTART;
  }
  const insn = <i32>load<u16>(u, INSN); // D
  const outcome = handler_chain(table, u, task, mm, vaddr);
  if (!skip_sstep(strategy, task, insn)) single_step(strategy, task, u, entry, trap_units);
  if (own && entry != 0) put_thread_breakpoint(table, entry);
  else put_uprobe(table, u);
  return outcome;
}

// Steps 2 to 8 in a read section.
// @ts-ignore: decorator
@inline
function swbp_in_section(
  strategy: i32,
  table: usize,
  task: usize,
  mm: usize,
  vaddr: u32,
  trap_units: i32,
): i32 {
  const idx = readers_enter(strategy);
  const u = lookup(strategy, table, task, mm, vaddr);
  if (u == GONE || u == SWBP) {
    readers_exit(strategy, idx);
    return u == GONE ? HIT_RESTART : HIT_SIGTRAP;
  }
  if (load<i32>(u, MAGIC) != UPROBE_MAGIC) raise_slow(FAULT_UPROBE_FREED);
  if ((load32(u + FLAGS) & COPY_INSN) == 0) {
    const own = is_file_trap_slow(u);
    readers_exit(strategy, idx);
    return own ? HIT_SIGTRAP : HIT_RESTART;
  }
  const insn = <i32>load<u16>(u, INSN); // D
  let outcome: i32;
  if ((strategy & TABLE_MASK) == TABLE_HASH) {
    outcome = chain_in_section(strategy, table, u, task, mm, vaddr);
  } else if ((strategy & RETURN_MASK) == RETURN_POOL) {
    outcome = handler_chain_pool(table, u, task, mm, vaddr);
  } else if ((strategy & NHIT_PERCPU) != 0) {
    outcome = handler_chain_percpu(table, u, task, mm, vaddr);
  } else {
    outcome = handler_chain_shared(table, u, task, mm, vaddr);
  }
  if (skip_sstep(strategy, task, insn)) {
    readers_exit(strategy, idx);
  } else if (try_get_uprobe(u)) {
    readers_exit(strategy, idx);
    single_step(strategy, task, u, 0, trap_units);
    put_uprobe(table, u);
  } else {
    // Unregistered meanwhile, and its breakpoint is gone: what the task would execute again is
    // executed from the copy, which the section keeps.
    execute_insn(task, insn & INSN_OPCODE);
    readers_exit(strategy, idx);
  }
  return outcome;
}

/** handle_swbp: the task has executed a trap byte at its ip. Returns a HIT_ constant. */
// @ts-ignore: decorator
@inline
export function handle_swbp(strategy: i32, table: usize, task: usize): i32 {
  const trap_units = load<i32>(this_engine(), HDR_TRAP_UNITS);
  if (trap_units != 0) cpu_delay(trap_units); // the call alone is 4 % of a raw hit
  const mm = <usize>load<u32>(task, TASK_MM);
  const vaddr = <u32>load<i64>(task, TASK_IP);
  store<u32>(task, vaddr, UTASK_VADDR);
  return (strategy & READERS_MASK) == READERS_REFCOUNT
    ? swbp_by_reference(strategy, table, task, mm, vaddr, trap_units)
    : swbp_in_section(strategy, table, task, mm, vaddr, trap_units);
}

// handle_trampoline by what it depends on: the readers, the filter and the kind of return.
function trampoline_refcount(table: usize, task: usize): void {
  handle_trampoline(PRESET_RWLOCK, table, task);
}
function trampoline_srcu(table: usize, task: usize): void {
  handle_trampoline(PRESET_SRCU, table, task);
}
function trampoline_trace(table: usize, task: usize): void {
  handle_trampoline(PRESET_TASKS_TRACE, table, task);
}
function trampoline_alloc(table: usize, task: usize): void {
  handle_trampoline(PRESET_URET_ALLOC, table, task);
}
function trampoline_pool(table: usize, task: usize): void {
  handle_trampoline(PRESET_URET_POOL, table, task);
}
function trampoline_section(table: usize, task: usize): void {
  handle_trampoline(PRESET_FASTEST, table, task);
}

/** The task has returned to the trampoline: an exception of its own, and its pending returns. */
// @ts-ignore: decorator
@inline
export function trampoline_swbp(strategy: i32, table: usize, task: usize): void {
  const trap_units = load<i32>(this_engine(), HDR_TRAP_UNITS);
  if (trap_units != 0) cpu_delay(trap_units);
  const kind = strategy & RETURN_MASK;
  const readers = strategy & READERS_MASK;
  if (kind == RETURN_SECTION) trampoline_section(table, task);
  else if (kind == RETURN_POOL) trampoline_pool(table, task);
  else if (kind == RETURN_ALLOC) trampoline_alloc(table, task);
  else if (readers == READERS_TRACE) trampoline_trace(table, task);
  else if (readers == READERS_SRCU) trampoline_srcu(table, task);
  else trampoline_refcount(table, task);
}
