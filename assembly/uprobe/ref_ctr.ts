// Reference counters in a target's memory (USDT semaphores): a 16-bit word of the program that says
// how many breakpoints of a probe its address space has, so that it can skip what only probes need.
//
// A uprobe with a ref_ctr_offset has, in each address space where it has breakpoints, an entry:
//
//   offset  bytes  content
//        0      8  next entry of the address space, uprobe
//        8      8  inode, the uprobe's offset in it
//       16      8  ref_ctr_offset, breakpoints that are installed
//
// G1 In every mapping that holds the word, it is raised by the breakpoints of all entries that
//    name it: [A] a breakpoint that comes or goes changes the entry, then the word in all mappings
//    that are there; [B] a mapping that comes gets what the entries say. So a word that is mapped
//    after the breakpoint is right as well. (The kernel's delayed_uprobe_list remembers one raise
//    only, and it finds the first mapping only.)
// G2 Only who has changed the trap byte counts: of two removals at once one.
// G3 It never goes below zero for a breakpoint's sake: if the program has lowered it itself, a
//    fault says so.
// All under mmap_lock, and the list, whose removals may hold it for reading only, under a spinlock.
// A mapping that does not hold both bytes of the word, or at an odd address, does not hold it.
//
// The host reads a word at the address that OP_TEXT_AT gives for its place in an address space.
//
// plain: `entry`, `copy`, `link`, `MM_REF_CTRS`: under the address space's REF_CTR_LOCK, or under
// mmap_lock held for writing, which keeps all others out; `VM_*` under mmap_lock; `UPROBE_*` never
// change.

import { FAULT_REF_CTR, INSN_TRAP } from "../layout";
import { add16, load8 } from "../atomics";
import { arena_alloc, arena_free } from "../mm/arena";
import { MM_REF_CTR_LOCK, MM_REF_CTRS, mm_arena, mm_map_count, mm_vma } from "../mm/mm";
import { offset_to_vaddr, REF_CTR_BYTES, text_ptr, VM_INODE } from "../mm/mm";
import { qspin_lock, qspin_unlock } from "../sync/qspinlock";
import { raise_slow } from "./fault";
import { UPROBE_INODE, UPROBE_OFFSET, UPROBE_REF_CTR } from "./table";

const NEXT = 0;
const UPROBE = 4;
const INODE = 8;
const OFFSET = 12;
const WORD_OFFSET = 16;
const INSTALLED = 20;
const WORD_BYTES: i32 = 2;

// Where the VMA holds the word, or 0.
function word_in(vma: usize, inode: usize, offset: i32): usize {
  if (<usize>load<u32>(vma, VM_INODE) != inode) return 0;
  const vaddr = offset_to_vaddr(vma, offset);
  if (vaddr == 0 || offset_to_vaddr(vma, offset + WORD_BYTES - 1) == 0) return 0;
  const at = text_ptr(vma, vaddr);
  return (at & 1) == 0 ? at : 0;
}

// __update_ref_ctr
function update_word(at: usize, by: i32): void {
  const before = add16(at, by);
  if (by >= 0 || before + by >= 0) return;
  add16(at, -by);
  raise_slow(FAULT_REF_CTR);
}

// In all mappings that hold it; mmap_lock held.
function update_words(mm: usize, inode: usize, offset: i32, by: i32): void {
  const count = mm_map_count(mm);
  for (let i = 0; i < count; i++) {
    const at = word_in(mm_vma(mm, i), inode, offset);
    if (at != 0) update_word(at, by);
  }
}

// The link to the uprobe's entry, or to nothing.
function link_of(mm: usize, u: usize): usize {
  let link = mm + MM_REF_CTRS;
  for (let entry = <usize>load<u32>(link); entry != 0; entry = <usize>load<u32>(link)) {
    if (<usize>load<u32>(entry, UPROBE) == u) break;
    link = entry + NEXT;
  }
  return link;
}

// Counts a breakpoint of the entry at `link`; the entry goes with its last one.
function count_entry(mm: usize, link: usize, by: i32): void {
  const entry = <usize>load<u32>(link);
  const installed = load<i32>(entry, INSTALLED) + by;
  store<i32>(entry, installed, INSTALLED);
  if (installed > 0) return;
  store<u32>(link, load<u32>(entry, NEXT));
  arena_free(mm_arena(mm), entry, REF_CTR_BYTES);
}

function make_entry(mm: usize, u: usize): bool {
  const entry = arena_alloc(mm_arena(mm), REF_CTR_BYTES);
  if (entry == 0) return false;
  store<u32>(entry, load<u32>(mm, MM_REF_CTRS), NEXT);
  store<u32>(entry, <u32>u, UPROBE);
  store<u32>(entry, load<u32>(u, UPROBE_INODE), INODE);
  store<i32>(entry, load<i32>(u, UPROBE_OFFSET), OFFSET);
  store<i32>(entry, load<i32>(u, UPROBE_REF_CTR), WORD_OFFSET);
  store<u32>(mm, <u32>entry, MM_REF_CTRS);
  return true;
}

/**
 * update_ref_ctr: a breakpoint of `u` comes (1) or has gone (-1); mmap_lock held. False: the arena
 * is full, and it must not come.
 */
export function update_ref_ctr(mm: usize, u: usize, by: i32): bool {
  const offset = load<i32>(u, UPROBE_REF_CTR);
  if (offset == 0) return true;
  qspin_lock(mm + MM_REF_CTR_LOCK);
  let link = link_of(mm, u);
  let known: bool = load<u32>(link) != 0;
  if (!known && by > 0) {
    known = make_entry(mm, u);
    link = mm + MM_REF_CTRS; // the first one
  }
  if (known) count_entry(mm, link, by); // A
  qspin_unlock(mm + MM_REF_CTR_LOCK);
  if (known) update_words(mm, <usize>load<u32>(u, UPROBE_INODE), offset, by);
  else if (by < 0) raise_slow(FAULT_REF_CTR);
  return known;
}

/** A mapping has come: its words say what is installed. mmap_lock held for writing. */
export function ref_ctr_mmap(mm: usize, vma: usize): void {
  let entry = <usize>load<u32>(mm, MM_REF_CTRS);
  for (; entry != 0; entry = <usize>load<u32>(entry, NEXT)) {
    const inode = <usize>load<u32>(entry, INODE);
    const at = word_in(vma, inode, load<i32>(entry, WORD_OFFSET));
    if (at != 0) update_word(at, load<i32>(entry, INSTALLED)); // B
  }
}

/** A mapping is about to go, with its breakpoints. mmap_lock held for writing. */
export function ref_ctr_munmap(mm: usize, vma: usize): void {
  let link = mm + MM_REF_CTRS;
  while (load<u32>(link) != 0) {
    const entry = <usize>load<u32>(link);
    const next = load<u32>(entry, NEXT);
    const inode = <usize>load<u32>(entry, INODE);
    const same = inode == <usize>load<u32>(vma, VM_INODE);
    const vaddr = same ? offset_to_vaddr(vma, load<i32>(entry, OFFSET)) : 0;
    if (vaddr != 0 && load8(text_ptr(vma, vaddr)) == INSN_TRAP) {
      const offset = load<i32>(entry, WORD_OFFSET);
      count_entry(mm, link, -1);
      update_words(mm, inode, offset, -1);
    }
    if (load<u32>(link) != next) link = entry + NEXT; // it is still there
  }
}

/** A child's words came with its text; mmap_lock of both held for writing. False: no room. */
export function ref_ctr_fork(parent: usize, child: usize): bool {
  let entry = <usize>load<u32>(parent, MM_REF_CTRS);
  for (; entry != 0; entry = <usize>load<u32>(entry, NEXT)) {
    const copy = arena_alloc(mm_arena(child), REF_CTR_BYTES);
    if (copy == 0) return false;
    memory.copy(copy, entry, REF_CTR_BYTES);
    store<u32>(copy, load<u32>(child, MM_REF_CTRS), NEXT);
    store<u32>(child, <u32>copy, MM_REF_CTRS);
  }
  return true;
}
