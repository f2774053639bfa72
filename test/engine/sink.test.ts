// Consumers that do more than count: records in a ring, and functions of the user's.

import binaryen from "binaryen";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { EventRings } from "../../src/engine/event-ring.js";
import { identityGap } from "../../src/engine/memory.js";
import { leftovers, all } from "../helpers/solo.js";
import { Probes, VADDR } from "../helpers/probes.js";

const RECORDS = 8;

/** A probe whose hits become records, with the cookie 77. */
function emitting(records = RECORDS, clock = 0, options = {}) {
  const p = new Probes(abi.INSN_NOP, options);
  assert.is(p.map(), 0);
  const sink = p.ok(abi.OP_SINK_CREATE, abi.HANDLER_EMIT, records, clock);
  const consumer = p.ok(abi.OP_REGISTER, p.inode, 16, sink, 0, 0, 0, 77);
  const rings = new EventRings(p.memory, sink, p.cpus + 1);
  return { p, sink, consumer, rings, task: p.task(VADDR + 16, p.mm, 5) };
}

test("a record says which probe, task, address and argument, and its number", () => {
  const { p, rings, task } = emitting();
  assert.equal(rings.read(), []);
  assert.equal(p.trigger(task, 3), all("handled", 3));
  const event = { cpu: 0, timeNs: 0, cookie: 77, pid: 5, address: VADDR + 16 };
  assert.equal(
    rings.read(),
    [0, 1, 2].map((number) => ({ ...event, number, argument: BigInt(number + 1) })),
  );
  assert.equal(rings.read(), []);
});

test("with a clock, times never go back, and lie where they were taken", () => {
  const { p, rings, task } = emitting(RECORDS, 1);
  const before = performance.now() * 1e6;
  p.trigger(task, RECORDS);
  const after = performance.now() * 1e6;
  const times = rings.read().map(({ timeNs }) => timeNs);
  assert.is(times.length, RECORDS);
  const inOrder = [Math.floor(before), ...times, Math.ceil(after)];
  assert.equal(
    inOrder,
    [...inOrder].sort((a, b) => a - b),
  );
});

test("a record that is being written is not read, a ring without room is not written", () => {
  // The engine asks for the time in the middle of a record: the reader looks just then.
  const looks: number[][] = [];
  let time = 0;
  const look = (): number => {
    looks.push(rings.read(1).map(({ timeNs }) => timeNs));
    return ++time;
  };
  const { p, rings, task } = emitting(1, 1, { now: look });
  assert.equal(p.trigger(task, 1), all("handled"));
  p.trigger(task, 2);
  assert.equal(looks, [[]], "the ring was full: nothing was begun");
  assert.equal(
    rings.read().map(({ timeNs }) => timeNs),
    [1e6],
  );
  assert.equal(p.trigger(task, 1), all("handled"));
  assert.equal(looks, [[], []]);
  assert.equal(rings.counts(), { emitted: 2, lost: 2, read: 1, pending: 1 });
});

test("a full ring loses the new hit, counts it, and has the old ones as they were", () => {
  const { p, rings, task } = emitting();
  const counts = p.trigger(task, RECORDS + 3);
  assert.is(counts.handled, RECORDS);
  assert.is(counts.missed["ring-full"], 3);
  assert.is(identityGap(counts), 0);
  assert.equal(rings.counts(), { emitted: RECORDS, lost: 3, read: 0, pending: RECORDS });
  assert.equal(
    rings.read(5).map(({ number }) => number),
    [0, 1, 2, 3, 4],
  );
  assert.equal(p.trigger(task, 1), all("handled"));
  assert.equal(
    rings.read().map(({ number }) => number),
    [5, 6, 7, 11],
    "the gap is the loss",
  );
  assert.equal(rings.counts(), { emitted: 9, lost: 3, read: 9, pending: 0 });
});

test("a CPU that is always ahead does not keep the others from being read", () => {
  const { p, rings, task } = emitting(RECORDS, 0, { cpus: 2 });
  const hit = (cpu: number, n: number) => p.call(cpu, "trigger_spinlock", task, n);
  hit(1, 2);
  const seen: number[][] = [];
  for (let i = 0; i < 4; i++) {
    hit(0, 2);
    seen.push(rings.read(2).map(({ cpu }) => cpu));
  }
  assert.equal(
    seen,
    [
      [0, 0],
      [1, 1],
      [0, 0],
      [0, 0],
    ],
    "after CPU 1 it is the housekeeper's turn, which has none, then CPU 0's again",
  );
});

test("a ring goes on behind the end of its numbers", () => {
  const { p, rings, task, sink } = emitting(2);
  const block = p.memory.load(sink + abi.SINK_AREA);
  const last = 0x7fff_ffff;
  for (const word of [abi.EMIT_HEAD, abi.EMIT_TAIL]) p.memory.store(block + word, last);
  for (let round = 0; round < 3; round++) {
    assert.is(p.trigger(task, 3).missed["ring-full"], 1);
    assert.is(rings.read().length, 2);
  }
  assert.is(p.memory.load(block + abi.EMIT_HEAD), (last + 6) | 0);
});

test("a hit that one consumer loses and another takes is handled", () => {
  const { p, rings, task } = emitting(2);
  const counter = p.sink();
  p.register(16, counter);
  assert.equal(p.trigger(task, 5), all("handled", 5));
  assert.equal(rings.counts(), { emitted: 2, lost: 3, read: 0, pending: 2 });
  assert.is(p.hits(counter), 5);
});

test("a limit counts every hit that the consumer was given, also one that its ring lost", () => {
  const { p, consumer, sink, rings, task } = emitting(1);
  assert.is(p.unregister(consumer), 0);
  p.register(16, sink, { limit: 2 });
  const counts = p.trigger(task, 4);
  const missed = { ...all("ring-full").missed, "no-probe": 2 };
  assert.equal(counts, { ...all("handled"), triggers: 4, missed });
  assert.equal([rings.read().length, rings.counts().lost], [1, 1]);
});

test("a sink that is too large is no sink, and what it had is free again", () => {
  const p = new Probes();
  const before = leftovers(p.memory);
  assert.is(p.op(abi.OP_SINK_CREATE, abi.HANDLER_EMIT, abi.EMIT_RECORDS_MAX), abi.ENOMEM);
  const huge = 1 << 30;
  assert.is(p.op(abi.OP_SINK_CREATE, abi.HANDLER_EMIT, huge), abi.ENOMEM);
  assert.equal(leftovers(p.memory), before);
  for (const kind of [abi.HANDLER_EMIT, abi.HANDLER_HIST, abi.HANDLER_COUNT]) {
    p.ok(abi.OP_SINK_DESTROY, p.ok(abi.OP_SINK_CREATE, kind, 64));
  }
  assert.equal(leftovers(p.memory), before);
});

/** Puts a handler into the engine's table; returns a probe that calls it. */
function calling(body: string) {
  const p = new Probes();
  assert.is(p.map(), 0);
  const read = binaryen.parseText(`(module
    (import "env" "memory" (memory 1 65536 shared))
    (import "wasmprobe" "call" (func $call (param i32 i32 i32) (result i32)))
    (func (export "handler") (param $cookie i32) (param $pid i32) (param $vaddr i32)
      (param $argument i64) (result i32) ${body}))`);
  read.setFeatures(binaryen.Features.All);
  const module = new WebAssembly.Module(read.emitBinary() as Uint8Array<ArrayBuffer>);
  read.dispose();
  const call = p.host.workload("call_spinlock");
  const user = new WebAssembly.Instance(module, {
    env: { memory: p.memory.memory },
    wasmprobe: { call },
  });
  const { table } = p.host.exports;
  const place = table.grow(1);
  table.set(place, user.exports["handler"]);
  const sink = p.ok(abi.OP_SINK_CREATE, abi.HANDLER_CALL, place);
  p.ok(abi.OP_REGISTER, p.inode, 0, sink, 0, 0, 0, 4096);
  return { p, sink, task: p.task(VADDR, p.mm, 9) };
}

test("a user's function is told cookie, process, address and argument", () => {
  // The cookie is an address here: a free block behind the engine's own structures.
  const { p, task } = calling(`
    (i32.store (i32.add (i32.const 0x3ffe00) (i32.const 0)) (local.get $cookie))
    (i32.store (i32.const 0x3ffe04) (local.get $pid))
    (i32.store (i32.const 0x3ffe08) (local.get $vaddr))
    (i64.store (i32.const 0x3ffe10) (local.get $argument))
    (i32.const 1)`);
  assert.equal(p.trigger(task, 6), all("handled", 6));
  const words = [0, 4, 8, 16].map((at) => p.memory.load(0x3ffe00 + at));
  assert.equal(words, [4096, 9, VADDR, 6]);
});

test("what a user's function does not take is filtered, and not counted as its hit", () => {
  const odd = calling("(i32.wrap_i64 (i64.and (local.get $argument) (i64.const 1)))");
  const counts = odd.p.trigger(odd.task, 10);
  assert.equal([counts.handled, counts.filtered], [5, 5]);
  assert.is(odd.p.hits(odd.sink), 5);
});

test("a hit cannot hit: wasmprobe.call in a handler says EBUSY and counts nothing", () => {
  const { p, task } = calling(`
    (i32.eq (i32.const ${abi.EBUSY})
      (call $call (local.get $pid) (local.get $vaddr) (i32.const 0)))`);
  // The process number serves as the task to call with: its functions are checked first.
  const inner = p.task(VADDR, p.mm, task);
  assert.equal(p.trigger(inner, 2), all("handled", 2));
  assert.is(p.memory.task(task).triggers, 0);
});

test("wasmprobe.call counts one call by every preset; a foreign address is none", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const sink = p.sink();
  p.register(0, sink);
  const task = p.task(VADDR, p.mm, 1, 2);
  assert.is(p.call(0, "call_spinlock", task, VADDR, 0), 1);
  assert.is(p.call(0, "call_spinlock", task, VADDR + 16, 0), 0);
  for (const address of [VADDR - 1, VADDR + 17, 0]) {
    assert.is(p.call(0, "call_spinlock", task, address, 0), abi.EINVAL);
  }
  const { triggers, handled, missed } = p.memory.task(task);
  assert.equal([triggers, handled, missed["no-probe"]], [2, 1, 1]);
});

test.run();
