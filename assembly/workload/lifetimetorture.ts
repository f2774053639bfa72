// Lives and deaths of uprobes by themselves (C3), for strategies whose hits read in sections: CPUs
// take references on the uprobes of two keys and drop them, so that the last one of each goes many
// thousand times a second, and is looked up, inserted and erased by others in the same moment.
//
// Whoever holds a reference knows: it is in the tree, it is the only one that its key finds, it has
// not been freed. Counted in PCPU_TORTURE: insertions as writes, lookups as reads, lookups that
// found a dead one as tries that failed.
//
// plain: `t`: the CPU's own; `u`: with a reference, or in a section.

import { FAULT_DUPLICATE_KEY, FAULT_LOOKUP, FAULT_UPROBE_FREED, HDR_TABLE } from "../layout";
import { PCPU_TORTURE, TORTURE_RANDOM, TORTURE_READS, TORTURE_TRYFAILS } from "../layout";
import { TORTURE_WRITES, UPROBE_MAGIC } from "../layout";
import { cpu_begin_batch, cpu_delay, cpu_slept, this_cpu, this_cpu_ptr } from "../cpu";
import { raise_slow, this_engine } from "../uprobe/fault";
import { readers_enter, readers_exit, readers_offline } from "../uprobe/readers";
import { readers_online } from "../uprobe/readers";
import { uprobes_reclaim } from "../uprobe/reclaim";
import { alloc_uprobe, find_live_uprobe, find_uprobe_rcu, MAGIC } from "../uprobe/table";
import { put_uprobe, table_strategy, try_get_uprobe, uprobe_is_active } from "../uprobe/table";

const KEYS: u32 = 2;

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

// What is true of a uprobe as long as somebody has a reference on it.
function check_alive(table: usize, u: usize, inode: usize, offset: i32): void {
  if (load<i32>(u, MAGIC) != UPROBE_MAGIC) {
    raise_slow(FAULT_UPROBE_FREED);
    return;
  }
  if (!uprobe_is_active(u)) raise_slow(FAULT_LOOKUP);
  const found = find_live_uprobe(table, inode, offset);
  if (found != u) raise_slow(FAULT_DUPLICATE_KEY);
  if (found != 0) put_uprobe(table, found);
}

// A reference by a search without a lock, or 0.
function look_up(table: usize, t: usize, inode: usize, offset: i32, r: u32): usize {
  const strategy = table_strategy(table);
  readers_online(strategy);
  const idx = readers_enter(strategy);
  const u = find_uprobe_rcu(table, 0, inode, offset);
  let held: bool = false;
  if (u != 0) {
    cpu_delay(<i32>((r >> 20) & 63));
    if (load<i32>(u, MAGIC) != UPROBE_MAGIC) raise_slow(FAULT_UPROBE_FREED);
    held = try_get_uprobe(u);
    if (!held) count(t, TORTURE_TRYFAILS);
  }
  readers_exit(strategy, idx);
  readers_offline(strategy);
  count(t, TORTURE_READS);
  return held ? u : 0;
}

/** `n` references taken and dropped. */
export function torture_lifetimes(inode: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE); // plain: never changes
  const t = this_cpu_ptr(PCPU_TORTURE);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const r = random(t);
    const offset = <i32>((r >> 4) % KEYS);
    let u: usize;
    if ((r & 7) < 3) {
      u = look_up(table, t, inode, offset, r);
    } else {
      u = alloc_uprobe(table, inode, offset, 0);
      if (u == 0) uprobes_reclaim(table);
      count(t, TORTURE_WRITES);
    }
    if (u == 0) continue;
    check_alive(table, u, inode, offset);
    cpu_delay(<i32>((r >> 26) & 31));
    put_uprobe(table, u);
  }
  return i;
}
