// Broken twins of sync/qspinlock.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "qspinlock-barging-trylock",
    file: "sync/qspinlock.ts",
    find: "return load32(p) == 0 && cas32(p, 0, LOCKED) == 0; // [A]",
    replace: `const seen = load32(p);
  return (seen & LOCKED_MASK) == 0 && cas32(p, seen, seen | LOCKED) == seen;`,
    kills: "torture locks --lock qspinlock --seconds 10",
  },
  {
    name: "qspinlock-barging-fast-path",
    file: "sync/qspinlock.ts",
    find: "if (seen != 0) qspin_slow(p, seen);",
    replace: `if (seen != 0) {
    if ((seen & LOCKED_MASK) == 0 && cas32(p, seen, seen | LOCKED) == seen) return;
    qspin_slow(p, seen);
  }`,
    kills: "torture locks --lock qspinlock --seconds 10",
  },
  {
    name: "qspinlock-pending-does-not-wait",
    file: "sync/qspinlock.ts",
    find: "while (((val = load32(p)) & LOCKED_MASK) != 0) spin_wait(p, val, i++); // [A]",
    replace: "if (((val = load32(p)) & LOCKED_MASK) != 0) spin_wait(p, val, i++);",
    kills: "torture locks --lock qspinlock",
  },
  {
    name: "qspinlock-pending-not-undone",
    file: "sync/qspinlock.ts",
    find: "if ((val & PENDING_MASK) == 0) store8(p + PENDING_BYTE, 0);",
    replace: "",
    kills: "torture locks --lock qspinlock -p 4",
    unkillable: "takes three CPUs at once: two set pending within nanoseconds while a third holds",
  },
  {
    name: "qspinlock-unlock-stores-the-word",
    file: "sync/qspinlock.ts",
    find: "add32(p, -LOCKED); // [R]",
    replace: "store32(p, 0); //",
    kills: "torture locks --lock qspinlock",
  },
  {
    name: "qspinlock-node-keeps-next",
    file: "sync/qspinlock.ts",
    find: "store32(node + NEXT, 0); // [C]",
    replace: "// [C]",
    kills: "torture locks --lock qspinlock -p 4",
    unkillable:
      "four workers on two cores kill it in some runs of 10 s only: its stale link is read if a " +
      "third CPU queues while the second leaves",
  },
  {
    name: "qspinlock-node-keeps-head",
    file: "sync/qspinlock.ts",
    find: "store32(node + HEAD, 0);",
    replace: "",
    kills: "torture locks --lock qspinlock",
  },
  {
    name: "qspinlock-head-ignores-pending",
    file: "sync/qspinlock.ts",
    find: "while (((val = load32(p)) & (LOCKED_MASK | PENDING_MASK)) != 0)",
    replace: "while (((val = load32(p)) & LOCKED_MASK) != 0)",
    kills: "torture locks --lock qspinlock --seconds 10",
  },
  {
    name: "qspinlock-last-wipes-the-tail",
    file: "sync/qspinlock.ts",
    find: "if (val >>> TAIL_SHIFT == tail && cas32(p, val, LOCKED) == val) return;",
    replace: "if (val >>> TAIL_SHIFT == tail) return store32(p, LOCKED);",
    kills: "torture locks --lock qspinlock",
  },
  {
    name: "qspinlock-leaves-before-linked",
    file: "sync/qspinlock.ts",
    find: "if (next == 0) spin_wait(node + NEXT, 0, i++);",
    replace: "if (next == 0) return;",
    kills: "torture locks --lock qspinlock",
  },
  {
    name: "qspinlock-no-hand-over",
    file: "sync/qspinlock.ts",
    find: "store32(next + HEAD, 1); // [G]",
    replace: "// [G]",
    kills: "torture locks --lock qspinlock",
  },
];
