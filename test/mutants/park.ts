// Broken twins of sync/park.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "park-sleeps-on-what-it-sees",
    file: "sync/park.ts",
    find: `if (load32(p) != seen) return;
  cpu_note_sleep();
  wait32(p, seen, timeoutNs);`,
    replace: `cpu_note_sleep();
  wait32(p, load32(p), timeoutNs);`,
    kills: "torture locks --lock mutex",
    unkillable:
      "the waker needs the lock that the sleeper dropped an instant ago; the window " +
      "is shorter than that: an explorer has to find it",
  },
  {
    name: "park-no-notify",
    file: "sync/park.ts",
    find: "notify(p, 1);",
    replace: "",
    kills: "torture locks --lock mutex",
  },
];
