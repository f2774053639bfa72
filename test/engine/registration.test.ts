// Registration: where breakpoints are and are not, who takes a hit, and what an error leaves.

import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { isErrno } from "../../src/engine/instance.js";
import { FILE_BYTES, Probes, VADDR } from "../helpers/probes.js";
import { all, leftovers } from "../helpers/solo.js";

const SECOND = VADDR + 2 * FILE_BYTES;
const LATER = VADDR + 4 * FILE_BYTES;

test("C12: a probe is in every mapping there is, and in every one that comes later", () => {
  const p = new Probes();
  const other = p.ok(abi.OP_MM_CREATE, 4);
  assert.is(p.map(VADDR), 0);
  assert.is(p.map(SECOND, p.mm, 256, 1024), 0);
  assert.is(p.map(VADDR, other), 0);
  const sink = p.sink();
  const consumer = p.register(1040, sink);
  const there = () => [
    p.isTrap(VADDR + 1040),
    p.isTrap(SECOND + 16),
    p.isTrap(VADDR + 1040, other),
  ];
  assert.equal(there(), [true, true, true]);
  assert.not(p.isTrap(VADDR + 1039));
  assert.not(p.isTrap(VADDR + 1041));
  assert.not(p.isTrap(SECOND));
  assert.is(p.map(LATER, other, 32, 1024), 0);
  assert.ok(p.isTrap(LATER + 16, other));
  assert.not(p.isTrap(LATER, other));
  assert.equal(p.call1(LATER + 16, other), all("handled"));
  assert.is(p.map(SECOND, other, 16, 1024), 0, "a part of the file without the probe");
  assert.equal(p.call1(SECOND, other), all("no-probe"));

  assert.is(p.unregister(consumer), 0);
  assert.equal(there(), [false, false, false]);
  assert.not(p.isTrap(LATER + 16, other));
  assert.is(p.hits(sink), 1);
  p.ok(abi.OP_SINK_DESTROY, sink);
  for (const mm of [p.mm, other]) p.ok(abi.OP_MM_DESTROY, mm);
  p.ok(abi.OP_INODE_DESTROY, p.inode);
  const { liveObjects, alive, inTree } = leftovers(p.memory);
  assert.equal([liveObjects, alive, inTree], [1, 0, 0], "the probe table and nothing else");
});

test("C12: a new mapping gets all of its file's probes and none of another file's", () => {
  const p = new Probes();
  const other = p.ok(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_NOP);
  const sink = p.sink();
  for (let offset = 0; offset < FILE_BYTES; offset += 32) {
    p.ok(abi.OP_REGISTER, p.inode, offset, sink);
    p.ok(abi.OP_REGISTER, other, offset + 16, sink);
  }
  assert.is(p.map(VADDR, p.mm, 2048, 1024), 0);
  for (let at = 0; at < 2048; at += 16) assert.is(p.isTrap(VADDR + at), at % 32 === 0, `${at}`);
});

test("a breakpoint stays until the last of its consumers is unregistered", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const [a, b] = [p.sink(), p.sink()];
  const first = p.register(64, a);
  const second = p.register(64, b);
  assert.equal(p.call1(VADDR + 64), all("handled"));
  assert.is(p.unregister(first), 0);
  assert.ok(p.isTrap(VADDR + 64));
  assert.equal(p.call1(VADDR + 64), all("handled"));
  assert.is(p.unregister(second), 0);
  assert.not(p.isTrap(VADDR + 64));
  assert.equal(p.call1(VADDR + 64), all("no-probe"));
  assert.equal([p.hits(a), p.hits(b)], [1, 2]);
});

test("a consumer of one address space puts breakpoints into that one only", () => {
  const p = new Probes();
  const other = p.ok(abi.OP_MM_CREATE, 4);
  assert.is(p.map(VADDR), 0);
  assert.is(p.map(VADDR, other), 0);
  const sink = p.sink();
  const mine = p.register(16, sink, { mm: p.mm });
  assert.equal([p.isTrap(VADDR + 16), p.isTrap(VADDR + 16, other)], [true, false]);
  assert.is(p.map(LATER), 0);
  assert.is(p.map(LATER, other), 0);
  assert.equal([p.isTrap(LATER + 16), p.isTrap(LATER + 16, other)], [true, false]);

  const theirs = p.register(16, sink, { mm: other });
  const everywhere = () => [
    [p.isTrap(VADDR + 16), p.isTrap(LATER + 16)],
    [p.isTrap(VADDR + 16, other), p.isTrap(LATER + 16, other)],
  ];
  assert.equal(everywhere(), [
    [true, true],
    [true, true],
  ]);
  assert.is(p.unregister(mine), 0);
  assert.equal(everywhere(), [
    [false, false],
    [true, true],
  ]);
  assert.is(p.unregister(theirs), 0);
  assert.equal(everywhere(), [
    [false, false],
    [false, false],
  ]);
});

/** Registers and stack, as offsets in a task. */
function taskState(p: Probes, task: number): { ip: number; sp: number; stack: number[] } {
  const { memory } = p;
  const stack: number[] = [];
  for (let at = abi.TASK_STACK_TOP - 64; at < abi.TASK_STACK_TOP; at += 8) {
    const word = memory.load64(task + at);
    stack.push(word);
  }
  const ip = memory.load64(task + abi.TASK_IP);
  return { ip, sp: memory.load64(task + abi.TASK_SP) - task, stack };
}

const BP = 0x1234_5678;
// assembly/uprobe/task.ts, workload/call.ts: two words deep in the stack.
const RETURN_ADDRESS = 0x7000_0002;
const ENTERED_HANDLED = 1;
const ENTERED_RETURNED = 2;
const TOP = abi.TASK_STACK_TOP;

for (const [name, opcode, ip, sp, stackEnd] of [
  ["nop", abi.INSN_NOP, VADDR + 1, TOP - 16, [0, 0, RETURN_ADDRESS, 0]],
  ["push", abi.INSN_PUSH, VADDR + 1, TOP - 24, [0, BP, RETURN_ADDRESS, 0]],
  ["ret", abi.INSN_RET, RETURN_ADDRESS, TOP, [0, 0, RETURN_ADDRESS, 0]],
] as const) {
  test(`a probed ${name} does to registers and stack what a ${name} does`, () => {
    const p = new Probes(opcode);
    assert.is(p.map(), 0);
    const [plain, probed] = [p.task(), p.task()];
    for (const task of [plain, probed]) p.memory.store(task + abi.TASK_BP, BP);
    const returned = opcode === abi.INSN_RET ? ENTERED_RETURNED : 0;
    assert.is(p.call(0, "enter_spinlock", plain, VADDR, 0), returned);
    p.ok(abi.OP_REGISTER, p.inode, 0, p.sink());
    assert.is(p.call(0, "enter_spinlock", probed, VADDR, 0), ENTERED_HANDLED | returned);
    const state = taskState(p, probed);
    assert.equal([state.ip, state.sp, state.stack.slice(-4)], [ip, sp, stackEnd]);
    assert.equal(taskState(p, plain), state, "as without the probe");
  });
  test(`each call of a probed ${name} leaves the stack as it was`, () => {
    const p = new Probes(opcode);
    assert.is(p.map(), 0);
    p.ok(abi.OP_REGISTER, p.inode, 0, p.sink());
    const task = p.task();
    const { sp: before } = taskState(p, task);
    assert.equal(p.trigger(task, 50), all("handled", 50));
    assert.is(taskState(p, task).sp, before);
    assert.is(p.call(0, "call_spinlock", task, VADDR, 0), 1);
    assert.is(taskState(p, task).sp, before);
  });
}

for (const [what, offset] of [
  ["before the file", -1],
  ["at its end", FILE_BYTES],
  ["far behind it", 2 ** 31 - 1],
] as const) {
  test(`a probe ${what} is EINVAL and leaves nothing behind`, () => {
    const p = new Probes();
    assert.is(p.map(), 0);
    const sink = p.sink();
    const before = leftovers(p.memory);
    assert.is(p.register(offset, sink), abi.EINVAL);
    assert.equal(leftovers(p.memory), before);
    assert.not(isErrno(p.register(FILE_BYTES - 1, sink)), "the last byte is inside");
  });
}

/** Offset of a file's bytes: assembly/mm/inode.ts. */
const INODE_DATA = 40;

/** Makes byte `offset` of the file another instruction; nobody may have mapped it yet. */
function patchFile(p: Probes, offset: number, opcode: number): void {
  const data = p.memory.load(p.inode + INODE_DATA);
  new Uint8Array(p.memory.memory.buffer)[data + offset] = opcode;
}

for (const [what, opcode, errno] of [
  ["an instruction it does not know is EINVAL", 0x48, abi.EINVAL],
  ["a trap of the program's own is EEXIST", abi.INSN_TRAP, abi.EEXIST],
] as const) {
  test(`a probe on ${what} and leaves nothing behind`, () => {
    const p = new Probes();
    patchFile(p, 16, opcode);
    for (const vaddr of [VADDR, SECOND]) assert.is(p.map(vaddr), 0);
    const tasks = [p.task(VADDR), p.task(SECOND)];
    const sink = p.sink();
    const bytes = () => tasks.map((task, i) => p.fetch(task, (i === 0 ? VADDR : SECOND) + 16));
    for (const neighbour of [false, true]) {
      // With another probe in the address space, taking breakpoints back looks at every mapping.
      if (neighbour) p.ok(abi.OP_REGISTER, p.inode, 32, sink);
      const before = leftovers(p.memory);
      assert.is(p.register(16, sink), errno);
      assert.equal(leftovers(p.memory), before);
      assert.equal(bytes(), [opcode, opcode], "the program's own instruction");
    }
    assert.equal([p.isTrap(VADDR + 32), p.isTrap(SECOND + 32)], [true, true]);
  });
}

test("a probe that cannot be put into a new mapping does not keep its neighbours out", () => {
  const p = new Probes();
  const sink = p.sink();
  for (const offset of [16, 32, 48]) p.ok(abi.OP_REGISTER, p.inode, offset, sink);
  patchFile(p, 32, 0x48);
  assert.is(p.map(), 0);
  assert.equal(
    [16, 32, 48].map((at) => p.isTrap(VADDR + at)),
    [true, false, true],
  );
  assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR), 0);
});

/** Fills the arena until no line is left. */
function fillArena(p: Probes): [address: number, bytes: number][] {
  const blocks: [number, number][] = [];
  for (const bytes of [192, 64]) {
    for (;;) {
      const address = p.op(abi.OP_ALLOC, bytes);
      if (address === abi.ENOMEM) break;
      blocks.push([address, bytes]);
    }
  }
  return blocks;
}

test("a full arena is ENOMEM at every step of a registration, and leaves nothing behind", () => {
  const outcomes = new Set<number>();
  for (let lines = 0; lines <= 9; lines++) {
    const p = new Probes(abi.INSN_NOP, { memoryBytes: 2 * 65_536 });
    const addresses = [1, 2, 3].map((i) => VADDR + i * FILE_BYTES);
    for (const vaddr of addresses) assert.is(p.map(vaddr, p.mm, 256), 0);
    const tasks = addresses.map((vaddr) => p.task(vaddr));
    const traps = () =>
      tasks.map((task, i) => p.fetch(task, (addresses[i] as number) + 16) === abi.INSN_TRAP);
    const sink = p.sink();
    const blocks = fillArena(p);
    // Blocks of the sizes that registration needs are given back one by one: it gets so far.
    const wide = blocks.filter(([, bytes]) => bytes === 192).slice(0, Math.floor(lines / 3));
    const narrow = blocks.filter(([, bytes]) => bytes === 64).slice(0, lines % 3);
    for (const [address, bytes] of [...wide, ...narrow]) p.ok(abi.OP_FREE, address, bytes);
    const before = leftovers(p.memory);
    const consumer = p.register(16, sink);
    if (isErrno(consumer)) {
      outcomes.add(consumer);
    } else {
      outcomes.add(0);
      assert.equal(traps(), [true, true, true]);
      assert.is(p.unregister(consumer), 0);
    }
    assert.equal(leftovers(p.memory), before, `${lines} lines`);
    assert.equal(traps(), [false, false, false]);
    assert.is(p.op(abi.OP_CHECK_TREE), 0);
    p.checkFaults();
  }
  assert.equal([...outcomes].sort(), [abi.ENOMEM, 0].sort());
});

test("unregistering needs no memory: a full arena can be emptied again", () => {
  const p = new Probes(abi.INSN_NOP, { memoryBytes: 2 * 65_536, uprobesMax: 10_000 });
  for (const vaddr of [VADDR, SECOND]) assert.is(p.map(vaddr), 0);
  const tasks = [p.task(VADDR), p.task(SECOND)] as const;
  const sink = p.sink();
  const before = leftovers(p.memory);
  const consumers: number[] = [];
  for (let offset = 0; ; offset++) {
    const consumer = p.register(offset, sink);
    if (isErrno(consumer)) {
      assert.is(consumer, abi.ENOMEM);
      break;
    }
    consumers.push(consumer);
  }
  assert.ok(consumers.length > 20);
  const rest = fillArena(p);
  for (const consumer of consumers) assert.is(p.unregister(consumer), 0);
  for (const [address, bytes] of rest) p.ok(abi.OP_FREE, address, bytes);
  assert.equal(leftovers(p.memory), before);
  for (let offset = 0; offset < consumers.length; offset++) {
    const bytes = [p.fetch(tasks[0], VADDR + offset), p.fetch(tasks[1], SECOND + offset)];
    assert.equal(bytes, [abi.INSN_NOP, abi.INSN_NOP]);
  }
});

test("a consumer that is not registered cannot be unregistered, and nothing is freed twice", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const sink = p.sink();
  const consumer = p.register(0, sink);
  const other = p.register(0, sink);
  assert.is(p.unregister(consumer), 0);
  const before = leftovers(p.memory);
  assert.is(p.unregister(consumer), abi.EINVAL);
  assert.equal(leftovers(p.memory), before);
  assert.equal(p.call1(VADDR), all("handled"), "the other one is still there");
  assert.is(p.unregister(other), 0);
});

// Everything at once against a naive model: a place has a breakpoint exactly if some consumer of
// its file offset wants its address space.
test("breakpoints are where the consumers want them, after any order of all operations", () => {
  const UNIT = 16;
  const offset = fc.nat(7);
  const step = fc.oneof(
    fc.record({
      map: fc.nat(5),
      units: fc.integer({ min: 1, max: 3 }),
      from: offset,
      mm: fc.nat(1),
    }),
    fc.record({ unmap: fc.nat() }),
    fc.record({ register: offset, only: fc.nat(3) }),
    fc.record({ register: offset, only: fc.nat(3) }),
    fc.record({ unregister: fc.nat() }),
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 80 }), (steps) => {
      const p = new Probes();
      const mms = [p.mm, p.ok(abi.OP_MM_CREATE, 16)];
      const sink = p.sink();
      const before = leftovers(p.memory);
      const maps: { vaddr: number; units: number; from: number; mm: number }[] = [];
      const consumers: { offset: number; mm: number; consumer: number }[] = [];
      for (const one of steps) {
        if ("map" in one) {
          const vaddr = VADDR + one.map * 3 * UNIT;
          const mm = mms[one.mm] as number;
          if (p.map(vaddr, mm, one.units * UNIT, one.from * UNIT) !== 0) continue;
          maps.push({ ...one, vaddr, mm });
        } else if ("unmap" in one) {
          const [gone] = maps.splice(one.unmap % Math.max(1, maps.length), 1);
          if (gone) assert.is(p.op(abi.OP_MUNMAP, gone.mm, gone.vaddr), 0);
        } else if ("register" in one) {
          const mm = mms[one.only] ?? 0;
          const consumer = p.register(one.register * UNIT, sink, { mm });
          consumers.push({ offset: one.register, mm, consumer });
        } else {
          const [gone] = consumers.splice(one.unregister % Math.max(1, consumers.length), 1);
          if (gone) assert.is(p.unregister(gone.consumer), 0);
        }
        assert.is(p.op(abi.OP_CHECK_TREE), new Set(consumers.map((c) => c.offset)).size);
        for (const { vaddr, units, from, mm } of maps) {
          for (let i = 0; i < units; i++) {
            const wanted = consumers.some(
              (c) => c.offset === from + i && (c.mm === 0 || c.mm === mm),
            );
            assert.is(p.isTrap(vaddr + i * UNIT, mm), wanted);
            const outcome = wanted ? "handled" : "no-probe";
            assert.equal(p.call1(vaddr + i * UNIT, mm), all(outcome));
          }
        }
      }
      for (const { consumer } of consumers) assert.is(p.unregister(consumer), 0);
      for (const { vaddr, mm } of maps) assert.is(p.op(abi.OP_MUNMAP, mm, vaddr), 0);
      assert.equal(leftovers(p.memory), before);
      p.checkFaults();
    }),
    { numRuns: 60 },
  );
});

test("churn by the housekeeper itself checks each of its steps, and gives all back", () => {
  const p = new Probes(abi.INSN_RET);
  assert.is(p.map(), 0);
  assert.is(p.map(SECOND), 0);
  const before = leftovers(p.memory);
  const state = p.ok(abi.OP_CHURN_CREATE, p.mm, p.inode, VADDR, 0, 16, 12, 99);
  for (let i = 0; i < 100; i++) {
    p.ok(abi.OP_CHURN, state, 50);
    p.ok(abi.OP_CHECK_TREE);
  }
  const at = (offset: number) => p.memory.load(state + offset);
  assert.is(at(abi.CHURN_ERRORS), 0);
  assert.is(at(abi.CHURN_REGISTERED) + at(abi.CHURN_UNREGISTERED), 5000);
  assert.ok(at(abi.CHURN_CHECKS) >= 5000, "a call after each step");
  p.ok(abi.OP_CHURN_DESTROY, state);
  assert.is(p.op(abi.OP_CHECK_TREE), 0);
  p.checkFaults();
  assert.equal(leftovers(p.memory, p.mm), before);
});

test.run();
