// What `torture probes` counts, over all rounds, and how it is printed: uprobe-stress' names.

import * as abi from "../../engine/abi.js";
import type { EngineMemory, HitCounts } from "../../engine/memory.js";
import { identityGap } from "../../engine/memory.js";

/** Why a return that was wanted was not seen. */
export const RETURN_CAUSES = [
  ["depth", abi.TASK_RETURN_DEPTH],
  ["memory", abi.TASK_RETURN_MEMORY],
  ["longjmp", abi.TASK_RETURN_LONGJMP],
  ["gone", abi.TASK_RETURN_GONE],
  ["no-consumer", abi.TASK_RETURN_NO_CONSUMER],
  ["ring-full", abi.TASK_RETURN_RING_FULL],
] as const;

/** Terms of the identity of returns, of one task or summed. */
export interface ReturnCounts {
  entries: number;
  returns: number;
  filtered: number;
  pending: number;
  missed: Record<string, number>;
}

export function returnsOf(memory: EngineMemory, task: number): ReturnCounts {
  return {
    entries: memory.load64(task + abi.TASK_RETURN_ENTRIES),
    returns: memory.load64(task + abi.TASK_RETURNS),
    filtered: memory.load64(task + abi.TASK_RETURN_FILTERED),
    pending: memory.load(task + abi.TASK_RETURN_PENDING),
    missed: Object.fromEntries(
      RETURN_CAUSES.map(([cause, offset]) => [cause, memory.load64(task + offset)]),
    ),
  };
}

/** entries minus all that became of them: 0, or the identity is broken. */
export function returnGap(c: ReturnCounts): number {
  const missed = Object.values(c.missed).reduce((a, b) => a + b, 0);
  return c.entries - c.returns - c.filtered - c.pending - missed;
}

/** What is wrong with the counts of a task, or of several, as failures. */
export function identityLines(what: string, hits: HitCounts, returns?: ReturnCounts): string[] {
  const lines: string[] = [];
  const gap = identityGap(hits);
  if (gap !== 0) lines.push(`${what}: triggers and outcomes differ by ${gap}`);
  const traps = hits.missed.sigtrap;
  if (traps !== 0) lines.push(`${what}: ${traps} traps belonged to no probe (SIGTRAP)`);
  const left = returns === undefined ? 0 : returnGap(returns);
  if (left !== 0) lines.push(`${what}: returns wanted and their outcomes differ by ${left}`);
  return lines;
}

export interface Totals {
  rounds: number;
  presets: Set<string>;
  calls: number;
  hits: number;
  restarts: number;
  returns: number;
  missed: Record<string, number>;
  registered: number;
  unregistered: number;
  checks: number;
  links: number;
  uprobes: number;
  uretprobes: number;
  maps: number;
  forks: number;
  steps: number;
}

export function noTotals(): Totals {
  return {
    rounds: 0,
    presets: new Set(),
    calls: 0,
    hits: 0,
    restarts: 0,
    returns: 0,
    missed: Object.fromEntries(RETURN_CAUSES.map(([cause]) => [cause, 0])),
    registered: 0,
    unregistered: 0,
    checks: 0,
    links: 0,
    uprobes: 0,
    uretprobes: 0,
    maps: 0,
    forks: 0,
    steps: 0,
  };
}

/** A task's counts, or the counts of those that ended, into the totals. */
export function addTask(totals: Totals, memory: EngineMemory, task: number): void {
  const hits = memory.task(task);
  totals.calls += hits.triggers;
  totals.hits += hits.handled;
  totals.restarts += hits.restarts;
  const { returns, missed } = returnsOf(memory, task);
  totals.returns += returns;
  for (const [cause, n] of Object.entries(missed)) {
    totals.missed[cause] = (totals.missed[cause] ?? 0) + n;
  }
  totals.steps += memory.load64(task + abi.TASK_STEPS);
}

/** uprobe-stress' report, and what it does not count. */
export function statsLines(t: Totals): string[] {
  const missed = Object.entries(t.missed).map(([cause, n]) => `${cause} ${n}`);
  return [
    `FUNC CALLS: ${t.calls}`,
    `UPROBE HITS: ${t.hits}  RESTARTS: ${t.restarts}  STEPS: ${t.steps}`,
    `URETPROBE HITS: ${t.returns}`,
    `RETURN MISSED: ${missed.join("  ")}`,
    `ATTACHED: ${t.registered}  DETACHED: ${t.unregistered}  CHECKS: ${t.checks}`,
    `ATTACHED LINKS: ${t.links}  UPROBES: ${t.uprobes}  URETPROBES: ${t.uretprobes}`,
    `MMAP CALLS: ${t.maps}`,
    `FORKS CALLS: ${t.forks}`,
  ];
}
