// The bench's trigger: a task that calls one-instruction functions, some of them probed.
//
// Each round counts its trigger, calls a function, fetches its instruction and executes it; a trap
// byte is a hit. Exactly one counter of outcome is raised per round, at the
// point where that outcome is known: triggers = handled + filtered + missed.
//
// A batch ends early if its CPU slept (cpu.ts); every entry returns the triggers it has done.
//
// One entry a preset: the strategy is a compile-time constant. A second one for more than one site,
// which draws the next site from the task's generator.
//
// plain: `TASK_*`, its stack (`sp`) and counters (`at`) are private to its CPU (uprobe/task.ts);
// `HDR_*` is read-only while CPUs run.

import { HDR_TABLE, HDR_TRAP_UNITS, INSN_NOP, INSN_PUSH, INSN_RET, INSN_TRAP } from "../layout";
import { PRESET_FASTEST, PRESET_MMAP_LOCK, PRESET_RWLOCK, PRESET_SPECULATIVE } from "../layout";
import { PRESET_SPINLOCK, PRESET_SRCU, PRESET_TASKS_TRACE } from "../layout";
import {
  TASK_BP,
  TASK_DI,
  TASK_FILTERED,
  TASK_HANDLED,
  TASK_IP,
  TASK_MISSED_NO_CONSUMER,
  TASK_MISSED_NO_PROBE,
} from "../layout";
import {
  TASK_MISSED_RING_FULL,
  TASK_MISSED_SIGTRAP,
  TASK_RESTARTS,
  TASK_SP,
  TASK_STACK_TOP,
} from "../layout";
import { TASK_TRIGGERS } from "../layout";
import { load8 } from "../atomics";
import { cpu_begin_batch, cpu_slept, this_cpu } from "../cpu";
import { breakpoints_mask, breakpoints_of, find_place, place_count } from "../uprobe/breakpoints";
import { count_sole, sole_blocks, SOLE_NOP, SOLE_PUSH, sole_slots } from "../uprobe/consumer";
import { this_engine } from "../uprobe/fault";
import {
  handle_swbp,
  HIT_FILTERED,
  HIT_HANDLED,
  HIT_NO_CONSUMER,
  HIT_RESTART,
  HIT_RING_FULL,
} from "../uprobe/hit";
import { readers_offline, readers_online, readers_quiescent } from "../uprobe/readers";
import { no_breakpoints } from "../uprobe/table";
import { RETURN_ADDRESS, TASK_MM, TASK_RANDOM, TASK_SITE0, TASK_SITES } from "../uprobe/task";
import { TASK_STRIDE, TASK_TEXT } from "../uprobe/task";

// @ts-ignore: decorator
@inline
export function count(task: usize, counter: i32): void {
  const at = task + <usize>counter;
  store<i64>(at, load<i64>(at) + 1);
}

// @ts-ignore: decorator
@inline
function add(task: usize, counter: i32, by: i32): void {
  const at = task + <usize>counter;
  store<i64>(at, load<i64>(at) + <i64>by);
}

/** xorshift32: the number after `x`. */
// @ts-ignore: decorator
@inline
function xorshift(x: u32): u32 {
  x ^= x << 13;
  x ^= x >> 17;
  return x ^ (x << 5);
}

/** The next number of a task's generator. */
// @ts-ignore: decorator
@inline
function next_random(task: usize): u32 {
  const x = xorshift(load<u32>(task, TASK_RANDOM));
  store<u32>(task, x, TASK_RANDOM);
  return x;
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

// The call trapped: the exception saves the registers into the task (pt_regs). Returns a HIT_
// constant; HIT_RESTART if the breakpoint was gone when the instruction was executed again.
// @ts-ignore: decorator
@inline
export function trap(
  strategy: i32,
  table: usize,
  task: usize,
  insn: usize,
  vaddr: u32,
  di: i32,
): i32 {
  const sp = task + TASK_STACK_TOP - 8;
  let opcode: i32;
  do {
    store<i64>(task, <i64>vaddr, TASK_IP);
    store<i64>(task, <i64>sp, TASK_SP);
    store<i64>(task, <i64>di, TASK_DI);
    const outcome = handle_swbp(strategy, table, task);
    if (outcome != HIT_RESTART) return outcome;
    count(task, TASK_RESTARTS);
    opcode = load8(insn);
  } while (opcode == INSN_TRAP);
  user_execute(task, sp, opcode);
  return HIT_RESTART;
}

/** Raises the counter of any outcome but HIT_HANDLED. */
export function count_outcome(task: usize, outcome: i32): void {
  if (outcome == HIT_RESTART) count(task, TASK_MISSED_NO_PROBE);
  else if (outcome == HIT_FILTERED) count(task, TASK_FILTERED);
  else if (outcome == HIT_NO_CONSUMER) count(task, TASK_MISSED_NO_CONSUMER);
  else if (outcome == HIT_RING_FULL) count(task, TASK_MISSED_RING_FULL);
  else count(task, TASK_MISSED_SIGTRAP);
}

// The preset `fastest`: as trigger, but a hit that a single consumer only counts is taken in the
// inner loop as well. Everything on its way is this CPU's own or only read: no shared write, no
// fence, no locked operation; and nothing is called, so that the loop's addresses stay in
// registers. All else leaves the loop for the general hit. The registers are the processor's
// (locals) here as in user mode, and an emulated instruction acts on those.
//
// A quiet moment every QUIET_ROUNDS at the latest: between two the CPU is in one long read section.
// @ts-ignore: decorator
@inline
function trigger_fast(many: bool, task: usize, n: i32): i32 {
  const engine = this_engine();
  const table = <usize>load<u32>(engine, HDR_TABLE);
  const raw = load<i32>(engine, HDR_TRAP_UNITS) == 0;
  const mm = <usize>load<u32>(task, TASK_MM);
  const text = <usize>load<u32>(task, TASK_TEXT);
  const site0 = load<u32>(task, TASK_SITE0);
  const stride = load<u32>(task, TASK_STRIDE);
  const sites = load<u32>(task, TASK_SITES);
  const sp = task + TASK_STACK_TOP - 8;
  const slots = sole_slots(this_cpu());
  const blocks = sole_blocks(this_cpu());
  cpu_begin_batch();
  readers_online(PRESET_FASTEST);
  let i = 0;
  while (i < n && !cpu_slept()) {
    readers_quiescent(PRESET_FASTEST);
    let block = raw ? breakpoints_of(mm) : 0;
    if (block == 0) block = no_breakpoints(table);
    const mask = breakpoints_mask(block);
    const rounds = min(QUIET_ROUNDS, n - i);
    let left = rounds;
    let handled = 0;
    let no_probe = 0;
    let random = load<u32>(task, TASK_RANDOM);
    let vaddr = site0;
    let trapped = false;
    do {
      if (many) {
        random = xorshift(random);
        vaddr = site0 + <u32>((<u64>random * <u64>sites) >> 32) * stride;
      }
      store<i64>(sp, <i64>RETURN_ADDRESS);
      left--;
      const opcode = load8(text + <usize>vaddr);
      if (opcode != INSN_TRAP) {
        user_execute(task, sp, opcode);
        no_probe++;
        continue;
      }
      const place = find_place(block, mask, vaddr);
      const word = place != 0 ? place_count(place) : 0;
      if (word == 0) {
        trapped = true;
        break;
      }
      const insn = count_sole(word, slots, blocks);
      if (insn != SOLE_NOP) user_execute(task, sp, insn == SOLE_PUSH ? INSN_PUSH : INSN_RET);
      handled++;
    } while (left != 0);
    // Counted in registers above, each at its own point; in memory before anything else happens.
    i += rounds - left;
    store<u32>(task, random, TASK_RANDOM);
    add(task, TASK_TRIGGERS, rounds - left);
    add(task, TASK_MISSED_NO_PROBE, no_probe);
    add(task, TASK_HANDLED, handled);
    if (!trapped) continue;
    const outcome = trap(PRESET_FASTEST, table, task, text + <usize>vaddr, vaddr, i);
    if (outcome == HIT_HANDLED) count(task, TASK_HANDLED);
    else count_outcome(task, outcome);
  }
  readers_offline(PRESET_FASTEST);
  return i;
}

// Two loops: the inner one is user mode, without a call out of it, so that all it uses stays in
// registers; a trap leaves it. Its two counters are locals that are stored every round, not words
// that are loaded again. It is left every QUIET_ROUNDS even so: a CPU that makes no hit would
// otherwise say nothing for a whole batch, and hold up grace periods.
const QUIET_ROUNDS = 4096;
// @ts-ignore: decorator
@inline
function trigger(strategy: i32, many: bool, task: usize, n: i32): i32 {
  const table = <usize>load<u32>(this_engine(), HDR_TABLE);
  const text = <usize>load<u32>(task, TASK_TEXT);
  const site0 = load<u32>(task, TASK_SITE0);
  const stride = load<u32>(task, TASK_STRIDE);
  const sites = load<u32>(task, TASK_SITES);
  const sp = task + TASK_STACK_TOP - 8;
  cpu_begin_batch();
  readers_online(strategy);
  let i = 0;
  while (i < n && !cpu_slept()) {
    readers_quiescent(strategy);
    const until = min(i + QUIET_ROUNDS, n);
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
    } while (i < until);
    if (!trapped) continue;
    const outcome = trap(strategy, table, task, text + <usize>vaddr, vaddr, i);
    if (outcome == HIT_HANDLED) count(task, TASK_HANDLED);
    else count_outcome(task, outcome);
  }
  readers_offline(strategy);
  return i;
}

// `n` triggers of the task's first site, by preset; and of its sites in random order.

export function trigger_spinlock(task: usize, n: i32): i32 {
  return trigger(PRESET_SPINLOCK, false, task, n);
}
export function trigger_spinlock_many(task: usize, n: i32): i32 {
  return trigger(PRESET_SPINLOCK, true, task, n);
}
export function trigger_rwlock(task: usize, n: i32): i32 {
  return trigger(PRESET_RWLOCK, false, task, n);
}
export function trigger_rwlock_many(task: usize, n: i32): i32 {
  return trigger(PRESET_RWLOCK, true, task, n);
}
export function trigger_srcu(task: usize, n: i32): i32 {
  return trigger(PRESET_SRCU, false, task, n);
}
export function trigger_srcu_many(task: usize, n: i32): i32 {
  return trigger(PRESET_SRCU, true, task, n);
}
export function trigger_tasks_trace(task: usize, n: i32): i32 {
  return trigger(PRESET_TASKS_TRACE, false, task, n);
}
export function trigger_tasks_trace_many(task: usize, n: i32): i32 {
  return trigger(PRESET_TASKS_TRACE, true, task, n);
}
export function trigger_mmap_lock(task: usize, n: i32): i32 {
  return trigger(PRESET_MMAP_LOCK, false, task, n);
}
export function trigger_mmap_lock_many(task: usize, n: i32): i32 {
  return trigger(PRESET_MMAP_LOCK, true, task, n);
}
export function trigger_speculative(task: usize, n: i32): i32 {
  return trigger(PRESET_SPECULATIVE, false, task, n);
}
export function trigger_speculative_many(task: usize, n: i32): i32 {
  return trigger(PRESET_SPECULATIVE, true, task, n);
}
export function trigger_fastest(task: usize, n: i32): i32 {
  return trigger_fast(false, task, n);
}
export function trigger_fastest_many(task: usize, n: i32): i32 {
  return trigger_fast(true, task, n);
}
