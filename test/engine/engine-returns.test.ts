// Returns, sessions, batches, forks and signals through the library, on real threads.
// runs alone
// time limit: 120 s

import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Engine, type EngineStart } from "../../src/engine/engine.js";
import { identityGap, returnGap } from "../../src/engine/memory.js";
import { WASM } from "../helpers/engine.js";
import { messageOf, rejectionOf } from "../helpers/throws.js";
import { CALLS, HANDLER, MEMORY, SESSION_RETURN, wat } from "../helpers/user-module.js";

const ADDRESS = 0x400000;
const [OUTER, INNER] = [ADDRESS + 16, ADDRESS + 32];
/** Below it the test's own words; the engine lies behind. */
const BASE = 1 << 16;

/** An engine in a memory whose first page is the test's. */
async function withEngine(
  options: Partial<EngineStart>,
  body: (engine: Engine, words: BigInt64Array) => Promise<void>,
): Promise<void> {
  const memory = new WebAssembly.Memory({ initial: 65, maximum: 65, shared: true });
  const wasm = pathToFileURL(WASM);
  const engine = await Engine.start({ cpus: 1, memory, base: BASE, wasm, ...options });
  try {
    await body(engine, new BigInt64Array(memory.buffer, 0, BASE / 8));
    assert.equal(engine.faults(), {});
  } finally {
    await engine.stop();
  }
}

async function mapped(engine: Engine, more: { stackBytes?: number } = {}) {
  const file = await engine.file({ bytes: 4096 });
  const space = await engine.addressSpace();
  await space.map(file, { address: ADDRESS });
  const task = await space.task({ address: OUTER, functions: 2, ...more });
  return { file, space, task };
}

const NESTED = wat(
  MEMORY,
  ...CALLS,
  `(func (export "nest") (param $task i32) (param $n i32)
    (loop $next
      (drop (call $enter (local.get $task) (i32.const ${OUTER}) (i32.const 5)))
      (drop (call $enter (local.get $task) (i32.const ${INNER}) (i32.const 6)))
      (drop (call $leave (local.get $task) (i32.const 7)))
      (drop (call $leave (local.get $task) (i32.const 8)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func (export "deep") (param $task i32) (param $n i32)
    (i32.store (i32.const 512) (call $enter
      (local.get $task) (i32.const ${OUTER}) (i32.const 5))))
  (func (export "up") (param $task i32) (param $n i32)
    (i32.store (i32.const 516) (call $leave (local.get $task) (i32.const 0))))
  (func (export "far") (param $task i32) (param $levels i32) (param $n i32)
    (i32.store (i32.const 520) (call $longjmp (local.get $task) (local.get $levels))))
  (func (export "tail") (param $task i32) (param $n i32)
    (i32.store (i32.const 524) (call $jump
      (local.get $task) (i32.const ${INNER}) (i32.const 5))))
  (func (export "value") ${HANDLER}
    (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (local.get $argument)))
    (i32.const 1))
  (func (export "cookie") ${HANDLER} (i32.wrap_i64 (local.get $argument)))
  (func (export "end") ${SESSION_RETURN}
    (i64.store (i32.const 8) (local.get $session))
    (i64.store (i32.const 16) (local.get $argument))
    (i64.store (i32.const 24) (i64.extend_i32_u (local.get $address)))
    (i32.const 1))`,
);

test("a return consumer is given the value of each return, an entry consumer the hits", () =>
  withEngine({ preset: "uret-pool" }, async (engine, words) => {
    const { file, task } = await mapped(engine);
    const module = await engine.load(NESTED);
    assert.equal(module.handlers, ["value", "cookie", "end"]);
    assert.equal(module.sessionReturns, ["end"]);
    const consumer = await engine.caller(module, "value");
    const sizes = await engine.histogram();
    const hits = await engine.counter();
    await engine.register({ file, offset: 16, consumer, on: "return" });
    await engine.register({ file, offset: 32, consumer: sizes, on: "return" });
    await engine.register({ file, offset: 32, consumer: hits });
    await (
      await engine.run([{ module, workload: "nest", args: [task], count: 100 }])
    ).done;
    assert.equal([consumer.total(), sizes.total(), hits.total()], [100, 100, 100]);
    assert.is(words[0], 800n, "the outer function returned 8 each time");
    assert.is(sizes.buckets()[3], 100, "and the inner one 7, of three bits");
    const { entries, returns, pending } = task.returns();
    assert.equal([entries, returns, pending], [200, 200, 0]);
    assert.is(returnGap(task.returns()), 0);
    assert.is(identityGap(task.counts()), 0);
  }));

test("a session's entry decides whether its return is wanted, and hands it a cookie", () =>
  withEngine({ preset: "speculative" }, async (engine, words) => {
    const { file, task } = await mapped(engine);
    const module = await engine.load(NESTED);
    const consumer = await engine.caller(module, "cookie");
    const returns = await engine.caller(module, "end");
    const ends = { consumer, returns, on: "session" } as const;
    const probe = await engine.register({ file, offset: 32, ...ends });
    await (
      await engine.run([{ module, workload: "nest", args: [task], count: 3 }])
    ).done;
    assert.equal([consumer.total(), returns.total()], [3, 3]);
    assert.equal(
      words.slice(1, 4),
      new BigInt64Array([6n, 7n, BigInt(INNER)]),
      "cookie, value, address",
    );
    assert.match(await rejectionOf("E_STATE", returns.close()), "still has 1 probes");
    await probe.unregister();
    await returns.close();
  }));

for (const preset of ["rwlock", "uret-alloc", "fastest"] as const) {
  test(`${preset}: latencies are of whole calls, so no inner one takes longer than its outer`, () =>
    withEngine({ preset }, async (engine) => {
      const { file, task } = await mapped(engine);
      const module = await engine.load(NESTED);
      const [outer, inner] = [await engine.latency(), await engine.latency()];
      const probes = await engine.registerAll([
        { file, offset: 16, consumer: outer },
        { file, offset: 32, consumer: inner, on: "session" },
      ]);
      await (
        await engine.run([{ module, workload: "nest", args: [task], count: 500 }])
      ).done;
      assert.equal([outer.total(), inner.total()], [500, 500]);
      let [above, below] = [0, 0];
      const within = inner.buckets();
      for (const [b, calls] of outer.buckets().entries()) {
        above += calls;
        below += within[b] ?? 0;
        assert.ok(above <= below, `up to bucket ${b}`);
      }
      assert.is(above, 500);
      await engine.unregisterAll(probes);
      await Promise.all([outer.close(), inner.close()]);
    }));
}

test("calls stay open between runs; a longjmp leaves them without a return", () =>
  withEngine({ preset: "uret-pool" }, async (engine, words) => {
    const { file, task } = await mapped(engine, { stackBytes: 4096 });
    const module = await engine.load(NESTED);
    const consumer = await engine.counter();
    await engine.register({ file, offset: 16, consumer, on: "return" });
    const run = async (workload: string, count: number, ...args: number[]) =>
      (await engine.run([{ module, workload, args: [task, ...args], count }])).done;
    const said = new Int32Array(words.buffer, 512, 4);
    for (let i = 0; i < 40; i++) await run("deep", 1);
    assert.is(said[0], 1, "a consumer took it, and it has not returned");
    assert.is(task.returns().pending, 40);
    await run("far", 1, 30);
    assert.is(said[2], 30);
    await run("tail", 1);
    assert.is(said[3], 0, "nobody probes the inner function, which will return in its place");
    await run("up", 1);
    assert.is(said[1], 0);
    const { entries, returns, missed, pending } = task.returns();
    assert.equal([entries, returns, missed.longjmp, pending], [40, 1, 30, 9]);
    assert.is(consumer.total(), 1);
    await task.close();
  }));

test("a full stack is said, and nothing happens", () =>
  withEngine({}, async (engine, words) => {
    const { task } = await mapped(engine);
    const module = await engine.load(NESTED);
    const said = new Int32Array(words.buffer, 512, 1);
    for (let i = 0; said[0] !== -28; i++) {
      assert.ok(i < 20);
      await (
        await engine.run([{ module, workload: "deep", args: [task], count: 1 }])
      ).done;
    }
    assert.is(identityGap(task.counts()), 0);
  }));

test("a child of a task returns from the calls that it was forked in, in a fork of the space", () =>
  withEngine({ preset: "uret-alloc" }, async (engine) => {
    const { file, space, task } = await mapped(engine);
    const module = await engine.load(NESTED);
    const consumer = await engine.counter();
    await engine.register({ file, offset: 16, consumer, on: "return" });
    const run = async (workload: string, of: typeof task) =>
      (await engine.run([{ module, workload, args: [of], count: 1 }])).done;
    await run("deep", task);
    const copy = await space.fork();
    const child = await task.fork({ space: copy, pid: 9 });
    const thread = await task.fork();
    assert.equal([child.pid, child.functions, thread.pid], [9, 2, 1]);
    for (const one of [child, task, thread]) {
      await run("up", one);
      const { entries, returns, pending } = one.returns();
      assert.equal([entries, returns, pending], [1, 1, 0]);
    }
    assert.is(consumer.total(), 3);
    assert.match(await rejectionOf("E_STATE", copy.close()), "still has 1 tasks");
    const empty = await engine.addressSpace();
    const lacks = await rejectionOf("E_VALUE", task.fork({ space: empty }));
    assert.match(lacks, "the functions of task 1 are not mapped in that space");
    await child.close();
    await copy.close();
  }));

test("probes of a file are in the forks of its spaces, one of a single space is not", () =>
  withEngine({}, async (engine) => {
    const { file, space } = await mapped(engine);
    const [every, only] = [await engine.counter(), await engine.counter()];
    await engine.register({ file, offset: 16, consumer: every });
    const copy = await space.fork();
    await engine.register({ file, offset: 32, consumer: only, addressSpace: space });
    const late = await space.fork();
    for (const [i, mm] of [space, copy, late].entries()) {
      for (const address of [OUTER, INNER]) {
        const task = await mm.task({ address });
        await (
          await engine.run([{ task, count: 10 }])
        ).done;
        assert.is(identityGap(task.counts()), 0);
      }
      assert.equal([every.total(), only.total()], [10 * (i + 1), 10]);
    }
  }));

test("a batch is registered whole or not at all, and taken away at once", () =>
  withEngine({ probesMax: 8 }, async (engine) => {
    const { file } = await mapped(engine);
    const consumer = await engine.counter();
    const batch = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ file, offset: 16 * (i + 1), consumer }));
    const full = await rejectionOf("E_FULL", engine.registerAll(batch(9)));
    assert.match(full, "the table is full: it has its 8 probes (probesMax)");
    const probes = await engine.registerAll(batch(8));
    assert.is(probes.length, 8);
    assert.match(await rejectionOf("E_STATE", consumer.close()), "still has 8 probes");
    await probes[3]?.unregister();
    const gone = await rejectionOf("E_STATE", engine.unregisterAll(probes));
    assert.match(gone, "the probe at offset 64 is unregistered");
    const left = probes.filter((probe) => probe.registered);
    assert.is(left.length, 7);
    await engine.unregisterAll(left);
    assert.not(probes.some((probe) => probe.registered));
    assert.equal(await engine.registerAll([]), []);
    await engine.unregisterAll([]);
    const { liveBytes } = engine.usage();
    for (let i = 0; i < 20; i++) await engine.unregisterAll(await engine.registerAll(batch(8)));
    assert.ok(engine.usage().liveBytes <= liveBytes + 4096, "lists and probes are given back");
    await consumer.close();
  }));

test("a program's reference counter says how many probes of its are there, in each space", () =>
  withEngine({}, async (engine) => {
    const { file, space } = await mapped(engine);
    const consumer = await engine.counter();
    const [at, next] = [ADDRESS + 102, ADDRESS + 100];
    const before = [await space.refCtr(at), await space.refCtr(next)];
    const probe = { file, consumer, refCtrOffset: 102 };
    const one = await engine.register({ ...probe, offset: 16 });
    const [two] = await engine.registerAll([{ ...probe, offset: 32, on: "return" }]);
    const copy = await space.fork();
    const other = rejectionOf("E_VALUE", engine.register({ file, offset: 16, consumer }));
    assert.match(await other, "a probe at that place is there with another refCtrOffset");
    const counts = async () => [await space.refCtr(at), await copy.refCtr(at)];
    const [base = 0] = before;
    assert.equal(await counts(), [base + 2, base + 2]);
    await one.unregister();
    assert.equal(await counts(), [base + 1, base + 1]);
    await two?.unregister();
    assert.equal(await counts(), [base, base]);
    assert.is(await space.refCtr(next), before[1], "its neighbour is left alone");
    const says = (promise: Promise<unknown>) => rejectionOf("E_VALUE", promise);
    assert.match(await says(space.refCtr(ADDRESS + 5000)), "nothing is mapped at address");
    assert.match(await says(space.refCtr(ADDRESS + 5)), "it is odd");
    const odd = engine.register({ ...probe, offset: 16, refCtrOffset: 7 });
    assert.match(await says(odd), "refCtrOffset is 7; it must be even");
  }));

test("signals are delivered once each, also to a task that steps each instruction", () =>
  withEngine({ preset: "signal-flag", arch: "arm64", xolSlots: 2 }, async (engine) => {
    const { file, space } = await mapped(engine);
    const task = await space.task({ address: OUTER });
    assert.equal(
      [await task.signal(3), await task.signal(3), await task.signal(31)],
      [true, false, true],
    );
    assert.equal(task.signals(), { sent: 2, delivered: 0 });
    const consumer = await engine.counter();
    await engine.register({ file, offset: 16, consumer });
    await (
      await engine.run([{ task, count: 100 }])
    ).done;
    assert.equal(task.signals(), { sent: 2, delivered: 2 });
    assert.is(task.steps(), 100, "arm64 steps a nop before Linux 6.13");
    assert.is(consumer.total(), 100);
    assert.match(await rejectionOf("E_VALUE", task.signal(32)), "signal is 32");
  }));

test("what fits no end of a call is refused in one line", () =>
  withEngine({}, async (engine) => {
    const { file, space } = await mapped(engine);
    const module = await engine.load(NESTED);
    const [plain, end] = [await engine.caller(module, "value"), await engine.caller(module, "end")];
    const [times, count] = [await engine.latency(), await engine.counter()];
    const says = (change: object) =>
      rejectionOf("E_VALUE", engine.register({ file, offset: 16, consumer: count, ...change }));
    const own = "the latency consumer needs a session of its own";
    assert.match(await says({ consumer: times, on: "return" }), own);
    assert.match(await says({ on: "session", returns: times }), own);
    assert.match(await says({ consumer: times, returns: count }), own);
    assert.match(await says({ returns: count }), `"returns" is for sessions; this is on "entry"`);
    assert.match(await says({ consumer: end, on: "return" }), `the caller of "end" ends sessions`);
    assert.match(
      await says({ consumer: plain, on: "session" }),
      `the caller of "value" cannot end a session: its function does not take the session's cookie`,
    );
    const end2 = await rejectionOf(
      "E_NAME",
      engine.register({ file, offset: 16, consumer: count, on: "exit" as "entry" }),
    );
    assert.match(end2, `unknown end of a call "exit"`);
    const odd = await rejectionOf("E_VALUE", space.task({ address: OUTER, stackBytes: 100 }));
    assert.match(odd, "stackBytes is 100; it must be divisible by 16");
    const closed = await space.fork();
    await closed.close();
    assert.is(
      messageOf("E_STATE", () => closed.toString() && closed.belongsTo(null as never)),
      "the address space is closed",
    );
    await count.close();
    await times.close();
  }));

test("start: architectures, slots and leases out of range", async () => {
  const start = (change: object) => Engine.start({ cpus: 1, memoryBytes: 2 << 20, ...change });
  assert.match(await rejectionOf("E_NAME", start({ arch: "arm" })), `unknown architecture "arm"`);
  const slots = await rejectionOf("E_VALUE", start({ xolSlots: 33 }));
  assert.match(slots, "xolSlots is 33; it must be a whole number from 2 to 32");
  assert.match(await rejectionOf("E_VALUE", start({ leaseUs: 0 })), "leaseUs is 0");
});

test.run();
