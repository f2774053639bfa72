// Every lock on real threads: exact counts, exclusion, order, fairness, progress.
// runs alone
// time limit: 120 s

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import type { Job, Runner } from "../../src/engine/runner.js";
import { runFor, withThreads } from "../helpers/engine.js";

/** Long enough for some 100 000 contended sections; short enough for all locks in a minute. */
const RUN_MS = 400;
const SEED = Number(process.env["WASMPROBE_SEED"] ?? 1);

/** A fresh, zeroed lock area; a reference count starts at 1. */
async function lockArea(runner: Runner, cpus: number, entry: string): Promise<number> {
  await runner.format({ cpus });
  const p = await runner.command(abi.OP_ALLOC, abi.LOCK_AREA_BYTES);
  if (entry.endsWith("refcount")) runner.memory.store(p, 1);
  return p;
}

const onAll = (cpus: number, entry: string, ...args: number[]): Job[] =>
  Array.from({ length: cpus }, () => ({ entry, args }));

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** A torture counter, for each CPU. */
function counters(runner: Runner, offset: number): number[] {
  const { memory, cpus } = runner;
  return Array.from({ length: cpus }, (_, cpu) =>
    memory.load64(memory.perCpu(abi.PCPU_TORTURE, cpu) + offset),
  );
}

function assertSound(runner: Runner, p: number, what: string): void {
  assert.is(sum(counters(runner, abi.TORTURE_FAILS)), 0, `${what}: somebody else was inside`);
  assert.is(sum(counters(runner, abi.TORTURE_BARGES)), 0, `${what}: a queued CPU was overtaken`);
  assert.is(sum(counters(runner, abi.TORTURE_LATE)), 0, `${what}: a wait ended early or late`);
  const writes = sum(counters(runner, abi.TORTURE_WRITES));
  assert.is(runner.memory.load64(p + abi.LOCK_DATA), writes, `${what}: an update was lost`);
  assert.ok(writes > 0, `${what}: nobody got in`);
  assert.equal(runner.memory.faults(), {}, what);
}

const EXCLUSIVE = ["spinlock", "ticket", "qspinlock", "rwlock_write", "rwsem_write", "mutex"];
const SHARED = ["rwlock", "rwsem", "seqcount", "refcount"];

for (const cpus of [2, 4]) {
  test(`${cpus} CPUs: the protected word is the sum of all operations, for every lock`, () =>
    withThreads(cpus, async (runner) => {
      for (const lock of [...EXCLUSIVE, ...SHARED]) {
        const entry = `bench_${lock}`;
        const p = await lockArea(runner, cpus, entry);
        const ops = await runFor(runner, onAll(cpus, entry, p), RUN_MS / 2, abi.PCPU_OPS);
        const counted = EXCLUSIVE.includes(lock)
          ? runner.memory.load64(p + abi.LOCK_DATA)
          : sum(ops.map((_, c) => runner.memory.load64(runner.memory.perCpu(abi.PCPU_COUNT, c))));
        assert.is(counted, sum(ops), lock);
        assert.ok(Math.min(...ops) > 0, `${lock}: one CPU never got in: ${ops.join(" ")}`);
      }
    }));

  test(`${cpus} CPUs: no reader or writer beside a writer, nobody queued is overtaken`, () =>
    withThreads(cpus, async (runner) => {
      const locks = "spinlock ticket qspinlock rwlock rwsem mutex seqcount refcount".split(" ");
      for (const lock of locks) {
        const entry = `torture_${lock}`;
        const p = await lockArea(runner, cpus, entry);
        await runFor(runner, onAll(cpus, entry, p, SEED), RUN_MS, abi.PCPU_OPS);
        assertSound(runner, p, lock);
      }
    }));

  test(`C26, ${cpus} CPUs: a storm of waits that give up loses no lock and no waiter`, () =>
    withThreads(cpus, async (runner) => {
      for (const lock of ["osq", "mutex_timed"]) {
        const entry = `torture_${lock}`;
        const p = await lockArea(runner, cpus, entry);
        const ops = await runFor(runner, onAll(cpus, entry, p, SEED), 2 * RUN_MS, abi.PCPU_OPS);
        assertSound(runner, p, lock);
        const cancelled = sum(counters(runner, abi.TORTURE_TIMEOUTS));
        assert.ok(cancelled > 0, `${lock}: nobody gave up`);
        const inside = sum(counters(runner, abi.TORTURE_WRITES));
        assert.is(inside + cancelled, sum(ops), `${lock}: each wait ends in one of two ways`);
        // At rest: owner or tail, wait_lock, osq, both ends of the list.
        for (const offset of [0, 8, 12, 16, 24]) {
          assert.is(runner.memory.load(p + offset), 0, `${lock}: word at ${offset}`);
        }
      }
    }));
}

// One writer and three readers that follow each other without a gap: among three there is always
// one inside, so a writer that new readers may overtake never gets in.
for (const lock of ["rwlock", "rwsem"]) {
  test(`C25, ${lock}: a waiting writer gets in among endless readers`, () =>
    withThreads(4, async (runner) => {
      const p = await lockArea(runner, 4, lock);
      const jobs = onAll(4, `torture_${lock}_readers`, p, SEED);
      jobs[0] = { entry: `torture_${lock}_writers`, args: [p, SEED] };
      await runFor(runner, jobs, 2 * RUN_MS, abi.PCPU_OPS);
      assertSound(runner, p, lock);
      const [writes] = counters(runner, abi.TORTURE_WRITES);
      assert.ok((writes ?? 0) > 10, `only ${writes} write sections`);
      for (const reads of counters(runner, abi.TORTURE_READS).slice(1)) assert.ok(reads > 0);
    }));
}

// Fairness is a promise of the queued locks, and holds while both CPUs are there to take turns.
// A neighbour that takes a core away leaves the lock to the other. So a run counts only if the two
// workers, which spin when they do not work, had nearly all of two cores' time; and an unfair one
// counts when it happens three times.
const ROUNDS = 8;
const UNFAIR_ROUNDS = 3;

for (const lock of ["ticket", "qspinlock", "rwlock_write"]) {
  test(`${lock}: two CPUs get in equally often, min/max at least 0.8`, () =>
    withThreads(2, async (runner) => {
      const unfair: string[] = [];
      for (let round = 0; round < ROUNDS && unfair.length < UNFAIR_ROUNDS; round++) {
        const p = await lockArea(runner, 2, lock);
        const start = performance.now();
        const cpu = process.cpuUsage();
        const ops = await runFor(runner, onAll(2, `bench_${lock}`, p), 1000, abi.PCPU_OPS);
        const { user, system } = process.cpuUsage(cpu);
        const cores = (user + system) / 1000 / (performance.now() - start);
        const ratio = Math.min(...ops) / Math.max(...ops);
        if (ratio >= 0.8) return;
        if (cores >= 1.9) unfair.push(ratio.toFixed(2));
      }
      if (unfair.length === UNFAIR_ROUNDS) assert.unreachable(`min/max ${unfair.join(", ")}`);
      console.log(`# note: ${lock}: fairness not judged, others use this machine's cores`);
    }));
}

test.run();
