// The engine as a library, on real threads.
// runs alone
// time limit: 120 s

import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Engine, type EngineStart } from "../../src/engine/engine.js";
import { EngineMemory, identityGap, sumHits } from "../../src/engine/memory.js";
import { PRESET_NAMES } from "../../src/engine/presets.js";
import { sleep, WASM } from "../helpers/engine.js";
import { CALL, HANDLER, MEMORY, wat } from "../helpers/user-module.js";

const ADDRESS = 0x400000;
const wasm = pathToFileURL(WASM);
const SMALL = { memoryBytes: 4 << 20, wasm };

async function withEngine(
  options: EngineStart,
  body: (engine: Engine) => Promise<void>,
): Promise<void> {
  const engine = await Engine.start(options);
  try {
    await body(engine);
  } finally {
    await engine.stop();
  }
}

/** A mapped file, and a task for each CPU that calls the function at offset 16. */
async function mapped(engine: Engine) {
  const file = await engine.file({ bytes: 4096 });
  const space = await engine.addressSpace();
  await space.map(file, { address: ADDRESS });
  const tasks = await Promise.all(
    Array.from({ length: engine.cpus }, (_, cpu) =>
      space.task({ address: ADDRESS + 16, pid: cpu + 1 }),
    ),
  );
  return { file, space, tasks };
}

async function until(happened: () => boolean): Promise<void> {
  for (let i = 0; !happened(); i++) {
    assert.ok(i < 10_000, "it never happened");
    await sleep(1);
  }
}

for (const preset of PRESET_NAMES) {
  test(`${preset}: probes come and go under a run, and every call is accounted for`, () =>
    withEngine({ ...SMALL, cpus: 2, preset }, async (engine) => {
      const { file, tasks } = await mapped(engine);
      const always = await engine.counter();
      const sometimes = await engine.counter();
      const run = await engine.run(tasks.map((task) => ({ task })));
      const probe = await engine.register({ file, offset: 16, consumer: always });
      for (let i = 0; i < 5; i++) {
        const guest = await engine.register({ file, offset: 16, consumer: sometimes });
        const before = sometimes.perCpu();
        await until(() => sometimes.perCpu().every((hits, cpu) => hits > (before[cpu] ?? 0)));
        await guest.unregister();
        const after = sometimes.total();
        const others = always.total();
        await until(() => always.total() > others);
        assert.is(sometimes.total(), after, "nothing comes after the grace period");
      }
      await probe.unregister();
      await run.stop();
      const sum = sumHits(tasks.map((task) => task.counts()));
      assert.is(identityGap(sum), 0);
      assert.is(sum.handled, always.total());
      assert.ok(sum.missed["no-probe"] > 0);
      assert.equal(engine.faults(), {});
      await Promise.all([always.close(), sometimes.close()]);
    }));
}

test("events are read while CPUs write them: emitted = read + pending, lost ones counted", () =>
  withEngine({ ...SMALL, cpus: 2 }, async (engine) => {
    const { file, tasks } = await mapped(engine);
    const events = await engine.emitter({ records: 256 });
    await engine.register({ file, offset: 16, consumer: events, cookie: -7 });
    const run = await engine.run(tasks.map((task) => ({ task })));
    const next = [0, 0];
    let gaps = 0;
    const check = (most?: number) => {
      for (const event of events.read(most)) {
        const expected = next[event.cpu] ?? 0;
        assert.ok(event.number >= expected, "each CPU's are in order");
        gaps += event.number - expected;
        next[event.cpu] = event.number + 1;
        assert.equal([event.cookie, event.address, event.pid], [-7, ADDRESS + 16, event.cpu + 1]);
      }
    };
    const began = performance.now();
    while (performance.now() - began < 300 || next.includes(0)) {
      check(100);
      await sleep(0);
      assert.ok(performance.now() - began < 10_000, "reads of a hundred come to both CPUs");
    }
    await run.stop();
    const before = events.counts();
    assert.is(before.emitted, before.read + before.pending);
    check();
    const { emitted, lost, read, pending } = events.counts();
    assert.equal([pending, read], [0, emitted]);
    const sum = sumHits(tasks.map((task) => task.counts()));
    assert.equal([sum.handled, sum.missed["ring-full"]], [emitted, lost]);
    assert.is(identityGap(sum), 0);
    assert.ok(lost > 0, "they were faster than the reader");
    assert.ok(gaps <= lost, "a gap is a loss, and the last ones show no gap");
  }));

const COUNTING = wat(
  MEMORY,
  CALL,
  `(import "env" "HEAP" (global $heap i32))`,
  `(import "wasmprobe" "cpu" (global $cpu i32))`,
  `(func $slot (result i32)
    (i32.add (global.get $heap) (i32.mul (global.get $cpu) (i32.const 128))))`,
  `(func (export "even") ${HANDLER}
    (if (result i32) (i64.eqz (i64.and (local.get $argument) (i64.const 1)))
      (then
        (i32.store (call $slot)
          (i32.add (i32.load (call $slot)) (local.get $cookie)))
        (i32.const 1))
      (else (i32.const 0))))`,
  `(func (export "storm") (param $task i32) (param $address i32) (param $n i32) (result i32)
    (local $i i32)
    (loop $next
      (drop (call $call (local.get $task) (local.get $address) (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $n))))
    (local.get $i))`,
  `(func (export "pair") (param $task i32) (param $address i32) (param $n i32) (result i32)
    (drop (call $call (local.get $task) (local.get $address) (i32.const 2)))
    (drop (call $call (local.get $task) (local.get $address) (i32.const 3)))
    (i32.const 1))`,
);

test("a user's module handles hits and makes hits, in a heap of its own", async () => {
  const memory = EngineMemory.create(5 << 20);
  const HEAP = 4 << 20;
  const words = new Int32Array(memory.buffer, HEAP);
  await withEngine({ cpus: 2, memory, bytes: HEAP, wasm }, async (engine) => {
    const { file, tasks } = await mapped(engine);
    const constants = { env: { HEAP } };
    const module = await engine.load(COUNTING, { name: "counting", constants });
    assert.equal([module.handlers, module.workloads], [["even"], ["storm", "pair"]]);
    const taken = await engine.caller(module, "even");
    const probe = await engine.register({ file, offset: 16, consumer: taken, cookie: 3 });
    const work = tasks.map((task, cpu) => ({
      module,
      workload: "pair",
      args: [task, ADDRESS + 16],
      count: 1000 * (cpu + 1),
    }));
    await (
      await engine.run(work)
    ).done;
    assert.equal(taken.perCpu(), [1000, 2000]);
    assert.equal([words[0], words[32]], [3000, 6000], "the cookie was added for each");
    const counts = tasks.map((task) => task.counts());
    assert.equal(
      counts.map(({ triggers, handled, filtered }) => [triggers, handled, filtered]),
      [
        [2000, 1000, 1000],
        [4000, 2000, 2000],
      ],
    );
    const [task] = tasks;
    const run = await engine.run([{ module, workload: "storm", args: [task ?? 0, ADDRESS + 16] }]);
    await until(() => taken.total() > 10_000);
    await probe.unregister();
    const after = taken.total();
    await sleep(5);
    assert.is(taken.total(), after);
    await run.stop();
  });
  const used = [...words].flatMap((word, i) => (word === 0 ? [] : [i]));
  assert.equal(used, [0, 32], "nobody else has written there");
});

test("a CPU that joins late has the modules, loses no hit and disturbs no count", () =>
  withEngine({ ...SMALL, cpus: 4, workers: 2 }, async (engine) => {
    const { file, tasks } = await mapped(engine);
    const module = await engine.load(COUNTING, { constants: { env: { HEAP: 0x3ff000 } } });
    const mine = await engine.caller(module, "even");
    const hits = await engine.counter();
    await engine.register({ file, offset: 16, consumer: mine });
    await engine.register({ file, offset: 16, consumer: hits });
    const [first, second, third, fourth] = tasks;
    if (first === undefined || second === undefined) return;
    if (third === undefined || fourth === undefined) return;
    const run = await engine.run([{ task: first }, { task: second }]);
    await run.join({ task: third });
    await run.join({ module, workload: "storm", args: [fourth, ADDRESS + 16] });
    const before = hits.perCpu();
    await until(() => hits.perCpu().every((now, cpu) => now > (before[cpu] ?? 0)));
    await run.stop();
    const counts = tasks.map((task) => task.counts());
    assert.equal(
      hits.perCpu(),
      counts.map(({ triggers }) => triggers),
      "every call was a hit",
    );
    assert.ok(mine.perCpu().every((taken) => taken > 0));
  }));

test("a user's function that traps fails the run; the engine says so until it stops", async () => {
  const engine = await Engine.start({ ...SMALL, cpus: 2 });
  const { file, tasks } = await mapped(engine);
  const module = await engine.load(wat(MEMORY, `(func (export "bad") ${HANDLER} (unreachable))`));
  const consumer = await engine.caller(module, "bad");
  const probe = await engine.register({ file, offset: 16, consumer });
  const run = await engine.run(tasks.slice(0, 1).map((task) => ({ task })));
  const line = await run.done.then(
    () => "",
    (error: Error) => error.message,
  );
  assert.match(line, /CPU 0 failed in trigger_fastest: RuntimeError: unreachable/);
  const after = await probe.unregister().then(
    () => "",
    (error: Error) => error.message,
  );
  assert.is(after, line);
  await engine.stop();
});

test("two engines of different presets and a user's heap run in one memory", async () => {
  const MIB = 1 << 20;
  const memory = EngineMemory.create(6 * MIB);
  const bytes = new Uint8Array(memory.buffer);
  const canary = (at: number) => (at * 31 + 7) & 0xff;
  for (let at = 0; at < bytes.length; at++) bytes[at] = canary(at);
  const places = [
    { base: MIB, bytes: 2 * MIB - 4096, preset: "fastest" },
    { base: 3 * MIB + 4096, bytes: 2 * MIB, preset: "srcu" },
  ] as const;
  const engines = await Promise.all(
    places.map((place) => Engine.start({ cpus: 2, memory, wasm, ...place })),
  );
  const running = engines.map(async (engine) => {
    const { file, tasks } = await mapped(engine);
    const events = await engine.emitter({ records: 1024, clock: true });
    const hits = await engine.counter();
    for (const consumer of [events, hits]) await engine.register({ file, offset: 16, consumer });
    const run = await engine.run(tasks.map((task) => ({ task })));
    for (let i = 0; i < 50; i++) {
      events.read();
      await sleep(2);
    }
    await run.stop();
    const sum = sumHits(tasks.map((task) => task.counts()));
    assert.is(identityGap(sum), 0);
    assert.is(hits.total(), sum.triggers);
    assert.equal(engine.faults(), {});
  });
  try {
    await Promise.all(running);
  } finally {
    await Promise.all(engines.map((engine) => engine.stop()));
  }
  let changed = 0;
  for (let at = 0; at < bytes.length; at++) {
    const own = places.some((place) => at >= place.base && at < place.base + place.bytes);
    if (!own && bytes[at] !== canary(at)) changed++;
  }
  assert.is(changed, 0, "bytes of the user's that changed");
});

test.run();
