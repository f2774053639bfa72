// What writers pay: registering probes and taking them away, timed, while other CPUs hit a probe of
// the same file in the same address space.
//
// state
//   offset  bytes  content
//        0     20  inode, first address, first offset, stride, task
//       20      8  sink, errors: calls that failed
//      128  4*64   consumers, one a site, each registered again and again
//
// After each round of registrations CPU 0 calls the last of the functions itself, and again once
// all are taken away: a hit that its consumer does not see is a fault (C12), and one that it still
// sees (C9).
//
// plain: `state`, `slot`: CPU 0's own while it runs. `HDR_*`, `SINK_AREA`, `SINK_STRIDE` do not
// change; `SINK_HITS`, `count`: this CPU's own.

import { FAULT_LATE_HANDLER, FAULT_LOST_HIT, HANDLER_COUNT, HDR_TABLE } from "../layout";
import { PCPU_COUNT, REGISTRATION_BATCH, REGISTRATION_ERRORS } from "../layout";
import { SINK_AREA, SINK_HITS, SINK_STRIDE } from "../layout";
import { cpu_begin_batch, cpu_now, cpu_slept, this_cpu, this_cpu_ptr } from "../cpu";
import { arena_alloc, arena_free } from "../mm/arena";
import { consumer_create, consumer_free } from "../uprobe/consumer";
import { raise_slow, this_engine } from "../uprobe/fault";
import { uprobe_register, uprobe_unregister_nosync } from "../uprobe/register";
import { uprobe_unregister_sync } from "../uprobe/register";
import { sink_create, sink_destroy } from "../uprobe/sink";
import { table_arena } from "../uprobe/table";
import { task_create } from "../uprobe/task";
import { task_destroy } from "../uprobe/utask";
import { histogram_record } from "./histogram";
import { trigger_call } from "./call";

const INODE = 0;
const VADDR = 4;
const OFFSET = 8;
const STRIDE_BYTES = 12;
const TASK = 16;
const SINK = 20;
const CONSUMERS = 128;
const STATE_BYTES: i32 = 128 + 4 * 64;

// @ts-ignore: decorator
@inline
function consumer_of(state: usize, site: i32): usize {
  const slot = state + CONSUMERS + <usize>(site << 2);
  return <usize>load<u32>(slot);
}

/** REGISTRATION_BATCH probes of one mapping, `stride` apart. 0: the arena is full, or unmapped. */
export function registration_create(
  mm: usize,
  inode: usize,
  vaddr: u32,
  offset: i32,
  stride: i32,
  cpus: i32,
): usize {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  const arena = table_arena(table);
  const state = arena_alloc(arena, STATE_BYTES);
  if (state == 0) return 0;
  const task = task_create(arena, mm, 1, vaddr, stride, REGISTRATION_BATCH, 1);
  const sink = sink_create(arena, HANDLER_COUNT, cpus, 0, 0);
  store<u32>(state, <u32>inode, INODE);
  store<u32>(state, vaddr, VADDR);
  store<i32>(state, offset, OFFSET);
  store<i32>(state, stride, STRIDE_BYTES);
  store<u32>(state, <u32>task, TASK);
  store<u32>(state, <u32>sink, SINK);
  let made = task != 0 && sink != 0;
  for (let site = 0; site < REGISTRATION_BATCH && made; site++) {
    const c = consumer_create(table, sink, 0, 0, 0);
    const slot = state + CONSUMERS + <usize>(site << 2);
    store<u32>(slot, <u32>c);
    made = c != 0;
  }
  if (made) return state;
  registration_destroy(state);
  return 0;
}

/** Between two batches nothing is registered: all that is left is to free it. */
export function registration_destroy(state: usize): void {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  const arena = table_arena(table);
  for (let site = 0; site < REGISTRATION_BATCH; site++) {
    const c = consumer_of(state, site);
    if (c != 0) consumer_free(table, c);
  }
  const sink = <usize>load<u32>(state, SINK);
  if (sink != 0) sink_destroy(sink);
  const task = <usize>load<u32>(state, TASK);
  if (task != 0) task_destroy(table, task);
  arena_free(arena, state, STATE_BYTES);
}

function failed_slow(state: usize): void {
  store<i32>(state, load<i32>(state, REGISTRATION_ERRORS) + 1, REGISTRATION_ERRORS);
}

// One call of a site's function: its consumer sees it, or does not, as it should be.
function check_call(state: usize, site: i32, seen: i64): void {
  const sink = <usize>load<u32>(state, SINK);
  const block = load<u32>(sink, SINK_AREA) + <u32>(this_cpu() * load<i32>(sink, SINK_STRIDE));
  const before = load<i64>(<usize>block, SINK_HITS);
  const vaddr = load<u32>(state, VADDR) + <u32>(site * load<i32>(state, STRIDE_BYTES));
  trigger_call(<usize>load<u32>(state, TASK), vaddr);
  if (load<i64>(<usize>block, SINK_HITS) - before == seen) return;
  raise_slow(seen != 0 ? FAULT_LOST_HIT : FAULT_LATE_HANDLER);
}

// @ts-ignore: decorator
@inline
function offset_of(state: usize, site: i32): i32 {
  return load<i32>(state, OFFSET) + site * load<i32>(state, STRIDE_BYTES);
}

function register_site(table: usize, state: usize, site: i32): void {
  const inode = <usize>load<u32>(state, INODE);
  const c = consumer_of(state, site);
  if (uprobe_register(table, inode, offset_of(state, site), c) != 0) failed_slow(state);
}

/** Takes the first `count` probes away, and waits once for the hits that may still be on them. */
function unregister_batch(table: usize, state: usize, count: i32): void {
  const inode = <usize>load<u32>(state, INODE);
  for (let site = 0; site < count; site++) {
    const c = consumer_of(state, site);
    const rc = uprobe_unregister_nosync(table, inode, offset_of(state, site), c);
    if (rc != 0) failed_slow(state);
  }
  uprobe_unregister_sync(table);
}

function count_operations(n: i32): void {
  const count = this_cpu_ptr(PCPU_COUNT);
  store<i64>(count, load<i64>(count) + n);
}

/**
 * `n` registrations, each timed into `h`; they are taken away again in between, which is not. Ends
 * early if the CPU slept; returns how many it made.
 */
export function register_probes(state: usize, h: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    const count = min(n - i, REGISTRATION_BATCH);
    for (let site = 0; site < count; site++) {
      const before = cpu_now();
      register_site(table, state, site);
      histogram_record(h, cpu_now() - before);
    }
    check_call(state, count - 1, 1);
    unregister_batch(table, state, count);
    check_call(state, count - 1, 0);
    i += count;
  }
  count_operations(i);
  return i;
}

/**
 * `n` batches of REGISTRATION_BATCH probes that are taken away with one grace period, timed; into
 * `h` goes the time of a batch by its probes. Returns how many batches it did.
 */
export function unregister_batches(state: usize, h: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    for (let site = 0; site < REGISTRATION_BATCH; site++) register_site(table, state, site);
    check_call(state, REGISTRATION_BATCH - 1, 1);
    const before = cpu_now();
    unregister_batch(table, state, REGISTRATION_BATCH);
    histogram_record(h, (cpu_now() - before) / REGISTRATION_BATCH);
    check_call(state, REGISTRATION_BATCH - 1, 0);
    i++;
  }
  count_operations(i);
  return i;
}
