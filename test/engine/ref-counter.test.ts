// Reference counters in a target's memory: how many breakpoints of a probe an address space has.

import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { isErrno } from "../../src/engine/instance.js";
import { entryOf, strategyOf, type PresetName } from "../../src/engine/presets.js";
import { FILE_BYTES, Probes, VADDR } from "../helpers/probes.js";
import { all, leftovers } from "../helpers/solo.js";

const PRESETS = ["spinlock", "srcu", "speculative", "fastest"] as const;

const CODE_BYTES = 1024;
/** Where in the file the data begins, and the counters in it. */
const DATA = 2048;
const COUNTERS = [DATA + 16, DATA + 18] as const;
const [COUNTER] = COUNTERS;
const DATA_AT = VADDR + DATA;
const LATER = VADDR + 2 * FILE_BYTES;
/** Offset of a file's bytes: assembly/mm/inode.ts. */
const INODE_DATA = 40;

class Counters extends Probes {
  readonly preset: PresetName;

  /** A file whose counters are 0. */
  constructor(preset: PresetName, options = {}) {
    super(abi.INSN_NOP, { strategy: strategyOf(preset), ...options });
    this.preset = preset;
    const data = this.memory.load(this.inode + INODE_DATA);
    new Uint8Array(this.memory.memory.buffer).fill(0, data + DATA, data + FILE_BYTES);
  }

  code(vaddr = VADDR, mm = this.mm): number {
    return this.map(vaddr, mm, CODE_BYTES);
  }
  data(vaddr = DATA_AT, mm = this.mm): number {
    return this.map(vaddr, mm, 64, DATA);
  }

  /** A consumer, or an errno. */
  probe(offset: number, counter: number, sink: number, mm = 0, limit = 0): number {
    const last = [sink, 0, mm, limit, 0, 0, 0, counter];
    return this.op(abi.OP_REGISTER, this.inode, offset, ...last);
  }

  /** The counter at an address. */
  value(mm = this.mm, vaddr = DATA_AT + COUNTER - DATA): number {
    const at = this.ok(abi.OP_TEXT_AT, mm, vaddr);
    return new Uint16Array(this.memory.memory.buffer)[at >>> 1] ?? -1;
  }
  set(value: number): void {
    const at = this.ok(abi.OP_TEXT_AT, this.mm, DATA_AT + COUNTER - DATA);
    new Uint16Array(this.memory.memory.buffer)[at >>> 1] = value;
  }
}

for (const preset of PRESETS) {
  test(`ref counter: ${preset}: one for each breakpoint, however many consumers it has`, () => {
    const p = new Counters(preset);
    assert.is(p.code(), 0);
    assert.is(p.data(), 0);
    const sink = p.sink();
    const values: number[] = [p.value()];
    const consumers = [16, 16, 32].map((offset) => {
      const consumer = p.probe(offset, COUNTER, sink);
      values.push(p.value());
      return consumer;
    });
    assert.equal(values, [0, 1, 1, 2]);
    assert.is(p.code(LATER), 0, "the code once more");
    assert.is(p.value(), 4);
    assert.equal(
      consumers.map((consumer) => [p.unregister(consumer), p.value()]),
      [
        [0, 4],
        [0, 2],
        [0, 0],
      ],
    );
    p.checkFaults();
  });

  test(`ref counter: ${preset}: mapped after the breakpoint it is right as well, each time`, () => {
    const p = new Counters(preset);
    assert.is(p.code(), 0);
    const sink = p.sink();
    const consumer = p.probe(16, COUNTER, sink);
    assert.ok(p.isTrap(VADDR + 16));
    assert.is(p.op(abi.OP_TEXT_AT, p.mm, DATA_AT), abi.EINVAL, "not there yet");
    for (const _ of [1, 2]) {
      assert.is(p.data(), 0);
      assert.is(p.value(), 1);
      assert.is(p.op(abi.OP_MUNMAP, p.mm, DATA_AT), 0);
    }
    // All of the file, code and counters, in one further mapping; and the data again.
    assert.is(p.map(LATER), 0);
    assert.is(p.data(), 0);
    assert.equal([p.value(), p.value(p.mm, LATER + COUNTER)], [2, 2]);
    assert.is(p.op(abi.OP_MUNMAP, p.mm, LATER), 0);
    assert.is(p.value(), 1);
    assert.is(p.unregister(consumer), 0);
    assert.is(p.value(), 0);
    p.checkFaults();
  });

  test(`ref counter: ${preset}: unmapping the code lowers it, and leaves nothing`, () => {
    const p = new Counters(preset);
    const sink = p.sink();
    assert.is(p.unregister(p.probe(16, 0, sink)), 0);
    assert.is(p.data(), 0);
    assert.is(p.code(), 0);
    const first = p.probe(16, COUNTER, sink);
    p.ok(abi.OP_SYNCHRONIZE);
    const before = leftovers(p.memory);
    const second = p.probe(32, COUNTER, sink);
    assert.is(p.value(), 2);
    assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR), 0);
    assert.is(p.value(), 0);
    assert.is(p.code(), 0);
    assert.is(p.value(), 2);
    assert.is(p.unregister(second), 0);
    assert.is(p.value(), 1);
    p.ok(abi.OP_SYNCHRONIZE);
    assert.equal(leftovers(p.memory), before);
    assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR), 0);
    assert.is(p.unregister(first), 0);
    assert.is(p.value(), 0);
    p.checkFaults();
  });

  test(`ref counter: ${preset}: an address space without the breakpoint has 0`, () => {
    const p = new Counters(preset);
    const other = p.ok(abi.OP_MM_CREATE, 4);
    for (const mm of [p.mm, other]) {
      assert.is(p.code(VADDR, mm), 0);
      assert.is(p.data(DATA_AT, mm), 0);
    }
    const sink = p.sink();
    const mine = p.probe(16, COUNTER, sink, p.mm);
    assert.equal([p.value(), p.value(other)], [1, 0]);
    const everywhere = p.probe(16, COUNTER, sink);
    assert.equal([p.value(), p.value(other)], [1, 1]);
    assert.is(p.unregister(everywhere), 0);
    assert.equal([p.value(), p.value(other)], [1, 0]);
    assert.is(p.unregister(mine), 0);
    assert.equal([p.value(), p.value(other)], [0, 0]);
    p.checkFaults();
  });

  test(`ref counter: ${preset}: a child has its parent's, and its own from then on`, () => {
    const p = new Counters(preset);
    assert.is(p.code(), 0);
    assert.is(p.data(), 0);
    const sink = p.sink();
    const consumers = [p.probe(16, COUNTER, sink), p.probe(32, COUNTER, sink)] as const;
    const child = p.ok(abi.OP_MM_FORK, p.mm);
    assert.equal([p.value(), p.value(child)], [2, 2]);
    assert.is(p.op(abi.OP_MUNMAP, child, VADDR), 0);
    assert.equal([p.value(), p.value(child)], [2, 0]);
    assert.is(p.code(VADDR, child), 0);
    assert.is(p.unregister(consumers[0]), 0);
    assert.equal([p.value(), p.value(child)], [1, 1]);
    p.ok(abi.OP_MM_DESTROY, p.mm);
    assert.is(p.value(child), 1);
    assert.is(p.unregister(consumers[1]), 0);
    assert.is(p.value(child), 0);
    p.checkFaults();
  });

  test(`ref counter: ${preset}: a handler that removes its breakpoint lowers it, once`, () => {
    const p = new Counters(preset);
    assert.is(p.code(), 0);
    assert.is(p.data(), 0);
    const sink = p.sink();
    const consumer = p.probe(16, COUNTER, sink, 0, 1);
    const task = p.task(VADDR + 16);
    assert.is(p.value(), 1);
    assert.equal(p.trigger(task, 1, entryOf(preset, "trigger")), all("handled"));
    assert.is(p.value(), 0);
    assert.is(p.unregister(consumer), 0);
    assert.is(p.value(), 0);
    p.checkFaults();
  });

  test(`ref counter: ${preset}: one that the program has lowered stays 0, and is said`, () => {
    const p = new Counters(preset);
    assert.is(p.code(), 0);
    assert.is(p.data(), 0);
    const consumer = p.probe(16, COUNTER, p.sink());
    p.set(0);
    assert.is(p.unregister(consumer), 0);
    assert.is(p.value(), 0);
    assert.is(Object.keys(p.memory.faults()).length, 1);
  });

  test(`ref counter: ${preset}: none at an odd place, outside, or beside the probe's own`, () => {
    const p = new Counters(preset);
    assert.is(p.code(), 0);
    assert.is(p.data(), 0);
    const sink = p.sink();
    const there = p.probe(16, COUNTER, sink);
    const before = leftovers(p.memory);
    for (const counter of [COUNTER + 1, -2, FILE_BYTES, FILE_BYTES - 1]) {
      assert.is(p.probe(48, counter, sink), abi.EINVAL);
    }
    for (const counter of [0, COUNTERS[1]]) assert.is(p.probe(16, counter, sink), abi.EINVAL);
    assert.equal(leftovers(p.memory), before);
    assert.is(p.value(), 1);
    assert.is(p.unregister(there), 0);
    const another = p.probe(16, COUNTERS[1], sink);
    assert.not(isErrno(another), "the next probe there may have another");
    assert.equal([p.value(), p.value(p.mm, DATA_AT + COUNTERS[1] - DATA)], [0, 1]);
    p.checkFaults();
  });

  test(`ref counter: ${preset}: without memory to note it the probe is not registered`, () => {
    const outcomes = new Set<number>();
    for (let lines = 0; lines < 12; lines++) {
      const p = new Counters(preset, { memoryBytes: 2 * 65_536 });
      assert.is(p.code(), 0);
      assert.is(p.data(), 0);
      const sink = p.sink();
      const task = p.task(VADDR + 16);
      p.unregister(p.probe(16, 0, sink)); // what stays with the address space
      p.ok(abi.OP_SYNCHRONIZE);
      const at = p.ok(abi.OP_TEXT_AT, p.mm, DATA_AT + COUNTER - DATA) >>> 1;
      const blocks: [number, number][] = [];
      for (const bytes of [192, 64]) {
        for (;;) {
          const block = p.op(abi.OP_ALLOC, bytes);
          if (block === abi.ENOMEM) break;
          blocks.push([block, bytes]);
        }
      }
      const wide = blocks.filter(([, bytes]) => bytes === 192).slice(0, Math.floor(lines / 3));
      const narrow = blocks.filter(([, bytes]) => bytes === 64).slice(0, lines % 3);
      for (const [block, bytes] of [...wide, ...narrow]) p.ok(abi.OP_FREE, block, bytes);
      const before = leftovers(p.memory);
      const consumer = p.probe(16, COUNTER, sink);
      const failed = isErrno(consumer);
      outcomes.add(failed ? consumer : 0);
      const words = new Uint16Array(p.memory.memory.buffer);
      assert.is(p.fetch(task, VADDR + 16), failed ? abi.INSN_NOP : abi.INSN_TRAP);
      assert.is(words[at], failed ? 0 : 1);
      if (!failed) assert.is(p.unregister(consumer), 0);
      p.ok(abi.OP_SYNCHRONIZE);
      assert.is(words[at], 0);
      assert.equal(leftovers(p.memory), before, `${lines} lines`);
      p.checkFaults();
    }
    assert.equal([...outcomes].sort(), [abi.ENOMEM, 0].sort());
  });
}

// Everything at once against a naive model: a counter says how many of its probes' places in the
// address space have a trap byte.
test("ref counter: it is the number of breakpoints, after any order of all operations", () => {
  const step = fc.oneof(
    fc.record({ at: fc.nat(3), what: fc.constantFrom("code", "data", "all"), mm: fc.nat(2) }),
    fc.record({ unmap: fc.nat() }),
    fc.record({ register: fc.nat(5), only: fc.nat(4) }),
    fc.record({ unregister: fc.nat() }),
    fc.record({ fork: fc.nat(2) }),
  );
  const property = (preset: PresetName) =>
    fc.property(fc.array(step, { minLength: 10, maxLength: 60 }), (steps) => {
      const p = new Counters(preset);
      const sink = p.sink();
      const mms = [p.mm];
      let maps: { vaddr: number; from: number; bytes: number; mm: number }[] = [];
      const consumers: number[] = [];
      const at = (mm: number, offset: number) =>
        maps
          .filter((m) => m.mm === mm && m.from <= offset && offset < m.from + m.bytes)
          .map((m) => m.vaddr + offset - m.from);
      for (const one of steps) {
        if ("what" in one) {
          const vaddr = VADDR + one.at * FILE_BYTES;
          const mm = mms[one.mm % mms.length] ?? 0;
          const from = one.what === "data" ? DATA : 0;
          const bytes = { code: CODE_BYTES, data: 64, all: FILE_BYTES }[one.what];
          if (p.map(vaddr, mm, bytes, from) === 0) maps.push({ vaddr, from, bytes, mm });
        } else if ("unmap" in one) {
          const [gone] = maps.splice(one.unmap % Math.max(1, maps.length), 1);
          if (gone) p.ok(abi.OP_MUNMAP, gone.mm, gone.vaddr);
        } else if ("register" in one) {
          const i = one.register;
          consumers.push(p.probe(i * 16, COUNTERS[i % 2] ?? 0, sink, mms[one.only] ?? 0));
        } else if ("unregister" in one) {
          const [gone] = consumers.splice(one.unregister % Math.max(1, consumers.length), 1);
          if (gone !== undefined) assert.is(p.unregister(gone), 0);
        } else if (mms.length < 3) {
          const parent = mms[one.fork % mms.length] ?? 0;
          const child = p.ok(abi.OP_MM_FORK, parent);
          mms.push(child);
          maps = [
            ...maps,
            ...maps.filter((m) => m.mm === parent).map((m) => ({ ...m, mm: child })),
          ];
        }
        for (const mm of mms) {
          for (const [which, counter] of COUNTERS.entries()) {
            const sites = [0, 1, 2, 3, 4, 5].filter((i) => i % 2 === which);
            const traps = sites.flatMap((i) => at(mm, i * 16)).filter((v) => p.isTrap(v, mm));
            for (const vaddr of at(mm, counter)) assert.is(p.value(mm, vaddr), traps.length);
          }
        }
      }
      for (const consumer of consumers) assert.is(p.unregister(consumer), 0);
      for (const mm of mms) {
        for (const vaddr of COUNTERS.flatMap((counter) => at(mm, counter))) {
          assert.is(p.value(mm, vaddr), 0);
        }
      }
      p.checkFaults();
    });
  for (const preset of ["rwlock", "fastest"] as const) fc.assert(property(preset), { numRuns: 40 });
});

test.run();
