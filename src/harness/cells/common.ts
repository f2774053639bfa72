// What all cells share: snapshots of progress, and the checks that make a contradiction an error.

import { WasmprobeError } from "../../base/errors.js";
import * as abi from "../../engine/abi.js";
import { identityGap, type ReturnCounts, returnGap } from "../../engine/memory.js";
import { sumHits, sumReturns } from "../../engine/memory.js";
import type { Runner } from "../../engine/runner.js";
import type { CellCounts, CellReturns, CellSpec } from "./types.js";

export function title(spec: CellSpec): string {
  const preset = spec.preset === null ? "" : ` ${spec.preset}`;
  return `${spec.bench.name}${preset} on ${spec.cpus} CPUs`;
}

/** Progress as the workers tell it: operations of all batches that have returned. */
export function batchProgress(runner: Runner, cpus: number): number[] {
  const { memory } = runner;
  return Array.from({ length: cpus }, (_, cpu) => memory.load64(memory.perCpu(abi.PCPU_OPS, cpu)));
}

export function checkFaults(runner: Runner, spec: CellSpec): void {
  const faults = Object.entries(runner.memory.faults());
  if (faults.length === 0) return;
  const list = faults.map(([name, count]) => `${name} ${count} times`).join(", ");
  throw new WasmprobeError("E_FAULT", `${title(spec)}: the engine saw the impossible: ${list}`);
}

function returnsOf({ entries, returns, filtered, missed, pending }: ReturnCounts): CellReturns {
  const causes = Object.entries(missed).filter(([, n]) => n > 0);
  return { entries, returns, filtered, missed: Object.fromEntries(causes), pending };
}

/** What became of these tasks' triggers. A gap is an error, or another number of hits in `sink`. */
export function hitCounts(
  runner: Runner,
  spec: CellSpec,
  tasks: readonly number[],
  sink: number,
): CellCounts {
  const { memory } = runner;
  const sum = sumHits(tasks.map((task) => memory.task(task)));
  const gap = identityGap(sum);
  const taken = memory.sinkHits(sink, spec.cpus + 1).reduce((a, b) => a + b, 0);
  if (gap !== 0) {
    throw new WasmprobeError(
      "E_FAULT",
      `${title(spec)}: triggers and outcomes differ by ${gap} of ${sum.triggers}`,
    );
  }
  const back = sumReturns(tasks.map((task) => memory.returns(task)));
  const backGap = returnGap(back);
  if (backGap !== 0) {
    throw new WasmprobeError(
      "E_FAULT",
      `${title(spec)}: probed calls and their returns differ by ${backGap} of ${back.entries}`,
    );
  }
  const returns = spec.bench.family === "uretprobe";
  const seen = returns ? back.returns : sum.handled;
  if (taken !== seen) {
    const what = returns ? "returns were seen" : "hits were handled";
    throw new WasmprobeError(
      "E_FAULT",
      `${title(spec)}: ${seen} ${what}, the consumer counted ${taken}`,
    );
  }
  const missed = Object.entries(sum.missed).filter(([, n]) => n > 0);
  const { triggers, handled, filtered } = sum;
  const ofTasks = (offset: number): number =>
    tasks.reduce((all, task) => all + memory.load64(task + offset), 0);
  return {
    triggers,
    handled,
    filtered,
    missed: Object.fromEntries(missed),
    ...(returns ? { returns: returnsOf(back) } : {}),
    steps: ofTasks(abi.TASK_STEPS),
    fallbacks: ofTasks(abi.TASK_FALLBACKS),
    retries: ofTasks(abi.TASK_RETRIES),
  };
}
