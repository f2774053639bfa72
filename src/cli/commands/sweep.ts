// `wasmprobe sweep`: presets and CPU counts against each other; `npm start` is one without words.

import { EXIT_OK, lineOf, WasmprobeError } from "../../base/errors.js";
import { doublingCounts } from "../../base/ranges.js";
import { wrapText } from "../../base/text.js";
import { type Case, findCase, HOST_CONTROL } from "../../harness/cases.js";
import { measureDelayUnit, tryDelay } from "../../harness/delay.js";
import { compareResults, formatComparison } from "../../harness/format/compare.js";
import { FORMATS } from "../../harness/format/index.js";
import { describeHost, usableCpus } from "../../harness/host.js";
import { isTimed, parseResult, SWEEP_SCHEMA, type SweepResult } from "../../harness/result.js";
import { planCells, sweep, type SweepPlan, sweepSteps } from "../../harness/sweep.js";
import { verdict } from "../../harness/verdict.js";
import type { SweepOptions } from "../options.js";
import { createProgress } from "../progress.js";
import type { Session } from "../session.js";
import { withThreads } from "./start.js";

/** What is measured when no bench is named: what tables were published of, and the control. */
const DEFAULT_BENCHES = ["uprobe-nop", HOST_CONTROL];
/** With benches named and no times given. */
const WARMUP_SEC = 0.5;
const DURATION_SEC = 2;
/**
 * Without benches named, everything ends within 60 s whatever the machine: cells are planned to use
 * this much of it; the rest is for starting, controls and retries.
 */
const PLANNED_SEC = 24;
const CELL_SEC_MAX = 3;
/** Groups are measured again only until then. */
const RETRY_SEC = 35;

export async function runSweep(session: Session, options: SweepOptions): Promise<number> {
  const usable = usableCpus(session.platform);
  const old = readOld(session, options);
  const plan = planOf(options, usable);
  const { affinity, wasm } = options;
  const most = {
    cpus: Math.max(...plan.cpus),
    probes: Math.max(...plan.probes),
    siteBytes: Math.max(...options.siteBytes),
  };
  return withThreads(session, { ...most, affinity, wasm }, async (runner) => {
    const { nowMs } = session.platform;
    const progress = createProgress(session.terminal.stderr, options.quiet);
    const retrySec = options.names.length === 0 ? RETRY_SEC : Number.POSITIVE_INFINITY;
    const unitNs = measureDelayUnit(runner.host, nowMs);
    const { trapNs } = plan;
    const tried = trapNs > 0 ? tryDelay(runner.host, nowMs, trapNs, unitNs) : undefined;
    progress.start(sweepSteps(plan));
    const { runs, rounds, error } = await sweep(plan, {
      runner,
      nowMs,
      unitNs,
      usableCpus: usable,
      retryUntilMs: nowMs() + retrySec * 1000,
      interrupt: session.interrupt,
      onStep: (what) => progress.step(what),
      onRetry: (line, steps) => {
        progress.more(steps);
        progress.say(line);
      },
    }).finally(() => progress.stop());
    const result: SweepResult = {
      schema: SWEEP_SCHEMA,
      host: {
        ...describeHost(session.platform, runner.affinity),
        trapNs,
        ...(tried === undefined ? {} : { trapMeasuredNs: tried }),
      },
      settings: {
        warmupNs: plan.warmupSec * 1e9,
        durationNs: plan.durationSec * 1e9,
        repeat: plan.repeat,
        seed: plan.seed,
      },
      rounds,
      runs,
    };
    print(session, options, result, old);
    if (error === undefined) return EXIT_OK;
    session.note(`wasmprobe: ${lineOf(error)}`);
    return error.exitCode;
  });
}

function planOf(options: SweepOptions, usable: number): SweepPlan {
  const named = options.names.length > 0;
  const benches = (named ? options.names : DEFAULT_BENCHES)
    .map(findCase)
    .filter((bench): bench is Case => bench !== undefined);
  const plan = {
    benches,
    presets: options.presets,
    cpus: options.cpus ?? doublingCounts(usable),
    probes: options.probes,
    siteBytes: options.siteBytes,
    arch: options.arch,
    trapNs: options.trapNs,
    warmupSec: WARMUP_SEC,
    durationSec: DURATION_SEC,
    repeat: options.repeat ?? 1,
    seed: options.seed,
  };
  if (!named) {
    const cells = planCells(plan).flat().length * plan.repeat;
    const cellSec = Math.min(CELL_SEC_MAX, PLANNED_SEC / cells);
    plan.warmupSec = cellSec / 6;
    plan.durationSec = (cellSec * 2) / 3;
  }
  return {
    ...plan,
    warmupSec: options.warmupSec ?? plan.warmupSec,
    durationSec: options.durationSec ?? plan.durationSec,
  };
}

/** The result to compare with is read before anything is measured: a bad one costs no minute. */
function readOld(session: Session, options: SweepOptions): SweepResult | undefined {
  const { compare } = options;
  if (compare === null) return undefined;
  let text: string;
  try {
    text = session.terminal.readText(compare);
  } catch (cause) {
    throw new WasmprobeError("E_FILE", `cannot read ${compare}: ${lineOf(cause)}`, cause);
  }
  return parseResult(text, compare);
}

function print(
  session: Session,
  options: SweepOptions,
  result: SweepResult,
  old: SweepResult | undefined,
): void {
  const { stdout } = session.terminal;
  const view = {
    ...(stdout.columns === undefined ? {} : { columns: stdout.columns }),
    colour: stdout.isTty,
  };
  const parts = [FORMATS[options.format](result, options.out === null ? view : {})];
  const hits = result.runs.filter((run) => run.preset !== null && !isTimed(run));
  if (options.format === "table" && hits.length > 0) {
    const judged = result.runs.filter((run) => !isTimed(run));
    parts.push(wrapText(verdict(judged), Math.min(stdout.columns ?? 100, 100)));
  }
  const text = `${parts.join("\n\n")}\n`;
  if (options.out === null) session.print(text);
  else write(session, options.out, text);
  if (old !== undefined) {
    const comparison = formatComparison(compareResults(old, result), options.compare ?? "");
    // Next to a machine's format the comparison is for people.
    if (options.format === "table" && options.out === null) session.print(`\n${comparison}`);
    else session.note(comparison);
  }
}

function write(session: Session, path: string, text: string): void {
  try {
    session.terminal.writeText(path, text);
  } catch (cause) {
    // Minutes of measuring are not lost to a typo in a path.
    session.print(text);
    throw new WasmprobeError("E_FILE", `cannot write ${path}: ${lineOf(cause)}`, cause);
  }
}
