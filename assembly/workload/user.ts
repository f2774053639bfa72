// A task in user mode, as every loop that calls probed functions needs it: what an instruction does
// while the registers are the processor's, and what a trap does when they are saved.
//
// plain: `TASK_*`, the task's stack (`sp`) and counters (`at`) are private to its CPU
// (uprobe/task.ts).

import {
  INSN_NOP,
  INSN_PUSH,
  INSN_RET,
  INSN_TRAP,
  TASK_BP,
  TASK_DI,
  TASK_FILTERED,
} from "../layout";
import {
  TASK_IP,
  TASK_MISSED_NO_CONSUMER,
  TASK_MISSED_NO_PROBE,
  TASK_MISSED_SIGTRAP,
} from "../layout";
import { FAULT_RETURN, TASK_MISSED_RING_FULL, TASK_RESTARTS, TASK_SP } from "../layout";
import { TRAMPOLINE } from "../layout";
import { load8 } from "../atomics";
import {
  handle_swbp,
  HIT_FILTERED,
  HIT_NO_CONSUMER,
  HIT_RESTART,
  HIT_RING_FULL,
  trampoline_swbp,
} from "../uprobe/hit";
import { SOLE_NOP, SOLE_PUSH, sole_insn } from "../uprobe/consumer";
import { raise_slow } from "../uprobe/fault";
import { return_to_user } from "../uprobe/signal";
import { RETURN_ADDRESS, TASK_RANDOM } from "../uprobe/task";

/**
 * Rounds after which a loop says that its CPU holds nothing, hit or not: a CPU that says nothing
 * for a whole batch holds up grace periods.
 */
export const QUIET_ROUNDS = 4096;

// How a loop that takes hits itself was left, besides the rounds that are left:
/** The last round trapped, and its hit has still to be handled; */
export const AT_ENTRY = 1 << 29;
/** its return has, whose instance is pending. */
export const AT_RETURN = 1 << 30;

// @ts-ignore: decorator
@inline
export function count(task: usize, counter: i32): void {
  const at = task + <usize>counter;
  store<i64>(at, load<i64>(at) + 1);
}

// @ts-ignore: decorator
@inline
export function add(task: usize, counter: i32, by: i32): void {
  const at = task + <usize>counter;
  store<i64>(at, load<i64>(at) + <i64>by);
}

// The generator that draws the next site: a Weyl sequence, whose numbers are scrambled (after C.
// Wellons' lowbias32). Not xorshift: the k-th number after a state is known without those between,
// so that no loop has to wait for the last one.
const WEYL: u32 = 0x9e3779b1;

// @ts-ignore: decorator
@inline
export function weyl(state: u32, steps: i32): u32 {
  return state + <u32>steps * WEYL;
}

/** The site, 0 .. sites - 1, that a state stands for. */
// @ts-ignore: decorator
@inline
export function site_of(state: u32, sites: u64): u32 {
  let x = state ^ (state >> 16);
  x *= 0x7feb352d;
  x ^= x >> 15;
  // The high half of a product maps the generator's range evenly onto [0, sites).
  return <u32>((<u64>x * sites) >> 32);
}

/** The next site of a task. */
// @ts-ignore: decorator
@inline
export function next_site(task: usize, sites: u32): u32 {
  const state = weyl(load<u32>(task, TASK_RANDOM), 1);
  store<u32>(task, state, TASK_RANDOM);
  return site_of(state, <u64>sites);
}

// The instruction of a call without a probe: what is left of it while the registers are the
// processor's (locals).
// @ts-ignore: decorator
@inline
export function user_execute(task: usize, sp: usize, opcode: i32): void {
  if (opcode == INSN_NOP) return;
  if (opcode == INSN_PUSH) store<i64>(sp - 8, load<i64>(task, TASK_BP));
  else if (opcode == INSN_RET) store<i64>(task, load<i64>(sp), TASK_IP);
}

/** The instruction that a word of sole_counter is for, likewise. */
// @ts-ignore: decorator
@inline
export function emulate_sole(task: usize, sp: usize, word: i64): void {
  const insn = sole_insn(word);
  if (insn != SOLE_NOP) {
    user_execute(task, sp, insn == SOLE_PUSH ? INSN_PUSH : INSN_RET);
  }
}

// The call, whose return address is at `sp`, trapped: the exception saves the registers into the
// task (pt_regs). Returns a HIT_ constant; HIT_RESTART if the breakpoint was gone when the
// instruction was executed again.
// @ts-ignore: decorator
@inline
export function trap(
  strategy: i32,
  table: usize,
  task: usize,
  insn: usize,
  vaddr: u32,
  sp: usize,
  di: i32,
): i32 {
  let opcode: i32;
  do {
    store<i64>(task, <i64>vaddr, TASK_IP);
    store<i64>(task, <i64>sp, TASK_SP);
    store<i64>(task, <i64>di, TASK_DI);
    const outcome = handle_swbp(strategy, table, task);
    return_to_user(strategy, task);
    if (outcome != HIT_RESTART) return outcome;
    count(task, TASK_RESTARTS);
    opcode = load8(insn);
  } while (opcode == INSN_TRAP);
  user_execute(task, sp, opcode);
  return HIT_RESTART;
}

// The function that trapped returns: its address is at `sp`. A return probe has swapped that.
// @ts-ignore: decorator
@inline
export function trap_return(strategy: i32, table: usize, task: usize, sp: usize): void {
  if (load<u32>(sp) != TRAMPOLINE) return;
  store<i64>(task, <i64>(sp + 8), TASK_SP);
  trampoline_swbp(strategy, table, task);
  return_to_user(strategy, task);
  if (load<i64>(task, TASK_IP) != <i64>RETURN_ADDRESS) raise_slow(FAULT_RETURN);
}

/** Raises the counter of any outcome but HIT_HANDLED. */
export function count_outcome(task: usize, outcome: i32): void {
  if (outcome == HIT_RESTART) count(task, TASK_MISSED_NO_PROBE);
  else if (outcome == HIT_FILTERED) count(task, TASK_FILTERED);
  else if (outcome == HIT_NO_CONSUMER) count(task, TASK_MISSED_NO_CONSUMER);
  else if (outcome == HIT_RING_FULL) count(task, TASK_MISSED_RING_FULL);
  else count(task, TASK_MISSED_SIGTRAP);
}
