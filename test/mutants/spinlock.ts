// Broken twins of sync/spinlock.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "spinlock-fast-path-tests-then-sets",
    file: "sync/spinlock.ts",
    find: "if (cas32(p, 0, 1) != 0) spin_lock_slow(p); // [A] pairs with [R]",
    replace: `if (load32(p) != 0) spin_lock_slow(p);
  else store32(p, 1);`,
    kills: "torture locks --lock spinlock",
  },
  {
    name: "spinlock-slow-path-sets-untested",
    file: "sync/spinlock.ts",
    find: "if (cas32(p, 0, 1) == 0) return; // [A]",
    replace: `store32(p, 1);
    return;`,
    kills: "torture locks --lock spinlock",
  },
  {
    name: "spinlock-trylock-takes-a-held-lock",
    file: "sync/spinlock.ts",
    find: "return load32(p) == 0 && cas32(p, 0, 1) == 0; // [A]",
    replace: `store32(p, 1);
  return true;`,
    kills: "torture locks --lock spinlock",
  },
  {
    name: "spinlock-plain-unlock",
    file: "sync/spinlock.ts",
    find: "store32(p, 0); // [R]",
    replace: "store<i32>(p, 0); //",
    kills: "torture locks --lock spinlock",
    unkillable: "x86 keeps plain stores in order, and plain loads: it takes a weakly ordered CPU",
  },
];
