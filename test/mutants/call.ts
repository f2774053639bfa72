// Broken twins of the single call that users' modules make.

import type { Mutant } from "./types.js";

export const mutants: readonly Mutant[] = [
  {
    name: "call-stays-online-after-the-hit",
    file: "workload/call.ts",
    find:
      "  if (rc >= 0 && (rc & ENTERED_RETURNED) == 0) task_leave(strategy, table, task, 0);\n" +
      "  readers_offline(strategy);\n",
    replace:
      "  if (rc >= 0 && (rc & ENTERED_RETURNED) == 0) task_leave(strategy, table, task, 0);\n",
    kills: "test engine/silent-cpus",
  },
  {
    name: "call-without-online",
    file: "workload/call.ts",
    find:
      "  const table = this_table();\n  readers_online(strategy);\n" +
      "  const rc = task_enter(strategy, table, task, vaddr, argument, false);\n",
    replace:
      "  const table = this_table();\n" +
      "  const rc = task_enter(strategy, table, task, vaddr, argument, false);\n",
    kills: "test engine/silent-cpus",
  },
];
