// The return probe of a call whose only consumer counts (consumer.ts, sole_counter), with
// RETURN_SECTION: what prepare_uretprobe and handle_trampoline come to when the task has no other
// pending return, for a loop that is user mode and kernel in one (workload/trigger_fast.ts).
//
// The instance is pushed and popped in the task's array, the address on the stack is swapped, and
// the return goes where the instance says. What stays in the loop's registers is that it is the
// newest, and how many are pending: nobody looks at that before the task's CPU has left the loop.
//
// plain: `RI_*`, what lies at `task` and its stack (`sp`): the executing task's own.

import { TASK_IP, TASK_RETURN_PENDING, TRAMPOLINE } from "../layout";
import { count_word } from "./breakpoints";
import { HPROBE_CONSUMED, HPROBE_LEASED } from "./hprobe";
import { RI_CHAINED, RI_FUNC, RI_MORE, RI_NEXT, RI_ORIG, RI_SESSION } from "./return_instance";
import { RI_STACK, RI_STATE, RI_UPROBE } from "./return_instance";
import { RETURN_ADDRESS, RETURN_INSTANCES, RETURN_STACK } from "./task";

/** Where the task's first pending return is kept; 0: it has one already, or no place yet. */
export function sole_instance(task: usize): usize {
  if (load<i32>(task, TASK_RETURN_PENDING) != 0) return 0;
  return <usize>load<u32>(task, RETURN_STACK);
}

/** What of an instance is the same for all calls of the function at `func` from one place. */
// @ts-ignore: decorator
@inline
export function begin_sole_returns(ri: usize, sp: usize, u: usize, func: u32): void {
  store<u32>(ri, 0, RI_NEXT);
  store<u32>(ri, <u32>u, RI_UPROBE);
  store<u32>(ri, func, RI_FUNC);
  store<u32>(ri, <u32>sp, RI_STACK);
  store<i32>(ri, 0, RI_CHAINED);
  store<i32>(ri, 0, RI_SESSION);
  store<u32>(ri, 0, RI_MORE);
}

/** The entry of one, whose return address is at `sp`. */
// @ts-ignore: decorator
@inline
export function push_sole_return(ri: usize, sp: usize): void {
  store<i32>(ri, HPROBE_LEASED, RI_STATE);
  store<u32>(ri, load<u32>(sp), RI_ORIG);
  store<i64>(sp, <i64>TRAMPOLINE);
}

/**
 * The function's return: whether it is the one that was pushed with the word at `word_at`, and
 * nothing has become of either. The consumers are those of now, not of the entry.
 */
// @ts-ignore: decorator
@inline
export function is_sole_return(ri: usize, sp: usize, word_at: usize, word: i64): bool {
  return (
    count_word(word_at) == word &&
    load<u32>(sp) == TRAMPOLINE &&
    load<i32>(ri, RI_STATE) == HPROBE_LEASED &&
    load<u32>(ri, RI_ORIG) == RETURN_ADDRESS
  );
}

/** It goes on where the call came from. */
// @ts-ignore: decorator
@inline
export function pop_sole_return(task: usize, ri: usize): void {
  store<i32>(ri, HPROBE_CONSUMED, RI_STATE);
  store<i64>(task, <i64>load<u32>(ri, RI_ORIG), TASK_IP);
}

/** The loop is left between the two: for whoever looks, the instance is the newest of one. */
export function leave_sole_return(task: usize, ri: usize): void {
  store<u32>(task, <u32>ri, RETURN_INSTANCES);
  store<i32>(task, 1, TASK_RETURN_PENDING);
}
