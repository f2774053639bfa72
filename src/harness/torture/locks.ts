// `torture locks`: every lock for its share of the time, on all CPUs, after the kernel's
// locktorture. The checks inside the sections are the engine's (workload/locktorture.ts); here the
// counters are added up and compared.

import * as abi from "../../engine/abi.js";
import type { Job, Runner } from "../../engine/runner.js";
import { LOCK_TEST_NAMES, type LockTestName } from "./names.js";
import { failureOf, faultLines, runWatched, type TortureContext } from "./run.js";
import type { TortureReport } from "./run.js";

interface LockTest {
  name: string;
  /** Entry of each CPU. */
  entry(cpu: number): string;
  /** What the lock's words must be at rest: the offending words, or undefined. */
  atRest(load: (offset: number) => number): boolean;
  cpusMin: number;
}

const zero = (load: (offset: number) => number): boolean => load(0) === 0;

function plain(name: string, atRest: LockTest["atRest"] = zero): LockTest {
  return { name, entry: () => `torture_${name}`, atRest, cpusMin: 1 };
}

/** CPU 0 writes, all others read without a gap: the writer must get in all the same (C25). */
function readersAgainstWriter(kind: string): LockTest {
  return {
    name: `${kind}_readers`,
    entry: (cpu) => `torture_${kind}_${cpu === 0 ? "writers" : "readers"}`,
    atRest: zero,
    cpusMin: 2,
  };
}

const TESTS: Readonly<Record<LockTestName, LockTest>> = {
  spinlock: plain("spinlock"),
  ticket: plain("ticket", (load) => {
    const word = load(0);
    return ((word >>> 16) & 0xffff) === (word & 0xffff);
  }),
  qspinlock: plain("qspinlock"),
  rwlock: plain("rwlock"),
  rwlock_readers: readersAgainstWriter("rwlock"),
  rwsem: plain("rwsem"),
  rwsem_readers: readersAgainstWriter("rwsem"),
  mutex: plain("mutex"),
  mutex_timed: plain("mutex_timed"),
  osq: plain("osq"),
  seqcount: plain("seqcount", (load) => (load(0) & 1) === 0),
  refcount: plain("refcount", (load) => load(0) === 1),
};

interface Counters {
  writes: number[];
  reads: number[];
  fails: number;
  barges: number;
  late: number;
  tryfails: number;
  timeouts: number[];
}

function readCounters(runner: Runner, cpus: number): Counters {
  const { memory } = runner;
  const all = (offset: number) =>
    Array.from({ length: cpus }, (_, cpu) =>
      memory.load64(memory.perCpu(abi.PCPU_TORTURE, cpu) + offset),
    );
  const sum = (offset: number) => all(offset).reduce((a, b) => a + b, 0);
  return {
    writes: all(abi.TORTURE_WRITES),
    reads: all(abi.TORTURE_READS),
    fails: sum(abi.TORTURE_FAILS),
    barges: sum(abi.TORTURE_BARGES),
    late: sum(abi.TORTURE_LATE),
    tryfails: sum(abi.TORTURE_TRYFAILS),
    timeouts: all(abi.TORTURE_TIMEOUTS),
  };
}

/** locktorture's line: "???" where one CPU got more than twice as much as another. */
function countLine(what: string, all: readonly number[], fails: number): string {
  const counts = all.filter((n) => n > 0); // a CPU whose part is the other side has none
  const total = counts.reduce((a, b) => a + b, 0);
  const most = Math.max(0, ...counts);
  const least = counts.length === 0 ? 0 : Math.min(...counts);
  const unfair = most / 2 > least ? " ???" : "";
  const failed = fails > 0 ? " !!!" : "";
  return `${what}:  Total: ${total}  Max/Min: ${most}/${least}${unfair}  Fail: ${fails}${failed}`;
}

async function tortureOne(context: TortureContext, test: LockTest, ms: number): Promise<string[]> {
  const { runner, cpus, seed, print } = context;
  const { memory } = runner;
  await runner.format({ cpus });
  const p = await runner.command(abi.OP_ALLOC, abi.LOCK_AREA_BYTES);
  if (test.name === "refcount") memory.store(p, 1);
  const jobs: Job[] = Array.from({ length: cpus }, (_, cpu) => ({
    entry: test.entry(cpu),
    args: [p, seed],
  }));
  // Who gives up keeps no place: with more CPUs than cores some may give up every time.
  const tried = (c: Counters, cpu: number) =>
    [c.writes, c.reads, c.timeouts].some((n) => n[cpu] !== 0);
  const idle = (c: Counters) => jobs.findIndex((_, cpu) => !tried(c, cpu));
  await runWatched(context, jobs, ms, { everybody: () => idle(readCounters(runner, cpus)) < 0 });

  const c = readCounters(runner, cpus);
  const failures = faultLines(runner, test.name);
  const expect = (ok: boolean, line: string) => {
    if (!ok) failures.push(`${test.name}: ${line}`);
  };
  const writes = c.writes.reduce((a, b) => a + b, 0);
  const data = memory.load64(p + abi.LOCK_DATA);
  expect(data === writes, `${writes} exclusive sections, but their counter says ${data}`);
  expect(c.fails === 0, `${c.fails} sections found somebody else inside`);
  expect(c.barges === 0, `${c.barges} times somebody overtook who was queued`);
  expect(c.late === 0, `${c.late} timed locks came back too early or too late`);
  const waived = failures.length > 0 || context.interrupt.aborted;
  expect(waived || idle(c) < 0, `CPU ${idle(c)} never got in`);
  expect(waived || writes > 0, "nobody ever got in");
  const rest = test.atRest((offset) => memory.load(p + offset));
  expect(rest, `at rest its word is 0x${(memory.load(p) >>> 0).toString(16)}`);

  const extras = [
    ["try failed", c.tryfails],
    ["timed out", c.timeouts.reduce((a, b) => a + b, 0)],
  ].filter(([, n]) => n !== 0);
  const more = extras.map(([name, n]) => `  ${name}: ${n}`).join("");
  print(`${test.name}-torture: ${countLine("Writes", c.writes, c.fails)}${more}`);
  if (c.reads.some((n) => n > 0)) {
    print(`${test.name}-torture: ${countLine("Reads ", c.reads, c.fails)}`);
  }
  return failures;
}

/** `only`: one test's name, or null for all. */
export async function tortureLocks(
  context: TortureContext,
  only: string | null,
): Promise<TortureReport> {
  const all = LOCK_TEST_NAMES.filter((name) => only === null || name === only);
  const tests = all
    .map((name) => TESTS[name])
    .filter((test) => {
      if (context.cpus >= test.cpusMin) return true;
      context.print(`${test.name}-torture: skipped, it needs ${test.cpusMin} CPUs`);
      return false;
    });
  const failures: string[] = [];
  const ms = (context.seconds * 1000) / Math.max(1, tests.length);
  for (const test of tests) {
    if (context.interrupt.aborted || failures.length > 0) break;
    context.onStep(test.name);
    try {
      failures.push(...(await tortureOne(context, test, ms)));
    } catch (error) {
      // A stuck or dead CPU: nothing can run on this pool any more.
      failures.push(`${test.name}: ${failureOf(error)}`);
      break;
    }
  }
  return { failures, interrupted: context.interrupt.aborted };
}
