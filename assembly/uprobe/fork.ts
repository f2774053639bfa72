// fork of an address space: dup_mmap between uprobe_start_dup_mmap and uprobe_end_dup_mmap.
//
// The child gets the parent's mappings with their text as it is, trap bytes included. A probe that
// is in the parent's text is so in the child's; one that comes or goes later finds the child's
// mapping in its file's list. So registration must not be under way in between (C12): [A] fork
// holds dup_mmap_sem for reading, until the child is in all lists [B]; [C] registration, which
// patches and looks for places in turn, for writing. Forbidden: a copy made before a mapping was
// patched, and listed after registration had looked for the last time; a breakpoint of a probe that
// is gone. A handler's removal is kept out by the parent's mmap_lock, which is held for writing.
//
// A consumer for the parent only has its breakpoint copied all the same, as in the kernel: the
// child's first hit is filtered, and removes it there (UPROBE_HANDLER_REMOVE, C11).

import { mm_copy_maps, mm_create_like, mm_has_uprobes, mm_put, mm_set_has_uprobes } from "../mm/mm";
import { mmap_write_lock, mmap_write_unlock } from "../mm/mm";
import { down_read, up_read } from "../sync/rwsem";
import { copy_breakpoints } from "./breakpoints";
import { ref_ctr_fork } from "./ref_ctr";
import { dup_mmap_sem } from "./table";

// uprobe_dup_mmap: what the engine knows of the parent's breakpoints besides the bytes.
function uprobe_dup_mmap(table: usize, parent: usize, child: usize): bool {
  if (!mm_has_uprobes(parent)) return true;
  mm_set_has_uprobes(child);
  return ref_ctr_fork(parent, child) && copy_breakpoints(table, parent, child);
}

/** A copy of an address space. 0: the arena is full, and nothing is left behind. */
export function vm_fork(table: usize, parent: usize): usize {
  const child = mm_create_like(parent);
  if (child == 0) return 0;
  down_read(dup_mmap_sem(table)); // A
  mmap_write_lock(parent);
  mmap_write_lock(child); // from its first mapping on, others can find it
  const done = mm_copy_maps(parent, child) && uprobe_dup_mmap(table, parent, child); // B
  mmap_write_unlock(child);
  mmap_write_unlock(parent);
  if (!done) mm_put(child);
  up_read(dup_mmap_sem(table));
  return done ? child : 0;
}
