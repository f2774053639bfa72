// What all torture tests share: a run under a watchdog, and a report that ends in one word.

import { lineOf, WasmprobeError } from "../../base/errors.js";
import * as abi from "../../engine/abi.js";
import type { GracePeriods } from "../../engine/memory.js";
import type { Job, Runner } from "../../engine/runner.js";
import type { Interrupt } from "../measure.js";

export interface TortureContext {
  runner: Runner;
  nowMs(): number;
  cpus: number;
  seconds: number;
  seed: number;
  interrupt: Interrupt;
  /** A line of the report, as soon as it is known. */
  print(line: string): void;
  /** What is being done now, for a progress display. */
  onStep(what: string): void;
}

export interface TortureReport {
  /** One line a failure; empty: SUCCESS. */
  failures: string[];
  /** True if it was interrupted: what ran until then was checked all the same. */
  interrupted: boolean;
}

/** A CPU without progress for so long is stuck: far beyond every sleep in the engine (2 ms). */
const STALL_MS = 5_000;
const WATCH_MS = 100;

export interface Watch {
  /** What else is done meanwhile, until `ended` says true. */
  meanwhile?(ended: () => boolean): Promise<void>;
  /**
   * Whether every CPU has had its turn. The run goes on until then, for as long as a CPU may be
   * without progress: so short a time, or so busy a machine, is no failure of what is tested.
   */
  everybody?(): boolean;
}

/** Runs `jobs` for `ms`, or until interrupted. Throws when a CPU dies, or is stuck. */
export async function runWatched(
  context: TortureContext,
  jobs: readonly Job[],
  ms: number,
  watch: Watch = {},
): Promise<void> {
  const { runner, interrupt, nowMs } = context;
  const { memory } = runner;
  const run = await runner.run(jobs);
  let broken: unknown;
  run.done.catch((error: unknown) => {
    broken = error;
  });
  const until = nowMs() + ms;
  // One fault is enough to fail: the rest of the time would only bury it.
  const faulty = () => Object.keys(memory.faults()).length > 0;
  const over = () =>
    nowMs() >= until && ((watch.everybody?.() ?? true) || nowMs() >= until + STALL_MS);
  const ended = () => over() || interrupt.aborted || broken !== undefined || faulty();
  const side = watch.meanwhile?.(ended).catch((error: unknown) => {
    broken ??= error;
  });
  const seen = jobs.map(() => ({ ops: -1, at: nowMs() }));
  while (!ended()) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(WATCH_MS, ms)));
    for (const [cpu, last] of seen.entries()) {
      const ops = memory.load64(memory.perCpu(abi.PCPU_OPS, cpu));
      if (ops !== last.ops) Object.assign(last, { ops, at: nowMs() });
      else if (nowMs() - last.at > STALL_MS) {
        broken ??= new WasmprobeError(
          "E_WORKER",
          `CPU ${cpu} made no progress for ${STALL_MS / 1000} s in ${jobs[cpu]?.entry}`,
        );
      }
    }
  }
  try {
    await run.stop();
  } catch (error) {
    broken ??= error;
  }
  for (const [flavour, periods] of Object.entries(memory.graceOfEngine())) {
    const line = stallLine(flavour, periods);
    if (line !== undefined) context.print(line);
  }
  if (broken !== undefined) throw broken;
  await side;
  if (broken !== undefined) throw broken;
}

/** The kernel's stall warning: who holds up a grace period. Undefined if nobody did. */
export function stallLine(flavour: string, periods: GracePeriods): string | undefined {
  const { stalls, stalledBy, waitsFor } = periods;
  if (stalls === 0) return undefined;
  const cpu = stalledBy === undefined ? "a CPU that cannot be told" : `CPU ${stalledBy}`;
  const still = waitsFor === undefined ? "" : ", and still is";
  return `${flavour}: a grace period was held up by ${cpu}${still}; ${stalls} so far`;
}

/** The faults that the engine has raised, as failures. */
export function faultLines(runner: Runner, what: string): string[] {
  return Object.entries(runner.memory.faults()).map(
    ([name, count]) => `${what}: the engine saw the impossible: ${name}, ${count} times`,
  );
}

/** locktorture's closing line. */
export function closingLine(name: string, report: TortureReport, seed: number): string {
  const word = report.failures.length === 0 ? "SUCCESS" : "FAILURE";
  const how = report.interrupted ? " (interrupted)" : "";
  return `${name}-torture:--- End of test: ${word}${how}: seed=${seed}`;
}

export function failureOf(error: unknown): string {
  return lineOf(error);
}
