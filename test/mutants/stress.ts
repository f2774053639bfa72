// Broken twins of what needs a crowd: nested calls of tasks that change CPUs, a timer that is
// always under way, forks in the midst of calls. The stress part of `torture probes` is their
// killer.

import type { Mutant } from "./types.js";

/** Long enough for every preset's round. */
const STRESS = "torture probes --seconds 6";

export const mutants: readonly Mutant[] = [
  {
    name: "stress-lease-is-given-back-by-both",
    file: "uprobe/hprobe.ts",
    find: "  if (cas32(ri + RI_STATE, HPROBE_LEASED, next) == HPROBE_LEASED) {\n",
    replace: "  if (cas32(ri + RI_STATE, HPROBE_LEASED, next) >= 0) {\n",
    kills: STRESS,
  },
  {
    name: "stress-child-shares-a-reference",
    file: "uprobe/utask.ts",
    find: "    get_uprobe(u);\n",
    replace: "",
    kills: STRESS,
  },
  {
    name: "stress-dropped-frame-keeps-its-lease",
    file: "uprobe/uretprobe.ts",
    find: "  hprobe_finalize(strategy, table, ri, hprobe_consume(strategy, ri)); // D\n",
    replace: "  hprobe_consume(strategy, ri);\n",
    kills: STRESS,
  },
];
