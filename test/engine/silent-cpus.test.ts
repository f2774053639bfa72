// Unregistration waits for hits, not for CPUs: one that is idle, one that sleeps inside a probed
// function, one in a long loop without probes, and one that calls only functions without any. For a
// hit it does wait.
// runs alone
// time limit: 120 s

import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Engine } from "../../src/engine/engine.js";
import { EngineMemory, identityGap, sumHits } from "../../src/engine/memory.js";
import { PRESET_NAMES, type PresetName } from "../../src/engine/presets.js";
import { sleep, WASM } from "../helpers/engine.js";
import { CALL, HANDLER, MEMORY, wat } from "../helpers/user-module.js";

/** An engine that hangs is not waited for: a broken twin. */
const MINE = { wasm: pathToFileURL(WASM), leaveLimitMs: 2000 };
const ADDRESS = 0x400000;
const HEAP = 2 << 20;
/** What a detach may take; the machine may be busy, so the best of some tries counts. */
const LIMIT_MS = 100;
const TRIES = 3;
/** Nobody waits longer for an unregistration that hangs. */
const GIVE_UP_MS = 1000;

const SILENT = wat(
  MEMORY,
  CALL,
  // Says that it is there, and stays until the word at the cookie is set.
  `(func (export "handler") ${HANDLER}
    (i32.atomic.store offset=4 (local.get $cookie) (i32.const 1))
    (drop (memory.atomic.wait32 (local.get $cookie) (i32.const 0) (i64.const -1)))
    (i32.const 1))`,
  // Both call the probed function, and stay in its body until the word is set.
  `(func (export "sleeps") (param $task i32) (param $word i32) (param $n i32) (result i32)
    (drop (call $call (local.get $task) (i32.const ${ADDRESS}) (i32.const 0)))
    (drop (memory.atomic.wait32 (local.get $word) (i32.const 0) (i64.const -1)))
    (i32.const 1))`,
  `(func (export "loops") (param $task i32) (param $word i32) (param $n i32) (result i32)
    (drop (call $call (local.get $task) (i32.const ${ADDRESS}) (i32.const 0)))
    (loop $again (br_if $again (i32.eqz (i32.atomic.load (local.get $word)))))
    (i32.const 1))`,
);

/** Milliseconds that it took to unregister a probe that two CPUs are in, and one of nobody. */
async function detach(preset: PresetName): Promise<number> {
  const memory = EngineMemory.create(HEAP + 65_536);
  const words = new Int32Array(memory.buffer, HEAP);
  // CPU 3 is idle: it has a worker, but no work.
  const engine = await Engine.start({
    cpus: 4,
    preset,
    memory,
    bytes: HEAP,
    wasm: pathToFileURL(WASM),
  });
  try {
    const file = await engine.file({ bytes: 4096 });
    const space = await engine.addressSpace();
    await space.map(file, { address: ADDRESS });
    const module = await engine.load(SILENT, { name: "silent" });
    const hits = await engine.counter();
    const probe = await engine.register({ file, offset: 0, consumer: hits });
    const other = await engine.register({ file, offset: 64, consumer: hits });
    const task = (offset: number) => space.task({ address: ADDRESS + offset });
    const [asleep, looping, calling] = await Promise.all([task(0), task(0), task(128)]);
    const run = await engine.run([
      { module, workload: "sleeps", args: [asleep, HEAP] },
      { module, workload: "loops", args: [looping, HEAP] },
      { task: calling },
    ]);
    while (hits.total() < 2 || calling.counts().triggers === 0) await sleep(1);
    const before = performance.now();
    const gone = probe.unregister().then(() => other.unregister());
    const ended = gone.then(() => performance.now() - before);
    ended.catch(() => {}); // when the engine stops first
    const took = await Promise.race([ended, sleep(GIVE_UP_MS).then(() => Infinity)]);
    assert.ok(took < Infinity, `unregistering did not end within ${GIVE_UP_MS} ms`);
    assert.equal(hits.perCpu(), [1, 1, 0, 0], "they are where they were");
    Atomics.store(words, 0, 1);
    Atomics.notify(words, 0);
    await gone;
    await run.stop();
    assert.is(identityGap(sumHits([asleep, looping, calling].map((one) => one.counts()))), 0);
    return took;
  } finally {
    Atomics.store(words, 0, 1);
    Atomics.notify(words, 0);
    await engine.stop();
  }
}

for (const preset of PRESET_NAMES) {
  test(`${preset}: unregistering ends within ${LIMIT_MS} ms whatever silent CPUs do`, async () => {
    const took: number[] = [];
    for (let i = 0; i < TRIES && !took.some((ms) => ms < LIMIT_MS); i++) {
      took.push(await detach(preset));
    }
    console.log(`# ${preset}: ${took.map((ms) => ms.toFixed(1)).join(", ")} ms`);
    assert.ok(Math.min(...took) < LIMIT_MS, `it took ${took.join(", ")} ms`);
  });
}

for (const preset of PRESET_NAMES) {
  test(`${preset}: unregistering waits for a handler that runs, however long`, async () => {
    const memory = EngineMemory.create(HEAP + 65_536);
    const words = new Int32Array(memory.buffer, HEAP);
    const engine = await Engine.start({ cpus: 1, preset, memory, bytes: HEAP, ...MINE });
    try {
      const file = await engine.file({ bytes: 4096 });
      const space = await engine.addressSpace();
      await space.map(file, { address: ADDRESS });
      const module = await engine.load(SILENT, { name: "silent" });
      const consumer = await engine.caller(module, "handler");
      const probe = await engine.register({ file, offset: 0, consumer, cookie: HEAP });
      const task = await space.task({ address: ADDRESS });
      const args = [task, HEAP + 8];
      const run = await engine.run([{ module, workload: "loops", args, count: 1 }]);
      while (Atomics.load(words, 1) === 0) await sleep(1); // it is in the handler
      let gone = false;
      const going = probe.unregister().then(() => (gone = true));
      going.catch(() => {}); // when the engine stops first
      await sleep(50);
      assert.not.ok(gone, "the handler still runs");
      for (const word of [0, 2]) Atomics.store(words, word, 1);
      Atomics.notify(words, 0);
      await Promise.race([going, sleep(GIVE_UP_MS)]);
      assert.ok(gone, `unregistering did not end within ${GIVE_UP_MS} ms of the handler`);
      await run.done;
      assert.is(consumer.total(), 1);
    } finally {
      for (const word of [0, 2]) Atomics.store(words, word, 1);
      Atomics.notify(words, 0);
      await engine.stop();
    }
  });
}

test.run();
