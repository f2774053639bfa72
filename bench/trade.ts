// `npm run trade`: the trade of readers against writers (README), measured here and now.
//
//   npm run trade                     two CPUs, five interleaved rounds: some three minutes
//   npm run trade -- --rounds 10      more rounds
//   npm run trade -- --cpus 4         others than CPU 0 read and hit on three
//   npm run trade -- --seconds 2      each run longer than half a second
//   npm run trade -- --json FILE      also write the runs behind it, as sweep does
//
// Figures that a neighbour on the machine disturbed end in "?".

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { parseNumber, parseWhole } from "../src/base/units.js";
import { startThreads } from "../src/engine/threads.js";
import { type Case, findCase, LADDER_PRESETS } from "../src/harness/cases.js";
import { cellMemoryBytes } from "../src/harness/cell.js";
import { measureDelayUnit } from "../src/harness/delay.js";
import { headerLines } from "../src/harness/format/header.js";
import { formatJson } from "../src/harness/format/json.js";
import { formatTrade, TRADE_BENCHES } from "../src/harness/format/trade.js";
import { describeHost, usableCpus } from "../src/harness/host.js";
import { SWEEP_SCHEMA, type SweepResult } from "../src/harness/result.js";
import { sweep, type SweepPlan, sweepSteps } from "../src/harness/sweep.js";
import { nodePlatform as platform } from "../src/platform/node.js";

interface Wanted {
  rounds: number;
  cpus: number;
  seconds: number;
  json: string | undefined;
}

function wanted(): Wanted {
  try {
    const { values } = parseArgs({
      options: {
        rounds: { type: "string", default: "5" },
        cpus: { type: "string", default: "2" },
        seconds: { type: "string", default: "0.5" },
        json: { type: "string" },
      },
    });
    return {
      rounds: parseWhole(values.rounds, { option: "--rounds", min: 1, max: 100 }),
      cpus: parseWhole(values.cpus, { option: "--cpus", min: 2, max: 256 }),
      seconds: parseNumber(values.seconds, { option: "--seconds", min: 0.01, max: 60 }),
      json: values.json,
    };
  } catch (error) {
    console.error(`trade: ${(error as Error).message}`);
    process.exit(2);
  }
}

function casesOf(names: readonly string[]): Case[] {
  return names.map(findCase).filter((bench): bench is Case => bench !== undefined);
}

const { rounds, cpus, seconds, json } = wanted();
const settings = { presets: LADDER_PRESETS, probes: [1], trapNs: 0, repeat: 1, seed: 1 };
const times = { warmupSec: seconds / 3, durationSec: seconds };
const plans: SweepPlan[] = [
  { ...settings, ...times, benches: casesOf(TRADE_BENCHES.one), cpus: [1], repeat: rounds },
  // A sweep each: what a neighbour disturbs, and is measured again, is then one bench only.
  ...casesOf(TRADE_BENCHES.all).map((bench) => ({
    ...settings,
    ...times,
    benches: [bench],
    cpus: [cpus],
    repeat: rounds,
  })),
];

let stop = false;
const listeners: (() => void)[] = [];
process.once("SIGINT", () => {
  stop = true;
  for (const listener of listeners) listener();
});
const interrupt = {
  get aborted() {
    return stop;
  },
  onAbort: (listener: () => void) => void listeners.push(listener),
};

const runner = await startThreads({ platform, cpus, memoryBytes: cellMemoryBytes(1, cpus) });
const result: SweepResult = {
  schema: SWEEP_SCHEMA,
  host: { ...describeHost(platform, runner.affinity), trapNs: 0 },
  settings: { warmupNs: times.warmupSec * 1e9, durationNs: seconds * 1e9, repeat: rounds, seed: 1 },
  rounds: { kept: 0, dropped: 0 },
  runs: [],
};
try {
  const steps = plans.reduce((sum, plan) => sum + sweepSteps(plan), 0);
  let step = 0;
  for (const plan of plans) {
    const outcome = await sweep(plan, {
      runner,
      nowMs: platform.nowMs,
      unitNs: measureDelayUnit(runner.host, platform.nowMs),
      usableCpus: usableCpus(platform),
      retryUntilMs: Number.POSITIVE_INFINITY,
      interrupt,
      onStep: (what) => console.error(`[${++step}/${steps}] ${what}`),
      onRetry: (line) => console.error(line),
    });
    result.runs.push(...outcome.runs);
    result.rounds = {
      kept: outcome.rounds.kept,
      dropped: (result.rounds?.dropped ?? 0) + outcome.rounds.dropped,
    };
    if (outcome.error === undefined) continue;
    console.error(`trade: ${outcome.error.message}`);
    process.exitCode = outcome.error.exitCode;
    break;
  }
} finally {
  await runner.close();
}
for (const line of headerLines(result)) console.log(`- ${line}`);
console.log(`\n${formatTrade(result, cpus)}`);
if (json !== undefined) writeFileSync(json, `${formatJson(result)}\n`);
if (stop) process.exitCode = 130;
