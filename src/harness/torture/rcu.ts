// `torture rcu`: the kernel's rcutorture for each flavour. One CPU updates, all others read. What
// is checked inside is the engine's (workload/rcu.ts); here the histogram is added up: only its
// first two bins may fill.

import * as abi from "../../engine/abi.js";
import type { Job, Runner } from "../../engine/runner.js";
import { RCU_KINDS } from "../cell.js";
import { failureOf, faultLines, runWatched, stallLine, type TortureContext } from "./run.js";
import type { TortureReport } from "./run.js";

/** A flavour's time is cut into pieces: each begins with readers that nobody has waited for yet. */
const PIECE_MS = 1000;
const BINS = 3;

/** SRCU with everybody out: as many exits as entries, in either half (C13). */
function countsMatch({ memory, cpus }: Runner): boolean {
  return [0, 4].every((half) => {
    let inside = 0;
    for (let cpu = 0; cpu < cpus; cpu++) {
      const at = memory.perCpu(abi.PCPU_SRCU, cpu) + half;
      inside += memory.load(at) - memory.load(at + 8);
    }
    return (inside | 0) === 0;
  });
}

async function tortureFlavour(
  context: TortureContext,
  flavour: string,
  ms: number,
): Promise<string[]> {
  const { runner, seed, print, nowMs, interrupt } = context;
  const { memory } = runner;
  const cpus = Math.max(context.cpus, 2);
  const name = flavour === "tasks-trace" ? "trace" : flavour;
  const pipe = Array.from({ length: BINS }, () => 0);
  let updates = 0;
  let stalls = 0;
  const failures: string[] = [];
  const until = nowMs() + ms;
  for (let piece = 0; nowMs() < until && failures.length === 0 && !interrupt.aborted; piece++) {
    await runner.format({ cpus });
    const p = await runner.command(abi.OP_ALLOC, abi.RCU_AREA_BYTES);
    runner.host.exports.rcu_area_init(p, RCU_KINDS[flavour] ?? 0, cpus + 2);
    const jobs: Job[] = Array.from({ length: cpus }, (_, cpu) => ({
      entry: `torture_${name}_${cpu === piece % cpus ? "updater" : "reader"}`,
      args: [p, (seed + piece) | 0],
    }));
    try {
      await runWatched(context, jobs, Math.min(PIECE_MS, until - nowMs()));
    } finally {
      const stall = stallLine(flavour, memory.gracePeriods(p));
      if (stall !== undefined) print(stall);
    }
    for (let bin = 0; bin < BINS; bin++) {
      for (let cpu = 0; cpu < cpus; cpu++) {
        pipe[bin] =
          (pipe[bin] ?? 0) +
          memory.load64(memory.perCpu(abi.PCPU_TORTURE, cpu) + abi.TORTURE_PIPE + 8 * bin);
      }
    }
    updates += memory.load(p + abi.RCU_UPDATES);
    stalls += memory.gracePeriods(p).stalls;
    failures.push(...faultLines(runner, flavour));
    if (flavour === "srcu" && !countsMatch(runner)) {
      failures.push("srcu: nobody reads, and the sums of entries and exits differ");
    }
  }
  print(
    `${flavour}-torture: Reader Pipe: ${pipe.join(" ")}  Updates: ${updates}  Stalls: ${stalls}`,
  );
  const expect = (ok: boolean, line: string) => {
    if (!ok) failures.push(`${flavour}: ${line}`);
  };
  expect((pipe[2] ?? 0) === 0, `${pipe[2]} readers held what a grace period had passed over`);
  expect((pipe[0] ?? 0) > 0 || interrupt.aborted, "nobody read anything");
  expect(updates > 0 || interrupt.aborted, "no grace period ended");
  return failures;
}

export async function tortureRcu(context: TortureContext): Promise<TortureReport> {
  const failures: string[] = [];
  const flavours = Object.keys(RCU_KINDS);
  for (const flavour of flavours) {
    if (context.interrupt.aborted || failures.length > 0) break;
    context.onStep(flavour);
    try {
      const ms = (context.seconds * 1000) / flavours.length;
      failures.push(...(await tortureFlavour(context, flavour, ms)));
    } catch (error) {
      failures.push(`${flavour}: ${failureOf(error)}`);
    }
  }
  return { failures, interrupted: context.interrupt.aborted };
}
