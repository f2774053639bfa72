// Hits on real threads while registrations come and go: every term of the counting identity, and
// what must never happen.
// runs alone
// time limit: 120 s

import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { identityGap, sumHits } from "../../src/engine/memory.js";
import type { Runner } from "../../src/engine/runner.js";
import { startThreads } from "../../src/engine/threads.js";
import { nodePlatform } from "../../src/platform/node.js";
import { sleep, WASM } from "../helpers/engine.js";
import { FILE_BYTES, Probes, TASK_TEXT, VADDR } from "../helpers/probes.js";
import { all, leftovers } from "../helpers/solo.js";

const SEED = Number(process.env["WASMPROBE_SEED"] ?? 1);
const PATIENCE_MS = 20_000;
const PRESETS = [
  ["spinlock", abi.PRESET_SPINLOCK],
  ["rwlock", abi.PRESET_RWLOCK],
  ["siglock", abi.PRESET_SIGLOCK],
  ["signal_flag", abi.PRESET_SIGNAL_FLAG],
] as const;
const INSTRUCTIONS = [
  ["nop", abi.INSN_NOP],
  ["push", abi.INSN_PUSH],
  ["ret", abi.INSN_RET],
] as const;

/** Waits for something that must come, however slow the machine is. */
async function until(what: string, condition: () => boolean): Promise<void> {
  const limit = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > limit) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
    await sleep(1);
  }
}

/** An engine of two CPUs with a mapped file; closed at the end of the body. */
async function withFile(
  strategy: number,
  opcode: number,
  body: (file: File) => Promise<void>,
): Promise<void> {
  const runner = await startThreads({
    platform: nodePlatform,
    cpus: 2,
    strategy,
    uprobesMax: 64,
    memoryBytes: 4 << 20,
    wasm: pathToFileURL(WASM),
  });
  try {
    const inode = await runner.command(abi.OP_INODE_CREATE, FILE_BYTES, opcode);
    const mm = await runner.command(abi.OP_MM_CREATE, 4);
    await runner.command(abi.OP_MMAP, mm, inode, VADDR, FILE_BYTES, 0);
    await body(new File(runner, inode, mm));
    assert.equal(runner.memory.faults(), {});
  } finally {
    await runner.close();
  }
}

class File {
  readonly runner: Runner;
  readonly inode: number;
  readonly mm: number;

  constructor(runner: Runner, inode: number, mm: number) {
    this.runner = runner;
    this.inode = inode;
    this.mm = mm;
  }

  task(pid = 1, sites = 1): Promise<number> {
    return this.runner.command(abi.OP_TASK_CREATE, this.mm, pid, VADDR, 16, sites, SEED);
  }
  sink(): Promise<number> {
    return this.runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
  }
  register(offset: number, sink: number, limit = 0, mm = 0): Promise<number> {
    return this.runner.command(abi.OP_REGISTER, this.inode, offset, sink, 0, mm, limit);
  }
  async unregister(consumer: number): Promise<void> {
    assert.is(await this.runner.command(abi.OP_UNREGISTER, consumer), 0);
  }
  churn(sites: number, salt: number): Promise<number> {
    const { mm, inode } = this;
    const seed = SEED + 77 * salt;
    return this.runner.command(abi.OP_CHURN_CREATE, mm, inode, VADDR, 0, 16, sites, seed);
  }
  /** Hits of each measuring CPU. */
  hits(sink: number): number[] {
    return this.runner.memory.sinkHits(sink, this.runner.cpus);
  }
  /** Hits of all, housekeeper included. */
  total(sink: number): number {
    const { memory, cpus } = this.runner;
    return memory.sinkHits(sink, cpus + 1).reduce((a, b) => a + b, 0);
  }
  churned(state: number): number {
    return this.runner.memory.load(state + abi.CHURN_REGISTERED);
  }
  /** The counting identity of tasks whose CPUs have left. */
  checkIdentity(tasks: readonly number[]): void {
    const sum = sumHits(tasks.map((task) => this.runner.memory.task(task)));
    assert.is(identityGap(sum), 0, JSON.stringify(sum));
    assert.is(sum.missed.sigtrap, 0);
  }
}

for (const [preset, kind] of PRESETS) {
  for (const [name, opcode] of INSTRUCTIONS) {
    test(`${preset}, ${name}: under churn a permanent probe misses nothing`, () =>
      withFile(kind, opcode, async (file) => {
        const { runner } = file;
        const { memory } = runner;
        const before = leftovers(memory);
        const sink = await file.sink();
        const permanent = await file.register(0, sink);
        const hitter = await file.task();
        const [theirs, own] = [await file.churn(8, 1), await file.churn(8, 2)];
        const run = await runner.run([
          { entry: `trigger_${preset}`, args: [hitter] },
          { entry: "churn_probes", args: [theirs] },
        ]);
        const enough = () =>
          memory.task(hitter).handled > 20_000 &&
          file.churned(theirs) > 500 &&
          file.churned(own) > 500;
        for (const limit = performance.now() + PATIENCE_MS; !enough();) {
          if (performance.now() > limit) throw new Error("a CPU makes no progress");
          await runner.command(abi.OP_CHURN, own, 20);
          await runner.command(abi.OP_MMAP, file.mm, file.inode, VADDR / 2, FILE_BYTES, 0);
          await runner.command(abi.OP_CHECK_TREE);
          await runner.command(abi.OP_MUNMAP, file.mm, VADDR / 2);
        }
        await run.stop();

        const counts = memory.task(hitter);
        assert.equal(counts, { ...all("handled", counts.triggers), restarts: counts.restarts });
        assert.is(file.hits(sink)[0], counts.handled, "what its CPU counted");
        const callers = [theirs, own].map((state) => memory.load(state + abi.CHURN_TASK));
        file.checkIdentity(callers);
        const churned = sumHits(callers.map((task) => memory.task(task)));
        // The permanent probe's site is one of the eight: each call of it is its hit too.
        assert.ok(file.total(sink) >= counts.handled);
        assert.ok(file.total(sink) <= counts.handled + churned.handled);

        for (const state of [theirs, own]) await runner.command(abi.OP_CHURN_DESTROY, state);
        assert.is(await runner.command(abi.OP_CHECK_TREE), 1);
        await file.unregister(permanent);
        assert.is(await runner.command(abi.OP_CHECK_TREE), 0);
        await runner.command(abi.OP_SINK_DESTROY, sink);
        await runner.command(abi.OP_TASK_DESTROY, hitter);
        assert.equal(leftovers(memory, file.mm), before);
      }));
  }

  test(`C3: ${preset}: one key, churned by three: one live uprobe, in the end none`, () =>
    withFile(kind, abi.INSN_NOP, async (file) => {
      const { runner } = file;
      const before = leftovers(runner.memory);
      const states = [await file.churn(1, 1), await file.churn(1, 2), await file.churn(1, 3)];
      const [a, b, own] = states as [number, number, number];
      const run = await runner.run([
        { entry: "churn_probes", args: [a] },
        { entry: "churn_probes", args: [b] },
      ]);
      for (const limit = performance.now() + PATIENCE_MS; ;) {
        await runner.command(abi.OP_CHURN, own, 10);
        assert.ok((await runner.command(abi.OP_CHECK_TREE)) <= 1, "one node for one key");
        if (states.every((state) => file.churned(state) > 1000)) break;
        if (performance.now() > limit) throw new Error("a CPU makes no progress");
      }
      await run.stop();
      file.checkIdentity(states.map((state) => runner.memory.load(state + abi.CHURN_TASK)));
      for (const state of states) {
        assert.is(runner.memory.load(state + abi.CHURN_ERRORS), 0);
        await runner.command(abi.OP_CHURN_DESTROY, state);
      }
      assert.is(await runner.command(abi.OP_CHECK_TREE), 0);
      assert.equal(leftovers(runner.memory), before);
    }));

  test(`C9: ${preset}: after unregister has returned no handler runs`, () =>
    withFile(kind, abi.INSN_NOP, async (file) => {
      const { runner } = file;
      const tasks = [await file.task(1), await file.task(2)];
      const other = await file.sink();
      const run = await runner.run(
        tasks.map((task) => ({ entry: `trigger_${preset}`, args: [task] })),
      );
      for (let round = 0; round < 40; round++) {
        const sink = await file.sink();
        // Every other time the breakpoint stays, for somebody else.
        const beside = round % 2 === 0 ? 0 : await file.register(0, other);
        const consumer = await file.register(0, sink);
        await until("both CPUs hit the probe", () => file.hits(sink).every((n) => n > 0));
        await file.unregister(consumer);
        const hits = file.total(sink);
        await sleep(1);
        assert.is(file.total(sink), hits, `round ${round}`);
        if (beside !== 0) await file.unregister(beside);
        await runner.command(abi.OP_SINK_DESTROY, sink);
      }
      await run.stop();
      file.checkIdentity(tasks);
      assert.equal(runner.memory.uprobes(), { alive: 0, inTree: 0 });
    }));

  test(`C11: ${preset}: remove after N takes exactly N hits of two CPUs`, () =>
    withFile(kind, abi.INSN_PUSH, async (file) => {
      const { runner } = file;
      const { memory } = runner;
      const tasks = [await file.task(1), await file.task(2)] as const;
      const run = await runner.run(
        tasks.map((task) => ({ entry: `trigger_${preset}`, args: [task] })),
      );
      for (const limit of [1, 2, 3, 10, 100, 1000, 5000, 1, 7, 100_000]) {
        const sink = await file.sink();
        const consumer = await file.register(0, sink, limit);
        await until(`${limit} hits`, () => file.total(sink) >= limit);
        const seen = tasks.map((task) => memory.task(task).missed["no-probe"]);
        await until("both run without a breakpoint", () =>
          tasks.every((task, i) => memory.task(task).missed["no-probe"] > (seen[i] ?? 0) + 100),
        );
        const counts = tasks.map((task) => memory.task(task));
        assert.is(file.total(sink), limit);
        await sleep(1);
        const later = tasks.map((task) => memory.task(task));
        assert.equal(
          later.map((c) => c.handled),
          counts.map((c) => c.handled),
          "no hit any more",
        );
        await file.unregister(consumer);
        assert.is(file.total(sink), limit);
      }
      await run.stop();
      file.checkIdentity(tasks);
    }));

  test(`C11: ${preset}: a consumer added meanwhile keeps the breakpoint`, () =>
    withFile(kind, abi.INSN_NOP, async (file) => {
      const { runner } = file;
      const tasks = [await file.task(1), await file.task(2)];
      const run = await runner.run(
        tasks.map((task) => ({ entry: `trigger_${preset}`, args: [task] })),
      );
      for (let round = 0; round < 30; round++) {
        const [some, every] = [await file.sink(), await file.sink()];
        const limit = 1 + round * round;
        // The second comes just when the last hit of the first may be under way.
        const [first, second] = await Promise.all([
          file.register(0, some, limit),
          file.register(0, every),
        ]);
        await until(`${limit} hits`, () => file.total(some) >= limit);
        const seen = file.hits(every);
        await until("the second goes on on both CPUs", () =>
          file.hits(every).every((n, cpu) => n > (seen[cpu] ?? 0) + 100),
        );
        assert.is(file.total(some), limit);
        await file.unregister(second);
        await file.unregister(first);
        for (const sink of [some, every]) await runner.command(abi.OP_SINK_DESTROY, sink);
      }
      await run.stop();
      file.checkIdentity(tasks);
      assert.equal(runner.memory.uprobes(), { alive: 0, inTree: 0 });
    }));

  test(`${preset}: of several consumers each counts every hit of both CPUs`, () =>
    withFile(kind, abi.INSN_RET, async (file) => {
      const { runner } = file;
      const tasks = [await file.task(1), await file.task(2)];
      const sinks = [await file.sink(), await file.sink(), await file.sink()];
      for (const sink of sinks) await file.register(0, sink);
      const run = await runner.run(
        tasks.map((task) => ({ entry: `trigger_${preset}`, args: [task], count: 30_000 })),
      );
      await run.done;
      for (const sink of sinks) assert.equal(file.hits(sink), [30_000, 30_000]);
      for (const task of tasks) assert.equal(runner.memory.task(task), all("handled", 30_000));
    }));
}

/**
 * Runs one trigger of a task that fetches its instruction from a byte of our own, which stays a
 * trap until the task has executed it `restarts` times, and then is a nop.
 */
async function staleTrap(file: File, task: number): Promise<void> {
  const { runner } = file;
  const { memory } = runner;
  const scratch = await runner.command(abi.OP_ALLOC, 64);
  const bytes = new Uint8Array(memory.memory.buffer);
  Atomics.store(bytes, scratch, abi.INSN_TRAP);
  memory.store(task + TASK_TEXT, (scratch - VADDR) | 0);
  const run = await runner.run([{ entry: "trigger_rwlock", args: [task], count: 1, batch: 1 }]);
  await until("restarts", () => memory.task(task).restarts > 10);
  assert.equal(
    { ...memory.task(task), restarts: 0 },
    { ...all("no-probe", 0), triggers: 1 },
    "no outcome yet",
  );
  Atomics.store(bytes, scratch, abi.INSN_NOP);
  await run.done;
  const counts = memory.task(task);
  assert.equal(counts, { ...all("no-probe"), restarts: counts.restarts });
}

test("C10: a hit whose breakpoint is gone executes its instruction again", () =>
  withFile(abi.PRESET_RWLOCK, abi.INSN_NOP, async (file) => {
    await staleTrap(file, await file.task());
  }));

test("C5: a hit on a probe whose instruction is not copied yet executes it again", () =>
  withFile(abi.PRESET_RWLOCK, abi.INSN_NOP, async (file) => {
    // Wanted in an address space that does not map the file: in the tree, but never prepared.
    const mm = await file.runner.command(abi.OP_MM_CREATE, 1);
    const sink = await file.sink();
    await file.register(0, sink, 0, mm);
    assert.is(file.runner.memory.uprobes().inTree, 1);
    await staleTrap(file, await file.task());
    assert.is(file.total(sink), 0);
  }));

test("C10: a trap of the program's own is a SIGTRAP, and counted as that", () => {
  const p = new Probes(abi.INSN_TRAP);
  assert.is(p.map(), 0);
  assert.equal(p.trigger(p.task(), 100), all("sigtrap", 100));
  p.checkFaults();
});

test.run();
