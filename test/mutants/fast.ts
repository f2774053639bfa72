// Broken twins of the loop that counts hits of `fastest` in user mode.

import type { Mutant } from "./types.js";

const PROBES = "torture probes --seconds 8";
const FILE = "workload/trigger_fast.ts";

export const mutants: readonly Mutant[] = [
  {
    name: "fast-handles-what-nobody-takes",
    file: FILE,
    find: "      if (now == 0) {\n        trapped = -1;\n        break;\n      }\n      hits++;",
    replace: "      hits++;",
    kills: PROBES,
  },
  {
    name: "fast-forgets-what-it-gathered",
    file: FILE,
    find: "  if (word != 0) count_sole(word, sole_nhits(), sole_blocks(), hits);\n  return",
    replace: "  return",
    kills: PROBES,
  },
  {
    name: "fast-counts-gathered-hits-for-the-next",
    file: FILE,
    find:
      "        if (word != 0) count_sole(word, sole_nhits(), sole_blocks(), hits);\n" +
      "        word",
    replace:
      "        if (now != 0) count_sole(now, sole_nhits(), sole_blocks(), hits);\n        word",
    kills: PROBES,
  },
  {
    name: "fast-is-never-quiet",
    file: FILE,
    find: "    readers_quiescent(PRESET_FASTEST);\n",
    replace: "",
    kills: PROBES,
    unkillable:
      "a batch of at most 1 ms is offline at its end: grace periods are longer, not wrong",
  },
];
