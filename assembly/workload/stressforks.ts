// Stress of probes: forkers. A child is forked from a task in the midst of its calls, goes on for a
// while from there, and ends: after all its returns, or before. Half of the children have an
// address space of their own, a copy of their parent's. All the time signals are sent to all of
// them.
//
// plain: `child`, `slot`: whoever has taken the slot; a child's is its member's own.

import { STRESS_ERRORS, STRESS_FORKED, STRESS_MM, STRESS_SLOT_BYTES } from "../layout";
import { cpu_begin_batch, cpu_slept } from "../cpu";
import { mm_put } from "../mm/mm";
import { vm_fork } from "../uprobe/fork";
import { task_fork } from "../uprobe/utask";
import { area_of, below, bury, count, draw, MEMBER_CHILDREN, put_slot, run_slot } from "./stress";
import { send_signal, SLOT_MM, SLOT_TASK, take_slot, this_table, unwind_slot } from "./stress";
import { check_copy } from "./stressmaps";

/** Children of one member at a time. */
const CHILDREN = 4;
/** Pids of children begin here: no consumer is for them alone. */
const CHILD_PID = 0x4000_0000;
/** Steps of a child before it may end. */
const CHILD_STEPS = 64;

function child_at(member: usize, i: i32): usize {
  return member + MEMBER_CHILDREN + <usize>(i * STRESS_SLOT_BYTES);
}

function fork(member: usize, child: usize): void {
  const area = area_of(member);
  const slot = take_slot(area, member);
  if (slot == 0) return;
  const own = (draw(member) & 1) != 0;
  let mm = <usize>load<u32>(area, STRESS_MM); // plain: `area` does not change while CPUs run
  if (own) mm = vm_fork(this_table(), mm);
  const pid = CHILD_PID + <i32>(draw(member) & 0xffff);
  const parent = <usize>load<u32>(slot, SLOT_TASK);
  const task: usize = mm == 0 ? 0 : task_fork(this_table(), parent, mm, pid);
  if (task == 0) {
    count(member, STRESS_ERRORS, 1);
    if (own && mm != 0) mm_put(mm);
  } else {
    memory.copy(child, slot, STRESS_SLOT_BYTES); // as deep, and on its way, as its parent
    store<u32>(child, <u32>task, SLOT_TASK);
    store<u32>(child, own ? <u32>mm : 0, SLOT_MM);
    count(member, STRESS_FORKED, 1);
  }
  put_slot(slot);
}

function end(member: usize, child: usize): void {
  bury(member, <usize>load<u32>(child, SLOT_TASK));
  store<u32>(child, 0, SLOT_TASK);
  const mm = <usize>load<u32>(child, SLOT_MM);
  if (mm != 0) mm_put(mm);
}

/** `n` times: a child is forked, or goes on, or ends. Ends early if the CPU slept. */
export function stress_forks(member: usize, n: i32): i32 {
  cpu_begin_batch();
  let done = 0;
  while (done < n && !cpu_slept()) {
    done++;
    const child = child_at(member, below(member, CHILDREN));
    if (load<u32>(child, SLOT_TASK) == 0) {
      fork(member, child);
      continue;
    }
    send_signal(member, child);
    run_slot(member, child, 1 + below(member, CHILD_STEPS));
    const mm = <usize>load<u32>(child, SLOT_MM);
    if (mm != 0) check_copy(member, mm);
    const r = draw(member) & 7;
    if (r == 0) unwind_slot(member, child);
    if (r <= 1) end(member, child);
  }
  return done;
}

/** All children end. */
export function end_children(member: usize): void {
  for (let i = 0; i < CHILDREN; i++) {
    const child = child_at(member, i);
    if (load<u32>(child, SLOT_TASK) != 0) end(member, child);
  }
}
