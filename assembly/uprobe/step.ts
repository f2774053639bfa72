// Executing the displaced instruction: x86-64.
//
// nop and push are emulated on the task's registers and stack (arch_uprobe_skip_sstep); ret is
// not among what the kernel emulates, so it is single-stepped: copied out of line, executed there,
// a second exception, and the fix-up. The step here is the minimal one: the copy lies in the task
// instead of a slot of a shared XOL area.
//
// plain: registers (`TASK_*`), stack (`sp`) and `UTASK_*` are the executing task's own.

import { INSN_NOP, INSN_PUSH, INSN_RET, TASK_BP, TASK_IP, TASK_SP } from "../layout";
import { cpu_delay } from "../cpu";
import { UTASK_ACTIVE_UPROBE, UTASK_RUNNING, UTASK_SSTEP, UTASK_STATE } from "./task";
import { UTASK_XOL_VADDR } from "./task";

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

/** arch_uprobe_skip_sstep: true if the instruction was emulated. */
// @ts-ignore: decorator
@inline
export function skip_sstep(task: usize, opcode: i32): bool {
  if (opcode == INSN_RET) return false;
  execute_insn(task, opcode);
  return true;
}

/** pre_ssout, the step itself with its exception (`trap_units` of delay), and handle_singlestep. */
export function single_step_slow(task: usize, uprobe: usize, opcode: i32, trap_units: i32): void {
  store<u32>(task, <u32>uprobe, UTASK_ACTIVE_UPROBE);
  store<u8>(task, <u8>opcode, UTASK_XOL_VADDR);
  store<i32>(task, UTASK_SSTEP, UTASK_STATE);
  execute_insn(task, <i32>load<u8>(task, UTASK_XOL_VADDR));
  cpu_delay(trap_units);
  store<i32>(task, UTASK_RUNNING, UTASK_STATE);
  store<u32>(task, 0, UTASK_ACTIVE_UPROBE);
}
