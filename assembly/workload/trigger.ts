// The bench's trigger: a task that calls one-instruction functions, some of them probed.
//
// Each round counts its trigger, calls a function, fetches its instruction and executes it; a trap
// byte is a hit. Exactly one counter of outcome is raised per round, at the
// point where that outcome is known: triggers = handled + filtered + missed.
//
// A batch ends early if its CPU slept (cpu.ts); every entry returns the triggers it has done.
//
// One entry a preset: the table's lock is a compile-time constant. A second one for more than one
// site, which draws the next site from the task's generator.
//
// plain: `TASK_*`, its stack (`sp`) and counters (`at`) are private to its CPU (uprobe/task.ts);
// `HDR_*` is read-only while CPUs run.

import {
  HDR_TABLE,
  INSN_NOP,
  INSN_PUSH,
  INSN_RET,
  INSN_TRAP,
  TABLE_RWLOCK,
  TABLE_SPINLOCK,
} from "../layout";
import {
  TASK_BP,
  TASK_DI,
  TASK_FILTERED,
  TASK_HANDLED,
  TASK_IP,
  TASK_MISSED_NO_CONSUMER,
  TASK_MISSED_NO_PROBE,
} from "../layout";
import { TASK_MISSED_SIGTRAP, TASK_RESTARTS, TASK_SP, TASK_STACK_TOP } from "../layout";
import { TASK_TRIGGERS } from "../layout";
import { load8 } from "../atomics";
import { cpu_begin_batch, cpu_slept } from "../cpu";
import { this_engine } from "../uprobe/fault";
import {
  handle_swbp,
  HIT_FILTERED,
  HIT_HANDLED,
  HIT_NO_CONSUMER,
  HIT_RESTART,
} from "../uprobe/hit";
import { RETURN_ADDRESS, TASK_RANDOM, TASK_SITE0, TASK_SITES } from "../uprobe/task";
import { TASK_STRIDE, TASK_TEXT } from "../uprobe/task";

// @ts-ignore: decorator
@inline
function count(task: usize, counter: i32): void {
  const at = task + <usize>counter;
  store<i64>(at, load<i64>(at) + 1);
}

/** xorshift32: the next number of a task's generator. */
// @ts-ignore: decorator
@inline
function next_random(task: usize): u32 {
  let x = load<u32>(task, TASK_RANDOM);
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  store<u32>(task, x, TASK_RANDOM);
  return x;
}

// The instruction of a call without a probe: what is left of it while the registers are the
// processor's (locals).
// @ts-ignore: decorator
@inline
function user_execute(task: usize, sp: usize, opcode: i32): void {
  if (opcode == INSN_NOP) return;
  if (opcode == INSN_PUSH) store<i64>(sp - 8, load<i64>(task, TASK_BP));
  else if (opcode == INSN_RET) store<i64>(task, load<i64>(sp), TASK_IP);
}

// The call trapped: the exception saves the registers into the task (pt_regs). Returns a HIT_
// constant; HIT_RESTART if the breakpoint was gone when the instruction was executed again.
// @ts-ignore: decorator
@inline
function trap(table: usize, kind: i32, task: usize, insn: usize, vaddr: u32, di: i32): i32 {
  const sp = task + TASK_STACK_TOP - 8;
  let opcode: i32;
  do {
    store<i64>(task, <i64>vaddr, TASK_IP);
    store<i64>(task, <i64>sp, TASK_SP);
    store<i64>(task, <i64>di, TASK_DI);
    const outcome = handle_swbp(table, kind, task);
    if (outcome != HIT_RESTART) return outcome;
    count(task, TASK_RESTARTS);
    opcode = load8(insn);
  } while (opcode == INSN_TRAP);
  user_execute(task, sp, opcode);
  return HIT_RESTART;
}

function count_outcome(task: usize, outcome: i32): void {
  if (outcome == HIT_RESTART) count(task, TASK_MISSED_NO_PROBE);
  else if (outcome == HIT_FILTERED) count(task, TASK_FILTERED);
  else if (outcome == HIT_NO_CONSUMER) count(task, TASK_MISSED_NO_CONSUMER);
  else count(task, TASK_MISSED_SIGTRAP);
}

/** One counted call outside of the bench's loop. */
export function trigger_call(table: usize, kind: i32, task: usize, vaddr: u32): void {
  count(task, TASK_TRIGGERS);
  const sp = task + TASK_STACK_TOP - 8;
  store<i64>(sp, <i64>RETURN_ADDRESS);
  const insn = <usize>load<u32>(task, TASK_TEXT) + <usize>vaddr;
  const opcode = load8(insn);
  if (opcode != INSN_TRAP) {
    user_execute(task, sp, opcode);
    count(task, TASK_MISSED_NO_PROBE);
    return;
  }
  const outcome = trap(table, kind, task, insn, vaddr, 0);
  if (outcome == HIT_HANDLED) count(task, TASK_HANDLED);
  else count_outcome(task, outcome);
}

// Two loops: the inner one is user mode, without a call out of it, so that all it uses stays in
// registers; a trap leaves it. Its two counters are locals that are stored every round, not words
// that are loaded again.
// @ts-ignore: decorator
@inline
function trigger(kind: i32, many: bool, task: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  const text = <usize>load<u32>(task, TASK_TEXT);
  const site0 = load<u32>(task, TASK_SITE0);
  const stride = load<u32>(task, TASK_STRIDE);
  const sites = load<u32>(task, TASK_SITES);
  const sp = task + TASK_STACK_TOP - 8;
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    let triggers = load<i64>(task, TASK_TRIGGERS);
    let no_probe = load<i64>(task, TASK_MISSED_NO_PROBE);
    let vaddr = site0;
    let trapped = false;
    do {
      // The high half of a product maps the generator's range evenly onto [0, sites).
      if (many) vaddr = site0 + <u32>((<u64>next_random(task) * <u64>sites) >> 32) * stride;
      store<i64>(task, ++triggers, TASK_TRIGGERS);
      store<i64>(sp, <i64>RETURN_ADDRESS);
      i++;
      const opcode = load8(text + <usize>vaddr);
      if (opcode == INSN_TRAP) {
        trapped = true;
        break;
      }
      user_execute(task, sp, opcode);
      store<i64>(task, ++no_probe, TASK_MISSED_NO_PROBE);
    } while (i < n);
    if (!trapped) break;
    const outcome = trap(table, kind, task, text + <usize>vaddr, vaddr, i);
    if (outcome == HIT_HANDLED) count(task, TASK_HANDLED);
    else count_outcome(task, outcome);
  }
  return i;
}

/** `n` triggers of the task's first site, preset `spinlock`. */
export function trigger_spinlock(task: usize, n: i32): i32 {
  return trigger(TABLE_SPINLOCK, false, task, n);
}
/** `n` triggers of the task's first site, preset `rwlock`. */
export function trigger_rwlock(task: usize, n: i32): i32 {
  return trigger(TABLE_RWLOCK, false, task, n);
}
/** `n` triggers of sites in random order, preset `spinlock`. */
export function trigger_spinlock_many(task: usize, n: i32): i32 {
  return trigger(TABLE_SPINLOCK, true, task, n);
}
/** `n` triggers of sites in random order, preset `rwlock`. */
export function trigger_rwlock_many(task: usize, n: i32): i32 {
  return trigger(TABLE_RWLOCK, true, task, n);
}
