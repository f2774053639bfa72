// Executing the displaced instruction.
//
// How is decided once, when the uprobe is prepared (analyze_insn): it is emulated by the engine, or
// stepped out of line: copied into a slot of the address space's XOL area, executed there by the
// task, a second exception, and the fix-up.
//
//                                 nop        push       ret
//   x86                           emulated   emulated   stepped
//   arm64 until v6.12             stepped    stepped    simulated
//   arm64 from v6.13 on           simulated  stepped    simulated
//   fastest (STEP_NEVER)          emulated   emulated   emulated
//
// Whoever steps holds a reference on the uprobe meanwhile, since it is in no read section then, and
// reads the uprobe after the wait for a slot and after the step (C17).
//
// plain: registers (`TASK_*`), stack (`sp`), `UTASK_*` and counters (`at`) are the executing task's
// own; `HDR_*` never change; `slot` is this task's.

import { ARCH_X86, EINVAL, HDR_ARCH, HDR_STRATEGY, INSN_NOP, INSN_PUSH, INSN_RET } from "../layout";
import { LOOKUP_PER_THREAD, PRESET_RWLOCK, PRESET_SIGLOCK, PRESET_SIGNAL_FLAG } from "../layout";
import { PRESET_TASKS_TRACE, SIGNAL_FLAG } from "../layout";
import { STEP_613, STEP_MASK, STEP_NEVER } from "../layout";
import { TASK_BP, TASK_IP, TASK_SP, TASK_STEPS, TASK_STEPS_COPY } from "../layout";
import { cpu_delay } from "../cpu";
import { this_engine } from "./fault";
import { return_to_user, undo_deny_signal } from "./signal";
import { INSN, INSN_FIX_IP, INSN_OPCODE, INSN_STEPPED } from "./table";
import { TASK_MM, UTASK_ACTIVE_UPROBE, UTASK_RUNNING, UTASK_SSTEP, UTASK_SSTEP_ACK } from "./task";
import { UTASK_STATE, UTASK_VADDR, UTASK_XOL_VADDR } from "./task";
import { thread_breakpoint_set_slot, thread_breakpoint_slot } from "./thread_breakpoints";
import { get_xol_area, xol_copy, xol_copy_if_other, xol_free_slot, xol_get_slot } from "./xol";
import { xol_slot, xol_vaddr } from "./xol";

/**
 * arch_uprobe_analyze_insn: the instruction with INSN_ bits that say how it is executed, or EINVAL:
 * it cannot be probed.
 */
export function analyze_insn(opcode: i32): i32 {
  const engine = this_engine();
  const step = load<i32>(engine, HDR_STRATEGY) & STEP_MASK;
  const x86 = load<i32>(engine, HDR_ARCH) == ARCH_X86;
  let stepped: bool;
  if (opcode == INSN_NOP) stepped = !x86 && step != STEP_613;
  else if (opcode == INSN_PUSH) stepped = !x86;
  else if (opcode == INSN_RET) stepped = x86;
  else return EINVAL;
  if (!stepped || step == STEP_NEVER) return opcode;
  return opcode == INSN_RET ? opcode | INSN_STEPPED : opcode | INSN_STEPPED | INSN_FIX_IP;
}

/** What the processor does for one of the three instructions at the task's ip. */
// @ts-ignore: decorator
@inline
export function execute_insn(task: usize, opcode: i32): void {
  if (opcode == INSN_NOP) {
    store<i64>(task, load<i64>(task, TASK_IP) + 1, TASK_IP);
  } else if (opcode == INSN_PUSH) {
    const sp = load<i64>(task, TASK_SP) - 8;
    store<i64>(<usize>sp, load<i64>(task, TASK_BP));
    store<i64>(task, sp, TASK_SP);
    store<i64>(task, load<i64>(task, TASK_IP) + 1, TASK_IP);
  } else {
    const sp = load<i64>(task, TASK_SP);
    store<i64>(task, load<i64>(<usize>sp), TASK_IP);
    store<i64>(task, sp + 8, TASK_SP);
  }
}

/** arch_uprobe_skip_sstep: true if the instruction `insn` (with INSN_ bits) was emulated. */
// @ts-ignore: decorator
@inline
export function skip_sstep(strategy: i32, task: usize, insn: i32): bool {
  if ((strategy & STEP_MASK) != STEP_NEVER && (insn & INSN_STEPPED) != 0) return false;
  execute_insn(task, insn & INSN_OPCODE);
  return true;
}

function count(task: usize, counter: i32): void {
  const at = task + <usize>counter;
  store<i64>(at, load<i64>(at) + 1);
}

// No memory for the area. The kernel would execute the breakpoint again, with all its handlers,
// until there is. Here the reference keeps a copy that will do: the uprobe's own.
function step_from_copy_slow(task: usize, u: usize, trap_units: i32): void {
  execute_insn(task, <i32>load<u8>(u, INSN)); // plain: written before COPY_INSN
  cpu_delay(trap_units);
  count(task, TASK_STEPS_COPY);
}

// pre_ssout, the step with its exception (`trap_units` of delay), and handle_singlestep. Returns
// the slot.
// @ts-ignore: decorator
@inline
function step(strategy: i32, task: usize, u: usize, entry: usize, trap_units: i32): void {
  const area = get_xol_area(<usize>load<u32>(task, TASK_MM));
  if (area == 0) {
    step_from_copy_slow(task, u, trap_units);
    return;
  }
  const own = (strategy & LOOKUP_PER_THREAD) != 0 && entry != 0;
  const nr = xol_get_slot(strategy, area, own ? thread_breakpoint_slot(entry) : 0);
  const slot = xol_slot(area, nr);
  const vaddr = xol_vaddr(area, nr);
  const opcode = <i32>load<u8>(u, INSN); // plain: written before COPY_INSN
  if (own) {
    thread_breakpoint_set_slot(entry, nr);
    xol_copy_if_other(slot, opcode);
  } else {
    xol_copy(slot, opcode);
  }
  store<u32>(task, vaddr, UTASK_XOL_VADDR);
  store<i64>(task, <i64>vaddr, TASK_IP);
  store<u32>(task, <u32>u, UTASK_ACTIVE_UPROBE);
  store<i32>(task, UTASK_SSTEP, UTASK_STATE);

  return_to_user(strategy, task);
  execute_insn(task, <i32>load<u8>(slot));
  cpu_delay(trap_units);
  store<i32>(task, UTASK_SSTEP_ACK, UTASK_STATE);

  // plain: written before COPY_INSN
  if ((load<u16>(u, INSN) & INSN_FIX_IP) != 0) {
    const back = <i64>load<u32>(task, UTASK_VADDR) - <i64>vaddr;
    store<i64>(task, load<i64>(task, TASK_IP) + back, TASK_IP);
  }
  store<u32>(task, 0, UTASK_ACTIVE_UPROBE);
  store<i32>(task, UTASK_RUNNING, UTASK_STATE);
  store<u32>(task, 0, UTASK_XOL_VADDR);
  xol_free_slot(strategy, area, nr);
  undo_deny_signal(strategy, task);
  count(task, TASK_STEPS);
}

// One function for each combination of what a step depends on.

function single_step_old_slow(task: usize, u: usize, trap_units: i32): void {
  step(PRESET_RWLOCK, task, u, 0, trap_units);
}
function single_step_siglock_slow(task: usize, u: usize, entry: usize, trap_units: i32): void {
  step(PRESET_SIGLOCK, task, u, entry, trap_units);
}
function single_step_flag_slow(task: usize, u: usize, entry: usize, trap_units: i32): void {
  step(PRESET_SIGNAL_FLAG, task, u, entry, trap_units);
}
function single_step_613_slow(task: usize, u: usize, trap_units: i32): void {
  step(PRESET_TASKS_TRACE, task, u, 0, trap_units);
}

/**
 * Steps the instruction of `u`, on which the caller holds a reference, in no read section: it may
 * sleep, for a slot. `entry`: the task's own breakpoint, or 0.
 */
// @ts-ignore: decorator
@inline
export function single_step(
  strategy: i32,
  task: usize,
  u: usize,
  entry: usize,
  trap_units: i32,
): void {
  const kind = strategy & STEP_MASK;
  if (kind == STEP_NEVER) return;
  if (kind == STEP_613) single_step_613_slow(task, u, trap_units);
  else if ((strategy & SIGNAL_FLAG) != 0) single_step_flag_slow(task, u, entry, trap_units);
  else if ((strategy & LOOKUP_PER_THREAD) != 0) {
    single_step_siglock_slow(task, u, entry, trap_units);
  } else single_step_old_slow(task, u, trap_units);
}
