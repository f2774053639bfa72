// Registration: uprobe_register and uprobe_unregister, of v6.9 where hits take references, of v6.12
// where they read in sections (lifetimes: table.ts).
//
// Lock order: register_rwsem, dup_mmap_sem, i_mmap_mutex (dropped), mmap_lock, uprobes_mmap_mutex,
// consumer_rwsem, treelock.
//
// Guarantees
//  G1 when uprobe_register has returned 0, every mapping of the file has the breakpoint (C12);
//  G2 when uprobe_unregister has returned, no handler of the consumer runs or will run (C9);
//  G3 at every moment at most one uprobe per key is in the tree (C3).
// G2 holds because hits walk the list under register_rwsem for reading and unregister takes the
// consumer out under it for writing; where hits read without it, because unregister waits for a
// grace period after that. Progress: both block.
//
// plain: `I_MMAP`, `VM_*` under the locks named above; `UPROBE_*`, `INODE_SIZE` never
// change.

import { EAGAIN, ENOENT, ENOMEM, ENOSPC, EINVAL } from "../layout";
import { load32 } from "../atomics";
import { I_MMAP, i_mmap_lock, i_mmap_unlock, INODE_SIZE } from "../mm/inode";
import { mm_get, mm_has_uprobes, mm_put, mmap_write_lock, mmap_write_unlock } from "../mm/mm";
import { offset_to_vaddr, vaddr_to_offset, vma_lookup, VM_INODE, VM_MM, VM_NEXT } from "../mm/mm";
import { VM_PASS } from "../mm/mm";
import { down_write, up_write } from "../sync/rwsem";
import { install_breakpoint, refresh_breakpoint, remove_breakpoint } from "./breakpoint";
import { consumer_add, consumer_del, consumer_filter, consumer_uprobe } from "./consumer";
import { filter_chain } from "./consumer";
import { uprobes_reclaim } from "./reclaim";
import { alloc_uprobe, CONSUMERS, delete_uprobe, dup_mmap_sem, find_uprobe } from "./table";
import { has_unfreed, is_key, next_pass, put_uprobe, REGISTER_RWSEM } from "./table";
import { table_is_deferring, table_strategy, UPROBE_INODE } from "./table";
import { uprobe_is_active, uprobe_limit_reached, UPROBE_OFFSET, UPROBE_REF_CTR } from "./table";

// register_for_each_vma: `added` is the new consumer, or 0 when one was taken away.
//
// The kernel first lists all places to patch; here one is found at a time, since a list needs
// memory, and unregistration must not fail for want of it. Places that were visited carry the
// number of this pass; the address space of the next one is kept by a use of it while i_mmap_mutex
// is dropped, which comes after mmap_lock in the lock order.
function register_for_each_vma(table: usize, u: usize, added: usize): i32 {
  const inode = <usize>load<u32>(u, UPROBE_INODE);
  const offset = load<i32>(u, UPROBE_OFFSET);
  let rc = 0;
  down_write(dup_mmap_sem(table)); // [C] pairs with [A] in fork.ts
  const pass = next_pass(table);
  while (rc == 0) {
    let mm: usize = 0;
    let vaddr: u32 = 0;
    i_mmap_lock(inode);
    for (
      let vma = <usize>load<u32>(inode, I_MMAP);
      vma != 0 && mm == 0;
      vma = <usize>load<u32>(vma, VM_NEXT)
    ) {
      if (load<i64>(vma, VM_PASS) == pass) continue;
      store<i64>(vma, pass, VM_PASS);
      vaddr = offset_to_vaddr(vma, offset);
      const user = <usize>load<u32>(vma, VM_MM);
      if (vaddr != 0 && mm_get(user)) mm = user;
    }
    i_mmap_unlock(inode);
    if (mm == 0) break;
    mmap_write_lock(mm);
    const vma = vma_lookup(mm, vaddr);
    // The address space may have changed since the place was found.
    if (
      vma != 0 &&
      <usize>load<u32>(vma, VM_INODE) == inode &&
      vaddr_to_offset(vma, vaddr) == offset
    ) {
      if (added != 0) {
        if (consumer_filter(added, mm)) rc = install_breakpoint(table, u, vma, vaddr);
        else refresh_breakpoint(table, u, vma, vaddr);
      } else if (mm_has_uprobes(mm)) {
        if (!filter_chain(u, mm)) remove_breakpoint(table, u, vma, vaddr);
        else refresh_breakpoint(table, u, vma, vaddr);
      }
    }
    mmap_write_unlock(mm);
    mm_put(mm);
  }
  up_write(dup_mmap_sem(table));
  return rc;
}

// Takes the consumer out and its breakpoints away; register_rwsem held for writing.
function unregister_locked(table: usize, u: usize, c: usize): i32 {
  if (!consumer_del(u, c)) return ENOENT;
  register_for_each_vma(table, u, 0); // removing cannot fail
  return 0;
}

// __uprobe_unregister of v6.9: with its last consumer the uprobe leaves the tree as well.
function unregister_by_reference(table: usize, u: usize, c: usize): i32 {
  const rc = unregister_locked(table, u, c);
  if (rc == 0 && load32(u + CONSUMERS) == 0) delete_uprobe(table, u);
  return rc;
}

// alloc_uprobe, which fails only if there is no room that waits for a grace period either. Asked
// before it is tried: afterwards another CPU may be done with freeing.
function alloc_or_wait(table: usize, inode: usize, offset: i32, ref_ctr: i32): usize {
  while (true) {
    const more = has_unfreed(table);
    const u = alloc_uprobe(table, inode, offset, ref_ctr);
    if (u != 0 || !more) return u;
    uprobes_reclaim(table);
  }
}

// By reference. EAGAIN: its last consumer left between finding it and locking it; it is dead.
function register_by_reference(table: usize, u: usize, c: usize): i32 {
  let rc = EAGAIN;
  down_write(u + REGISTER_RWSEM);
  if (uprobe_is_active(u)) {
    consumer_add(u, c);
    rc = register_for_each_vma(table, u, c);
    if (rc != 0) unregister_by_reference(table, u, c);
  }
  up_write(u + REGISTER_RWSEM);
  put_uprobe(table, u);
  return rc;
}

// In sections: the reference that the caller has is the registration's from now on. On an error it
// is dropped, and hits that had already come to the consumer are waited for.
function register_in_sections(table: usize, u: usize, c: usize): i32 {
  down_write(u + REGISTER_RWSEM);
  consumer_add(u, c);
  const rc = register_for_each_vma(table, u, c);
  if (rc != 0) unregister_locked(table, u, c);
  up_write(u + REGISTER_RWSEM);
  if (rc != 0) {
    put_uprobe(table, u);
    uprobe_unregister_sync(table);
  }
  return rc;
}

/**
 * Adds consumer `c` to the probe at (inode, offset), which is made if it is not there. EINVAL: the
 * offset is outside the file, or its instruction cannot be probed. ENOSPC: the table is full.
 * ENOMEM: the arena is. On an error nothing is left behind.
 */
export function uprobe_register(table: usize, inode: usize, offset: i32, c: usize): i32 {
  return uprobe_register_refctr(table, inode, offset, 0, c);
}

/**
 * The same with a reference counter at `ref_ctr` in the file, 0: none. EINVAL as well: it is odd or
 * outside the file, or the probe has another one.
 */
export function uprobe_register_refctr(
  table: usize,
  inode: usize,
  offset: i32,
  ref_ctr: i32,
  c: usize,
): i32 {
  const size = load<i32>(inode, INODE_SIZE);
  if (offset < 0 || offset >= size) return EINVAL;
  if (ref_ctr != 0 && ((ref_ctr & 1) != 0 || ref_ctr < 0 || ref_ctr > size - 2)) return EINVAL;
  const deferring = table_is_deferring(table);
  let rc: i32;
  do {
    const u = alloc_or_wait(table, inode, offset, ref_ctr);
    if (u == 0) return uprobe_limit_reached(table) ? ENOSPC : ENOMEM;
    if (load<i32>(u, UPROBE_REF_CTR) != ref_ctr) {
      put_uprobe(table, u);
      return EINVAL;
    }
    rc = deferring ? register_in_sections(table, u, c) : register_by_reference(table, u, c);
  } while (rc == EAGAIN);
  return rc;
}

/**
 * Takes consumer `c` from the probe at (inode, offset). ENOENT: there is no such consumer. Hits
 * that had begun may still run its handler: uprobe_unregister_sync waits for them, once for many.
 */
export function uprobe_unregister_nosync(table: usize, inode: usize, offset: i32, c: usize): i32 {
  if (!table_is_deferring(table)) {
    const u = find_uprobe(table, table_strategy(table), inode, offset);
    if (u == 0) return ENOENT;
    down_write(u + REGISTER_RWSEM);
    const rc = unregister_by_reference(table, u, c);
    up_write(u + REGISTER_RWSEM);
    put_uprobe(table, u);
    return rc;
  }
  // Its own registration keeps it alive: no lookup.
  const u = consumer_uprobe(c);
  if (u == 0 || !is_key(inode, offset, u)) return ENOENT;
  down_write(u + REGISTER_RWSEM);
  const rc = unregister_locked(table, u, c);
  up_write(u + REGISTER_RWSEM);
  if (rc == 0) put_uprobe(table, u); // the registration's
  return rc;
}

/** Returns when no handler of a consumer that was taken out before the call runs any more. */
export function uprobe_unregister_sync(table: usize): void {
  uprobes_reclaim(table);
}

/** Both. ENOENT: there is no such consumer. */
export function uprobe_unregister(table: usize, inode: usize, offset: i32, c: usize): i32 {
  const rc = uprobe_unregister_nosync(table, inode, offset, c);
  if (rc == 0) uprobe_unregister_sync(table);
  return rc;
}
