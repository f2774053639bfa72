// Broken twins of the loop that counts hits of `fastest` in user mode.

import type { Mutant } from "./types.js";

const PROBES = "torture probes --seconds 8";
const RETURNS = "test engine/fast-returns";
const FILE = "workload/trigger_fast.ts";
const RETURNS_FILE = "workload/trigger_fast_returns.ts";
const SOLE = "uprobe/sole_return.ts";

export const mutants: readonly Mutant[] = [
  {
    name: "fast-handles-what-nobody-takes",
    file: FILE,
    find: "        if (!sole_entries(now)) {",
    replace: "        if (false) {",
    kills: PROBES,
  },
  {
    name: "fast-forgets-what-it-gathered",
    file: FILE,
    find: "  if (hits != 0) count_hits(word, sole_nhits(), sole_blocks(), hits);\n  return",
    replace: "  return",
    kills: PROBES,
  },
  {
    name: "fast-counts-gathered-hits-for-the-next",
    file: FILE,
    find:
      "        if (hits != 0) count_hits(word, sole_nhits(), sole_blocks(), hits);\n" +
      "        word",
    replace:
      "        if (now != 0) count_hits(now, sole_nhits(), sole_blocks(), hits);\n        word",
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
  {
    name: "fast-return-by-the-word-of-the-entry",
    file: SOLE,
    find: "    count_word(word_at) == word &&\n",
    replace: "",
    kills: RETURNS,
  },
  {
    name: "fast-return-is-not-counted",
    file: RETURNS_FILE,
    find: "      pop_sole_return(task, ri);\n      calls += RETURNED;\n",
    replace: "      pop_sole_return(task, ri);\n",
    kills: RETURNS,
  },
  {
    name: "fast-return-of-many-is-not-counted",
    file: RETURNS_FILE,
    find: "      count_sole_hits(word, blocks, 1);\n      calls += RETURNED;\n",
    replace: "      count_sole_hits(word, blocks, 1);\n",
    kills: RETURNS,
  },
  {
    name: "fast-return-is-left-pending-by-nobody",
    file: SOLE,
    find: "  store<i32>(task, 1, TASK_RETURN_PENDING);\n",
    replace: "",
    kills: RETURNS,
  },
  {
    name: "fast-return-does-not-swap-the-address",
    file: SOLE,
    find: "  store<i64>(sp, <i64>TRAMPOLINE);\n",
    replace: "",
    kills: RETURNS,
  },
  {
    name: "fast-return-forgets-where-the-call-came-from",
    file: SOLE,
    find: "  store<u32>(ri, load<u32>(sp), RI_ORIG);\n",
    replace: "",
    kills: RETURNS,
  },
  {
    name: "fast-return-goes-to-the-trampoline",
    file: SOLE,
    find: "<i64>load<u32>(ri, RI_ORIG), TASK_IP",
    replace: "<i64>TRAMPOLINE, TASK_IP",
    kills: RETURNS,
  },
  {
    name: "fast-return-is-not-consumed",
    file: SOLE,
    find: "  store<i32>(ri, HPROBE_CONSUMED, RI_STATE);\n",
    replace: "",
    kills: RETURNS,
  },
  {
    name: "fast-return-over-an-older-one",
    file: SOLE,
    find: "  if (load<i32>(task, TASK_RETURN_PENDING) != 0) return 0;\n",
    replace: "",
    kills: RETURNS,
  },
  {
    name: "fast-return-of-a-session",
    file: "uprobe/consumer.ts",
    find: " &&\n    load<i32>(c, CONSUMER_KIND) != CONSUMER_SESSION\n",
    replace: "\n",
    kills: RETURNS,
  },
  {
    name: "fast-return-counted-where-entries-are",
    file: "uprobe/consumer.ts",
    find: "returns ? load<u32>(c, RETURN_SINK) : load<u32>(c, CONSUMER_SINK)",
    replace: "load<u32>(c, CONSUMER_SINK)",
    kills: RETURNS,
  },
];
