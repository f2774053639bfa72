// Signals: delivered on the way back to user mode, never during a step, exactly once.
// runs alone
// time limit: 120 s

import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { createRandom } from "../../src/base/random.js";
import type { EngineMemory } from "../../src/engine/memory.js";
import { entryOf, PRESET_NAMES, strategyOf, type PresetName } from "../../src/engine/presets.js";
import { startThreads } from "../../src/engine/threads.js";
import { nodePlatform } from "../../src/platform/node.js";
import { sleep, WASM } from "../helpers/engine.js";
import { FILE_BYTES, Probes, VADDR } from "../helpers/probes.js";
import { UTASK_SSTEP, UTASK_STATE } from "../helpers/xol.js";

const SEED = Number(process.env["WASMPROBE_SEED"] ?? 1);
const PATIENCE_MS = 10_000;
const UTASK_SIGNAL_DENIED = 144;

/** What a task's words say of its signals. */
function signalsOf(memory: EngineMemory, task: number) {
  const pending = memory.load(task + abi.TASK_PENDING) >>> 0;
  return {
    sent: memory.load64(task + abi.TASK_SENT),
    delivered: memory.load64(task + abi.TASK_SIGNALS),
    pending: [...Array(32).keys()].filter((sig) => (pending >>> sig) & 1),
    looks: (memory.load(task + abi.TASK_FLAGS) & 1) === 1,
  };
}
const QUIET = { pending: [], looks: false };

async function until(what: string, condition: () => boolean): Promise<void> {
  const limit = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > limit) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
    await sleep(1);
  }
}

/** A probed function, and a task that calls it. */
function probed(preset: PresetName, opcode = abi.INSN_PUSH): { p: Probes; task: number } {
  const p = new Probes(opcode, { strategy: strategyOf(preset), arch: abi.ARCH_ARM64 });
  assert.is(p.map(), 0);
  p.ok(abi.OP_REGISTER, p.inode, 0, p.sink());
  return { p, task: p.task() };
}

test("a signal is pending once, however often it is sent", () => {
  const { p, task } = probed("rwlock");
  const send = (sig: number) => p.op(abi.OP_SIGNAL_SEND, task, sig);
  assert.equal([send(3), send(3), send(31), send(0), send(3)], [1, 0, 1, 1, 0]);
  assert.equal(signalsOf(p.memory, task), {
    sent: 3,
    delivered: 0,
    pending: [0, 3, 31],
    looks: true,
  });
  assert.equal([send(32), send(-1)], [abi.EINVAL, abi.EINVAL]);
  p.trigger(task, 1, "trigger_rwlock");
  assert.equal(signalsOf(p.memory, task), { sent: 3, delivered: 3, ...QUIET });
  assert.is(send(3), 1, "once delivered it can come again");
  p.checkFaults();
});

for (const preset of PRESET_NAMES) {
  test(`${preset}: a signal is delivered after a trap, and between batches without one`, () => {
    for (const [opcode, offset] of [
      [abi.INSN_NOP, 0],
      [abi.INSN_PUSH, 0],
      [abi.INSN_RET, 0],
      [abi.INSN_NOP, 16], // without a probe
    ] as const) {
      const { p } = probed(preset, opcode);
      const task = p.task(VADDR + offset);
      for (let n = 1; n <= 3; n++) {
        assert.is(p.op(abi.OP_SIGNAL_SEND, task, n), 1);
        p.trigger(task, 1, entryOf(preset, "trigger"));
        assert.equal(signalsOf(p.memory, task), { sent: n, delivered: n, ...QUIET });
      }
      p.checkFaults();
    }
  });

  test(`C16: ${preset}: a signal from before a step is delivered after it, once`, () => {
    const { p, task } = probed(preset);
    for (let n = 1; n <= 3; n++) {
      assert.is(p.op(abi.OP_SIGNAL_SEND, task, 7), 1);
      // Begins with the trap: the first way back to user mode is that of the step.
      assert.is(p.call(0, entryOf(preset, "call"), task, VADDR, 0), 1);
      assert.equal(signalsOf(p.memory, task), { sent: n, delivered: n, ...QUIET });
      assert.is(p.memory.load(task + UTASK_SIGNAL_DENIED), 0);
    }
    const stepped = preset === "fastest" ? 0 : 3;
    assert.is(p.memory.load64(task + abi.TASK_STEPS), stepped);
    p.checkFaults();
  });
}

/** An engine whose exceptions take some 10 ms or `units`, with stepping tasks on two CPUs. */
async function withSteppers(
  preset: PresetName,
  trapUnits: number,
  body: (engine: {
    memory: EngineMemory;
    tasks: number[];
    send(task: number, sig: number): number;
    command(op: number, ...args: number[]): Promise<number>;
    run(count?: number): Promise<{ stop(): Promise<void>; over(): boolean }>;
  }) => Promise<void>,
): Promise<void> {
  const runner = await startThreads({
    platform: nodePlatform,
    cpus: 2,
    strategy: strategyOf(preset),
    arch: abi.ARCH_ARM64,
    uprobesMax: 64,
    trapUnits,
    memoryBytes: 4 << 20,
    leaveLimitMs: 2000,
    wasm: pathToFileURL(WASM),
  });
  const { memory } = runner;
  try {
    const inode = await runner.command(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_PUSH);
    const mm = await runner.command(abi.OP_MM_CREATE, 2);
    await runner.command(abi.OP_MMAP, mm, inode, VADDR, FILE_BYTES, 0);
    const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
    await runner.command(abi.OP_REGISTER, inode, 0, sink);
    const tasks: number[] = [];
    for (const pid of [1, 2]) {
      tasks.push(await runner.command(abi.OP_TASK_CREATE, mm, pid, VADDR, 16, 1, pid));
    }
    const entry = entryOf(preset, "trigger");
    await body({
      memory,
      tasks,
      // By the orchestrator itself: what it may wait for is a spinlock.
      send: (task, sig) => runner.host.workload("signal_send")(task, sig) as number,
      command: (op, ...args) => runner.command(op, ...args),
      run: async (count) => {
        const limit = count === undefined ? {} : { count, batch: 1 };
        const run = await runner.run(tasks.map((task) => ({ entry, args: [task], ...limit })));
        let over = false;
        run.done.then(
          () => (over = true),
          () => {},
        );
        return { stop: () => run.stop(), over: () => over };
      },
    });
    assert.equal(memory.faults(), {});
  } finally {
    await runner.close();
  }
}

for (const preset of ["siglock", "signal-flag", "tasks-trace"] as const) {
  test(`C16: ${preset}: a signal that arrives during a step is delivered after it, once`, () =>
    withSteppers(preset, 3_000_000, async ({ memory, tasks, send, run }) => {
      const task = tasks[0] ?? 0;
      const steps = (): number => memory.load64(task + abi.TASK_STEPS);
      const isInStep = (): boolean => memory.load(task + UTASK_STATE) === UTASK_SSTEP;
      let during = 0;
      for (let round = 0; during < 5; round++) {
        assert.ok(round < 100, `only ${during} of ${round} were sent during a step`);
        const ran = await run(1);
        await until("it steps", () => isInStep() || ran.over());
        const before = steps();
        if (isInStep()) {
          assert.is(send(task, round % 32), 1);
          const { delivered, pending } = signalsOf(memory, task);
          if (isInStep() && steps() === before) {
            during++;
            assert.equal([delivered, pending.length], [memory.load64(task + abi.TASK_SENT) - 1, 1]);
          }
        }
        await until("the hit ends", ran.over);
        const { sent, delivered, pending } = signalsOf(memory, task);
        assert.equal([delivered, pending], [sent, []]);
      }
    }));
}

for (const preset of ["siglock", "signal-flag", "rwlock", "tasks-trace", "fastest"] as const) {
  test(`C16: ${preset}: of signals from everywhere none is lost, none comes twice`, () =>
    withSteppers(preset, 0, async ({ memory, tasks, send, command, run }) => {
      const random = createRandom(SEED);
      const sent = new Map(tasks.map((task) => [task, 0]));
      const ran = await run();
      const limit = performance.now() + 400;
      while (performance.now() < limit) {
        const far = random.pick(tasks);
        const answer = command(abi.OP_SIGNAL_SEND, far, random.below(32));
        for (let n = random.below(200); n > 0; n--) {
          const task = random.pick(tasks);
          const fresh = send(task, random.below(32));
          sent.set(task, (sent.get(task) ?? 0) + fresh);
        }
        sent.set(far, (sent.get(far) ?? 0) + (await answer));
      }
      await ran.stop();
      for (const task of tasks) {
        const found = signalsOf(memory, task);
        assert.is(found.sent, sent.get(task));
        assert.is(found.delivered + found.pending.length, found.sent);
        assert.is(found.looks || found.pending.length === 0, true, "nobody looks for them");
        assert.ok(found.delivered > 10, `only ${found.delivered} were delivered`);
      }
    }));
}

test.run();
