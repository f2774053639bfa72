// Registration churn: registers and unregisters probes at random, and checks after every step that
// the step did what its guarantee says. Runs on any number of CPUs at once, over the same keys.
//
// state
//   offset  bytes  content
//        0     24  mm, inode, first address, first offset, stride, sites
//       24     16  random state, task, sink, table arena
//       64     24  counters i32: registered, unregistered, errors, checks
//      128   8*n   per site: consumer registered by this state (0: none), consumer just
//                  unregistered (kept a while as a trap for late handlers)
//
// plain: a `state` with its slots (`slot`) and counters (`at`) belongs to one CPU at a time; the
// host reads them after the run. `HDR_*`, `SINK_AREA`, `SINK_STRIDE`, `CONSUMER_UPROBE` do not
// change meanwhile; `SINK_HITS`: this CPU's own block.

import {
  CHURN_CHECKS,
  CHURN_ERRORS,
  CHURN_REGISTERED,
  CHURN_UNREGISTERED,
  ENOMEM,
} from "../layout";
import { ENOSPC, FAULT_DUPLICATE_KEY, FAULT_LATE_HANDLER, FAULT_LOST_HIT } from "../layout";
import { HANDLER_COUNT, HDR_TABLE, SINK_AREA, SINK_HITS, SINK_STRIDE } from "../layout";
import { cpu_begin_batch, cpu_slept, this_cpu } from "../cpu";
import { arena_alloc, arena_free } from "../mm/arena";
import { consumer_create, consumer_free, consumer_kill, CONSUMER_UPROBE } from "../uprobe/consumer";
import { raise_slow, this_engine } from "../uprobe/fault";
import { uprobe_register, uprobe_unregister } from "../uprobe/register";
import { sink_create, sink_destroy } from "../uprobe/sink";
import { find_live_uprobe, put_uprobe, table_arena } from "../uprobe/table";
import { task_create } from "../uprobe/task";
import { task_destroy } from "../uprobe/utask";
import { trigger_call } from "./call";

const INODE = 4;
const VADDR = 8;
const OFFSET = 12;
const STRIDE_BYTES = 16;
const SITES = 20;
const RANDOM = 24;
const TASK = 28;
const SINK = 32;
const LIVE = 128;

function state_bytes(sites: i32): i32 {
  return LIVE + sites * 8;
}

// A task of its own for each state, so that a consumer can be for this state's calls alone.
function task_pid(state: usize): i32 {
  return -(<i32>state);
}

/** Churn over `sites` probes of one mapping, `stride` apart. 0: the arena is full or unmapped. */
export function churn_create(
  mm: usize,
  inode: usize,
  vaddr: u32,
  offset: i32,
  stride: i32,
  sites: i32,
  seed: i32,
  cpus: i32,
): usize {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  const arena = table_arena(table);
  const state = arena_alloc(arena, state_bytes(sites));
  const task = task_create(arena, mm, task_pid(state), vaddr, stride, sites, seed);
  const sink = sink_create(arena, HANDLER_COUNT, cpus, 0, 0);
  if (state == 0 || task == 0 || sink == 0) {
    if (sink != 0) sink_destroy(sink);
    if (task != 0) task_destroy(table, task);
    arena_free(arena, state, state_bytes(sites));
    return 0;
  }
  store<u32>(state, <u32>inode, INODE);
  store<u32>(state, vaddr, VADDR);
  store<i32>(state, offset, OFFSET);
  store<i32>(state, stride, STRIDE_BYTES);
  store<i32>(state, sites, SITES);
  store<i32>(state, seed | 1, RANDOM);
  store<u32>(state, <u32>task, TASK);
  store<u32>(state, <u32>sink, SINK);
  return state;
}

function count(state: usize, counter: i32): void {
  const at = state + <usize>counter;
  store<i32>(at, load<i32>(at) + 1);
}

function next_random(state: usize): u32 {
  let x = load<u32>(state, RANDOM);
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  store<u32>(state, x, RANDOM);
  return x;
}

// Hits that this state's consumers took on this CPU.
function own_hits(sink: usize): i64 {
  const block = load<u32>(sink, SINK_AREA) + <u32>(this_cpu() * load<i32>(sink, SINK_STRIDE));
  return load<i64>(<usize>block, SINK_HITS);
}

// One call of the site's function by this CPU: how many of this state's consumers took it.
function probe_call(state: usize, vaddr: u32): i64 {
  const sink = <usize>load<u32>(state, SINK);
  const before = own_hits(sink);
  trigger_call(<usize>load<u32>(state, TASK), vaddr);
  count(state, CHURN_CHECKS);
  return own_hits(sink) - before;
}

function unregister_site(table: usize, state: usize, slot: usize, site: i32): void {
  const inode = <usize>load<u32>(state, INODE);
  const shift = site * load<i32>(state, STRIDE_BYTES);
  const offset = load<i32>(state, OFFSET) + shift;
  const c = <usize>load<u32>(slot);
  if (uprobe_unregister(table, inode, offset, c) != 0) raise_slow(FAULT_LOST_HIT);
  // From here on nobody may touch the consumer. It is not freed yet: dead, it is a trap.
  consumer_kill(c);
  store<u32>(slot, 0);
  store<u32>(slot, <u32>c, 4);
  count(state, CHURN_UNREGISTERED);
  if (probe_call(state, load<u32>(state, VADDR) + <u32>shift) != 0) {
    raise_slow(FAULT_LATE_HANDLER);
  }
}

function register_site(table: usize, state: usize, slot: usize, site: i32): void {
  const arena = table_arena(table);
  const inode = <usize>load<u32>(state, INODE);
  const shift = site * load<i32>(state, STRIDE_BYTES);
  const offset = load<i32>(state, OFFSET) + shift;
  const old = <usize>load<u32>(slot, 4);
  if (old != 0) consumer_free(table, old);
  store<u32>(slot, 0, 4);
  // One in eight takes a single hit, of our own task, and then asks for the breakpoint's removal.
  const limit = (next_random(state) & 7) == 0 ? 1 : 0;
  const only = limit != 0 ? task_pid(state) : 0;
  const c = consumer_create(table, <usize>load<u32>(state, SINK), only, 0, limit);
  const rc = c == 0 ? ENOMEM : uprobe_register(table, inode, offset, c);
  if (rc != 0) {
    if (rc != ENOMEM && rc != ENOSPC) raise_slow(FAULT_LOST_HIT);
    if (c != 0) consumer_free(table, c);
    count(state, CHURN_ERRORS);
    return;
  }
  store<u32>(slot, <u32>c);
  count(state, CHURN_REGISTERED);
  // C12: registered means that the very next call is seen.
  if (probe_call(state, load<u32>(state, VADDR) + <u32>shift) != 1) {
    raise_slow(FAULT_LOST_HIT);
  }
  // C11: a consumer that has had its last hit gets no other; those beside it still get theirs (the
  // permanent probe's oracle sees to that).
  if (limit != 0 && probe_call(state, load<u32>(state, VADDR) + <u32>shift) != 0) {
    raise_slow(FAULT_LATE_HANDLER);
  }
  // C3: while our consumer keeps it alive, the key has one uprobe: the one we are on.
  const u = find_live_uprobe(table, inode, offset);
  if (u != <usize>load<u32>(c, CONSUMER_UPROBE)) raise_slow(FAULT_DUPLICATE_KEY);
  if (u != 0) put_uprobe(table, u);
}

/**
 * `n` steps: each registers a consumer at a random site, or takes away the one it has
 * there. Ends early if the CPU slept; returns the steps done.
 */
export function churn_probes(state: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  const sites = <u64>load<u32>(state, SITES);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const site = <i32>((<u64>next_random(state) * sites) >> 32);
    const slot = state + LIVE + <usize>(site << 3);
    if (load<u32>(slot) != 0) unregister_site(table, state, slot, site);
    else register_site(table, state, slot, site);
  }
  return i;
}

/** Takes back all it has registered and frees everything. */
export function churn_destroy(state: usize): void {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  const arena = table_arena(table);
  const sites = load<i32>(state, SITES);
  for (let site = 0; site < sites; site++) {
    const slot = state + LIVE + <usize>(site << 3);
    if (load<u32>(slot) != 0) unregister_site(table, state, slot, site);
    if (load<u32>(slot, 4) != 0) consumer_free(table, <usize>load<u32>(slot, 4));
  }
  sink_destroy(<usize>load<u32>(state, SINK));
  task_destroy(table, <usize>load<u32>(state, TASK));
  arena_free(arena, state, state_bytes(sites));
}
