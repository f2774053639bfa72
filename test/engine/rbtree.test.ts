// The probe table's red-black tree: its rules after every few changes, and what it finds.

import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { createRandom } from "../../src/base/random.js";
import { isErrno } from "../../src/engine/instance.js";
import { FILE_BYTES, Probes, VADDR } from "../helpers/probes.js";
import { all, leftovers } from "../helpers/solo.js";

/** The tree's rules hold and it has so many nodes. */
function checkTree(p: Probes, nodes: number): void {
  assert.is(p.op(abi.OP_CHECK_TREE), nodes);
  p.checkFaults();
  assert.is(p.memory.uprobes().inTree, nodes);
}

test("tree: thousands of random registrations and unregistrations keep every rule", () => {
  const p = new Probes(abi.INSN_PUSH, { uprobesMax: 4096 });
  const inodes = [p.inode];
  for (let i = 0; i < 3; i++) inodes.push(p.ok(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_NOP));
  const sink = p.sink();
  const before = leftovers(p.memory);
  const seed = Number(process.env["WASMPROBE_SEED"] ?? 1);
  const random = createRandom(seed);
  const consumers = new Map<string, number[]>();
  // Few keys for a while, then many, then few again: the tree grows and shrinks.
  for (let i = 0; i < 12_000; i++) {
    const inode = random.pick(inodes);
    const offset = random.below(i % 4000 < 2000 ? 40 : 1500);
    const key = `${inode} ${offset}`;
    const there = consumers.get(key) ?? [];
    if (there.length > 0 && random.chance(0.55)) {
      const consumer = there.splice(random.below(there.length), 1)[0] as number;
      assert.is(p.unregister(consumer), 0);
      if (there.length === 0) consumers.delete(key);
    } else {
      const consumer = p.register(offset, sink, {}, inode);
      assert.not(isErrno(consumer), `register: ${consumer}`);
      consumers.set(key, [...there, consumer]);
    }
    if (i % 8 === 0) checkTree(p, consumers.size);
  }
  for (const consumer of [...consumers.values()].flat()) assert.is(p.unregister(consumer), 0);
  checkTree(p, 0);
  assert.equal(leftovers(p.memory), before);
});

for (const [order, keyAt] of [
  ["ascending", (i: number) => i],
  ["descending", (i: number) => 999 - i],
  ["zigzag", (i: number) => (i % 2 === 0 ? i >> 1 : 999 - (i >> 1))],
] as const) {
  test(`tree: keys in ${order} order are balanced while they come and while they go`, () => {
    const p = new Probes();
    const sink = p.sink();
    const consumers: number[] = [];
    for (let i = 0; i < 1000; i++) {
      consumers.push(p.register(keyAt(i), sink));
      checkTree(p, i + 1);
    }
    for (const [i, consumer] of consumers.entries()) {
      assert.is(p.unregister(consumer), 0);
      checkTree(p, 999 - i);
    }
  });
}

test("tree: every key that is there is found, and no other", () => {
  const keys = fc.uniqueArray(fc.nat(255), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(keys, keys, (come, go) => {
      const p = new Probes();
      assert.is(p.map(), 0);
      const sink = p.sink();
      const there = new Map(come.map((key) => [key, p.register(16 * key, sink)]));
      for (const key of go) {
        const consumer = there.get(key);
        if (consumer === undefined) continue;
        assert.is(p.unregister(consumer), 0);
        there.delete(key);
      }
      checkTree(p, there.size);
      for (let key = 0; key < 256; key++) {
        const outcome = there.has(key) ? "handled" : "no-probe";
        assert.equal(p.call1(VADDR + 16 * key), all(outcome), `key ${key}`);
      }
    }),
    { numRuns: 30 },
  );
});

test("tree: keys of different files are different keys", () => {
  const p = new Probes();
  const other = p.ok(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_NOP);
  assert.is(p.map(), 0);
  assert.is(p.map(VADDR + FILE_BYTES, p.mm, FILE_BYTES, 0, other), 0);
  const sink = p.sink();
  const consumer = p.register(32, sink, {}, other);
  assert.equal(p.call1(VADDR + 32), all("no-probe"));
  assert.equal(p.call1(VADDR + FILE_BYTES + 32), all("handled"));
  p.register(32, sink);
  checkTree(p, 2);
  assert.is(p.unregister(consumer), 0);
  assert.equal(p.call1(VADDR + 32), all("handled"));
  assert.equal(p.call1(VADDR + FILE_BYTES + 32), all("no-probe"));
});

test("a full table is ENOSPC for new keys; existing keys still take consumers", () => {
  const p = new Probes(abi.INSN_NOP, { uprobesMax: 8 });
  assert.is(p.map(), 0);
  const sinks = Array.from({ length: 10 }, () => p.sink());
  const consumers = sinks.slice(0, 8).map((sink, i) => p.register(16 * i, sink));
  const before = leftovers(p.memory);
  assert.is(p.register(16 * 8, sinks[8] as number), abi.ENOSPC);
  assert.is(p.register(1, sinks[8] as number), abi.ENOSPC);
  assert.equal(leftovers(p.memory), before, "an error leaves nothing behind");
  checkTree(p, 8);
  const second = p.register(16 * 3, sinks[9] as number);
  assert.not(isErrno(second));
  assert.equal(p.call1(VADDR + 16 * 3), all("handled"));
  assert.equal([p.hits(sinks[3] as number), p.hits(sinks[9] as number)], [1, 1]);

  assert.is(p.unregister(consumers[3] as number), 0);
  assert.is(p.register(16 * 8, sinks[8] as number), abi.ENOSPC, "the key is still in use");
  assert.is(p.unregister(second), 0);
  assert.not(isErrno(p.register(16 * 8, sinks[8] as number)), "now there is room");
  checkTree(p, 8);
});

test("a table for no probes is full from the start", () => {
  const p = new Probes(abi.INSN_NOP, { uprobesMax: 0 });
  assert.is(p.register(0, p.sink()), abi.ENOSPC);
  checkTree(p, 0);
});

test.run();
