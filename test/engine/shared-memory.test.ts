// Engines as guests: two of them and a user's heap in one memory, and CPUs that come later.
// runs alone
// time limit: 60 s

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { EngineMemory } from "../../src/engine/memory.js";
import { sleep } from "../helpers/engine.js";
import { refusal, start, withRunner } from "../helpers/threads.js";

const ENGINE_BYTES = 1 << 20;
const FIRST = 0x10000;
const SECOND = FIRST + ENGINE_BYTES + 0x8000;
const BYTES = 0x20_0000 + 0x4_0000;
const VADDR = 0x400000;

type Runner = Awaited<ReturnType<typeof start>>;

/** A mapped file with one probe that counts; a task for each CPU. */
async function probed(runner: Runner, cpus: number): Promise<{ sink: number; tasks: number[] }> {
  const inode = await runner.command(abi.OP_INODE_CREATE, 4096, abi.INSN_NOP);
  const mm = await runner.command(abi.OP_MM_CREATE, 4);
  await runner.command(abi.OP_MMAP, mm, inode, VADDR, 4096, 0);
  const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
  await runner.command(abi.OP_REGISTER, inode, 0, sink);
  const tasks: number[] = [];
  for (let cpu = 0; cpu < cpus; cpu++) {
    tasks.push(await runner.command(abi.OP_TASK_CREATE, mm, cpu + 1, VADDR, 16, 1, 1));
  }
  return { sink, tasks };
}

const job = (task: number) => ({ entry: "trigger_spinlock", args: [task] });

test("two engines and a user's heap in one memory do not touch each other", async () => {
  const memory = EngineMemory.create(BYTES);
  const bytes = new Uint8Array(memory.buffer);
  const canary = (at: number) => (at * 31 + 7) & 0xff;
  for (let at = 0; at < bytes.length; at++) bytes[at] = canary(at);
  const engines = await Promise.all(
    [FIRST, SECOND].map((base) => start({ memory, base, bytes: ENGINE_BYTES })),
  );
  try {
    const probes = await Promise.all(engines.map((engine) => probed(engine, 2)));
    const runs = await Promise.all(
      engines.map((engine, i) => engine.run((probes[i]?.tasks ?? []).map(job))),
    );
    await sleep(200);
    await Promise.all(runs.map((run) => run.stop()));
    for (const [i, engine] of engines.entries()) {
      const { sink, tasks } = probes[i] as { sink: number; tasks: number[] };
      const handled = tasks.map((task) => engine.memory.task(task).handled);
      assert.ok(handled.every((hits) => hits > 0));
      assert.equal(engine.memory.sinkHits(sink, 2), handled);
      assert.equal(engine.memory.faults(), {});
    }
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
  }
  const changed: number[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const own = [FIRST, SECOND].some((base) => at >= base && at < base + ENGINE_BYTES);
    if (!own && bytes[at] !== canary(at)) changed.push(at);
  }
  assert.equal(changed, [], "what is not an engine's is as it was");
});

test("a region that is not one is refused with the numbers", async () => {
  const memory = EngineMemory.create(BYTES);
  const own = (change: object) => refusal("E_VALUE", start({ memory, ...change }));
  assert.match(await own({ base: 64 }), "base is 64; it must be a multiple of 128");
  assert.match(await own({ bytes: 100 }), "bytes is 100; it must be a multiple of 128");
  assert.match(await own({ base: -128 }), "base is -128");
  assert.match(await own({ base: BYTES - 128, bytes: 256 }), `must end by ${BYTES}`);
  const unshared = new WebAssembly.Memory({ initial: 1, maximum: 1 });
  assert.match(await own({ memory: unshared }), "memory is not shared");
  const nowhere = refusal("E_VALUE", start({ base: 128 }));
  assert.match(await nowhere, "places in a memory of yours, and none is given");
});

test("CPUs that join late lose no hit and disturb no count", () =>
  withRunner({ cpus: 4, workers: 1 }, async (runner) => {
    const { sink, tasks } = await probed(runner, 4);
    const [first, second, third, fourth] = tasks as [number, number, number, number];
    const run = await runner.run([job(first)]);
    const { memory } = runner;
    const progress = async (task: number) => {
      const before = memory.task(task).handled;
      while (memory.task(task).handled === before) await sleep(1);
    };
    await progress(first);
    await run.join(job(second));
    await progress(second);
    await progress(first);
    await Promise.all([run.join(job(third)), run.join(job(fourth))]);
    await progress(fourth);
    assert.is(run.cpus, 4);
    assert.match(await refusal("E_VALUE", run.join(job(first))), "all 4 CPUs have a job");
    await run.stop();
    const counts = tasks.map((task) => memory.task(task));
    for (const { triggers, handled } of counts) {
      assert.ok(handled > 0);
      assert.is(handled, triggers, "the probe was there all the time");
    }
    assert.equal(
      memory.sinkHits(sink, 4),
      counts.map(({ handled }) => handled),
    );
    assert.equal(memory.faults(), {});
  }));

test("nobody joins a run that has ended", () =>
  withRunner({ cpus: 2, workers: 1 }, async (runner) => {
    const { tasks } = await probed(runner, 1);
    const run = await runner.run([{ ...job(tasks[0] ?? 0), count: 10 }]);
    await run.done;
    assert.match(await refusal("E_STATE", run.join(job(tasks[0] ?? 0))), "the run has ended");
    await (
      await runner.run([{ ...job(tasks[0] ?? 0), count: 10 }])
    ).done;
  }));

test.run();
