// Broken twins of the RCU flavours.

import type { Mutant } from "./types.js";

const RCU = "torture rcu --seconds 6";
const SRCU = "test rcu/srcu";
const FENCES = "test rcu/fences";
const TRACE = "test rcu/trace";

export const mutants: readonly Mutant[] = [
  {
    name: "srcu-does-not-wait",
    file: "rcu/srcu.ts",
    find: "  if (half_is_empty(p, idx)) return;",
    replace: "  if (idx >= 0) return;",
    kills: RCU,
  },
  {
    name: "srcu-one-flip",
    file: "rcu/srcu.ts",
    find: "for (let flip = 0; flip < 2; flip++) {",
    replace: "for (let flip = 0; flip < 1; flip++) {",
    kills: SRCU,
  },
  {
    name: "srcu-counts-out-before-the-section-ends",
    file: "rcu/srcu.ts",
    find: "  store<i32>(at, load<i32>(at) + 1); // B\n  fence();\n  return idx;",
    replace:
      "  store<i32>(at, load<i32>(at) + 1, UNLOCKS);\n  store<i32>(at, load<i32>(at) + 1); // B\n" +
      "  fence();\n  return idx;",
    kills: RCU,
  },
  {
    name: "srcu-enters-without-a-fence",
    file: "rcu/srcu.ts",
    find: "; // B\n  fence();\n",
    replace: "; // B\n",
    kills: FENCES,
  },
  {
    name: "trace-does-not-wait",
    file: "rcu/tasks_trace.ts",
    find: "  return load32(line + SEEN) - target >= 0; // G",
    replace: "  return true;",
    kills: RCU,
  },
  {
    name: "trace-takes-the-old-generation",
    file: "rcu/tasks_trace.ts",
    find: "  return load32(line + SEEN) - target >= 0; // G",
    replace: "  return load32(line + SEEN) - target >= -1;",
    kills: RCU,
  },
  {
    name: "trace-inner-exit-is-quiet",
    file: "rcu/tasks_trace.ts",
    find: "  if (nesting == 0) rcu_quiescent(p);",
    replace: "  rcu_quiescent(p);",
    kills: TRACE,
  },
  {
    name: "trace-generation-copied-too-early",
    file: "rcu/tasks_trace.ts",
    find: "  store<i32>(line, load<i32>(line, NESTING) + 1, NESTING);",
    replace:
      "  store<i32>(line, load<i32>(line, NESTING) + 1, NESTING);\n" +
      "  store<i32>(line, load<i32>(line, SEEN) + 1, SEEN);",
    kills: RCU,
  },
  {
    name: "trace-online-is-not-said",
    file: "rcu/tasks_trace.ts",
    find: "  store32(line + MODE, mode); // F",
    replace: "  store32(line + MODE, OFFLINE);",
    kills: RCU,
  },
  {
    name: "callbacks-push-without-cas",
    file: "rcu/callbacks.ts",
    find: "    const before = cas32(list, first, <i32>head); // A",
    replace: "    const before = first;\n    store32(list, <i32>head);",
    kills: "test rcu/callbacks",
  },
  {
    name: "callbacks-take-in-two-steps",
    file: "rcu/callbacks.ts",
    find: "  return load32(list) == 0 ? 0 : <usize>xchg32(list, 0); // B",
    replace: "  const all = <usize>load32(list);\n  store32(list, 0);\n  return all;",
    kills: "test rcu/callbacks",
  },
  {
    name: "srcu-sums-unlocks-last",
    file: "rcu/srcu.ts",
    find:
      "    unlocks += load32(per_cpu_ptr(counts, cpu) + <usize>(UNLOCKS + (idx << 2))); // D\n" +
      "  }\n  fence();\n  let locks = 0;\n  for (let cpu = 0; cpu < cpus; cpu++) {\n" +
      "    locks += load32(per_cpu_ptr(counts, cpu) + <usize>(idx << 2)); // E",
    replace:
      "    unlocks += load32(per_cpu_ptr(counts, cpu) + <usize>(idx << 2));\n" +
      "  }\n  fence();\n  let locks = 0;\n  for (let cpu = 0; cpu < cpus; cpu++) {\n" +
      "    locks += load32(per_cpu_ptr(counts, cpu) + <usize>(UNLOCKS + (idx << 2)));",
    kills: SRCU,
  },
  {
    name: "srcu-leaves-without-a-fence",
    file: "rcu/srcu.ts",
    find: "  fence();\n  const at = this_cpu_ptr(counts) + <usize>(UNLOCKS + (idx << 2));",
    replace: "  const at = this_cpu_ptr(counts) + <usize>(UNLOCKS + (idx << 2));",
    kills: FENCES,
  },
  {
    name: "srcu-looks-at-one-cpu-less",
    file: "rcu/srcu.ts",
    find: "  let locks = 0;\n  for (let cpu = 0; cpu < cpus; cpu++) {",
    replace: "  let locks = 0;\n  for (let cpu = 0; cpu < cpus - 1; cpu++) {",
    kills: SRCU,
  },
  {
    name: "trace-one-look",
    file: "rcu/tasks_trace.ts",
    find: "    else if (idle_since == 0) idle_since = now;",
    replace: "    else if (idle_since == 0) break;",
    kills: TRACE,
  },
  {
    name: "trace-looks-at-once",
    file: "rcu/tasks_trace.ts",
    find: "    if (now - began < patience) continue;\n",
    replace: "",
    kills: TRACE,
  },
  {
    name: "trace-passes-sleepers",
    file: "rcu/tasks_trace.ts",
    find: " == OFFLINE && load32(line + NESTING) == 0) return true; // D",
    replace: " == OFFLINE) return true;",
    kills: TRACE,
  },
  {
    name: "trace-comes-back-quiet",
    file: "rcu/tasks_trace.ts",
    find: "load<i32>(line, NESTING) == 0 ? 0 : 1;",
    replace: "0;",
    kills: TRACE,
  },
  {
    name: "trace-comes-back-without-a-fence",
    file: "rcu/tasks_trace.ts",
    find: "  store32(line + MODE, mode); // F\n  fence();\n",
    replace: "  store<i32>(line, mode, MODE);\n",
    kills: FENCES,
  },
  {
    name: "trace-goes-offline-by-a-plain-store",
    file: "rcu/tasks_trace.ts",
    find: "  store32(this_cpu_ptr(PCPU_RCU) + MODE, OFFLINE); // E",
    replace: "  store<i32>(this_cpu_ptr(PCPU_RCU), OFFLINE, MODE);",
    kills: FENCES,
  },
  {
    name: "trace-generations-do-not-wrap",
    file: "rcu/tasks_trace.ts",
    find: "  return load32(line + SEEN) - target >= 0; // G",
    replace: "  return <u32>load32(line + SEEN) >= <u32>target;",
    kills: TRACE,
  },
  {
    name: "qsbr-updater-stays-online",
    file: "rcu/tasks_trace.ts",
    find: "  if (mode != OFFLINE) rcu_offline();\n",
    replace: "",
    kills: TRACE,
  },
  {
    name: "qsbr-quiet-before-the-last-read",
    file: "workload/rcu.ts",
    find: "    const stage = load32(o + STAGE);\n",
    // With a while on either side: as long as a section may take before and after.
    replace:
      "    cpu_delay(500);\n    if (kind == QSBR) rcu_quiescent(p);\n    cpu_delay(2_000);\n" +
      "    const stage = load32(o + STAGE);\n",
    kills: RCU,
    unkillable: "9 of 10 runs see it: an updater that sleeps wakes when the section is over",
  },
  {
    name: "grace-stall-is-not-said",
    file: "rcu/grace.ts",
    find: "  add32(p + GP_STALLS, 1);",
    replace: "",
    kills: TRACE,
  },
  {
    name: "srcu-counts-out-of-the-other-half",
    file: "rcu/srcu.ts",
    find: "this_cpu_ptr(counts) + <usize>(UNLOCKS + (idx << 2));",
    replace: "this_cpu_ptr(counts) + <usize>(UNLOCKS + ((idx ^ 1) << 2));",
    kills: RCU,
  },
];
