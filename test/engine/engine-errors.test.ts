// What the library refuses: each in one line that says what was asked for and what would do.
// runs alone
// time limit: 60 s

import { test } from "uvu";
import * as assert from "uvu/assert";
import { Engine } from "../../src/engine/engine.js";
import { HANDLER, MEMORY, wat } from "../helpers/user-module.js";
import { messageOf, rejectionOf } from "../helpers/throws.js";

const ADDRESS = 0x400000;
const SMALL = { cpus: 1, memoryBytes: 2 << 20 };

let engine: Engine;
let other: Engine;
test.before(async () => {
  engine = await Engine.start({ ...SMALL, probesMax: 2, preset: "speculative" });
  other = await Engine.start(SMALL);
});
test.after(async () => {
  await engine.stop();
  await other.stop();
});

test("start: CPUs, workers, presets and probes out of range", async () => {
  const start = (change: object) => Engine.start({ ...SMALL, ...change });
  const cpus = await rejectionOf("E_VALUE", start({ cpus: 0 }));
  assert.match(cpus, "cpus is 0; it must be a whole number from 1 to 256");
  assert.match(await rejectionOf("E_VALUE", start({ workers: 2 })), "workers is 2");
  assert.match(await rejectionOf("E_VALUE", start({ probesMax: 0 })), "probesMax is 0");
  const preset = await rejectionOf("E_NAME", start({ preset: "fastes" }));
  assert.match(preset, `unknown preset "fastes": did you mean fastest?`);
  assert.match(
    await rejectionOf("E_FULL", start({ cpus: 64, memoryBytes: 1 })),
    "64 CPUs in 65536",
  );
});

test("files and mappings that are not possible", async () => {
  const file = await engine.file({ bytes: 100 });
  const space = await engine.addressSpace({ mappingsMax: 1 });
  assert.match(await rejectionOf("E_VALUE", engine.file({ bytes: 0 })), "bytes is 0");
  const big = await rejectionOf("E_FULL", engine.file({ bytes: 1 << 30 }));
  assert.match(big, "memory is full: 1073741824 bytes were asked for");
  const map = (options: object) => space.map(file, { address: ADDRESS, ...options });
  assert.match(await rejectionOf("E_VALUE", map({ offset: 100 })), "offset is 100");
  assert.match(await rejectionOf("E_VALUE", map({ offset: 50, bytes: 51 })), "from 1 to 50");
  assert.match(await rejectionOf("E_VALUE", map({ address: 0 })), "address is 0");
  await map({});
  const full = await rejectionOf("E_FULL", map({ address: ADDRESS + 4096 }));
  assert.match(full, "the address space is full: it has its 1 mappings");
  const two = await engine.addressSpace();
  await two.map(file, { address: ADDRESS });
  const over = await rejectionOf("E_VALUE", two.map(file, { address: ADDRESS + 99 }));
  assert.match(over, `[${ADDRESS + 99}, ${ADDRESS + 199}) overlaps`);
  assert.match(await rejectionOf("E_VALUE", two.unmap(7)), "no mapping begins at address 7");
  assert.match(await rejectionOf("E_STATE", file.close()), "still mapped or probed");
  const task = await two.task({ address: ADDRESS });
  const far = await rejectionOf("E_VALUE", two.task({ address: ADDRESS + 90, functions: 2 }));
  assert.match(far, "do not lie in one mapping");
  assert.match(await rejectionOf("E_STATE", two.unmap(ADDRESS)), "still has 1 tasks");
  assert.match(await rejectionOf("E_STATE", two.close()), "still has 1 tasks");
  await task.close();
  assert.match(
    messageOf("E_STATE", () => task.counts()),
    "task 1 is closed",
  );
  await two.unmap(ADDRESS);
  await Promise.all([two.close(), space.close()]);
  await file.close();
  assert.match(await rejectionOf("E_STATE", file.close()), "the file of 100 bytes is closed");
  assert.match(await rejectionOf("E_STATE", two.task({ address: 1 })), "space is closed");
});

test("a full table says so, a probe can be unregistered once", async () => {
  const file = await engine.file({ bytes: 100 });
  const consumer = await engine.counter();
  const register = (offset: number) => engine.register({ file, offset, consumer });
  const probes = await Promise.all([register(0), register(16)]);
  const full = await rejectionOf("E_FULL", register(32));
  assert.match(full, "the table is full: it has its 2 probes (probesMax)");
  assert.match(await rejectionOf("E_VALUE", register(100)), "offset is 100");
  assert.match(await rejectionOf("E_STATE", consumer.close()), "still has 2 probes");
  const [first, second] = probes;
  const twice = [first.unregister(), first.unregister()];
  const again = twice[1] as Promise<void>;
  assert.match(await rejectionOf("E_STATE", again), "the probe at offset 0 is unregistered");
  await twice[0];
  await second.unregister();
  await consumer.close();
  await file.close();
});

test("rings that are no power of two, or too long, or more than there is memory", async () => {
  const odd = await rejectionOf("E_VALUE", engine.emitter({ records: 100 }));
  assert.match(odd, "records is 100; it must be a power of two");
  assert.match(await rejectionOf("E_VALUE", engine.emitter({ records: 2 ** 21 })), "records is");
  const full = await rejectionOf("E_FULL", engine.emitter({ records: 2 ** 20 }));
  assert.match(full, "the engine's memory is full");
});

test("an address space stays while a probe is for it: the next may get its place", async () => {
  const file = await engine.file({ bytes: 100 });
  const consumer = await engine.counter();
  const space = await engine.addressSpace();
  const probe = await engine.register({ file, offset: 0, consumer, addressSpace: space });
  const line = await rejectionOf("E_STATE", space.close());
  assert.match(line, "the address space still has 1 probes of its own; unregister them first");
  await probe.unregister();
  await space.close();
  // A registration that failed leaves nothing behind.
  const last = await engine.addressSpace();
  const probes = [
    await engine.register({ file, offset: 0, consumer }),
    await engine.register({ file, offset: 1, consumer }),
  ];
  const full = engine.register({ file, offset: 2, consumer, addressSpace: last });
  await rejectionOf("E_FULL", full);
  await last.close();
  await Promise.all(probes.map((one) => one.unregister()));
  await consumer.close();
  await file.close();
});

test("what is another engine's is refused", async () => {
  const file = await other.file({ bytes: 100 });
  const consumer = await other.counter();
  const mine = await engine.file({ bytes: 100 });
  const space = await engine.addressSpace();
  const what = await rejectionOf("E_VALUE", space.map(file, { address: ADDRESS }));
  assert.match(what, "the file of 100 bytes is another engine's");
  const register = engine.register({ file: mine, offset: 0, consumer });
  assert.match(await rejectionOf("E_VALUE", register), "the counter is another engine's");
});

test("modules that cannot be loaded say why", async () => {
  const load = async (...fields: string[]) =>
    rejectionOf("E_VALUE", engine.load(wat(...fields), { name: "mine" }));
  const data = `(data (i32.const 8) "x")`;
  assert.match(await load(MEMORY, data), `module "mine" has active data segments`);
  assert.match(await load(`(memory 1)`), "a memory of its own; it must import env.memory");
  const foreign = await load(`(import "env" "log" (func (param i32)))`);
  assert.match(foreign, "imports env.log (func), which nobody provides");
  const constant = await load(`(import "env" "HEAP" (global i32))`);
  assert.match(constant, "imports env.HEAP (global), which nobody provides");
  const small = await load(`(import "env" "memory" (memory 1 1 shared))`);
  assert.match(small, /cannot be instantiated by .*: LinkError/);
  const junk = engine.load(Uint8Array.of(1, 2, 3, 4), {});
  assert.match(await rejectionOf("E_VALUE", junk), "not a Wasm module");
  // After all these failures a good one is loaded as if nothing had been.
  const good = await engine.load(
    wat(MEMORY, `(data "passive")`, `(func (export "h") ${HANDLER} (i32.const 1))`),
  );
  assert.equal([good.handlers, good.workloads], [["h"], []]);
  const name = await rejectionOf("E_NAME", engine.caller(good, "g"));
  assert.match(name, `has no handler "g"; it has h`);
  const run = engine.run([{ module: good, workload: "h" }]);
  assert.match(await rejectionOf("E_NAME", run), `has no workload "h"; it has none`);
});

test("one run at a time, one CPU a task, no module under a run", async () => {
  const file = await engine.file({ bytes: 100 });
  const space = await engine.addressSpace();
  await space.map(file, { address: ADDRESS });
  const task = await space.task({ address: ADDRESS, pid: 4 });
  const two = await rejectionOf("E_STATE", engine.run([{ task }, { task }]));
  assert.match(two, "task 4 is executed by CPU 0; a task runs on one CPU at a time");
  const run = await engine.run([{ task }]);
  const more = await space.task({ address: ADDRESS });
  assert.match(await rejectionOf("E_STATE", engine.run([{ task: more }])), "under way");
  assert.match(await rejectionOf("E_STATE", engine.run([{ task }])), "executed by CPU 0");
  assert.match(await rejectionOf("E_VALUE", run.join({ task: more })), "all 1 CPUs have a job");
  assert.match(await rejectionOf("E_STATE", task.close()), "is executed by CPU 0");
  assert.match(await rejectionOf("E_STATE", engine.load(wat(MEMORY))), "a run is under way");
  await run.stop();
  await run.stop();
  assert.match(await rejectionOf("E_STATE", run.join({ task: more })), "the run has ended");
  await Promise.all([task.close(), more.close()]);
  await space.close();
  await file.close();
});

test("stopped is stopped: stop again is nothing, everything else says so", async () => {
  const short = await Engine.start(SMALL);
  const file = await short.file({ bytes: 100 });
  const consumer = await short.counter();
  const events = await short.emitter({ records: 2 });
  const probe = await short.register({ file, offset: 0, consumer });
  await Promise.all([short.stop(), short.stop()]);
  await short.stop();
  const line = "the engine is stopped";
  for (const late of [
    short.file({ bytes: 1 }),
    short.addressSpace(),
    short.counter(),
    short.emitter(),
    short.load(wat(MEMORY)),
    short.register({ file, offset: 0, consumer }),
    short.run([]),
    file.close(),
    probe.unregister(),
  ]) {
    assert.is(await rejectionOf("E_STATE", late), line);
  }
  for (const late of [() => consumer.total(), () => events.read(), () => short.faults()]) {
    assert.is(messageOf("E_STATE", late), line);
  }
});

test.run();
