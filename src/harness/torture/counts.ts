// What `torture probes` counts, over all rounds, and how it is printed: uprobe-stress' names.

import * as abi from "../../engine/abi.js";
import type { EngineMemory, HitCounts, ReturnCounts } from "../../engine/memory.js";
import { identityGap, returnGap } from "../../engine/memory.js";

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
  sent: number;
  delivered: number;
}

export function noTotals(): Totals {
  return {
    rounds: 0,
    presets: new Set(),
    calls: 0,
    hits: 0,
    restarts: 0,
    returns: 0,
    missed: {},
    registered: 0,
    unregistered: 0,
    checks: 0,
    links: 0,
    uprobes: 0,
    uretprobes: 0,
    maps: 0,
    forks: 0,
    steps: 0,
    sent: 0,
    delivered: 0,
  };
}

/** A task's counts, or the counts of those that ended, into the totals. */
export function addTask(totals: Totals, memory: EngineMemory, task: number): void {
  const hits = memory.task(task);
  totals.calls += hits.triggers;
  totals.hits += hits.handled;
  totals.restarts += hits.restarts;
  const { returns, missed } = memory.returns(task);
  totals.returns += returns;
  for (const [cause, n] of Object.entries(missed)) {
    totals.missed[cause] = (totals.missed[cause] ?? 0) + n;
  }
  const { steps, signals } = memory.steps(task);
  totals.steps += steps;
  totals.delivered += signals;
  totals.sent += memory.load64(task + abi.TASK_SENT);
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
    `SIGNALS: ${t.sent}  DELIVERED: ${t.delivered}`,
  ];
}

/** A task's signals, once its CPU has left: each that was sent was delivered, or is pending. */
export function signalLines(what: string, memory: EngineMemory, task: number): string[] {
  const sent = memory.load64(task + abi.TASK_SENT);
  const delivered = memory.load64(task + abi.TASK_SIGNALS);
  let pending = 0;
  for (let bits = memory.load(task + abi.TASK_PENDING); bits !== 0; bits &= bits - 1) pending++;
  if (sent === delivered + pending) return [];
  return [`${what}: of ${sent} signals ${delivered} were delivered, ${pending} are pending`];
}
