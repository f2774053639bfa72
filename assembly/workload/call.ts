// Calls of probed functions one by one, outside of the bench's loop: whole ones, as churn checks
// itself with and users' modules import as wasmprobe.call; and calls in their parts, so that they
// nest, jump and are abandoned as a program's do. One entry a preset, as of the bench.
//
// A frame, growing down from the caller's sp (TASK_FRAME is where the innermost one's address is):
//   sp -  8  the caller's TASK_FRAME
//   sp - 16  where to return to: an address that tells how deep the frame lies, so that a return
//            that went wrong is noticed
//   below    what the function pushes
//
// Between two calls the CPU is offline: a user's loop may take as long as it likes, and sleep.
//
// plain: `TASK_*`, its stack (`frame`, `caller`): private to its CPU (uprobe/task.ts); `HDR_*`
// is read-only while CPUs run.

import { EBUSY, EINVAL, ENOSPC, FAULT_RETURN, HDR_STRATEGY, HDR_TABLE } from "../layout";
import {
  INSN_TRAP,
  PRESET_FASTEST,
  PRESET_MMAP_LOCK,
  PRESET_RWLOCK,
  PRESET_SIGLOCK,
} from "../layout";
import { PRESET_SIGNAL_FLAG, PRESET_SPECULATIVE, PRESET_SPINLOCK, PRESET_SRCU } from "../layout";
import { PRESET_TASKS_TRACE, PRESET_URET_POOL, TASK_AX, TASK_DI, TASK_HANDLED } from "../layout";
import {
  TASK_IP,
  TASK_RESTARTS,
  TASK_SP,
  TASK_STACK_TOP,
  TASK_TRIGGERS,
  TRAMPOLINE,
} from "../layout";
import { load8 } from "../atomics";
import { raise_slow, this_engine } from "../uprobe/fault";
import { handle_swbp, HIT_HANDLED, HIT_RESTART, trampoline_swbp } from "../uprobe/hit";
import { readers_offline, readers_online } from "../uprobe/readers";
import { return_to_user } from "../uprobe/signal";
import { is_in_handler } from "../uprobe/sink";
import { execute_insn } from "../uprobe/step";
import { RETURN_ADDRESS, TASK_FRAME, TASK_SITE0, TASK_SITES, TASK_STACK_AT } from "../uprobe/task";
import { TASK_STACK_SIZE, TASK_STRIDE, TASK_TEXT } from "../uprobe/task";
import { returns_settle } from "../uprobe/uretprobe";
import { count, count_outcome } from "./user";

// What enter and jump say, one bit each.
/** A handler took the entry. */
export const ENTERED_HANDLED = 1;
/** The function is over: its instruction was the return. */
export const ENTERED_RETURNED = 2;

/** Room that a call needs below the caller's sp: its frame, what it may push, and some more. */
const FRAME_MOST: usize = 48;

// Lowest address of the task's stack, and what lies above its highest.
function stack_bottom(task: usize): usize {
  const own = <usize>load<u32>(task, TASK_STACK_AT);
  return own != 0 ? own : task + TASK_STACK_TOP - 256;
}
function stack_top(task: usize): usize {
  const own = <usize>load<u32>(task, TASK_STACK_AT);
  return own != 0 ? own + <usize>load<i32>(task, TASK_STACK_SIZE) : task + TASK_STACK_TOP;
}

function is_site(task: usize, vaddr: u32): bool {
  const sites = load<u32>(task, TASK_SITES);
  return vaddr - load<u32>(task, TASK_SITE0) <= (sites - 1) * load<u32>(task, TASK_STRIDE);
}

// Where the function of a frame returns to.
function return_address(task: usize, frame: usize): i64 {
  return <i64>RETURN_ADDRESS + <i64>((stack_top(task) - frame) >> 3);
}

// The first instruction of a function, until it is executed: counted by what became of it.
// @ts-ignore: decorator
@inline
function first_insn(strategy: i32, table: usize, task: usize, vaddr: u32, argument: i32): i32 {
  const sp = load<i64>(task, TASK_SP);
  const insn = <usize>load<u32>(task, TASK_TEXT) + <usize>vaddr;
  let outcome = HIT_RESTART;
  count(task, TASK_TRIGGERS);
  while (outcome == HIT_RESTART) {
    const opcode = load8(insn);
    store<i64>(task, <i64>vaddr, TASK_IP);
    store<i64>(task, sp, TASK_SP);
    store<i64>(task, <i64>argument, TASK_DI);
    if (opcode != INSN_TRAP) {
      execute_insn(task, opcode);
      break;
    }
    outcome = handle_swbp(strategy, table, task);
    return_to_user(strategy, task);
    if (outcome == HIT_RESTART) count(task, TASK_RESTARTS);
  }
  if (outcome != HIT_HANDLED) {
    count_outcome(task, outcome);
    return 0;
  }
  count(task, TASK_HANDLED);
  return ENTERED_HANDLED;
}

// The task has executed its innermost function's return.
// @ts-ignore: decorator
@inline
function after_return(strategy: i32, table: usize, task: usize): void {
  const frame = <usize>load<u32>(task, TASK_FRAME);
  if (load<i64>(task, TASK_IP) == <i64>TRAMPOLINE) {
    trampoline_swbp(strategy, table, task);
    return_to_user(strategy, task);
  }
  if (load<i64>(task, TASK_IP) != return_address(task, frame)) raise_slow(FAULT_RETURN);
  pop_frame(task, frame);
}

// @ts-ignore: decorator
@inline
function pop_frame(task: usize, frame: usize): void {
  store<u32>(task, <u32>load<i64>(frame, 8), TASK_FRAME);
  store<i64>(task, <i64>(frame + 16), TASK_SP);
}

// A call, or with `tail` a jump, up to its function's first instruction. For a CPU that is online.
// @ts-ignore: decorator
@inline
function begin(
  strategy: i32,
  table: usize,
  task: usize,
  vaddr: u32,
  argument: i32,
  tail: bool,
): i32 {
  if (!is_site(task, vaddr)) return EINVAL;
  let frame = <usize>load<u32>(task, TASK_FRAME);
  if (tail) {
    if (frame == 0) return EINVAL;
  } else {
    const caller = <usize>load<i64>(task, TASK_SP);
    if (caller - stack_bottom(task) < FRAME_MOST) return ENOSPC;
    store<i64>(caller - 8, <i64>frame);
    frame = caller - 16;
    store<i64>(frame, return_address(task, frame));
    store<u32>(task, <u32>frame, TASK_FRAME);
  }
  store<i64>(task, <i64>frame, TASK_SP);
  const handled = first_insn(strategy, table, task, vaddr, argument);
  if (<usize>load<i64>(task, TASK_SP) <= frame) return handled;
  after_return(strategy, table, task);
  return handled | ENTERED_RETURNED;
}

// The innermost function returns `value`. For a CPU that is online.
// @ts-ignore: decorator
@inline
function end(strategy: i32, table: usize, task: usize, value: i32): i32 {
  const frame = <usize>load<u32>(task, TASK_FRAME);
  if (frame == 0) return EINVAL;
  store<i64>(task, <i64>value, TASK_AX);
  store<i64>(task, load<i64>(frame), TASK_IP);
  store<i64>(task, <i64>(frame + 8), TASK_SP);
  after_return(strategy, table, task);
  return 0;
}

function begin_spinlock(table: usize, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  return begin(PRESET_SPINLOCK, table, task, vaddr, argument, tail);
}
function end_spinlock(table: usize, task: usize, value: i32): i32 {
  return end(PRESET_SPINLOCK, table, task, value);
}

function begin_rwlock(table: usize, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  return begin(PRESET_RWLOCK, table, task, vaddr, argument, tail);
}
function end_rwlock(table: usize, task: usize, value: i32): i32 {
  return end(PRESET_RWLOCK, table, task, value);
}

function begin_siglock(table: usize, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  return begin(PRESET_SIGLOCK, table, task, vaddr, argument, tail);
}
function end_siglock(table: usize, task: usize, value: i32): i32 {
  return end(PRESET_SIGLOCK, table, task, value);
}

function begin_signal_flag(table: usize, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  return begin(PRESET_SIGNAL_FLAG, table, task, vaddr, argument, tail);
}
function end_signal_flag(table: usize, task: usize, value: i32): i32 {
  return end(PRESET_SIGNAL_FLAG, table, task, value);
}

function begin_srcu(table: usize, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  return begin(PRESET_SRCU, table, task, vaddr, argument, tail);
}
function end_srcu(table: usize, task: usize, value: i32): i32 {
  return end(PRESET_SRCU, table, task, value);
}

function begin_tasks_trace(table: usize, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  return begin(PRESET_TASKS_TRACE, table, task, vaddr, argument, tail);
}
function end_tasks_trace(table: usize, task: usize, value: i32): i32 {
  return end(PRESET_TASKS_TRACE, table, task, value);
}

function begin_mmap_lock(table: usize, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  return begin(PRESET_MMAP_LOCK, table, task, vaddr, argument, tail);
}
function end_mmap_lock(table: usize, task: usize, value: i32): i32 {
  return end(PRESET_MMAP_LOCK, table, task, value);
}

function begin_speculative(table: usize, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  return begin(PRESET_SPECULATIVE, table, task, vaddr, argument, tail);
}
function end_speculative(table: usize, task: usize, value: i32): i32 {
  return end(PRESET_SPECULATIVE, table, task, value);
}

function begin_uret_pool(table: usize, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  return begin(PRESET_URET_POOL, table, task, vaddr, argument, tail);
}
function end_uret_pool(table: usize, task: usize, value: i32): i32 {
  return end(PRESET_URET_POOL, table, task, value);
}

function begin_fastest(table: usize, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  return begin(PRESET_FASTEST, table, task, vaddr, argument, tail);
}
function end_fastest(table: usize, task: usize, value: i32): i32 {
  return end(PRESET_FASTEST, table, task, value);
}

/**
 * A call up to its function's first instruction: ENTERED_ bits, or an errno. With `tail` the
 * innermost function jumps to another, which returns in its place. EINVAL: not one of the task's
 * functions, or there is none to jump from. ENOSPC: the task's stack is full. For a CPU that is
 * online, and settles before it says that it holds nothing.
 */
// @ts-ignore: decorator
@inline
export function task_enter(
  strategy: i32,
  table: usize,
  task: usize,
  vaddr: u32,
  argument: i32,
  tail: bool,
): i32 {
  if (strategy == PRESET_SPINLOCK) return begin_spinlock(table, task, vaddr, argument, tail);
  if (strategy == PRESET_RWLOCK) return begin_rwlock(table, task, vaddr, argument, tail);
  if (strategy == PRESET_SIGLOCK) return begin_siglock(table, task, vaddr, argument, tail);
  if (strategy == PRESET_SIGNAL_FLAG) return begin_signal_flag(table, task, vaddr, argument, tail);
  if (strategy == PRESET_SRCU) return begin_srcu(table, task, vaddr, argument, tail);
  if (strategy == PRESET_TASKS_TRACE) return begin_tasks_trace(table, task, vaddr, argument, tail);
  if (strategy == PRESET_MMAP_LOCK) return begin_mmap_lock(table, task, vaddr, argument, tail);
  if (strategy == PRESET_SPECULATIVE) return begin_speculative(table, task, vaddr, argument, tail);
  if (strategy == PRESET_URET_POOL) return begin_uret_pool(table, task, vaddr, argument, tail);
  return begin_fastest(table, task, vaddr, argument, tail);
}

/** The innermost function returns `value`. EINVAL: the task is in none. As task_enter. */
// @ts-ignore: decorator
@inline
export function task_leave(strategy: i32, table: usize, task: usize, value: i32): i32 {
  if (strategy == PRESET_SPINLOCK) return end_spinlock(table, task, value);
  if (strategy == PRESET_RWLOCK) return end_rwlock(table, task, value);
  if (strategy == PRESET_SIGLOCK) return end_siglock(table, task, value);
  if (strategy == PRESET_SIGNAL_FLAG) return end_signal_flag(table, task, value);
  if (strategy == PRESET_SRCU) return end_srcu(table, task, value);
  if (strategy == PRESET_TASKS_TRACE) return end_tasks_trace(table, task, value);
  if (strategy == PRESET_MMAP_LOCK) return end_mmap_lock(table, task, value);
  if (strategy == PRESET_SPECULATIVE) return end_speculative(table, task, value);
  if (strategy == PRESET_URET_POOL) return end_uret_pool(table, task, value);
  return end_fastest(table, task, value);
}

/**
 * longjmp: the task goes on in the caller of its `levels`-th function; how many there were. EBUSY:
 * this CPU is in a handler.
 */
export function task_longjmp(task: usize, levels: i32): i32 {
  if (is_in_handler()) return EBUSY;
  let left = levels;
  for (; left > 0; left--) {
    const frame = <usize>load<u32>(task, TASK_FRAME);
    if (frame == 0) break;
    pop_frame(task, frame);
  }
  return levels - left;
}

// The same for a CPU that is not online, and a whole call.

// @ts-ignore: decorator
@inline
function this_table(): usize {
  return <usize>load<u32>(this_engine(), HDR_TABLE);
}

// @ts-ignore: decorator
@inline
function enter(strategy: i32, task: usize, vaddr: u32, argument: i32, tail: bool): i32 {
  if (is_in_handler()) return EBUSY; // a hit cannot hit
  readers_online(strategy);
  const rc = task_enter(strategy, this_table(), task, vaddr, argument, tail);
  returns_settle(strategy, task);
  readers_offline(strategy);
  return rc;
}

// @ts-ignore: decorator
@inline
function leave(strategy: i32, task: usize, value: i32): i32 {
  if (is_in_handler()) return EBUSY;
  readers_online(strategy);
  const rc = task_leave(strategy, this_table(), task, value);
  readers_offline(strategy);
  return rc;
}

// 1 if a handler took it, 0 if not; errors as task_enter's, and EBUSY: this CPU is in a handler.
// @ts-ignore: decorator
@inline
function call(strategy: i32, task: usize, vaddr: u32, argument: i32): i32 {
  if (is_in_handler()) return EBUSY;
  const table = this_table();
  readers_online(strategy);
  const rc = task_enter(strategy, table, task, vaddr, argument, false);
  if (rc >= 0 && (rc & ENTERED_RETURNED) == 0) task_leave(strategy, table, task, 0);
  readers_offline(strategy);
  return rc < 0 ? rc : rc & ENTERED_HANDLED;
}

export function call_spinlock(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_SPINLOCK, task, vaddr, argument);
}
export function enter_spinlock(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_SPINLOCK, task, vaddr, argument, false);
}
export function jump_spinlock(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_SPINLOCK, task, vaddr, argument, true);
}
export function leave_spinlock(task: usize, value: i32): i32 {
  return leave(PRESET_SPINLOCK, task, value);
}

export function call_rwlock(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_RWLOCK, task, vaddr, argument);
}
export function enter_rwlock(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_RWLOCK, task, vaddr, argument, false);
}
export function jump_rwlock(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_RWLOCK, task, vaddr, argument, true);
}
export function leave_rwlock(task: usize, value: i32): i32 {
  return leave(PRESET_RWLOCK, task, value);
}

export function call_siglock(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_SIGLOCK, task, vaddr, argument);
}
export function enter_siglock(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_SIGLOCK, task, vaddr, argument, false);
}
export function jump_siglock(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_SIGLOCK, task, vaddr, argument, true);
}
export function leave_siglock(task: usize, value: i32): i32 {
  return leave(PRESET_SIGLOCK, task, value);
}

export function call_signal_flag(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_SIGNAL_FLAG, task, vaddr, argument);
}
export function enter_signal_flag(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_SIGNAL_FLAG, task, vaddr, argument, false);
}
export function jump_signal_flag(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_SIGNAL_FLAG, task, vaddr, argument, true);
}
export function leave_signal_flag(task: usize, value: i32): i32 {
  return leave(PRESET_SIGNAL_FLAG, task, value);
}

export function call_srcu(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_SRCU, task, vaddr, argument);
}
export function enter_srcu(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_SRCU, task, vaddr, argument, false);
}
export function jump_srcu(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_SRCU, task, vaddr, argument, true);
}
export function leave_srcu(task: usize, value: i32): i32 {
  return leave(PRESET_SRCU, task, value);
}

export function call_tasks_trace(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_TASKS_TRACE, task, vaddr, argument);
}
export function enter_tasks_trace(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_TASKS_TRACE, task, vaddr, argument, false);
}
export function jump_tasks_trace(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_TASKS_TRACE, task, vaddr, argument, true);
}
export function leave_tasks_trace(task: usize, value: i32): i32 {
  return leave(PRESET_TASKS_TRACE, task, value);
}

export function call_mmap_lock(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_MMAP_LOCK, task, vaddr, argument);
}
export function enter_mmap_lock(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_MMAP_LOCK, task, vaddr, argument, false);
}
export function jump_mmap_lock(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_MMAP_LOCK, task, vaddr, argument, true);
}
export function leave_mmap_lock(task: usize, value: i32): i32 {
  return leave(PRESET_MMAP_LOCK, task, value);
}

export function call_speculative(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_SPECULATIVE, task, vaddr, argument);
}
export function enter_speculative(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_SPECULATIVE, task, vaddr, argument, false);
}
export function jump_speculative(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_SPECULATIVE, task, vaddr, argument, true);
}
export function leave_speculative(task: usize, value: i32): i32 {
  return leave(PRESET_SPECULATIVE, task, value);
}

export function call_uret_pool(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_URET_POOL, task, vaddr, argument);
}
export function enter_uret_pool(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_URET_POOL, task, vaddr, argument, false);
}
export function jump_uret_pool(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_URET_POOL, task, vaddr, argument, true);
}
export function leave_uret_pool(task: usize, value: i32): i32 {
  return leave(PRESET_URET_POOL, task, value);
}

export function call_fastest(task: usize, vaddr: u32, argument: i32): i32 {
  return call(PRESET_FASTEST, task, vaddr, argument);
}
export function enter_fastest(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_FASTEST, task, vaddr, argument, false);
}
export function jump_fastest(task: usize, vaddr: u32, argument: i32): i32 {
  return enter(PRESET_FASTEST, task, vaddr, argument, true);
}
export function leave_fastest(task: usize, value: i32): i32 {
  return leave(PRESET_FASTEST, task, value);
}

/** One counted call by the engine's own strategy. */
export function trigger_call(task: usize, vaddr: u32): void {
  const strategy = load<i32>(this_engine(), HDR_STRATEGY);
  if (strategy == PRESET_SPINLOCK) call_spinlock(task, vaddr, 0);
  else if (strategy == PRESET_RWLOCK) call_rwlock(task, vaddr, 0);
  else if (strategy == PRESET_SIGLOCK) call_siglock(task, vaddr, 0);
  else if (strategy == PRESET_SIGNAL_FLAG) call_signal_flag(task, vaddr, 0);
  else if (strategy == PRESET_SRCU) call_srcu(task, vaddr, 0);
  else if (strategy == PRESET_TASKS_TRACE) call_tasks_trace(task, vaddr, 0);
  else if (strategy == PRESET_MMAP_LOCK) call_mmap_lock(task, vaddr, 0);
  else if (strategy == PRESET_SPECULATIVE) call_speculative(task, vaddr, 0);
  else if (strategy == PRESET_URET_POOL) call_uret_pool(task, vaddr, 0);
  else call_fastest(task, vaddr, 0);
}
