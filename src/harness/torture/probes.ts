// `torture probes`: hits, returns and forks while probes come and go, after uprobe-stress.
//
// Rounds on a freshly formatted engine, alternating two parts (churn.ts, stress.ts), and presets,
// architectures, lease times and roles (plan.ts). Whatever is violated ends it, as FAILURE.

import { churnRound } from "./churn.js";
import { noTotals, statsLines } from "./counts.js";
import { planOf } from "./plan.js";
import { failureOf, type TortureContext, type TortureReport } from "./run.js";
import { stressRound } from "./stress.js";

/** uprobe-stress says so often what it has done. */
const STATS_MS = 5_000;

export async function tortureProbes(context: TortureContext): Promise<TortureReport> {
  const { nowMs, interrupt, print } = context;
  const totals = noTotals();
  const failures: string[] = [];
  const began = nowMs();
  const until = began + context.seconds * 1000;
  let said = began;
  for (let i = 0; nowMs() < until && !interrupt.aborted && failures.length === 0; i++) {
    const plan = planOf(i, context.seed);
    try {
      const round = plan.part === "churn" ? churnRound : stressRound;
      failures.push(...(await round(context, plan, totals)));
    } catch (error) {
      failures.push(`${plan.preset}: ${failureOf(error)}`);
    }
    totals.rounds++;
    totals.presets.add(plan.preset);
    if (nowMs() - said >= STATS_MS && nowMs() < until) {
      said += STATS_MS * Math.floor((nowMs() - said) / STATS_MS);
      const seconds = Math.round((said - began) / 1000);
      print(`--- ${seconds} s: ${totals.rounds} rounds, ${totals.presets.size} presets`);
      statsLines(totals).forEach((line) => print(line));
    }
  }
  statsLines(totals).forEach((line) => print(line));
  return { failures, interrupted: interrupt.aborted };
}
