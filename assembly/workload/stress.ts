// A stress of probes, after the uprobes author's own: functions that call each other at random and
// deep, while probes of all kinds come and go, the file is mapped and unmapped, and tasks fork.
// What all parts share, and the calls; the other parts are stressattach.ts, stressmaps.ts and
// stressforks.ts, their beginning and end stresslife.ts.
//
// area, one for all CPUs
//   offset  bytes  content
//        0     16  layout.ts: STRESS_TASKS ...
//       16     16  inode, functions, watched functions, array of their consumers
//      128  32*n   slots: task, who has it (0: nobody), depth of its calls, depth it goes down to,
//                  whether it is on its way up, its own address space or 0
// member, one for a CPU, whatever part it plays
//        0     40  layout.ts: STRESS_TASK ...
//       40     24  area, number, random state, scratch; consumer of the mapper and its sink
//       64      4  function that this consumer watches
//      128  5*128  links (stressattach.ts)
//      768  10*16  maps (stressmaps.ts)
//     1024   4*32  children, each a slot (stressforks.ts)
//
// A task belongs to nobody between two slices of it, in the midst of its calls: any CPU goes on
// with it. [A] taking a slot and [B] giving it back are atomic, so that what one CPU did is done
// for the next. Forbidden: a task that two CPUs execute.
//
// The first task calls the watched functions only. Consumers of all their returns, for it alone,
// are there throughout: every call of it is handled, and every return accounted for by its cause.
//
// plain: `area`: does not change while CPUs run. `member`: its CPU's own; the host reads counters
// of it. `slot`, `task`, `TASK_*`: whoever has taken it. `grave`: its member's own. `HDR_*`,
// `SINK_*` but for hits never change.
//
// plain: `block`: this CPU's own block of a sink; of others a snapshot, exact when they are done.

import {
  EMIT_LOST,
  FAULT_RETURN,
  HDR_STRATEGY,
  HDR_TABLE,
  RETURNS_MAX,
  SINK_AREA,
} from "../layout";
import { SINK_HITS, SINK_STRIDE, STRESS_CHECKS, STRESS_ERRORS, STRESS_SLOTS_AT } from "../layout";
import { STRESS_GRAVE, STRESS_SLOT_BYTES, STRESS_TASKS, TASK_FALLBACKS } from "../layout";
import { SINK_KIND, HANDLER_EMIT, TASK_MISSED_RING_FULL, TASK_RETRIES } from "../layout";
import { TASK_RETURN_ENTRIES, TASK_RETURN_PENDING, TASK_SIGNALS, TASK_TRIGGERS } from "../layout";
import { FAULT_SIGNAL, TASK_PENDING, TASK_SENT } from "../layout";
import { cas32, store32 } from "../atomics";
import { cpu_begin_batch, cpu_slept, this_cpu } from "../cpu";
import { raise_slow, this_engine } from "../uprobe/fault";
import { signal_send } from "../uprobe/signal";
import { readers_offline, readers_online, readers_quiescent } from "../uprobe/readers";
import { TASK_SITE0, TASK_SITES } from "../uprobe/task";
import { task_destroy } from "../uprobe/utask";
import { returns_settle } from "../uprobe/uretprobe";
import { ENTERED_RETURNED, task_enter, task_leave, task_longjmp } from "./call";

/** Distance of the functions in their file. */
export const FUNCTION_BYTES = 16;
/** Where the file is mapped throughout, at two addresses. */
export const MAIN_VADDR: u32 = 0x1000_0000;
export const MAIN_VADDR_2: u32 = 0x1800_0000;
/** Calls nest to here: beyond RETURNS_MAX. */
export const DEPTH_MOST = RETURNS_MAX + 8;

export const AREA_INODE = 16;
export const AREA_SITES = 20;
export const AREA_WATCHED = 24;
export const AREA_CONSUMERS = 28;

export const MEMBER_AREA = 40;
export const MEMBER_NUMBER = 44;
const MEMBER_RANDOM = 48;
export const MEMBER_SCRATCH = 52;
export const MEMBER_LINKS = 128;
export const MEMBER_MAPS = 768;
export const MEMBER_CHILDREN = 1024;

export const SLOT_TASK = 0;
export const SLOT_BUSY = 4;
export const SLOT_DEPTH = 8;
const SLOT_TARGET = 12;
const SLOT_UP = 16;
export const SLOT_MM = 20;

/** Steps that a task is taken for at most, and after so many its CPU is quiet for a moment. */
const SLICE = 128;
const QUIET = 16;

// -- Members -------------------------------------------------------------------------------------

export function seed_member(member: usize, seed: i32): void {
  store<i32>(member, (seed * 0x9e3779b1) | 1, MEMBER_RANDOM);
}

export function draw(member: usize): u32 {
  let x = load<u32>(member, MEMBER_RANDOM);
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  store<u32>(member, x, MEMBER_RANDOM);
  return x;
}

/** 0 .. n - 1. */
export function below(member: usize, n: i32): i32 {
  return <i32>((<u64>draw(member) * <u64>n) >> 32);
}

export function count(member: usize, counter: i32, by: i32): void {
  const at = member + <usize>counter;
  store<i32>(at, load<i32>(at) + by); // plain: `member`
}

export function area_of(member: usize): usize {
  return <usize>load<u32>(member, MEMBER_AREA);
}

export function this_table(): usize {
  return <usize>load<u32>(this_engine(), HDR_TABLE);
}
export function this_strategy(): i32 {
  return load<i32>(this_engine(), HDR_STRATEGY);
}

/** The pid of a member's own tasks, which is nobody else's. */
export function own_pid(member: usize): i32 {
  return -(<i32>member);
}

/** What a sink has been given on a CPU: taken, or lost for want of room. */
export function given(sink: usize, cpu: i32): i64 {
  const block = <usize>load<u32>(sink, SINK_AREA) + <usize>(cpu * load<i32>(sink, SINK_STRIDE));
  const lost = load<i32>(sink, SINK_KIND) == HANDLER_EMIT ? load<i64>(block, EMIT_LOST) : 0;
  return load<i64>(block, SINK_HITS) + lost;
}

/** A check: `seen` is what is wanted, or `fault` is raised. */
export function check(member: usize, seen: bool, fault: i32): void {
  count(member, STRESS_CHECKS, 1);
  if (!seen) raise_slow(fault);
}

// -- Ends of tasks -------------------------------------------------------------------------------

function add_counters(grave: usize, task: usize, first: i32, last: i32): void {
  for (let at = <usize>first; at <= <usize>last; at += 8) {
    store<i64>(grave + at, load<i64>(grave + at) + load<i64>(task + at));
  }
}

/** C16: what was sent has been delivered, or is pending. Nobody sends to the task any more. */
export function check_signals(task: usize): void {
  const settled = load<i64>(task, TASK_SIGNALS) + <i64>popcnt(load<u32>(task, TASK_PENDING));
  if (load<i64>(task, TASK_SENT) != settled) raise_slow(FAULT_SIGNAL);
}

/** The task ends here; its counters are added to the member's. */
export function bury(member: usize, task: usize): void {
  check_signals(task);
  const grave = <usize>load<u32>(member, STRESS_GRAVE);
  add_counters(grave, task, TASK_TRIGGERS, TASK_FALLBACKS);
  add_counters(grave, task, TASK_RETRIES, TASK_MISSED_RING_FULL);
  add_counters(grave, task, TASK_RETURN_ENTRIES, TASK_SIGNALS);
  add_counters(grave, task, TASK_SENT, TASK_SENT);
  const pending = load<i32>(grave, TASK_RETURN_PENDING) + load<i32>(task, TASK_RETURN_PENDING);
  store<i32>(grave, pending, TASK_RETURN_PENDING);
  task_destroy(this_table(), task);
}

/** A signal to the slot's task, whoever has it. */
export function send_signal(member: usize, slot: usize): void {
  signal_send(<usize>load<u32>(slot, SLOT_TASK), <i32>(draw(member) & 31));
}

// -- Calls ---------------------------------------------------------------------------------------

export function slot_at(area: usize, i: i32): usize {
  return area + STRESS_SLOTS_AT + <usize>(i * STRESS_SLOT_BYTES);
}

/** A task that nobody has, or 0 if the few that were tried are taken. */
export function take_slot(area: usize, member: usize): usize {
  const tasks = load<i32>(area, STRESS_TASKS);
  const first = below(member, tasks);
  for (let i = 0; i < tasks; i++) {
    const slot = slot_at(area, (first + i) % tasks);
    if (cas32(slot + SLOT_BUSY, 0, 1) == 0) return slot; // A
  }
  return 0;
}
export function put_slot(slot: usize): void {
  store32(slot + SLOT_BUSY, 0); // B
}

// The address of one of the task's functions.
function some_function(member: usize, task: usize): u32 {
  return load<u32>(task, TASK_SITE0) + <u32>(below(member, load<i32>(task, TASK_SITES)) << 4);
}

function enter(strategy: i32, member: usize, slot: usize, tail: bool): void {
  const task = <usize>load<u32>(slot, SLOT_TASK);
  const argument = <i32>(draw(member) & 0xffff);
  const rc = task_enter(strategy, this_table(), task, some_function(member, task), argument, tail);
  if (rc < 0) {
    count(member, STRESS_ERRORS, 1);
    raise_slow(FAULT_RETURN);
    return;
  }
  // A jump takes the place of the function that it comes from; one instruction may be all.
  const depth = load<i32>(slot, SLOT_DEPTH) + (tail ? 0 : 1);
  store<i32>(slot, (rc & ENTERED_RETURNED) != 0 ? depth - 1 : depth, SLOT_DEPTH);
}

function leave(strategy: i32, member: usize, slot: usize): void {
  const task = <usize>load<u32>(slot, SLOT_TASK);
  if (task_leave(strategy, this_table(), task, <i32>(draw(member) & 0xffff)) != 0) {
    raise_slow(FAULT_RETURN);
  }
  store<i32>(slot, load<i32>(slot, SLOT_DEPTH) - 1, SLOT_DEPTH);
}

// One step of a task: down to a depth that is drawn at the outermost call, and up again, with
// detours.
function step(strategy: i32, member: usize, slot: usize): void {
  const depth = load<i32>(slot, SLOT_DEPTH);
  const r = draw(member);
  const kind = (r >>> 3) & 31;
  if (depth == 0) {
    const deep = (r & 7) == 0;
    store<i32>(slot, deep ? DEPTH_MOST : 1 + ((<i32>(r >>> 8)) & 15), SLOT_TARGET);
    store<i32>(slot, 0, SLOT_UP);
    enter(strategy, member, slot, false);
    return;
  }
  if (load<i32>(slot, SLOT_UP) == 0) {
    if (kind == 0) leave(strategy, member, slot);
    else enter(strategy, member, slot, kind <= 2);
    if (load<i32>(slot, SLOT_DEPTH) >= load<i32>(slot, SLOT_TARGET)) store<i32>(slot, 1, SLOT_UP);
  } else if (kind == 0) {
    const levels = task_longjmp(<usize>load<u32>(slot, SLOT_TASK), 2 + ((<i32>(r >>> 8)) & 7));
    store<i32>(slot, depth - levels, SLOT_DEPTH);
  } else if (kind <= 4 && depth < DEPTH_MOST) {
    enter(strategy, member, slot, kind == 1);
  } else {
    leave(strategy, member, slot);
  }
}

/** Up to `steps` steps of the slot's task, by whoever has it; how many. */
export function run_slot(member: usize, slot: usize, steps: i32): i32 {
  const strategy = this_strategy();
  const task = <usize>load<u32>(slot, SLOT_TASK);
  readers_online(strategy);
  let i = 0;
  while (i < steps && !cpu_slept()) {
    step(strategy, member, slot);
    i++;
    if ((i & (QUIET - 1)) != 0) continue;
    returns_settle(strategy, task);
    readers_quiescent(strategy);
  }
  returns_settle(strategy, task);
  readers_offline(strategy);
  return i;
}

/** The slot's task returns from all its calls. */
export function unwind_slot(member: usize, slot: usize): void {
  const strategy = this_strategy();
  readers_online(strategy);
  while (load<i32>(slot, SLOT_DEPTH) > 0) leave(strategy, member, slot);
  returns_settle(strategy, <usize>load<u32>(slot, SLOT_TASK));
  readers_offline(strategy);
}

/** One call up to its function's first instruction, and its return, by a task that has no slot. */
export function enter_once(task: usize, vaddr: u32): void {
  const strategy = this_strategy();
  readers_online(strategy);
  const rc = task_enter(strategy, this_table(), task, vaddr, 0, false);
  returns_settle(strategy, task);
  readers_offline(strategy);
  if (rc < 0) raise_slow(FAULT_RETURN);
}
export function leave_once(task: usize): void {
  const strategy = this_strategy();
  readers_online(strategy);
  if (task_leave(strategy, this_table(), task, 0) != 0) raise_slow(FAULT_RETURN);
  readers_offline(strategy);
}

/** `n` steps of tasks, each for a slice. Ends early if the CPU slept; returns the steps done. */
export function stress_calls(member: usize, n: i32): i32 {
  const area = area_of(member);
  const tasks = load<i32>(area, STRESS_TASKS);
  cpu_begin_batch();
  let done = 0;
  while (done < n && !cpu_slept()) {
    const slot = take_slot(area, member);
    if (slot == 0) {
      done++;
      continue;
    }
    // To whoever: the signal may come in the midst of a step on another CPU.
    if ((draw(member) & 3) == 0) send_signal(member, slot_at(area, below(member, tasks)));
    done += run_slot(member, slot, min(n - done, 1 + below(member, SLICE)));
    put_slot(slot);
  }
  return done;
}
