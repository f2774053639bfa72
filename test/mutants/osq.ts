// Broken twins of sync/osq.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "osq-step-a-skipped",
    file: "sync/osq.ts",
    find: "if (<usize>cas32(prev + NEXT, <i32>node, 0) == node) break; // [A]",
    replace: "break; // [A]",
    kills: "torture locks --lock osq",
  },
  {
    name: "osq-step-a-ignores-unlock",
    file: "sync/osq.ts",
    find: `    if (load32(node + LOCKED) != 0) return true; // pairs with [L]
    spin_wait(node + LOCKED, 0, i);`,
    replace: "    spin_wait(node + LOCKED, 0, i);",
    kills: "torture locks --lock osq",
  },
  {
    name: "osq-step-b-keeps-next",
    file: "sync/osq.ts",
    find: "const next = <usize>xchg32(node + NEXT, 0); // [B]",
    replace: "const next = <usize>load32(node + NEXT); // [B]",
    kills: "torture locks --lock osq -p 4 --seconds 10",
  },
  {
    name: "osq-step-b-forgets-the-tail",
    file: "sync/osq.ts",
    find: "if (load32(p) == me && cas32(p, me, left) == me) return 0;",
    replace: "if (load32(p) == me) return 0;",
    kills: "torture locks --lock osq",
  },
  {
    name: "osq-step-b-empties-the-queue",
    file: "sync/osq.ts",
    find: "const next = osq_wait_next_slow(p, node, me, load32(prev + CPU));",
    replace: "const next = osq_wait_next_slow(p, node, me, 0);",
    kills: "torture locks --lock osq",
  },
  {
    name: "osq-step-c-keeps-prev",
    file: "sync/osq.ts",
    find: "store32(next + PREV, <i32>prev); // [C]",
    replace: "// [C]",
    kills: "torture locks --lock osq -p 4",
    unkillable:
      "who gives up with a stale prev waits in its step A until it is given the " +
      "queue: it is only late",
  },
  {
    name: "osq-step-c-does-not-link",
    file: "sync/osq.ts",
    find: `  store32(prev + NEXT, <i32>next);
  return false;`,
    replace: "  return false;",
    kills: "torture locks --lock osq -p 4",
  },
  {
    name: "osq-unlock-keeps-next",
    file: "sync/osq.ts",
    find: "let next = <usize>xchg32(node + NEXT, 0);",
    replace: "let next = <usize>load32(node + NEXT);",
    kills: "torture locks --lock osq",
  },
  {
    name: "osq-no-hand-over",
    file: "sync/osq.ts",
    find: "if (next != 0) store32(next + LOCKED, 1); // [L]",
    replace: "// [L]",
    kills: "torture locks --lock osq",
  },
  {
    name: "osq-node-keeps-locked",
    file: "sync/osq.ts",
    find: "store32(node + LOCKED, 0);",
    replace: "",
    kills: "torture locks --lock osq",
  },
  {
    name: "osq-node-keeps-next",
    file: "sync/osq.ts",
    find: `store32(node + NEXT, 0);
  store32(node + CPU, me);`,
    replace: "store32(node + CPU, me);",
    kills: "torture locks --lock osq",
    unkillable:
      "next is taken away by every way out, so it is 0 already: the store is there " +
      "for the first use",
  },
  {
    name: "osq-links-before-prev",
    file: "sync/osq.ts",
    find: `store32(node + PREV, <i32>prev);
  store32(prev + NEXT, <i32>node); // [N]`,
    replace: `store32(prev + NEXT, <i32>node); // [N]
  store32(node + PREV, <i32>prev);`,
    kills: "torture locks --lock osq -p 4",
    unkillable:
      "prev must give up within the nanoseconds between the two stores, in the " +
      "middle of a queue of three",
  },
];
