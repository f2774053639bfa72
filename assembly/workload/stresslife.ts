// Stress of probes: its beginning and its end, both on the housekeeper, before and after the CPUs
// run. What is where: stress.ts.
//
// plain: `area`, `member`, `slot`, `consumers`: nobody else's before and after the run. `INODE_*`:
// of a file that nobody has mapped yet. `HDR_*` never changes.

import {
  CONSUMER_RETURN,
  CONSUMER_SESSION,
  EINVAL,
  FAULT_LOST_HIT,
  HANDLER_COUNT,
} from "../layout";
import { HDR_ARENA, HDR_CPUS, HDR_URET_SRCU, INSN_NOP, INSN_PUSH, INSN_RET } from "../layout";
import { STRESS_ATTACHES, STRESS_CALLS, STRESS_FORKS, STRESS_GRAVE, STRESS_MAPS } from "../layout";
import { STRESS_MEMBER_BYTES, STRESS_MM, STRESS_SLOT_BYTES, STRESS_SLOTS_AT } from "../layout";
import { STRESS_TASK, STRESS_TASKS, STRESS_WATCH_KIND, STRESS_WATCH_SINK } from "../layout";
import { TASK_BYTES } from "../layout";
import { arena_alloc, arena_free } from "../mm/arena";
import { inode_create, inode_destroy, INODE_DATA } from "../mm/inode";
import { mm_create, mm_put } from "../mm/mm";
import { srcu_readers } from "../rcu/srcu";
import { vm_mmap } from "../uprobe/breakpoint";
import { consumer_create, consumer_free, consumer_set_kind } from "../uprobe/consumer";
import { raise_slow, this_engine } from "../uprobe/fault";
import { uprobe_register, uprobe_unregister_nosync } from "../uprobe/register";
import { uprobe_unregister_sync } from "../uprobe/register";
import { ri_missing } from "../uprobe/return_instance";
import { sink_create, sink_destroy } from "../uprobe/sink";
import { task_create, task_set_stack } from "../uprobe/task";
import { task_destroy } from "../uprobe/utask";
import { AREA_CONSUMERS, AREA_INODE, AREA_SITES, AREA_WATCHED, bury, DEPTH_MOST } from "./stress";
import { check_signals } from "./stress";
import {
  draw,
  FUNCTION_BYTES,
  MAIN_VADDR,
  MAIN_VADDR_2,
  MEMBER_AREA,
  MEMBER_NUMBER,
} from "./stress";
import { MEMBER_SCRATCH, own_pid, seed_member, slot_at, SLOT_TASK, stress_calls } from "./stress";
import { this_table, unwind_slot } from "./stress";
import { detach_all, stress_attaches } from "./stressattach";
import { end_children, stress_forks } from "./stressforks";
import { MAPS, stress_maps, unmap_all } from "./stressmaps";

/** A frame and what its function pushes, and some room for the last. */
const STACK_BYTES = ((DEPTH_MOST + 4) * 24 + 15) & -16;
/** Pids of the tasks: from here on. */
const FIRST_PID = 1000;

function this_arena(): usize {
  return <usize>load<u32>(this_engine(), HDR_ARENA);
}

// Half of the functions begin with a nop, most others with a push, some are nothing but a return.
function fill(inode: usize, random: usize, sites: i32): void {
  const data = <usize>load<u32>(inode, INODE_DATA);
  for (let site = 0; site < sites; site++) {
    const r = draw(random) & 15;
    const opcode = r < 8 ? INSN_NOP : r < 14 ? INSN_PUSH : INSN_RET;
    const at = data + <usize>(site * FUNCTION_BYTES);
    store<u8>(at, <u8>opcode); // plain: nobody has mapped the file yet
  }
}

// Consumers of the returns of the first functions, for the first task alone.
function watch(area: usize, kind: i32, cpus: i32): bool {
  const table = this_table();
  const watched = load<i32>(area, AREA_WATCHED);
  const consumers = arena_alloc(this_arena(), watched << 2);
  const sink = sink_create(this_arena(), HANDLER_COUNT, cpus, 0, 0);
  store<u32>(area, <u32>consumers, AREA_CONSUMERS);
  store<u32>(area, <u32>sink, STRESS_WATCH_SINK);
  store<i32>(area, kind, STRESS_WATCH_KIND);
  if (consumers == 0 || sink == 0) return false;
  for (let site = 0; site < watched; site++) {
    const c = consumer_create(table, sink, FIRST_PID, 0, 0);
    if (c == 0) return false;
    consumer_set_kind(c, kind, sink);
    const inode = <usize>load<u32>(area, AREA_INODE);
    if (uprobe_register(table, inode, site * FUNCTION_BYTES, c) != 0) return false;
    store<u32>(consumers + <usize>(site << 2), <u32>c);
  }
  return true;
}

/**
 * A file of `sites` functions, mapped twice in an address space with room for what `members` map,
 * and `tasks` tasks that call them. 0: the arena is too small; what was made stays.
 */
export function stress_create(sites: i32, tasks: i32, members: i32, seed: i32): usize {
  const arena = this_arena();
  const table = this_table();
  const cpus = load<i32>(this_engine(), HDR_CPUS) + 1;
  const area = arena_alloc(arena, STRESS_SLOTS_AT + tasks * STRESS_SLOT_BYTES);
  const random = arena_alloc(arena, STRESS_MEMBER_BYTES);
  const bytes = sites * FUNCTION_BYTES;
  const inode = inode_create(arena, bytes, INSN_NOP);
  const mm = mm_create(arena, 2 + members * MAPS);
  if (area == 0 || random == 0 || inode == 0 || mm == 0) return 0;
  seed_member(random, seed);
  fill(inode, random, sites);
  const kind = (draw(random) & 1) != 0 ? CONSUMER_SESSION : CONSUMER_RETURN;
  const scratch = random + MEMBER_SCRATCH;
  if (vm_mmap(table, mm, inode, MAIN_VADDR, bytes, 0, scratch) != 0) return 0;
  if (vm_mmap(table, mm, inode, MAIN_VADDR_2, bytes, 0, scratch) != 0) return 0;
  store<i32>(area, tasks, STRESS_TASKS);
  store<u32>(area, <u32>mm, STRESS_MM);
  store<u32>(area, <u32>inode, AREA_INODE);
  store<i32>(area, sites, AREA_SITES);
  store<i32>(area, sites / 3, AREA_WATCHED);
  if (!watch(area, kind, cpus)) return 0;
  for (let i = 0; i < tasks; i++) {
    const vaddr = (i & 1) == 0 ? MAIN_VADDR : MAIN_VADDR_2;
    const calls = i == 0 ? sites / 3 : sites;
    const task = task_create(arena, mm, FIRST_PID + i, vaddr, FUNCTION_BYTES, calls, seed + i);
    if (task == 0 || !task_set_stack(arena, task, STACK_BYTES)) return 0;
    store<u32>(slot_at(area, i), <u32>task, SLOT_TASK);
  }
  arena_free(arena, random, STRESS_MEMBER_BYTES);
  return area;
}

/** A member, for one CPU at a time. 0: the arena is full. */
export function stress_join(area: usize, number: i32, seed: i32): usize {
  const arena = this_arena();
  const member = arena_alloc(arena, STRESS_MEMBER_BYTES);
  const grave = arena_alloc(arena, TASK_BYTES);
  if (member == 0 || grave == 0) return 0;
  const mm = <usize>load<u32>(area, STRESS_MM);
  const sites = load<i32>(area, AREA_SITES);
  const pid = own_pid(member);
  const task = task_create(arena, mm, pid, MAIN_VADDR, FUNCTION_BYTES, sites, seed);
  if (task == 0) return 0;
  store<u32>(member, <u32>task, STRESS_TASK);
  store<u32>(member, <u32>grave, STRESS_GRAVE);
  store<u32>(member, <u32>area, MEMBER_AREA);
  store<i32>(member, number, MEMBER_NUMBER);
  seed_member(member, seed);
  return member;
}

/** `n` steps of a part, STRESS_CALLS to STRESS_FORKS; how many. */
export function stress(member: usize, part: i32, n: i32): i32 {
  if (part == STRESS_CALLS) return stress_calls(member, n);
  if (part == STRESS_ATTACHES) return stress_attaches(member, n);
  if (part == STRESS_MAPS) return stress_maps(member, n);
  return part == STRESS_FORKS ? stress_forks(member, n) : EINVAL;
}

/** All that the member has is taken back; its own task too, counted into its grave. */
export function stress_leave(member: usize): void {
  detach_all(member);
  unmap_all(member);
  end_children(member);
  bury(member, <usize>load<u32>(member, STRESS_TASK));
  store<u32>(member, 0, STRESS_TASK);
}

/** Every second task returns from all its calls; the others end in the midst of theirs. */
export function stress_unwind(area: usize, member: usize): void {
  const tasks = load<i32>(area, STRESS_TASKS);
  for (let i = 0; i < tasks; i += 2) unwind_slot(member, slot_at(area, i));
}

/** The end of the tasks, and of what watched the first. */
export function stress_destroy(area: usize): void {
  const arena = this_arena();
  const table = this_table();
  const tasks = load<i32>(area, STRESS_TASKS);
  for (let i = 0; i < tasks; i++) {
    const task = <usize>load<u32>(slot_at(area, i), SLOT_TASK);
    check_signals(task);
    task_destroy(table, task);
  }
  const watched = load<i32>(area, AREA_WATCHED);
  const inode = <usize>load<u32>(area, AREA_INODE);
  const consumers = <usize>load<u32>(area, AREA_CONSUMERS);
  for (let site = 0; site < watched; site++) {
    const c = <usize>load<u32>(consumers + <usize>(site << 2));
    const rc = uprobe_unregister_nosync(table, inode, site * FUNCTION_BYTES, c);
    if (rc != 0) raise_slow(FAULT_LOST_HIT);
  }
  uprobe_unregister_sync(table);
  for (let site = 0; site < watched; site++) {
    const slot = consumers + <usize>(site << 2);
    consumer_free(table, <usize>load<u32>(slot));
  }
  arena_free(arena, consumers, watched << 2);
  sink_destroy(<usize>load<u32>(area, STRESS_WATCH_SINK));
  mm_put(<usize>load<u32>(area, STRESS_MM));
  if (!inode_destroy(inode)) raise_slow(FAULT_LOST_HIT);
  arena_free(arena, area, STRESS_SLOTS_AT + tasks * STRESS_SLOT_BYTES);
}

/** Leases that are not ended, and return instances that are nowhere: 0 without pending returns. */
export function returns_left(): i32 {
  return (
    srcu_readers(this_engine() + HDR_URET_SRCU) + ri_missing(load<i32>(this_engine(), HDR_CPUS) + 2)
  );
}
