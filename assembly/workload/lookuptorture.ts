// `torture lookup`: lookups without a lock, by themselves, so that millions a second are checked.
//
// In the tree (C1, C2, C4, C5): one CPU inserts and erases keys around a fixed one, all others look
// up the fixed key (always found), keys between (never found), the churned ones (what is found
// stays what it is until the section ends), and walk the tree node by node.
//
// In the maps (C6, C7, C8): one CPU remaps a region from file A to file B and back, at another
// offset. The probes are at (A, offset of A) and (B, offset of B); decoys at (A, offset of B) and
// (B, offset of A), which only a lookup that mixes two moments finds.
//
//   offset  bytes  the area; the host writes the first line
//        0      8  inodes A and B
//        8      8  offset of A's mapping in A, of B's in B
//       16     12  mm, address of the region, its bytes
//       28      8  offset of the probe in the region; offset of the fixed key in A
//       64      4  phase: odd while the mapper is at work, else bit 1 says B
//      128      4  latest: the uprobe that is just being prepared, or 0
//      192      4  whether the region below is mapped
//      256  4*64   keys of the churner: its uprobes, or 0
// Counted in PCPU_TORTURE: writes, reads, and as tries that failed what speculation left open.
//
// plain: `p`: written by the host before the run, or its only writer's; `t`: the CPU's own;
// `slot`: the churner's; `u`, `n`: read in a section or with a reference; what must not change
// there is what is tested

import {
  FAULT_GRACE,
  FAULT_LOOKUP,
  FAULT_LOST_HIT,
  FAULT_MIXED,
  FAULT_UPROBE_FREED,
} from "../layout";
import {
  HDR_TABLE,
  INSN_TRAP,
  LOOKUP_BELOW,
  LOOKUP_BYTES,
  LOOKUP_INTO,
  LOOKUP_KEY,
} from "../layout";
import { LOOKUP_INODES, LOOKUP_KEYS, LOOKUP_LATEST, LOOKUP_MM, LOOKUP_PGOFFS } from "../layout";
import { LOOKUP_PHASE, LOOKUP_SLOTS, LOOKUP_VADDR, PCPU_TORTURE, TORTURE_RANDOM } from "../layout";
import { TORTURE_READS, TORTURE_TRYFAILS, TORTURE_WRITES, UPROBE_MAGIC } from "../layout";
import { load32, load8, store32 } from "../atomics";
import { cpu_begin_batch, cpu_delay, cpu_slept, this_cpu, this_cpu_ptr } from "../cpu";
import { mmap_read_lock, mmap_read_unlock, mmap_speculate_begin } from "../mm/mm";
import { mmap_write_lock, mmap_write_unlock } from "../mm/mm";
import { COPY_INSN, original_insn, prepare_uprobe, vm_mmap, vm_munmap } from "../uprobe/breakpoint";
import { raise_slow, this_engine } from "../uprobe/fault";
import { find_active_uprobe_slow, find_active_uprobe_speculative, GONE, SWBP } from "../uprobe/hit";
import { rb_left, rb_right } from "../uprobe/rbtree";
import { readers_enter, readers_exit, readers_offline } from "../uprobe/readers";
import { readers_online, readers_quiescent } from "../uprobe/readers";
import { uprobes_reclaim } from "../uprobe/reclaim";
import { alloc_uprobe, find_uprobe_rcu, FLAGS, INSN, is_before } from "../uprobe/table";
import { is_key, MAGIC, put_uprobe, table_strategy, table_tree } from "../uprobe/table";
import { task_text } from "../uprobe/task";

/** Distance of the churned keys, and of the fixed one from those around it. */
const KEY_STEP: i32 = 16;
const STEPS_MOST: i32 = 64;
/** Erased uprobes of a grace period. */
const BATCH: i32 = 32;
/** Looks at a uprobe that is just being prepared. */
const LOOKS: i32 = 1000;

function random(t: usize): u32 {
  let x = load<u32>(t, TORTURE_RANDOM);
  if (x == 0) x = (<u32>(this_cpu() + 1) * 0x85ebca6b) | 1;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  store<u32>(t, x, TORTURE_RANDOM);
  return x;
}

function count(t: usize, counter: i32): void {
  const at = t + <usize>counter;
  store<i64>(at, load<i64>(at) + 1); // plain: the CPU's own
}

// -- The tree ------------------------------------------------------------------------------------

// It is the uprobe of the key, and stays that for a while.
function check_found(u: usize, inode: usize, offset: i32, r: u32): void {
  for (let look = 0; look < 2; look++) {
    if (load<i32>(u, MAGIC) != UPROBE_MAGIC) raise_slow(FAULT_UPROBE_FREED);
    else if (!is_key(inode, offset, u)) raise_slow(FAULT_GRACE);
    // Mostly short; one in 1024 longer than a batch of the churner takes.
    if (look == 0) cpu_delay((r & 1023) == 0 ? 20_000 : <i32>((r >> 10) & 31));
  }
}

// The search of table.ts, with a look at each node and time between a node and its link: whoever
// stands on a node that was erased goes on over uprobes (C1, C4).
function walk(table: usize, inode: usize, offset: i32, r: u32): void {
  let n = <usize>load32(table_tree(table));
  for (let steps = 0; n != 0 && steps < STEPS_MOST; steps++) {
    if (load<i32>(n, MAGIC) != UPROBE_MAGIC) {
      raise_slow(FAULT_UPROBE_FREED);
      return;
    }
    if (is_key(inode, offset, n)) return;
    cpu_delay(<i32>((r >> steps) & 15));
    n = is_before(inode, offset, n) ? rb_left(n) : rb_right(n);
  }
}

// C5: as soon as the flag is there, so is the instruction.
function check_prepared(p: usize): void {
  const u = <usize>load32(p + LOOKUP_LATEST);
  if (u == 0) return;
  for (let look = 0; look < LOOKS; look++) {
    if ((load32(u + FLAGS) & COPY_INSN) == 0) continue;
    if (<i32>load<u8>(u, INSN) != original_insn(u)) raise_slow(FAULT_LOOKUP);
    return;
  }
}

/** `n` lookups. `task`: where retries are counted. */
export function torture_tree_reader(p: usize, task: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE); // plain: never changes
  const strategy = table_strategy(table);
  const inode = <usize>load<u32>(p, LOOKUP_INODES);
  const fixed = load<i32>(p, LOOKUP_KEY);
  const t = this_cpu_ptr(PCPU_TORTURE);
  cpu_begin_batch();
  readers_online(strategy);
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    readers_quiescent(strategy);
    const r = random(t);
    const key = <i32>((r >> 3) & (LOOKUP_KEYS - 1)) * KEY_STEP;
    const idx = readers_enter(strategy);
    switch (r & 7) {
      case 0: {
        const u = find_uprobe_rcu(table, task, inode, key);
        if (u != 0) check_found(u, inode, key, r);
        break;
      }
      case 1:
        if (find_uprobe_rcu(table, task, inode, fixed + 1) != 0) raise_slow(FAULT_LOOKUP);
        break;
      case 2:
        walk(table, inode, key + 1, r);
        break;
      case 3:
        check_prepared(p);
        break;
      default: {
        const u = find_uprobe_rcu(table, task, inode, fixed);
        if (u == 0 || !is_key(inode, fixed, u)) raise_slow(FAULT_LOOKUP);
      }
    }
    readers_exit(strategy, idx);
    count(t, TORTURE_READS);
  }
  readers_offline(strategy);
  return i;
}

function insert(p: usize, table: usize, inode: usize, slot: usize, offset: i32): void {
  const u = alloc_uprobe(table, inode, offset, 0);
  if (u == 0) {
    uprobes_reclaim(table);
    return;
  }
  store<u32>(slot, <u32>u);
  store32(p + LOOKUP_LATEST, <i32>u);
  cpu_delay(<i32>((slot >> 2) & 63)); // so that readers are there before the flag is
  prepare_uprobe(u);
}

// Without register_rwsem: nobody else changes these keys.
function erase(p: usize, table: usize, slot: usize): void {
  const u = <usize>load<u32>(slot);
  if (<usize>load32(p + LOOKUP_LATEST) == u) store32(p + LOOKUP_LATEST, 0);
  store<u32>(slot, 0);
  put_uprobe(table, u); // the last one: out of the tree, and freed after a grace period
}

/** `n` insertions and erasures. One CPU only. */
export function torture_tree_churner(p: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE); // plain: never changes
  const inode = <usize>load<u32>(p, LOOKUP_INODES);
  const t = this_cpu_ptr(PCPU_TORTURE);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const key = (<i32>(random(t) >> 7)) & (LOOKUP_KEYS - 1);
    const slot = p + LOOKUP_SLOTS + <usize>(key << 2);
    if (load<u32>(slot) == 0) insert(p, table, inode, slot, key * KEY_STEP);
    else erase(p, table, slot);
    count(t, TORTURE_WRITES);
    // Else the next one that finds the table full, or the housekeeper once a second.
    if (i % BATCH == 0 && (random(t) & 0x60) == 0) uprobes_reclaim(table);
  }
  return i;
}

/** Takes back what the churner has left in the tree. */
export function torture_tree_clear(p: usize, n: i32): void {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE); // plain: never changes
  for (let key = 0; key < LOOKUP_KEYS; key++) {
    const slot = p + LOOKUP_SLOTS + <usize>(key << 2);
    if (load<u32>(slot) != 0) erase(p, table, slot);
  }
  uprobes_reclaim(table);
}

// -- The maps ------------------------------------------------------------------------------------

function inode_of(p: usize, which: i32): usize {
  const at = p + LOOKUP_INODES + <usize>(which << 2);
  return <usize>load<u32>(at); // plain: as `p`
}
function pgoff_of(p: usize, which: i32): i32 {
  const at = p + LOOKUP_PGOFFS + <usize>(which << 2);
  return load<i32>(at); // plain: as `p`
}

// Whether the uprobe is the one of file A (0) or B (1).
function is_of(p: usize, u: usize, which: i32): bool {
  return is_key(inode_of(p, which), pgoff_of(p, which) + load<i32>(p, LOOKUP_INTO), u);
}

// A phase that was there before and after the lookup says which file was mapped.
function check_mapping(p: usize, u: usize, before: i32): void {
  const steady = (before & 1) == 0 && load32(p + LOOKUP_PHASE) == before;
  if (u == GONE || u == SWBP) {
    if (steady) raise_slow(FAULT_LOOKUP);
    return;
  }
  if (load<i32>(u, MAGIC) != UPROBE_MAGIC) raise_slow(FAULT_UPROBE_FREED);
  else if (!is_of(p, u, 0) && !is_of(p, u, 1)) raise_slow(FAULT_MIXED);
  else if (steady && !is_of(p, u, (before >> 1) & 1)) raise_slow(FAULT_MIXED);
}

// C8: the sequence is even for whoever has mmap_lock for reading.
function check_even(mm: usize): void {
  mmap_read_lock(mm);
  if ((mmap_speculate_begin(mm) & 1) != 0) raise_slow(FAULT_MIXED);
  mmap_read_unlock(mm);
}

/** `n` speculative lookups. `task`: where retries and fallbacks are counted. */
export function torture_maps_reader(p: usize, task: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE); // plain: never changes
  const strategy = table_strategy(table);
  const mm = <usize>load<u32>(p, LOOKUP_MM);
  const vaddr = load<u32>(p, LOOKUP_VADDR) + load<u32>(p, LOOKUP_INTO);
  const t = this_cpu_ptr(PCPU_TORTURE);
  cpu_begin_batch();
  readers_online(strategy);
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    readers_quiescent(strategy);
    const r = random(t);
    const idx = readers_enter(strategy);
    const before = load32(p + LOOKUP_PHASE);
    // Mostly fast; some long enough for a remap to happen between two loads.
    const pause = (r & 0xf0000) == 0 ? <i32>((r >> 20) & 511) : 0;
    const u = find_active_uprobe_speculative(table, task, mm, vaddr, pause);
    if (u != 0) check_mapping(p, u, before);
    else {
      count(t, TORTURE_TRYFAILS);
      if ((r & 15) == 0) {
        const again = load32(p + LOOKUP_PHASE);
        check_mapping(p, find_active_uprobe_slow(table, task, mm, vaddr), again);
      }
    }
    readers_exit(strategy, idx);
    count(t, TORTURE_READS);
    if ((r & 0x3f00) == 0) check_even(mm);
  }
  readers_offline(strategy);
  return i;
}

// The region below comes and goes, so that the region's entry moves in the array.
function toggle_below(p: usize, table: usize, mm: usize, out: usize): void {
  const bytes = load<i32>(p, LOOKUP_BYTES);
  const below = load<u32>(p, LOOKUP_VADDR) - <u32>bytes;
  const there = load<i32>(p, LOOKUP_BELOW) != 0;
  if (there) vm_munmap(table, mm, below);
  else vm_mmap(table, mm, inode_of(p, 1), below, bytes, pgoff_of(p, 0), out);
  store<i32>(p, there ? 0 : 1, LOOKUP_BELOW);
}

function remap(p: usize, table: usize, mm: usize, out: usize): void {
  const vaddr = load<u32>(p, LOOKUP_VADDR);
  const phase = load32(p + LOOKUP_PHASE);
  const which = 1 - ((phase >> 1) & 1);
  store32(p + LOOKUP_PHASE, phase + 1);
  vm_munmap(table, mm, vaddr);
  vm_mmap(
    table,
    mm,
    inode_of(p, which),
    vaddr,
    load<i32>(p, LOOKUP_BYTES),
    pgoff_of(p, which),
    out,
  );
  store32(p + LOOKUP_PHASE, phase + 2);
  // C12: a mapping is there with its breakpoints.
  const text = task_text(mm, vaddr + load<u32>(p, LOOKUP_INTO), 1, 1);
  if (text == 0 || load8(text) != INSN_TRAP) raise_slow(FAULT_LOST_HIT);
}

/** `n` changes of the maps. One CPU only. */
export function torture_maps_mapper(p: usize, out: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE); // plain: never changes
  const mm = <usize>load<u32>(p, LOOKUP_MM);
  const t = this_cpu_ptr(PCPU_TORTURE);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const r = random(t);
    if ((r & 0x300) == 0) {
      // C8: it is odd for whoever has mmap_lock for writing.
      mmap_write_lock(mm);
      if ((mmap_speculate_begin(mm) & 1) == 0) raise_slow(FAULT_MIXED);
      mmap_write_unlock(mm);
    } else if ((r & 0x400) == 0) toggle_below(p, table, mm, out);
    else remap(p, table, mm, out);
    count(t, TORTURE_WRITES);
    cpu_delay(<i32>((r >> 16) & 255));
  }
  return i;
}
