// Return probes on real threads: leases that a timer of microseconds races for (C18, C21), a call
// that never returns (C19), and one whose lease begins when its uprobe is already dead (C2).
// runs alone
// time limit: 60 s

import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { EngineMemory, identityGap } from "../../src/engine/memory.js";
import { entryOf, PRESET_NAMES, strategyOf, type PresetName } from "../../src/engine/presets.js";
import { startThreads } from "../../src/engine/threads.js";
import { nodePlatform } from "../../src/platform/node.js";
import { sleep, WASM } from "../helpers/engine.js";
import { until } from "../helpers/late-hit.js";
import { FILE_BYTES, VADDR } from "../helpers/probes.js";
import { LEASED, LEASING, RETURN_INSTANCES, returnCounts, RI_STATE } from "../helpers/returns.js";
import { STABLE } from "../helpers/returns.js";
import { withRunner } from "../helpers/threads.js";
import { HANDLER, MEMORY, wat } from "../helpers/user-module.js";

const RACE_MS = 600;
const wasm = pathToFileURL(WASM);

/** A command that waits for what is given back: if something is not, it does not end. */
async function soon<T>(what: string, command: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const never = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} does not end`)), 3000);
  });
  try {
    return await Promise.race([command, never]);
  } finally {
    clearTimeout(timer);
  }
}

async function world(runner: Parameters<Parameters<typeof withRunner>[1]>[0]) {
  const inode = await runner.command(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_NOP);
  const mm = await runner.command(abi.OP_MM_CREATE, 1);
  await runner.command(abi.OP_MMAP, mm, inode, VADDR, FILE_BYTES, 0);
  return {
    inode,
    mm,
    task: (pid: number) => runner.command(abi.OP_TASK_CREATE, mm, pid, VADDR, 16, 2, pid),
    probe: (sink: number, kind = abi.CONSUMER_RETURN, back = 0) =>
      runner.command(abi.OP_REGISTER, inode, 0, sink, 0, 0, 0, 0, kind, back),
  };
}

// A session and a consumer of returns are there throughout, and one more comes and goes.
for (const preset of ["mmap-lock", "uret-pool"] as const) {
  for (const leaseUs of [1, 50]) {
    test(`C18, C21: ${preset}: a timer of ${leaseUs} us races with every return`, () =>
      withRunner(
        { strategy: strategyOf(preset), leaseUs, memoryBytes: 8 << 20 },
        async (runner) => {
          const { memory } = runner;
          const { task, probe } = await world(runner);
          const [sink, times] = [
            await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT),
            await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_LATENCY),
          ];
          const consumers = [await probe(sink), await probe(times, abi.CONSUMER_SESSION)];
          const tasks = [await task(1), await task(2)];
          const entry = entryOf(preset, "trigger");
          const run = await runner.run(tasks.map((at) => ({ entry, args: [at] })));
          // Whoever unregisters runs the timer, too, for as long as he waits.
          const unregister = (consumer: number) =>
            soon("unregistering", runner.command(abi.OP_UNREGISTER, consumer));
          const end = performance.now() + RACE_MS;
          while (performance.now() < end) await unregister(await probe(sink));
          await run.stop();
          const taken = memory.sinkHits(sink, 3).reduce((a, b) => a + b, 0);
          let returns = 0;
          for (const at of tasks) {
            const counts = returnCounts(memory, at);
            assert.is(identityGap(memory.task(at)), 0);
            assert.equal(counts, { entries: counts["returns"], returns: counts["returns"] });
            returns += counts["returns"] ?? 0;
          }
          assert.ok(returns > 1000);
          assert.ok(taken >= returns);
          for (const consumer of consumers) await unregister(consumer);
          for (const at of tasks) await runner.command(abi.OP_TASK_DESTROY, at);
          await runner.command(abi.OP_SYNCHRONIZE);
          assert.is(await runner.command(abi.OP_RETURNS_LEFT), 0);
          assert.equal(memory.uprobes(), { alive: 0, inTree: 0 });
          assert.equal(memory.faults(), {});
        },
      ));
  }
}

for (const preset of PRESET_NAMES) {
  test(`C19: ${preset}: unregistering ends while a call never returns`, () =>
    withRunner({ strategy: strategyOf(preset), leaseUs: 2000 }, async (runner) => {
      const { memory } = runner;
      const { task, probe } = await world(runner);
      const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
      const consumer = await probe(sink);
      const parked = await task(1);
      const enter = { entry: entryOf(preset, "enter"), args: [parked, VADDR], count: 1, batch: 1 };
      await (
        await runner.run([enter])
      ).done;
      await soon("unregistering", runner.command(abi.OP_UNREGISTER, consumer));
      assert.equal(returnCounts(memory, parked), { entries: 1, pending: 1 });
      const state = memory.load(memory.load(parked + RETURN_INSTANCES) + RI_STATE);
      assert.is.not(state, LEASED);
      await runner.command(abi.OP_TASK_DESTROY, parked);
      assert.is(await runner.command(abi.OP_RETURNS_LEFT), 0);
      assert.equal(memory.uprobes(), { alive: 0, inTree: 0 });
      assert.equal(memory.faults(), {});
    }));
}

const HEAP = 2 << 20;
/** Says that it is there, and stays until the word at its cookie is set; its session begins. */
const STAYS = wat(
  MEMORY,
  `(func (export "handler") ${HANDLER}
    (i32.atomic.store offset=4 (i32.const ${HEAP}) (i32.const 1))
    (drop (memory.atomic.wait32 (i32.const ${HEAP}) (i32.const 0) (i64.const -1)))
    (i32.const 7))`,
);

async function lateLease(preset: PresetName): Promise<void> {
  const own = EngineMemory.create(HEAP + 65_536);
  const words = new Int32Array(own.buffer, HEAP);
  const wake = () => {
    Atomics.store(words, 0, 1);
    Atomics.notify(words, 0);
  };
  const runner = await startThreads({
    platform: nodePlatform,
    cpus: 1,
    strategy: strategyOf(preset),
    leaseUs: 60_000_000,
    memory: own,
    bytes: HEAP,
    wasm,
  });
  try {
    const { memory } = runner;
    const module = await WebAssembly.compile(STAYS);
    const { firstPlace } = await runner.load({
      name: "stays",
      module,
      constants: {},
      handlers: ["handler"],
      calls: { call: entryOf(preset, "call") },
    });
    const { task, probe } = await world(runner);
    const entries = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_CALL, firstPlace);
    const returns = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
    const consumer = await probe(entries, abi.CONSUMER_SESSION, returns);
    const late = await task(1);
    const enter = { entry: entryOf(preset, "enter"), args: [late, VADDR], count: 1, batch: 1 };
    const run = await runner.run([enter]);
    await until("the hit is in its handler", () => Atomics.load(words, 1) === 1);
    let isGone = false;
    const gone = runner.command(abi.OP_UNREGISTER, consumer).then(() => {
      isGone = true;
    });
    await until("the probe is out of the tree", () => memory.uprobes().inTree === 0);
    await sleep(20);
    wake();
    await run.done;
    assert.is(returnCounts(memory, late)["pending"], 1);
    // A lease of a minute: unregistering waits for the return, or has the uprobe's last word.
    const ri = memory.load(late + RETURN_INSTANCES);
    await sleep(50);
    if (memory.load(ri + RI_STATE) === LEASED) assert.not(isGone, "freed while it is leased");
    assert.is.not(memory.load(ri + RI_STATE), STABLE);
    runner.host.exports.engine_attach(memory.base, 0);
    runner.host.workload(entryOf(preset, "leave"))(late, 0);
    await soon("unregistering", gone);
    const { entries: n, gone: none = 0, "no-consumer": left = 0 } = returnCounts(memory, late);
    assert.equal([n, none + left], [1, 1]);
    assert.is(
      memory.sinkHits(returns, 2).reduce((a, b) => a + b, 0),
      0,
    );
    await runner.command(abi.OP_TASK_DESTROY, late);
    await runner.command(abi.OP_SYNCHRONIZE);
    assert.equal(memory.uprobes(), { alive: 0, inTree: 0 });
    assert.is(await runner.command(abi.OP_RETURNS_LEFT), 0);
    assert.equal(memory.faults(), {});
  } finally {
    wake();
    await runner.close();
  }
}

for (const preset of LEASING) {
  test(`C2: ${preset}: a lease that begins after its uprobe's death is waited for`, () =>
    lateLease(preset));
}

test.run();
