// Broken twins of the single call that users' modules make.

import type { Mutant } from "./types.js";

export const mutants: readonly Mutant[] = [
  {
    name: "call-stays-online-after-the-hit",
    file: "workload/call.ts",
    find: "  readers_offline(strategy);\n",
    replace: "",
    kills: "test engine/silent-cpus",
  },
  {
    name: "call-without-online",
    file: "workload/call.ts",
    find: "  readers_online(strategy);\n",
    replace: "",
    kills: "test engine/silent-cpus",
  },
];
