// Broken twins of signals: sending, denying during a step, delivering.

import type { Mutant } from "./types.js";

const SIGNALS = "test engine/signals";
const FILE = "uprobe/signal.ts";

export const mutants: readonly Mutant[] = [
  {
    name: "signal-not-denied-during-a-step",
    file: FILE,
    find: "  if (uprobe_deny_signal(strategy, task)) return;\n",
    replace: "",
    kills: SIGNALS,
  },
  {
    name: "signal-flag-does-not-come-back",
    file: FILE,
    find: "      or32(task + TASK_FLAGS, TIF_SIGPENDING); // F\n",
    replace: "",
    kills: SIGNALS,
  },
  {
    name: "signal-siglock-does-not-recalculate",
    file: FILE,
    find: "    recalc_sigpending(task); // E\n",
    replace: "",
    kills: SIGNALS,
  },
  {
    // What an early version of the kernel's change did: the next state overwrites it.
    name: "signal-denied-is-a-state-of-the-step",
    file: FILE,
    find: "    store<i32>(task, 1, UTASK_SIGNAL_DENIED);\n",
    replace: "    store<i32>(task, 8 | UTASK_RUNNING, UTASK_STATE);\n",
    kills: SIGNALS,
  },
  {
    name: "signal-denied-for-ever",
    file: FILE,
    find: "      store<i32>(task, 0, UTASK_SIGNAL_DENIED);\n",
    replace: "",
    kills: SIGNALS,
  },
  {
    name: "signal-delivered-twice",
    file: FILE,
    find: "    if (sig >= 0) handle_signal(task);\n",
    replace: "    if (sig >= 0) handle_signal(task);\n    if (sig == 7) handle_signal(task);\n",
    kills: SIGNALS,
  },
  {
    name: "signal-takes-another-along",
    file: FILE,
    find:
      "  store<u32>(task, pending & (pending - 1), TASK_PENDING); // C\n" +
      "  recalc_sigpending(task);\n",
    replace:
      "  store<u32>(task, pending & ~(pending & 2) & (pending - 1), TASK_PENDING);\n" +
      "  recalc_sigpending(task);\n",
    kills: SIGNALS,
  },
  {
    name: "signal-sent-without-siglock",
    file: FILE,
    find:
      "  qspin_lock(siglock);\n  const pending = load<u32>(task, TASK_PENDING);\n" +
      "  const fresh = ((pending >> sig) & 1) == 0;\n",
    replace:
      "  const pending = load<u32>(task, TASK_PENDING);\n" +
      "  const fresh = ((pending >> sig) & 1) == 0;\n" +
      "  qspin_lock(siglock);\n",
    kills: SIGNALS,
  },
  {
    name: "signal-sent-without-a-look",
    file: FILE,
    find: "    or32(task + TASK_FLAGS, TIF_SIGPENDING); // B\n",
    replace: "",
    kills: SIGNALS,
  },
  {
    name: "signal-not-looked-for-without-a-trap",
    file: "workload/trigger.ts",
    find: "  return_to_user(strategy, task); // a loop without a trap looks once a batch\n",
    replace: "",
    kills: SIGNALS,
  },
  {
    name: "signal-not-looked-for-at-quiet-moments",
    file: "workload/trigger_fast.ts",
    find: "    return_to_user(PRESET_FASTEST, task);\n",
    replace: "",
    kills: SIGNALS,
  },
];
