// Returns that `fastest` counts in user mode's own loop: as if each had been two exceptions.

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { Probes, VADDR } from "../helpers/probes.js";

/** Offsets in a task (uprobe/task.ts). */
const UTASK_VADDR = 132;
const RETURN_STACK = 404;
/** Offset of the state in a return instance; what it is after the return. */
const RI_STATE = 4;
const CONSUMED = 3;
const RI_BYTES = 64;
const { CONSUMER_ENTRY, CONSUMER_RETURN, CONSUMER_SESSION } = abi;

const INSNS = { nop: abi.INSN_NOP, push: abi.INSN_PUSH, ret: abi.INSN_RET };

class Fastest extends Probes {
  /** `general`: exceptions take time, so that every one is a hit of the general path. */
  constructor(opcode: number, general = false) {
    super(opcode, { strategy: abi.PRESET_FASTEST, trapUnits: general ? 1 : 0 });
    assert.is(this.map(), 0);
  }
  probe(offset: number, sink: number, kind: number = CONSUMER_RETURN, returnSink = 0): number {
    return this.ok(abi.OP_REGISTER, this.inode, offset, sink, 0, 0, 0, 0, kind, returnSink);
  }
  nhit(consumer: number): number {
    return this.memory.load64(this.memory.load(consumer + abi.CONSUMER_NHIT_SLOT));
  }
  repeat(task: number, n: number): void {
    this.call(0, "trigger_fastest", task, n);
  }
  returns(task: number): { entries: number; returns: number; pending: number } {
    return {
      entries: this.memory.load64(task + abi.TASK_RETURN_ENTRIES),
      returns: this.memory.load64(task + abi.TASK_RETURNS),
      pending: this.memory.load(task + abi.TASK_RETURN_PENDING),
    };
  }
  /** All that a task is, but for what only an exception saves: the argument, and where it was. */
  taskBytes(task: number): number[] {
    const bytes = [...new Uint8Array(this.memory.memory.buffer, task, abi.TASK_BYTES)];
    bytes.fill(0, abi.TASK_DI, abi.TASK_DI + 8);
    bytes.fill(0, UTASK_VADDR, UTASK_VADDR + 4);
    return bytes;
  }
  instance(task: number): number[] {
    const at = this.memory.load(task + RETURN_STACK);
    return [...new Uint8Array(this.memory.memory.buffer, at, RI_BYTES)];
  }
  /** Where the word is that counts for `consumer` at `vaddr` (uprobe/breakpoints.ts). */
  wordAt(vaddr: number, consumer: number): number {
    const { i32 } = this.memory;
    const slot = this.memory.load(consumer + abi.CONSUMER_NHIT_SLOT);
    const found: number[] = [];
    for (let at = 0; at < i32.length; at += 4) {
      if (i32[at] === vaddr && i32[at + 2] === slot) found.push(4 * at + 8);
    }
    assert.is(found.length, 1, "one place");
    return found[0] as number;
  }
}

for (const [name, opcode] of Object.entries(INSNS)) {
  test(`fast returns: after calls of a ${name} function the task is as after exceptions`, () => {
    const [fast, general] = [false, true].map((slow) => {
      const p = new Fastest(opcode, slow);
      const sink = p.sink();
      const consumer = p.probe(0, sink);
      const task = p.task();
      p.repeat(task, 9000);
      p.checkFaults();
      assert.equal(p.returns(task), { entries: 9000, returns: 9000, pending: 0 });
      return {
        task: p.taskBytes(task),
        instance: p.instance(task),
        nhit: p.nhit(consumer),
        hits: p.hits(sink),
      };
    });
    assert.equal(fast, general);
    assert.is(fast?.nhit, 9000);
    assert.is(fast?.instance[RI_STATE], CONSUMED);
  });

  test(`fast returns: ${name} functions in random order, of every kind of consumer`, () => {
    const [fast, general] = [false, true].map((slow) => {
      const p = new Fastest(opcode, slow);
      const sinks = Array.from({ length: 7 }, () => p.sink());
      const [s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0] = sinks;
      const consumers = [
        p.probe(0, s0),
        p.probe(16, s1, CONSUMER_ENTRY),
        p.probe(32, s2),
        p.probe(32, s3),
        p.probe(48, s4, CONSUMER_SESSION, s5),
        p.probe(64, s6, CONSUMER_RETURN, s0),
        p.ok(abi.OP_REGISTER, p.inode, 96, s6, 7, 0, 0, 0, CONSUMER_RETURN, 0), // filtered
      ];
      const task = p.ok(abi.OP_TASK_CREATE, p.mm, 1, VADDR, 16, 8, 1); // two without a probe
      p.call(0, "trigger_fastest_many", task, 20_000);
      p.checkFaults();
      return {
        counts: p.memory.task(task),
        returns: p.returns(task),
        stack: p.taskBytes(task).slice(768),
        nhits: consumers.map((c) => p.nhit(c)),
        hits: sinks.map((s) => p.hits(s)),
      };
    });
    assert.equal(fast, general);
    assert.ok(fast?.hits.slice(0, 6).every((n) => n > 2000));
  });
}

test("fast returns: another consumer is seen from its registration to its unregistration", () => {
  const p = new Fastest(abi.INSN_NOP);
  const [a, b, entries] = [p.sink(), p.sink(), p.sink()];
  const first = p.probe(0, a);
  const task = p.task();
  p.repeat(task, 100);
  const second = p.probe(0, b);
  p.repeat(task, 100);
  assert.equal([p.hits(a), p.hits(b)], [200, 100]);
  assert.is(p.unregister(first), 0);
  p.repeat(task, 100);
  assert.equal([p.hits(a), p.hits(b)], [200, 200]);
  assert.is(p.unregister(second), 0);
  const third = p.probe(0, entries, CONSUMER_ENTRY);
  p.repeat(task, 100);
  assert.equal(p.returns(task), { entries: 300, returns: 300, pending: 0 });
  assert.equal([p.hits(entries), p.nhit(third)], [100, 100]);
  assert.is(p.unregister(third), 0);
  p.repeat(task, 100);
  assert.is(p.memory.task(task).missed["no-probe"], 100);
  p.checkFaults();
});

test("fast returns: a task with pending returns keeps them, and other tasks theirs", () => {
  const p = new Fastest(abi.INSN_NOP);
  const sink = p.sink();
  for (let site = 0; site < 8; site++) p.probe(16 * site, sink);
  const nested = () => p.ok(abi.OP_TASK_CREATE, p.mm, 1, VADDR, 16, 8, 1, 8192);
  const [task, other] = [nested(), nested()];
  for (let depth = 1; depth <= 3; depth++) {
    for (const t of [task, other]) {
      p.call(0, "enter_fastest", t, VADDR + 16 * depth, depth);
      p.repeat(t, 100);
      assert.equal(p.returns(t), { entries: 101 * depth, returns: 100 * depth, pending: depth });
    }
  }
  for (let depth = 2; depth >= 0; depth--) {
    for (const t of [other, task]) {
      assert.is(p.call(0, "leave_fastest", t, 0), 0);
      p.repeat(t, 50);
      assert.is(p.returns(t).pending, depth);
    }
  }
  for (const t of [task, other]) {
    assert.equal(p.returns(t), { entries: 453, returns: 453, pending: 0 });
  }
  assert.is(p.hits(sink), 906);
  p.checkFaults();
});

// What a registration on another CPU does to the word between a call's entry and its return, done
// by the call itself: its push writes over the word.
for (const [then, kind, returned] of [
  ["another's return", CONSUMER_RETURN, 3],
  ["an entry only", CONSUMER_ENTRY, 2],
] as const) {
  test(`fast returns: a consumer that is replaced in the call, by ${then}, is not asked`, () => {
    const p = new Fastest(abi.INSN_PUSH);
    const vaddr = VADDR + 5 * 16;
    const [a, b] = [p.sink(), p.sink()];
    const task = p.task(vaddr);
    const { i64 } = p.memory;
    const first = p.probe(5 * 16, a);
    p.repeat(task, 2); // from the second call on the loop has a place for its instance
    const at = p.wordAt(vaddr, first) / 8;
    const word = i64[at] as bigint;
    assert.is(p.unregister(first), 0);
    p.probe(5 * 16, b, kind);
    const sp = i64[(task + abi.TASK_SP) / 8] as bigint;
    i64[(task + abi.TASK_BP) / 8] = i64[at] as bigint;
    i64[at] = word; // of the first one, as the entry found it
    i64[(task + abi.TASK_SP) / 8] = BigInt(8 * at + 16);
    p.repeat(task, 1);
    i64[(task + abi.TASK_SP) / 8] = sp;
    assert.equal(p.returns(task), { entries: 3, returns: returned, pending: 0 });
    assert.equal([p.hits(a), p.hits(b)], [2, returned - 2]);
    const none = p.memory.load64(task + abi.TASK_RETURN_NO_CONSUMER);
    assert.is(none, 3 - returned);
    p.checkFaults();
  });
}

test.run();
