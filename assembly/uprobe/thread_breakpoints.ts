// A task's own breakpoints (LOOKUP_PER_THREAD): address -> uprobe, found without mmap_lock and
// without treelock, and the XOL slot that it was stepped in last.
//
// From a patch of July 2024 that both columns of seed 0 were measured with and that was not merged:
// a red-black tree a thread, by address, under a rwlock of the thread.
//
//   entry, 64 bytes
//   offset  bytes  content
//        0     24  node
//       24      4  references: the tree's, and that of the hit that is on it
//       28     12  address, uprobe (with a reference), slot to be tried first, or 0
//
// An entry is right as long as its uprobe is in the table and its address maps the uprobe's place.
//   made        by the task itself, with mmap_lock held for reading, if [A] the trap byte is there
//   taken back  [B] the trap byte is removed, or the mapping, then [C] the entries of all tasks of
//               the address space, with mmap_lock held for writing
// Forbidden: an entry whose uprobe is unregistered: the next probe there would not be hit (C12). If
// a hit is late, and still finds the uprobe in the table after B, then A sees no trap byte, or that
// of a later registration, which has its own B and C. A handler's removal takes the byte away with
// mmap_lock held for reading, and leaves the entry: the uprobe stays in the table, and who
// unregisters it comes to C.
// A hit that found the entry before C goes on with it, as one goes on that found its uprobe in the
// table before: unregister waits for it at register_rwsem (C9).
//
// Lock order: mmap_lock, tasks_mutex, the task's rwlock.
//
// plain: `ENTRY_*` never change once the entry is in the tree; but `SLOT`: the task's own.

import { TASK_FALLBACKS } from "../layout";
import { load32 } from "../atomics";
import { arena_alloc, arena_free } from "../mm/arena";
import { refcount_dec_and_test, refcount_inc, refcount_set } from "../sync/refcount";
import { read_lock, read_unlock, rwlock_init, write_lock, write_unlock } from "../sync/rwlock";
import { rb_erase, rb_insert_color, rb_left, rb_left_link, rb_link_node } from "./rbtree";
import { rb_right, rb_right_link } from "./rbtree";
import { get_uprobe, put_uprobe, table_arena } from "./table";

/** Offsets in a task: root of the tree, and its lock. */
export const TASK_BREAKPOINTS = 520;
export const TASK_BREAKPOINTS_LOCK = 528;

const REF = 24;
const ENTRY_VADDR = 28;
const ENTRY_UPROBE = 32;
const SLOT = 36;
const ENTRY_BYTES = 64;

export function thread_breakpoints_init(task: usize): void {
  rwlock_init(task + TASK_BREAKPOINTS_LOCK);
}

/** The task's entry of an address, with a reference for the caller, or 0. */
// @ts-ignore: decorator
@inline
export function find_thread_breakpoint(task: usize, vaddr: u32): usize {
  read_lock(task + TASK_BREAKPOINTS_LOCK);
  let n = <usize>load32(task + TASK_BREAKPOINTS);
  while (n != 0) {
    const at = load<u32>(n, ENTRY_VADDR);
    if (at == vaddr) {
      refcount_inc(n + REF);
      break;
    }
    n = vaddr < at ? rb_left(n) : rb_right(n);
  }
  read_unlock(task + TASK_BREAKPOINTS_LOCK);
  return n;
}

/** Drops a reference; the last one frees the entry, and drops the uprobe's. */
// @ts-ignore: decorator
@inline
export function put_thread_breakpoint(table: usize, entry: usize): void {
  if (refcount_dec_and_test(entry + REF)) free_entry_slow(table, entry);
}

function free_entry_slow(table: usize, entry: usize): void {
  put_uprobe(table, <usize>load<u32>(entry, ENTRY_UPROBE));
  arena_free(table_arena(table), entry, ENTRY_BYTES);
}

// @ts-ignore: decorator
@inline
export function thread_breakpoint_uprobe(entry: usize): usize {
  return <usize>load<u32>(entry, ENTRY_UPROBE);
}

// @ts-ignore: decorator
@inline
export function thread_breakpoint_slot(entry: usize): i32 {
  return load<i32>(entry, SLOT);
}
// @ts-ignore: decorator
@inline
export function thread_breakpoint_set_slot(entry: usize, nr: i32): void {
  store<i32>(entry, nr, SLOT);
}

/**
 * The task did not find its address here, but `u` in the table, and its trap byte [A]; mmap_lock is
 * held for reading. Without memory it will not find it the next time either.
 */
export function add_thread_breakpoint_slow(table: usize, task: usize, vaddr: u32, u: usize): void {
  // plain: a counter of the executing task's own.
  store<i64>(task, load<i64>(task, TASK_FALLBACKS) + 1, TASK_FALLBACKS);
  const entry = arena_alloc(table_arena(table), ENTRY_BYTES);
  if (entry == 0) return;
  get_uprobe(u);
  refcount_set(entry + REF, 1);
  store<u32>(entry, vaddr, ENTRY_VADDR);
  store<u32>(entry, <u32>u, ENTRY_UPROBE);
  write_lock(task + TASK_BREAKPOINTS_LOCK);
  let link = task + TASK_BREAKPOINTS;
  let parent: usize = 0;
  for (let n = <usize>load32(link); n != 0; n = <usize>load32(link)) {
    parent = n;
    link = vaddr < load<u32>(n, ENTRY_VADDR) ? rb_left_link(n) : rb_right_link(n);
  }
  rb_link_node(entry, parent, link);
  rb_insert_color(task + TASK_BREAKPOINTS, entry);
  write_unlock(task + TASK_BREAKPOINTS_LOCK);
}

// The first entry at or after `vaddr`, or 0; the lock is held.
function first_entry(task: usize, vaddr: u32): usize {
  let best: usize = 0;
  let n = <usize>load32(task + TASK_BREAKPOINTS);
  while (n != 0) {
    if (load<u32>(n, ENTRY_VADDR) >= vaddr) {
      best = n;
      n = rb_left(n);
    } else {
      n = rb_right(n);
    }
  }
  return best;
}

/**
 * Takes back the task's entries of [first, last]: mmap_lock held for writing, or nobody executes
 * the task any more.
 */
export function del_thread_breakpoints(table: usize, task: usize, first: u32, last: u32): void {
  while (true) {
    write_lock(task + TASK_BREAKPOINTS_LOCK);
    const entry = first_entry(task, first);
    const found = entry != 0 && load<u32>(entry, ENTRY_VADDR) <= last;
    if (found) rb_erase(task + TASK_BREAKPOINTS, entry); // C
    write_unlock(task + TASK_BREAKPOINTS_LOCK);
    if (!found) return;
    put_thread_breakpoint(table, entry);
  }
}
