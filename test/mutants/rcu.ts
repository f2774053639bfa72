// Broken twins of the RCU flavours.

import type { Mutant } from "./types.js";

const RCU = "torture rcu --seconds 6";

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
    kills: RCU,
  },
  {
    name: "srcu-counts-out-before-the-section-ends",
    file: "rcu/srcu.ts",
    find:
      "  const at = this_cpu_ptr(PCPU_SRCU) + <usize>(idx << 2);\n" +
      "  store<i32>(at, load<i32>(at) + 1); // B",
    replace:
      "  const at = this_cpu_ptr(PCPU_SRCU) + <usize>(idx << 2);\n" +
      "  store<i32>(at, load<i32>(at) + 1, UNLOCKS);\n  store<i32>(at, load<i32>(at) + 1); // B",
    kills: RCU,
  },
  {
    name: "srcu-enters-without-a-fence",
    file: "rcu/srcu.ts",
    find: "; // B\n  fence();\n",
    replace: "; // B\n",
    kills: RCU,
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
    kills: RCU,
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
    find: "  store32(line + ONLINE, 1); // F",
    replace: "  store32(line + ONLINE, 0); // F",
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
];
