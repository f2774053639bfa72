// Stress of probes: mappers. A member maps parts of the file at addresses of its own, calls a
// function there whose probe is the member's, and unmaps it again; sometimes in the midst of the
// call, whose return must be seen all the same.
//
// plain: `MEMBER_*`, and whether a place is `mapped`: the member's own. `area`, `AREA_*`,
// `STRESS_MM`: do not change while CPUs run.

import { CONSUMER_SESSION, ENOMEM, FAULT_LOST_HIT, HANDLER_COUNT, HDR_CPUS } from "../layout";
import { STRESS_ERRORS, STRESS_MM, STRESS_MMAPS } from "../layout";
import { cpu_begin_batch, cpu_slept, this_cpu } from "../cpu";
import { vm_mmap, vm_munmap } from "../uprobe/breakpoint";
import { consumer_create, consumer_free, consumer_set_kind } from "../uprobe/consumer";
import { raise_slow, this_engine } from "../uprobe/fault";
import { uprobe_register, uprobe_unregister } from "../uprobe/register";
import { sink_create, sink_destroy } from "../uprobe/sink";
import { table_arena } from "../uprobe/table";
import { task_create } from "../uprobe/task";
import { trigger_call } from "./call";
import { area_of, AREA_INODE, AREA_SITES, below, bury, check, count, draw } from "./stress";
import {
  enter_once,
  FUNCTION_BYTES,
  given,
  leave_once,
  MEMBER_MAPS,
  MEMBER_NUMBER,
} from "./stress";
import { MAIN_VADDR, MEMBER_SCRATCH, own_pid, this_table } from "./stress";

/** Maps of one member. */
export const MAPS = 10;
const MAP_BYTES = 16;
/** Each has a place of its own: every second one below what is always mapped, so that the entries
 *  of that move when it comes and goes. */
const MAPS_VADDR: u32 = 0x0800_0000;
const MAPS_VADDR_2: u32 = 0x2000_0000;
const PLACE_BYTES: u32 = 0x1_0000;

/** The member's consumer of one function, its sink, the function. */
const MEMBER_CONSUMER = 56;
const MEMBER_SINK = 60;
const MEMBER_WATCHES = 64;

// Where it says how many functions are mapped at a place; 0: none.
function map_at(member: usize, i: i32): usize {
  return member + MEMBER_MAPS + <usize>(i * MAP_BYTES);
}
function is_mapped(member: usize, i: i32): bool {
  const mapped = map_at(member, i);
  return load<i32>(mapped) != 0;
}
function set_mapped(member: usize, i: i32, sites: i32): void {
  const mapped = map_at(member, i);
  store<i32>(mapped, sites);
}
function vaddr_of(member: usize, i: i32): u32 {
  const place = <u32>(load<i32>(member, MEMBER_NUMBER) * MAPS + i);
  return ((i & 1) == 0 ? MAPS_VADDR : MAPS_VADDR_2) + place * PLACE_BYTES;
}

// A session at a function, for the member's own tasks.
function watch(member: usize): bool {
  const table = this_table();
  const area = area_of(member);
  const cpus = load<i32>(this_engine(), HDR_CPUS) + 1; // plain: never changes
  const site = below(member, load<i32>(area, AREA_SITES));
  const sink = sink_create(table_arena(table), HANDLER_COUNT, cpus, 0, 0);
  const c = sink == 0 ? 0 : consumer_create(table, sink, own_pid(member), 0, 0);
  let rc = ENOMEM;
  if (c != 0) {
    consumer_set_kind(c, CONSUMER_SESSION, sink);
    rc = uprobe_register(table, <usize>load<u32>(area, AREA_INODE), site * FUNCTION_BYTES, c);
  }
  if (rc != 0) {
    if (c != 0) consumer_free(table, c);
    if (sink != 0) sink_destroy(sink);
    count(member, STRESS_ERRORS, 1);
    return false;
  }
  store<u32>(member, <u32>c, MEMBER_CONSUMER);
  store<u32>(member, <u32>sink, MEMBER_SINK);
  store<i32>(member, site, MEMBER_WATCHES);
  return true;
}

function unwatch(member: usize): void {
  const c = <usize>load<u32>(member, MEMBER_CONSUMER);
  if (c == 0) return;
  const inode = <usize>load<u32>(area_of(member), AREA_INODE);
  const offset = load<i32>(member, MEMBER_WATCHES) * FUNCTION_BYTES;
  if (uprobe_unregister(this_table(), inode, offset, c) != 0) raise_slow(FAULT_LOST_HIT);
  consumer_free(this_table(), c);
  sink_destroy(<usize>load<u32>(member, MEMBER_SINK));
  store<u32>(member, 0, MEMBER_CONSUMER);
}

function unmap(member: usize, i: i32): void {
  const mm = <usize>load<u32>(area_of(member), STRESS_MM);
  if (vm_munmap(this_table(), mm, vaddr_of(member, i)) != 0) count(member, STRESS_ERRORS, 1);
  set_mapped(member, i, 0);
}

/** The member's consumer is there; now and then it is another one. */
export function ensure_watch(member: usize): bool {
  if ((draw(member) & 15) == 0) unwatch(member);
  return load<u32>(member, MEMBER_CONSUMER) != 0 || watch(member);
}

// What the member's sink was given on this CPU since `before`.
function since(member: usize, before: i64): i64 {
  return given(<usize>load<u32>(member, MEMBER_SINK), this_cpu()) - before;
}

// A task in the new mapping: what it calls there is seen (C12), wherever it returns.
function check_map(member: usize, i: i32, first: i32, sites: i32, mid_call: bool): void {
  const vaddr = vaddr_of(member, i);
  const mm = <usize>load<u32>(area_of(member), STRESS_MM);
  const arena = table_arena(this_table());
  const task = task_create(arena, mm, own_pid(member), vaddr, FUNCTION_BYTES, sites, 1);
  if (task == 0) {
    count(member, STRESS_ERRORS, 1);
    return;
  }
  const before = given(<usize>load<u32>(member, MEMBER_SINK), this_cpu());
  const at = vaddr + <u32>((load<i32>(member, MEMBER_WATCHES) - first) * FUNCTION_BYTES);
  trigger_call(task, at);
  check(member, since(member, before) == 2, FAULT_LOST_HIT);
  enter_once(task, at);
  if (mid_call) unmap(member, i);
  // Where the instruction is the return, the call is over.
  if (since(member, before) != 4) leave_once(task);
  check(member, since(member, before) == 4, FAULT_LOST_HIT);
  bury(member, task);
}

/** What a task of the member's calls in a copy of the stress's address space is seen, too (C12). */
export function check_copy(member: usize, mm: usize): void {
  if (!ensure_watch(member)) return;
  const sites = load<i32>(area_of(member), AREA_SITES);
  const arena = table_arena(this_table());
  const task = task_create(arena, mm, own_pid(member), MAIN_VADDR, FUNCTION_BYTES, sites, 1);
  if (task == 0) {
    count(member, STRESS_ERRORS, 1);
    return;
  }
  const before = given(<usize>load<u32>(member, MEMBER_SINK), this_cpu());
  trigger_call(task, MAIN_VADDR + <u32>(load<i32>(member, MEMBER_WATCHES) * FUNCTION_BYTES));
  check(member, since(member, before) == 2, FAULT_LOST_HIT);
  bury(member, task);
}

function map(member: usize, i: i32): void {
  const area = area_of(member);
  const site = load<i32>(member, MEMBER_WATCHES);
  const first = below(member, site + 1);
  const sites = site + 1 - first + below(member, load<i32>(area, AREA_SITES) - site);
  const vaddr = vaddr_of(member, i);
  const mm = <usize>load<u32>(area, STRESS_MM);
  const inode = <usize>load<u32>(area, AREA_INODE);
  const bytes = sites * FUNCTION_BYTES;
  const out = member + MEMBER_SCRATCH;
  if (vm_mmap(this_table(), mm, inode, vaddr, bytes, first * FUNCTION_BYTES, out) != 0) {
    count(member, STRESS_ERRORS, 1);
    return;
  }
  set_mapped(member, i, sites);
  count(member, STRESS_MMAPS, 1);
  check_map(member, i, first, sites, (draw(member) & 3) == 0);
}

/** `n` times: a part of the file is mapped, or unmapped. Ends early if the CPU slept. */
export function stress_maps(member: usize, n: i32): i32 {
  cpu_begin_batch();
  let done = 0;
  while (done < n && !cpu_slept()) {
    done++;
    if (!ensure_watch(member)) continue;
    const i = below(member, MAPS);
    if (is_mapped(member, i)) unmap(member, i);
    else map(member, i);
  }
  return done;
}

/** All maps are unmapped. */
export function unmap_all(member: usize): void {
  for (let i = 0; i < MAPS; i++) {
    if (is_mapped(member, i)) unmap(member, i);
  }
  unwatch(member);
}
