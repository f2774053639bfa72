// Many probes at once: registered all or none, taken away with one grace period.

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { isErrno } from "../../src/engine/instance.js";
import { PRESET_NAMES, strategyOf } from "../../src/engine/presets.js";
import { FILE_BYTES, Probes, VADDR } from "../helpers/probes.js";
import { all, leftovers } from "../helpers/solo.js";

const STRIDE = 16;

/** One entry: inode, offset, sink, and the further arguments of OP_REGISTER. */
type Entry = readonly [inode: number, offset: number, sink: number, ...rest: number[]];

class Batch extends Probes {
  /** The result, and each entry's. */
  registerBatch(entries: readonly Entry[]): { result: number; each: number[] } {
    const bytes = entries.length * abi.BATCH_BYTES;
    const list = this.ok(abi.OP_ALLOC, bytes);
    for (const [i, entry] of entries.entries()) {
      for (const [j, word] of entry.entries()) {
        this.memory.store(list + i * abi.BATCH_BYTES + 4 * j, word);
      }
    }
    const result = this.op(abi.OP_REGISTER_BATCH, list, entries.length);
    const each = entries.map((_, i) =>
      this.memory.load(list + i * abi.BATCH_BYTES + abi.BATCH_RESULT),
    );
    this.ok(abi.OP_FREE, list, bytes);
    return { result, each };
  }

  unregisterMany(consumers: readonly number[]): { result: number; each: number[] } {
    const list = this.ok(abi.OP_ALLOC, consumers.length * 4);
    for (const [i, consumer] of consumers.entries()) this.memory.store(list + 4 * i, consumer);
    const result = this.op(abi.OP_UNREGISTER_MANY, list, consumers.length);
    const each = consumers.map((_, i) => this.memory.load(list + 4 * i));
    this.ok(abi.OP_FREE, list, consumers.length * 4);
    return { result, each };
  }

  /** Grace periods of the readers that hits are. */
  periods(): number {
    return Object.values(this.memory.graceOfEngine()).reduce((sum, g) => sum + g.completed, 0);
  }
}

const sites = (p: Batch, n: number): boolean[] =>
  Array.from({ length: n }, (_, i) => p.isTrap(VADDR + i * STRIDE));

for (const preset of PRESET_NAMES) {
  const options = { strategy: strategyOf(preset), uprobesMax: 40 };

  test(`batch: ${preset}: registers all its entries, each as it says, and takes them away`, () => {
    const p = new Batch(abi.INSN_NOP, options);
    assert.is(p.map(), 0);
    const sinks = [p.sink(), p.sink()] as const;
    assert.is(p.unregister(p.register(0, sinks[0])), 0); // what stays with the address space
    p.ok(abi.OP_SYNCHRONIZE);
    const before = leftovers(p.memory);
    // The second of two at one place is for another task only.
    const entries = Array.from({ length: 20 }, (_, i): Entry[] => [
      [p.inode, i * STRIDE, sinks[0]],
      [p.inode, i * STRIDE, sinks[1], 99],
    ]).flat();
    const { result, each } = p.registerBatch(entries);
    assert.is(result, 0);
    assert.is(new Set(each).size, 40, "a consumer of its own for each");
    assert.not(each.some((c) => c === 0 || isErrno(c)));
    assert.equal(sites(p, 21), [...Array<boolean>(20).fill(true), false]);
    for (let i = 0; i < 20; i++) assert.equal(p.call1(VADDR + i * STRIDE), all("handled"));
    assert.equal([p.hits(sinks[0]), p.hits(sinks[1])], [20, 0]);
    assert.equal(p.call1(VADDR, p.mm, 99), all("handled"));
    assert.equal([p.hits(sinks[0]), p.hits(sinks[1])], [21, 1]);

    assert.equal(p.unregisterMany(each), { result: 0, each: each.map(() => 0) });
    assert.equal(sites(p, 20), Array<boolean>(20).fill(false));
    p.ok(abi.OP_SYNCHRONIZE);
    assert.equal(leftovers(p.memory), before);
    p.checkFaults();
  });

  for (const [what, bad, errno] of [
    ["a place outside of the file", FILE_BYTES, abi.EINVAL],
    ["a full table", -1, abi.ENOSPC],
  ] as const) {
    test(`batch: ${preset}: with ${what} nothing of it is left, and the entry says why`, () => {
      const p = new Batch(abi.INSN_NOP, options);
      assert.is(p.map(), 0);
      const sink = p.sink();
      const other = p.register(0, sink);
      const before = leftovers(p.memory);
      const entries = Array.from({ length: 60 }, (_, i): Entry => {
        return [p.inode, i === 30 && bad > 0 ? bad : i * STRIDE, sink];
      });
      const { result, each } = p.registerBatch(entries);
      assert.is(result, errno);
      const failed = errno === abi.EINVAL ? 30 : 40;
      assert.equal(
        each,
        entries.map((_, i) => (i === failed ? errno : 0)),
      );
      assert.equal(sites(p, 60), [true, ...Array<boolean>(59).fill(false)]);
      p.ok(abi.OP_SYNCHRONIZE);
      assert.equal(leftovers(p.memory), before);
      assert.is(p.unregister(other), 0);
      p.checkFaults();
    });
  }

  test(`batch: ${preset}: many are taken away with as many grace periods as one is`, () => {
    const p = new Batch(abi.INSN_NOP, options);
    assert.is(p.map(), 0);
    const sink = p.sink();
    const entries = Array.from({ length: 30 }, (_, i): Entry => [p.inode, i * STRIDE, sink]);
    const { each } = p.registerBatch(entries);
    let from = p.periods();
    assert.is(p.unregister(each.pop() ?? 0), 0);
    const ofOne = p.periods() - from;
    from = p.periods();
    assert.is(p.unregisterMany(each).result, 0);
    assert.is(p.periods() - from, ofOne);
    p.checkFaults();
  });

  test(`batch: ${preset}: what is not registered, or named twice, does not keep the others`, () => {
    const p = new Batch(abi.INSN_NOP, options);
    assert.is(p.map(), 0);
    const sink = p.sink();
    const [a, b, gone] = [p.register(0, sink), p.register(16, sink), p.register(32, sink)];
    assert.is(p.unregister(gone), 0);
    const { result, each } = p.unregisterMany([a, gone, a, b]);
    assert.is(result, abi.EINVAL);
    assert.equal(each, [0, abi.EINVAL, abi.EINVAL, 0]);
    assert.equal(sites(p, 3), [false, false, false]);
    p.checkFaults();
  });
}

test.run();
