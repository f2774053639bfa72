// Return probes, one CPU: what a call's return does to the task, its instances and its consumers.

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { entryOf, PRESET_NAMES } from "../../src/engine/presets.js";
import { VADDR } from "../helpers/probes.js";
import { Returns } from "../helpers/returns.js";

for (const preset of PRESET_NAMES) {
  for (const [name, opcode] of [
    ["nop", abi.INSN_NOP],
    ["push", abi.INSN_PUSH],
    ["ret", abi.INSN_RET],
  ] as const) {
    test(`${preset}: every call of a probed ${name} function is seen returning`, () => {
      const r = new Returns(preset, opcode);
      const sink = r.sink();
      const consumer = r.probe(0, sink);
      const task = r.task();
      r.call(0, entryOf(preset, "trigger"), task, 3000);
      assert.is(r.go("call", task, VADDR, 0), 1);
      assert.is(r.hits(sink), 3001);
      assert.equal(r.counts(task), { entries: 3001, returns: 3001 });
      assert.is(r.unregister(consumer), 0);
      assert.is(r.go("call", task, VADDR, 0), 0);
      r.checkFaults();
    });
  }

  test(`${preset}: nested calls return in their order, each to its caller`, () => {
    const r = new Returns(preset);
    const sink = r.sink();
    for (let site = 0; site < 60; site++) r.probe(16 * site, sink);
    const task = r.nested();
    for (let depth = 0; depth < 60; depth++) {
      assert.is(r.go("enter", task, VADDR + 16 * depth, depth), 1);
    }
    assert.equal(r.counts(task), { entries: 60, pending: 60 });
    for (let depth = 0; depth < 60; depth++) assert.is(r.go("leave", task, depth), 0);
    assert.equal(r.counts(task), { entries: 60, returns: 60 });
    assert.is(r.go("leave", task, 0), abi.EINVAL);
    r.checkFaults();
  });

  test(`${preset}: the 65th pending return is counted, and goes unseen`, () => {
    const r = new Returns(preset);
    const sink = r.sink();
    r.probe(0, sink);
    const task = r.nested();
    for (let depth = 0; depth < 72; depth++) r.go("enter", task, VADDR, 0);
    assert.equal(r.counts(task), { entries: 72, depth: 8, pending: 64 });
    for (let depth = 0; depth < 72; depth++) assert.is(r.go("leave", task, 0), 0);
    assert.equal(r.counts(task), { entries: 72, depth: 8, returns: 64 });
    assert.is(r.hits(sink), 64);
    r.checkFaults();
  });

  test(`${preset}: a longjmp drops the frames it leaves, and only those`, () => {
    const r = new Returns(preset);
    const sink = r.sink();
    r.probe(0, sink);
    const task = r.nested();
    for (let depth = 0; depth < 5; depth++) r.go("enter", task, VADDR, 0);
    assert.is(r.call(0, "task_longjmp", task, 3), 3);
    r.go("enter", task, VADDR, 0);
    assert.equal(r.counts(task), { entries: 6, longjmp: 3, pending: 3 });
    for (let depth = 0; depth < 3; depth++) assert.is(r.go("leave", task, 0), 0);
    assert.equal(r.counts(task), { entries: 6, longjmp: 3, returns: 3 });
    for (let depth = 0; depth < 5; depth++) r.go("enter", task, VADDR, 0);
    assert.is(r.call(0, "task_longjmp", task, 2), 2);
    for (let depth = 0; depth < 3; depth++) assert.is(r.go("leave", task, 0), 0);
    assert.equal(r.counts(task), { entries: 11, longjmp: 5, returns: 6 });
    r.checkFaults();
  });

  test(`${preset}: tail calls share one return, which all of them see`, () => {
    const r = new Returns(preset);
    const sink = r.sink();
    for (let site = 0; site < 4; site++) r.probe(16 * site, sink);
    const task = r.nested();
    r.go("enter", task, VADDR, 0);
    r.go("enter", task, VADDR + 16, 0);
    r.go("jump", task, VADDR + 32, 0);
    r.go("jump", task, VADDR + 48, 0);
    assert.equal(r.counts(task), { entries: 4, pending: 4 });
    r.go("leave", task, 0);
    assert.equal(r.counts(task), { entries: 4, returns: 3, pending: 1 });
    r.go("leave", task, 0);
    assert.equal(r.counts(task), { entries: 4, returns: 4 });
    r.checkFaults();
  });

  test(`${preset}: a probe is taken away while a call is in it: the return is nobody's`, () => {
    const r = new Returns(preset);
    const sink = r.sink();
    const consumer = r.probe(0, sink);
    const task = r.nested();
    r.go("enter", task, VADDR, 0);
    assert.is(r.unregister(consumer), 0);
    r.go("leave", task, 0);
    const { entries, returns = 0, gone = 0, "no-consumer": none = 0 } = r.counts(task);
    assert.equal([entries, returns, gone + none], [1, 0, 1]);
    assert.is(r.hits(sink), 0);
    r.ok(abi.OP_TASK_DESTROY, task);
    r.ok(abi.OP_SYNCHRONIZE);
    assert.equal(r.memory.uprobes(), { alive: 0, inTree: 0 });
    r.checkFaults();
  });

  test(`${preset}: sessions carry what the entry began to the return`, () => {
    const r = new Returns(preset);
    const [times, entries, returns] = [r.sink(abi.HANDLER_LATENCY), r.sink(), r.sink()];
    r.probe(0, times, abi.CONSUMER_SESSION);
    r.probe(0, entries, abi.CONSUMER_SESSION, returns);
    r.probe(0, times, abi.CONSUMER_SESSION);
    const task = r.nested();
    r.go("enter", task, VADDR, 0);
    assert.equal([r.hits(times), r.hits(entries), r.hits(returns)], [0, 1, 0]);
    r.go("leave", task, 0);
    assert.equal([r.hits(times), r.hits(entries), r.hits(returns)], [2, 1, 1]);
    assert.equal(r.counts(task), { entries: 1, returns: 1 });
    const buckets = r.memory.sinkHistogram(times, 2);
    assert.is(
      buckets.reduce((a, b) => a + b, 0),
      2,
    );
    r.checkFaults();
  });

  test(`${preset}: a forked task returns by itself`, () => {
    const r = new Returns(preset);
    const sink = r.sink();
    const consumer = r.probe(0, sink);
    const parent = r.nested();
    for (let depth = 0; depth < 3; depth++) r.go("enter", parent, VADDR, 0);
    const child = r.ok(abi.OP_TASK_FORK, parent, r.mm, 2);
    assert.equal(r.counts(child), { entries: 3, pending: 3 });
    for (let depth = 0; depth < 2; depth++) assert.is(r.go("leave", child, 0), 0);
    for (let depth = 0; depth < 3; depth++) assert.is(r.go("leave", parent, 0), 0);
    assert.equal(r.counts(parent), { entries: 3, returns: 3 });
    assert.equal(r.counts(child), { entries: 3, returns: 2, pending: 1 });
    assert.is(r.hits(sink), 5);
    r.ok(abi.OP_TASK_DESTROY, child);
    assert.is(r.unregister(consumer), 0);
    r.ok(abi.OP_SYNCHRONIZE);
    assert.equal(r.memory.uprobes(), { alive: 0, inTree: 0 });
    r.checkFaults();
  });
}

test.run();
