// Broken twins of sync/wait_list.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "wait_list-del-keeps-first",
    file: "sync/wait_list.ts",
    find: `  else store32(list + FIRST, <i32>next);
`,
    replace: "",
    kills: "torture locks --lock mutex_timed -p 4",
  },
  {
    name: "wait_list-del-keeps-last",
    file: "sync/wait_list.ts",
    find: "else store<usize>(list + LAST, prev);",
    replace: "",
    kills: "torture locks --lock mutex_timed",
  },
  {
    name: "wait_list-add-does-not-link",
    file: "sync/wait_list.ts",
    find: `    store<usize>(last + NEXT, node);
`,
    replace: "",
    kills: "torture locks --lock mutex -p 4",
  },
  {
    name: "wait_list-wake-does-not-mark",
    file: "sync/wait_list.ts",
    find: "store32(node + WOKEN, 1); // [B]",
    replace: "// [B]",
    kills: "torture locks --lock rwsem",
  },
];
