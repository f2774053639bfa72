// Broken twins of return probes: leases, their timer, the memory of instances, frames and forks.

import type { Mutant } from "./types.js";

const STEPS = "test engine/hprobe";
const THREADS = "test engine/uretprobe-threads";
const RACES = "test engine/uretprobe-races";
const CALLS = "test engine/uretprobe";

const HPROBE = "uprobe/hprobe.ts";
const TIMER = "uprobe/ri_timer.ts";
const INSTANCE = "uprobe/return_instance.ts";
const RETURNS = "uprobe/uretprobe.ts";
const RECLAIM = "uprobe/reclaim.ts";

export const mutants: readonly Mutant[] = [
  // C18
  {
    name: "uret-lease-given-back-twice",
    file: HPROBE,
    find:
      "    if (has_leases(strategy)) " +
      "srcu_read_unlock_at(load<i32>(ri, RI_SRCU), PCPU_URET_SRCU);\n",
    replace:
      "    srcu_read_unlock_at(load<i32>(ri, RI_SRCU), PCPU_URET_SRCU);\n" +
      "    srcu_read_unlock_at(load<i32>(ri, RI_SRCU), PCPU_URET_SRCU);\n",
    kills: STEPS,
  },
  {
    name: "uret-lease-never-given-back",
    file: HPROBE,
    find:
      "    srcu_read_unlock_at(load<i32>(ri, RI_SRCU), PCPU_URET_SRCU);\n" +
      "    if (!got) return 0;\n",
    replace: "    if (!got) return 0;\n",
    kills: STEPS,
  },
  {
    name: "uret-loser-gives-the-lease-back-too",
    file: HPROBE,
    find: "  // The owner, or another expiry, was first, and gives the lease back.\n",
    replace: "  srcu_read_unlock_at(load<i32>(ri, RI_SRCU), PCPU_URET_SRCU);\n",
    kills: RACES,
  },
  {
    name: "uret-loser-keeps-its-reference",
    file: HPROBE,
    find: "  if (!keep) put_uprobe(table, u);\n",
    replace: "",
    kills: RACES,
  },
  {
    name: "uret-expires-whatever-the-state-is",
    file: HPROBE,
    find: "if (cas32(ri + RI_STATE, HPROBE_LEASED, next) == HPROBE_LEASED) {",
    replace: "if (xchg32(ri + RI_STATE, next) >= HPROBE_LEASED) {",
    kills: RACES,
  },
  {
    name: "uret-consumes-in-two-steps",
    file: HPROBE,
    find: "  if (has_leases(strategy)) return xchg32(ri + RI_STATE, HPROBE_CONSUMED); // A\n",
    replace: "",
    kills: RACES,
  },
  {
    name: "uret-fork-shares-the-lease",
    file: "uprobe/utask.ts",
    find: "    u = hprobe_expire(table, ri, true);\n",
    replace: "    u = <usize>load<u32>(ri, RI_UPROBE);\n",
    kills: STEPS,
  },
  {
    name: "uret-fork-without-a-reference-of-its-own",
    file: HPROBE,
    find: "    if (!got) return 0;\n    if (keep) get_uprobe(u);\n",
    replace: "    if (!got) return 0;\n",
    kills: STEPS,
  },
  {
    name: "uret-gone-is-handled",
    file: RETURNS,
    find: "  if (state == HPROBE_LEASED || state == HPROBE_STABLE) {\n    const u",
    replace: "  if (state <= HPROBE_GONE) {\n    const u",
    kills: STEPS,
  },
  {
    name: "uret-expires-without-a-section-of-its-own",
    file: TIMER,
    find: "  const idx = srcu_read_lock_at(domain, PCPU_URET_SRCU);\n  for (",
    replace:
      "  const idx = srcu_read_lock_at(domain, PCPU_URET_SRCU);\n" +
      "  srcu_read_unlock_at(idx, PCPU_URET_SRCU);\n" +
      "  srcu_read_lock_at(domain, PCPU_URET_SRCU);\n  for (",
    kills: STEPS,
    unkillable:
      "the read section around it, and the grace period of readers after that of leases, keep" +
      " what the section keeps",
  },
  // C19
  {
    name: "uret-timer-is-never-due",
    file: TIMER,
    find: "  if (ri_timer_due(table) != 0 || cas32",
    replace: "  if (ri_timer_due(table) >= 0 || cas32",
    kills: STEPS,
  },
  {
    name: "uret-timer-trusts-the-clock",
    file: TIMER,
    find: "  return left < 0 || left > period_ns() ? 0 : left;\n",
    replace: "  return left < 0 ? 0 : left;\n",
    kills: STEPS,
  },
  {
    name: "uret-timer-leaves-the-oldest",
    file: TIMER,
    find: "    ri != 0;\n",
    replace: "    ri != 0 && load32(ri + RI_NEXT) != 0;\n",
    kills: STEPS,
  },
  {
    name: "uret-waits-for-leases-without-the-timer",
    file: TIMER,
    find: "      ri_timer_run(table);\n",
    replace: "",
    kills: STEPS,
  },
  // C2, C9
  {
    name: "uret-freed-without-its-leases",
    file: RECLAIM,
    find: "    synchronize_leases(table); // B, 2\n",
    replace: "",
    kills: STEPS,
  },
  {
    name: "uret-leases-before-the-readers",
    file: RECLAIM,
    find: "    readers_synchronize(strategy); // B, 1\n",
    replace: "",
    kills: THREADS,
  },
  {
    name: "uret-settles-nothing",
    file: RETURNS,
    find: "  if (load<i32>(task, TASK_RETURN_PENDING) != 0) settle_slow(task);\n",
    replace: "",
    kills: CALLS,
  },
  // C20
  {
    name: "uret-one-too-deep",
    file: RETURNS,
    find: "  if (pending >= RETURNS_MAX) {\n",
    replace: "  if (pending > RETURNS_MAX) {\n",
    kills: CALLS,
  },
  {
    name: "uret-longjmp-goes-unnoticed",
    file: RETURNS,
    find: "  if (was_pending != 0) cleanup_instances(strategy, table, task, chained, sp);\n",
    replace: "",
    kills: CALLS,
  },
  {
    name: "uret-tail-call-drops-its-caller",
    file: RETURNS,
    find: "    if (sp < stack || (chained && sp == stack)) break;\n",
    replace: "    if (sp < stack) break;\n",
    kills: CALLS,
  },
  {
    name: "uret-tail-call-returns-to-the-trampoline",
    file: RETURNS,
    find: "    orig = load<u32>(newest, RI_ORIG);\n",
    replace: "",
    kills: CALLS,
  },
  {
    name: "uret-return-into-a-dropped-frame",
    file: RETURNS,
    find: "    valid = after == 0 || sp <= <usize>load<u32>(after, RI_STACK);\n",
    replace: "    valid = true;\n",
    kills: CALLS,
  },
  {
    name: "uret-session-of-whoever-began-one",
    file: RETURNS,
    find: "    if (load<i32>(at, RI_SESSION) == id) return at + RI_COOKIE;\n",
    replace: "    if (load<i32>(at, RI_SESSION) != 0) return at + RI_COOKIE;\n",
    kills: STEPS,
  },
  // C21
  {
    name: "uret-pools-without-looking",
    file: RETURNS,
    find: "  } else if (kind == RETURN_POOL && (load32(task + RETURN_SEQ) & 1) == 0) {\n",
    replace: "  } else if (kind == RETURN_POOL) {\n",
    kills: STEPS,
  },
  {
    name: "uret-walks-without-the-sequence",
    file: TIMER,
    find: "  add32(task + RETURN_SEQ, 1); // F in uretprobe.ts\n",
    replace: "",
    kills: STEPS,
  },
  {
    name: "uret-freed-at-once",
    file: RETURNS,
    find: "  } else {\n    ri_free_rcu(ri);\n  }\n",
    replace: "  } else {\n    ri_free(ri);\n  }\n",
    kills: STEPS,
  },
  {
    name: "uret-bulk-freed-without-its-grace-period",
    file: INSTANCE,
    find: "  while (is_oldest_over(block)) oldest_is_ready(block);\n",
    replace: "  while (load<u32>(block, OLDEST) != 0) oldest_is_ready(block);\n",
    kills: STEPS,
  },
  {
    name: "uret-keeps-what-others-made",
    file: RETURNS,
    find: "  ri_share();\n",
    replace: "",
    kills: STEPS,
  },
  {
    name: "uret-keeps-what-is-free",
    file: INSTANCE,
    find: "  if (freed == FREE_MOST) share_free_slow(block, FREE_MOST);\n",
    replace: "",
    kills: STEPS,
  },
  {
    name: "uret-keeps-what-is-over",
    file: INSTANCE,
    find:
      "  while (load<i32>(block, READY_LENGTH) > READY_MOST)" +
      " push_spare(<i32>take_newest(block));\n",
    replace: "",
    kills: STEPS,
  },
  {
    name: "uret-memory-without-bound",
    file: INSTANCE,
    find: "  if (closed > WAITING_MOST && !rcu_is_reading()) wait_slow(block);\n",
    replace: "",
    kills: STEPS,
  },
];
