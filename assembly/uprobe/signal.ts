// Signals: sent to a task, kept while it steps, delivered when it returns to user mode.
//
// A process (address space) has a sighand with its siglock; a task has the signals that are pending
// (TASK_PENDING, a bit each) and, in its flags, TIF_SIGPENDING: "look whether there are some". The
// flag may say so although there are none, never the other way round outside of a step.
//
//   sending     siglock: [A] pending, then [B] TIF_SIGPENDING
//   delivering  TIF_SIGPENDING is seen; siglock: [C] one is taken, recalc_sigpending
//   a step      must not be left for a handler: [D] the flag is cleared before the instruction is
//               executed (uprobe_deny_signal), and comes back after it
//     siglock   D under siglock; afterwards, always: siglock, recalc_sigpending: [E] from A
//     flag      D without it, and signal_denied says that it was; afterwards, if so: [F] the flag.
//               It is set too often if what was pending was taken meanwhile: C finds nothing
// Forbidden: a signal that nobody looks for (C16): B before D is what E or F brings back, B after D
// stays. signal_denied is a word of its own: the task's state goes on to SSTEP_ACK with the step's
// exception, and what it said before is gone.
//
// plain: `TASK_PENDING`, `TASK_SENT` under siglock. `UTASK_*` and counters (`at`): the executing
// task's own. TASK_MM never changes.

import { EINVAL, FAULT_SIGNAL, SIGNAL_FLAG, TASK_FLAGS, TASK_PENDING, TASK_SENT } from "../layout";
import { PRESET_RWLOCK, PRESET_SIGNAL_FLAG, TASK_SIGNALS } from "../layout";
import { and32, load32, or32 } from "../atomics";
import { mm_siglock } from "../mm/mm";
import { qspin_lock, qspin_unlock } from "../sync/qspinlock";
import { raise_slow } from "./fault";
import { TASK_MM, UTASK_ACTIVE_UPROBE, UTASK_RUNNING, UTASK_SIGNAL_DENIED } from "./task";
import { UTASK_STATE } from "./task";

const TIF_SIGPENDING: i32 = 1;

// @ts-ignore: decorator
@inline
function siglock_of(task: usize): usize {
  return mm_siglock(<usize>load<u32>(task, TASK_MM)); // plain: never changes
}

// @ts-ignore: decorator
@inline
function is_sigpending(task: usize): bool {
  return (load32(task + TASK_FLAGS) & TIF_SIGPENDING) != 0;
}

/**
 * Sends signal `sig`, 0 to 31, to a task. 1: it is pending now; 0: it was already, and is not sent
 * twice; EINVAL: no such signal.
 */
export function signal_send(task: usize, sig: i32): i32 {
  if (<u32>sig > 31) return EINVAL;
  const siglock = siglock_of(task);
  qspin_lock(siglock);
  const pending = load<u32>(task, TASK_PENDING);
  const fresh = ((pending >> sig) & 1) == 0;
  if (fresh) {
    store<u32>(task, pending | (1 << sig), TASK_PENDING); // A
    store<i64>(task, load<i64>(task, TASK_SENT) + 1, TASK_SENT);
    or32(task + TASK_FLAGS, TIF_SIGPENDING); // B
  }
  qspin_unlock(siglock);
  return fresh ? 1 : 0;
}

// The flag says what is pending; siglock held.
// @ts-ignore: decorator
@inline
function recalc_sigpending(task: usize): void {
  if (load<u32>(task, TASK_PENDING) != 0) or32(task + TASK_FLAGS, TIF_SIGPENDING);
  else if (is_sigpending(task)) and32(task + TASK_FLAGS, ~TIF_SIGPENDING);
}

// uprobe_deny_signal: true if the task is to execute an instruction out of line first.
// @ts-ignore: decorator
@inline
function uprobe_deny_signal(strategy: i32, task: usize): bool {
  if (load<u32>(task, UTASK_ACTIVE_UPROBE) == 0) return false;
  if ((strategy & SIGNAL_FLAG) != 0) {
    store<i32>(task, 1, UTASK_SIGNAL_DENIED);
    and32(task + TASK_FLAGS, ~TIF_SIGPENDING); // D
  } else {
    qspin_lock(siglock_of(task));
    and32(task + TASK_FLAGS, ~TIF_SIGPENDING); // D
    qspin_unlock(siglock_of(task));
  }
  return true;
}

/** After a step: signals that were denied are looked for again. */
// @ts-ignore: decorator
@inline
export function undo_deny_signal(strategy: i32, task: usize): void {
  if ((strategy & SIGNAL_FLAG) != 0) {
    if (load<i32>(task, UTASK_SIGNAL_DENIED) != 0) {
      or32(task + TASK_FLAGS, TIF_SIGPENDING); // F
      store<i32>(task, 0, UTASK_SIGNAL_DENIED);
    }
  } else {
    const siglock = siglock_of(task);
    qspin_lock(siglock);
    recalc_sigpending(task); // E
    qspin_unlock(siglock);
  }
}

// dequeue_signal: the lowest one that is pending, or -1. siglock held.
function dequeue_signal(task: usize): i32 {
  const pending = load<u32>(task, TASK_PENDING);
  store<u32>(task, pending & (pending - 1), TASK_PENDING); // C
  recalc_sigpending(task);
  return pending == 0 ? -1 : <i32>ctz(pending);
}

// handle_signal: the handler counts.
function handle_signal(task: usize): void {
  if (load<i32>(task, UTASK_STATE) != UTASK_RUNNING) raise_slow(FAULT_SIGNAL);
  const at = task + TASK_SIGNALS;
  store<i64>(at, load<i64>(at) + 1);
}

// get_signal, until there is none.
// @ts-ignore: decorator
@inline
function get_signal(strategy: i32, task: usize): void {
  if (uprobe_deny_signal(strategy, task)) return;
  const siglock = siglock_of(task);
  do {
    qspin_lock(siglock);
    const sig = dequeue_signal(task);
    qspin_unlock(siglock);
    if (sig >= 0) handle_signal(task);
  } while (is_sigpending(task));
}

function get_signal_siglock_slow(task: usize): void {
  get_signal(PRESET_RWLOCK, task);
}
function get_signal_flag_slow(task: usize): void {
  get_signal(PRESET_SIGNAL_FLAG, task);
}

/** exit_to_user_mode: before the task executes an instruction of its own. Signals are delivered. */
// @ts-ignore: decorator
@inline
export function return_to_user(strategy: i32, task: usize): void {
  // plain: a signal that was just sent is seen at the next return
  if ((load<i32>(task, TASK_FLAGS) & TIF_SIGPENDING) == 0) return;
  if ((strategy & SIGNAL_FLAG) != 0) get_signal_flag_slow(task);
  else get_signal_siglock_slow(task);
}
