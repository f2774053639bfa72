// Steps on real threads: fewer slots than threads, and what happens while one waits for a slot.
// runs alone
// time limit: 120 s

import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { createRandom } from "../../src/base/random.js";
import { identityGap, sumHits } from "../../src/engine/memory.js";
import { entryOf, strategyOf, type PresetName } from "../../src/engine/presets.js";
import type { EngineOptions, Job, Run, Runner } from "../../src/engine/runner.js";
import { startThreads } from "../../src/engine/threads.js";
import { nodePlatform } from "../../src/platform/node.js";
import { sleep, WASM } from "../helpers/engine.js";
import { FILE_BYTES, VADDR } from "../helpers/probes.js";
import { leftovers } from "../helpers/solo.js";
import { XolArea } from "../helpers/xol.js";

const SEED = Number(process.env["WASMPROBE_SEED"] ?? 1);
const PATIENCE_MS = 10_000;
const ROUNDS = 100;
/** Steps of `dawdle` at the most. */
const ROUND_UNITS = 3000;
/** A preset for each way of taking slots, and of holding uprobes meanwhile. */
const PRESETS = ["rwlock", "siglock", "signal-flag", "srcu", "tasks-trace"] as const;

/** One test hung: the others need not, one by one. */
let stuck = false;

async function until(what: string, condition: () => boolean): Promise<void> {
  const limit = performance.now() + PATIENCE_MS;
  while (!condition()) {
    stuck = performance.now() > limit;
    if (stuck) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
    await sleep(1);
  }
}

/** A program on arm64 whose first function pushes, and is probed: every hit steps. */
interface Program {
  runner: Runner;
  mm: number;
  sink: number;
  consumer: number;
  task(pid: number): Promise<number>;
  /** What was there before anything was made. */
  before: ReturnType<typeof leftovers>;
}

async function withProgram(
  preset: PresetName,
  options: Partial<EngineOptions>,
  body: (program: Program) => Promise<void>,
): Promise<void> {
  if (stuck) throw new Error("an earlier test hung");
  const runner = await startThreads({
    platform: nodePlatform,
    cpus: 1,
    strategy: strategyOf(preset),
    arch: abi.ARCH_ARM64,
    uprobesMax: 64,
    memoryBytes: 4 << 20,
    leaveLimitMs: 2000,
    wasm: pathToFileURL(WASM),
    ...options,
  });
  try {
    await runner.command(abi.OP_NOP);
    const before = leftovers(runner.memory);
    const inode = await runner.command(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_PUSH);
    const mm = await runner.command(abi.OP_MM_CREATE, 2);
    await runner.command(abi.OP_MMAP, mm, inode, VADDR, FILE_BYTES, 0);
    const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
    const consumer = await runner.command(abi.OP_REGISTER, inode, 0, sink);
    const tasks: number[] = [];
    const task = async (pid: number) => {
      const made = await runner.command(abi.OP_TASK_CREATE, mm, pid, VADDR, 16, 1, 1);
      tasks.push(made);
      return made;
    };
    await body({ runner, mm, sink, consumer, task, before });
    assert.equal(runner.memory.faults(), {});
    for (const one of tasks) await runner.command(abi.OP_TASK_DESTROY, one);
    await runner.command(abi.OP_SINK_DESTROY, sink);
    await runner.command(abi.OP_MM_DESTROY, mm);
    await runner.command(abi.OP_INODE_DESTROY, inode);
    assert.equal(leftovers(runner.memory), before);
  } finally {
    await runner.close();
  }
}

/** Runs `jobs` to their end, which comes. */
async function finish(runner: Runner, jobs: readonly Job[]): Promise<void> {
  await ended(await runner.run(jobs));
}

/** A run that ends by itself. */
async function ended(run: Run, what = "the run ends"): Promise<void> {
  let over = false;
  const end = run.done.finally(() => (over = true));
  end.catch(() => {}); // when the engine is closed first
  await until(what, () => over);
  await end;
}

/** Hits of one task. */
function hits(preset: PresetName, task: number, count: number) {
  return { entry: entryOf(preset, "trigger"), args: [task], count, batch: Math.min(count, 100) };
}

const steps = (runner: Runner, task: number): number => runner.memory.load64(task + abi.TASK_STEPS);

for (const preset of PRESETS) {
  for (const xolSlots of [2, 3]) {
    test(`C15: ${preset}: 5 threads, ${xolSlots} slots with the trampoline's: all finish`, () =>
      withProgram(preset, { cpus: 5, xolSlots, trapUnits: 2000 }, async (program) => {
        const { runner, mm, consumer, sink } = program;
        const { memory } = runner;
        const count = 300;
        const tasks = await Promise.all([1, 2, 3, 4, 5].map((pid) => program.task(pid)));
        // The first hits find no slot: all wait at once.
        const first = await program.task(6);
        await finish(runner, [hits(preset, first, 1)]);
        const area = new XolArea(memory, mm);
        for (let nr = 1; nr < xolSlots; nr++) area.hold(nr);
        const run = await runner.run(tasks.map((task) => hits(preset, task, count)));
        try {
          await until("all wait", () => area.waiters() === 5);
        } finally {
          for (let nr = 1; nr < xolSlots; nr++) area.release(nr);
        }
        await ended(run);
        for (const task of tasks) {
          assert.is(memory.task(task).handled, count);
          assert.is(steps(runner, task), count);
        }
        assert.is(identityGap(sumHits(tasks.map((task) => memory.task(task)))), 0);
        assert.is(
          memory.sinkHits(sink, 5).reduce((a, b) => a + b, 0),
          5 * count + 1,
        );
        const { bits } = area.inUse();
        assert.equal(bits, [0, ...Array.from({ length: 32 - xolSlots }, (_, i) => i + xolSlots)]);
        assert.is(area.inUse().count, 1);
        assert.is(area.waiters(), 0);
        assert.is(await runner.command(abi.OP_UNREGISTER, consumer), 0);
      }));
  }
}

for (const preset of ["rwlock", "signal-flag", "tasks-trace"] as const) {
  test(`C15: ${preset}: two threads never have one slot at a time`, () =>
    withProgram(preset, { cpus: 2 }, async (program) => {
      const { runner, consumer } = program;
      const tasks = await Promise.all([1, 2].map((pid) => program.task(pid)));
      const jobs = tasks.map((task) => ({ ...hits(preset, task, 100_000), batch: 1000 }));
      await finish(runner, jobs);
      for (const task of tasks) assert.is(steps(runner, task), 100_000);
      assert.is(await runner.command(abi.OP_UNREGISTER, consumer), 0);
    }));
}

/** `body` while CPU 0 waits for the only slot, in the middle of a hit; afterwards it finishes. */
async function whileItWaits(
  preset: PresetName,
  body: (program: Program, task: number) => Promise<void>,
): Promise<void> {
  await withProgram(preset, { xolSlots: 2 }, async (program) => {
    const { runner, mm } = program;
    const task = await program.task(1);
    await (
      await runner.run([hits(preset, task, 1)])
    ).done;
    const area = new XolArea(runner.memory, mm);
    area.hold(1);
    const run = await runner.run([hits(preset, task, 1)]);
    try {
      await until("it waits for the slot", () => area.waiters() === 1);
      assert.is(steps(runner, task), 1);
      await body(program, task);
      assert.is(area.waiters(), 1);
    } finally {
      area.release(1);
    }
    await ended(run);
    assert.is(steps(runner, task), 2);
    assert.is(runner.memory.task(task).handled, 2);
    assert.is(runner.memory.load64(task + abi.TASK_IP), VADDR + 1);
    await runner.command(abi.OP_SYNCHRONIZE);
    assert.is(runner.memory.uprobes().alive, 0);
  });
}

for (const preset of PRESETS) {
  test(`C17: ${preset}: the uprobe of a step stays, although it is unregistered`, () =>
    whileItWaits(preset, async ({ runner, consumer }) => {
      assert.is(await runner.command(abi.OP_UNREGISTER, consumer), 0);
      await runner.command(abi.OP_SYNCHRONIZE);
      assert.is(runner.memory.uprobes().alive, 1);
    }));
}

/** Some time that no clock is needed for, 0 to about 100 us. */
function dawdle(round: number): void {
  const random = createRandom(SEED * 1000 + round);
  for (let left = random.below(ROUND_UNITS); left > 0; left--) Math.hypot(left, round);
}

for (const preset of ["rwlock", "tasks-trace"] as const) {
  test(`C15: ${preset}: who announced itself before a slot was let go is woken`, () =>
    withProgram(preset, { xolSlots: 2, trapUnits: 20_000 }, async (program) => {
      const { runner, mm, consumer } = program;
      const task = await program.task(1);
      await (
        await runner.run([hits(preset, task, 1)])
      ).done;
      const area = new XolArea(runner.memory, mm);
      let waited = 0;
      for (let round = 0; round < ROUNDS || waited < ROUNDS / 4; round++) {
        const run = await runner.run([hits(preset, task, 1)]);
        while (!area.isFull() && steps(runner, task) < round + 2);
        dawdle(round);
        const before = area.wakeUps();
        const waits = area.announce();
        await ended(run);
        if (waits) assert.is(area.wakeUps(), before + 1, `round ${round}: nobody was woken`);
        if (waits) waited++;
        area.leave();
      }
      assert.is(await runner.command(abi.OP_UNREGISTER, consumer), 0);
    }));

  test(`C15: ${preset}: a slot that is let go while somebody is about to wait is not missed`, () =>
    withProgram(preset, { xolSlots: 2 }, async (program) => {
      const { runner, mm, consumer } = program;
      const task = await program.task(1);
      await (
        await runner.run([hits(preset, task, 1)])
      ).done;
      const area = new XolArea(runner.memory, mm);
      for (let round = 0; round < ROUNDS; round++) {
        area.hold(1);
        const run = await runner.run([hits(preset, task, 1)]);
        while (runner.memory.task(task).triggers < round + 2);
        dawdle(round);
        area.release(1);
        await ended(run, `round ${round}: it sees that there is a slot`);
      }
      assert.is(area.waiters(), 0);
      assert.is(await runner.command(abi.OP_UNREGISTER, consumer), 0);
    }));
}

test.run();
