// Address spaces: what mmap refuses, what munmap gives back, and lookups among many mappings.

import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { FILE_BYTES, Probes, VADDR } from "../helpers/probes.js";
import { all, leftovers } from "../helpers/solo.js";

test("mmap: what overlaps is EEXIST from every side, what touches is not", () => {
  const p = new Probes();
  assert.is(p.map(VADDR, p.mm, 1024), 0);
  const before = leftovers(p.memory);
  const overlapping = [
    [VADDR, 1024],
    [VADDR, 1],
    [VADDR + 1023, 1],
    [VADDR + 1023, 1024],
    [VADDR - 1, 2],
    [VADDR - 1023, 1024],
    [VADDR - 1024, 4096],
    [VADDR + 512, 16],
  ] as const;
  for (const [vaddr, bytes] of overlapping) {
    assert.is(p.map(vaddr, p.mm, bytes), abi.EEXIST, `${bytes} bytes at ${vaddr.toString(16)}`);
  }
  assert.equal(leftovers(p.memory), before, "an error leaves nothing behind");
  assert.is(p.map(VADDR + 1024, p.mm, 1024), 0, "after it");
  assert.is(p.map(VADDR - 1024, p.mm, 1024), 0, "before it");
  assert.is(p.map(VADDR + 512, p.mm, 16), abi.EEXIST);
});

test("mmap: outside of the file, empty, at 0 and beyond the last address is EINVAL", () => {
  const p = new Probes();
  const before = leftovers(p.memory);
  const wrong = [
    [VADDR, 0, 0],
    [VADDR, -16, 0],
    [0, 16, 0],
    [VADDR, FILE_BYTES + 1, 0],
    [VADDR, FILE_BYTES, 1],
    [VADDR, 16, FILE_BYTES - 15],
    [VADDR, 16, FILE_BYTES],
    [VADDR, 16, -16],
    [VADDR, 2 ** 31 - 1, 2 ** 31 - 1],
    [0xffff_fff0, 32, 0],
    [0xffff_fff0, 16, 0],
  ] as const;
  for (const [vaddr, bytes, pgoff] of wrong) {
    const what = `${bytes} bytes of offset ${pgoff} at ${vaddr.toString(16)}`;
    assert.is(p.map(vaddr, p.mm, bytes, pgoff), abi.EINVAL, what);
  }
  assert.equal(leftovers(p.memory), before);
  assert.is(p.map(VADDR, p.mm, 16, FILE_BYTES - 16), 0, "the file's last bytes are inside");
});

test("mmap: one mapping too many is ENOSPC, and a munmap makes room", () => {
  const p = new Probes();
  const mm = p.ok(abi.OP_MM_CREATE, 3);
  for (let i = 0; i < 3; i++) assert.is(p.map(VADDR + i * FILE_BYTES, mm), 0);
  const before = leftovers(p.memory);
  assert.is(p.map(VADDR - FILE_BYTES, mm), abi.ENOSPC);
  assert.equal(leftovers(p.memory), before);
  assert.is(p.op(abi.OP_MUNMAP, mm, VADDR + FILE_BYTES), 0);
  assert.is(p.map(VADDR - FILE_BYTES, mm), 0);
  const none = p.ok(abi.OP_MM_CREATE, 0);
  assert.is(p.map(VADDR, none), abi.ENOSPC, "a table without room at all");
});

test("mmap: a full arena is ENOMEM and leaves nothing behind", () => {
  const p = new Probes(abi.INSN_NOP, { memoryBytes: 3 * 65_536 });
  let vaddr = VADDR;
  let before = leftovers(p.memory);
  const mm = p.ok(abi.OP_MM_CREATE, 1000);
  for (;;) {
    before = leftovers(p.memory);
    const rc = p.map(vaddr, mm);
    if (rc !== 0) {
      assert.is(rc, abi.ENOMEM);
      break;
    }
    vaddr += FILE_BYTES;
  }
  assert.ok(vaddr > VADDR + 10 * FILE_BYTES);
  assert.equal(leftovers(p.memory), before);
  assert.is(p.task(vaddr, mm), abi.EINVAL, "nothing is mapped there");
  p.checkFaults();
});

test("munmap: only where a mapping begins, and its text is given back", () => {
  const p = new Probes();
  const before = leftovers(p.memory);
  assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR), abi.EINVAL, "an empty address space");
  assert.is(p.map(), 0);
  assert.is(p.map(VADDR + FILE_BYTES), 0);
  for (const vaddr of [VADDR + 1, VADDR - 1, VADDR + FILE_BYTES - 1, VADDR + 2 * FILE_BYTES]) {
    assert.is(p.op(abi.OP_MUNMAP, p.mm, vaddr), abi.EINVAL, vaddr.toString(16));
  }
  assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR), 0);
  assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR), abi.EINVAL, "twice");
  assert.is(p.task(VADDR), abi.EINVAL, "not mapped any more");
  assert.equal(p.call1(VADDR + FILE_BYTES), all("no-probe"), "its neighbour still is");
  assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR + FILE_BYTES), 0);
  assert.equal(leftovers(p.memory), before);
});

test("an inode is EBUSY until its last mapping is gone", () => {
  const p = new Probes();
  const before = leftovers(p.memory);
  const inode = p.ok(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_RET);
  const other = p.ok(abi.OP_MM_CREATE, 2);
  assert.is(p.map(VADDR, p.mm, 16, 0, inode), 0);
  assert.is(p.map(VADDR, other, 16, 32, inode), 0);
  assert.is(p.op(abi.OP_INODE_DESTROY, inode), abi.EBUSY);
  assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR), 0);
  assert.is(p.op(abi.OP_INODE_DESTROY, inode), abi.EBUSY);
  assert.is(p.op(abi.OP_MM_DESTROY, other), 0);
  assert.is(p.op(abi.OP_INODE_DESTROY, inode), 0);
  assert.equal(leftovers(p.memory), before);
});

test("an inode is EBUSY until its last probe is gone", () => {
  const p = new Probes();
  const sink = p.sink();
  const before = leftovers(p.memory);
  const inode = p.ok(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_NOP);
  const consumer = p.register(64, sink, {}, inode);
  assert.is(p.op(abi.OP_INODE_DESTROY, inode), abi.EBUSY);
  assert.is(p.unregister(consumer), 0);
  assert.is(p.op(abi.OP_INODE_DESTROY, inode), 0);
  assert.equal(leftovers(p.memory), before);
});

test("destroying an address space frees all its mappings, and the files know", () => {
  const p = new Probes();
  const before = leftovers(p.memory);
  const mm = p.ok(abi.OP_MM_CREATE, 16);
  const files = [abi.INSN_NOP, abi.INSN_PUSH].map((opcode) =>
    p.ok(abi.OP_INODE_CREATE, FILE_BYTES, opcode),
  );
  for (let i = 0; i < 16; i++) {
    assert.is(p.map(VADDR + 128 * i, mm, 16 * (i % 8) + 16, 0, files[i % 2]), 0);
  }
  assert.is(p.op(abi.OP_MM_DESTROY, mm), 0);
  for (const inode of files) assert.is(p.op(abi.OP_INODE_DESTROY, inode), 0);
  assert.equal(leftovers(p.memory), before);
});

// One file whose byte at offset o is probed when bit 4 of o is set: where a hit is handled tells
// which offset of the file an address was resolved to.
test("lookup: every address is resolved to its mapping, in any order of mmap and munmap", () => {
  const UNIT = 16;
  const map = fc.record({
    at: fc.nat(40),
    units: fc.integer({ min: 1, max: 6 }),
    from: fc.nat(20),
  });
  const step = fc.oneof(
    { weight: 3, arbitrary: map },
    { weight: 1, arbitrary: fc.record({ unmap: fc.nat() }) },
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) => {
      const p = new Probes();
      const sink = p.sink();
      for (let offset = UNIT; offset < 30 * UNIT; offset += 2 * UNIT) {
        p.ok(abi.OP_REGISTER, p.inode, offset, sink);
      }
      let live: { at: number; units: number; from: number }[] = [];
      for (const one of steps) {
        if ("unmap" in one) {
          const [gone] = live.splice(one.unmap % Math.max(1, live.length), 1);
          if (gone) assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR + gone.at * UNIT), 0);
          continue;
        }
        const { at, units, from } = one;
        const overlaps = live.some((m) => m.at < at + units && at < m.at + m.units);
        const full = live.length === 16;
        const rc = p.map(VADDR + at * UNIT, p.mm, units * UNIT, from * UNIT);
        assert.is(rc, full ? abi.ENOSPC : overlaps ? abi.EEXIST : 0);
        if (rc === 0) live = [...live, one];
      }
      for (let at = 0; at < 48; at++) {
        const mapping = live.find((m) => m.at <= at && at < m.at + m.units);
        const vaddr = VADDR + at * UNIT;
        if (mapping === undefined) {
          assert.is(p.task(vaddr), abi.EINVAL, `${at} is not mapped`);
          assert.is(p.task(vaddr + UNIT - 1), abi.EINVAL);
          continue;
        }
        const probed = (mapping.from + at - mapping.at) % 2 === 1;
        assert.equal(p.call1(vaddr), all(probed ? "handled" : "no-probe"), `${at}`);
        assert.equal(p.call1(vaddr + 1), all("no-probe"), `${at}, one byte further`);
      }
      p.checkFaults();
    }),
    { numRuns: 40 },
  );
});

test("a task's calls must all lie in one mapping", () => {
  const p = new Probes();
  assert.is(p.map(VADDR, p.mm, 64), 0);
  assert.is(p.map(VADDR + 64, p.mm, 64), 0);
  const before = leftovers(p.memory);
  assert.is(p.task(VADDR, p.mm, 1, 5), abi.EINVAL, "the fifth function is in the next mapping");
  assert.is(p.task(VADDR - 16, p.mm, 1, 2), abi.EINVAL);
  assert.is(p.task(VADDR, p.mm, 1, 0), abi.EINVAL);
  assert.equal(leftovers(p.memory), before);
  const task = p.task(VADDR, p.mm, 1, 4);
  assert.equal(p.trigger(task, 100, "trigger_rwlock_many"), all("no-probe", 100));
});

test.run();
