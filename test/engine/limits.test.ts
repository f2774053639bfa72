// Ends of ranges: sequence numbers that wrap, sizes whose sum or product does, times without end,
// and a file that has traps of its own.

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { EngineMemory } from "../../src/engine/memory.js";
import { Mutex } from "../../src/engine/locks.js";
import { AT, cpusOnThisThread } from "../helpers/engine.js";
import { Probes, VADDR } from "../helpers/probes.js";
import { all, Solo } from "../helpers/solo.js";

/** Offset of the number of the last registration pass in the table (uprobe/table.ts). */
const TABLE_PASS = 168;

test("the command ring goes on where its 32-bit counters turn negative and where they wrap", () => {
  for (const start of [0x7ffffffe, -2]) {
    const solo = new Solo();
    const ring = solo.memory.base + abi.HEADER_BYTES;
    solo.memory.store(ring + abi.RING_HEAD, start);
    solo.memory.store(ring + abi.RING_TAIL, start);
    for (let i = 1; i <= 2 * abi.RING_SLOTS; i++) {
      assert.ok(solo.ok(abi.OP_ALLOC, abi.STRIDE) > 0);
      assert.is(solo.memory.load(ring + abi.RING_TAIL), (start + i) | 0);
    }
  }
});

test("an address space with room for more mappings than memory has bytes is refused", () => {
  const solo = new Solo();
  // 2^28 + 1 entries of 16 bytes are 16 bytes, modulo 2^32.
  for (const maps of [(1 << 28) + 1, 1 << 27, 0x7fffffff, -1]) {
    assert.is(solo.op(abi.OP_MM_CREATE, maps), abi.ENOMEM, String(maps));
  }
});

test("a registration patches a new mapping when the 32-bit number of passes is used up", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const passes = p.memory.header(abi.HDR_TABLE) + TABLE_PASS;
  p.memory.store(passes, -1); // the next one has 0 in its lower half, as a mapping never visited
  const sink = p.sink();
  assert.ok(p.register(0, sink) > 0);
  assert.equal(p.call1(VADDR), all("handled"));
  assert.is(p.hits(sink), 1);
});

test("a task that executes a trap of the file itself gets SIGTRAP, probed or not", () => {
  const p = new Probes(abi.INSN_TRAP);
  const sink = p.sink();
  // Registered before the file is mapped anywhere: nothing was there to be refused.
  const consumer = p.register(0, sink);
  assert.ok(consumer > 0);
  assert.is(p.map(), 0);
  assert.equal(p.call1(VADDR), all("sigtrap"));
  assert.is(p.unregister(consumer), 0);
  assert.equal(p.call1(VADDR), all("sigtrap"));
  assert.is(p.hits(sink), 0);
  p.checkFaults();
});

test("a timeout without end waits, and a timeout that is over does not", () => {
  const { exports, thread } = cpusOnThisThread(2);
  const [first, second] = exports.map((cpu) => new Mutex(cpu, AT, thread));
  for (const ns of [2 ** 53, 2 ** 63, 1e300, Infinity]) {
    assert.is(first?.lockTimeout(ns), true);
    assert.is(second?.lockTimeout(0), false);
    assert.is(second?.lockTimeout(-1), false);
    first?.unlock();
  }
});

test("two reservations of which the sum passes 4 GiB are not both met", () => {
  // An engine that begins at 2 GiB: its addresses are negative numbers to the host.
  let memory: WebAssembly.Memory;
  try {
    memory = new WebAssembly.Memory({ initial: 0xe000, maximum: 0xe000, shared: true });
  } catch {
    console.log("# note: no 3.5 GiB of address space here; addresses above 2 GiB not tried");
    return;
  }
  const solo = new Solo({ memory: new EngineMemory(memory, 2 ** 31) });
  const p = solo.ok(abi.OP_ALLOC, 4096);
  assert.ok(p < 0);
  assert.is(solo.op(abi.OP_ALLOC, 0x7fffff00), abi.ENOMEM);
  assert.is(solo.memory.arena().failedBytes, 0x7fffff00);
  const q = solo.ok(abi.OP_ALLOC, 4096);
  assert.is(q - p, 4096);
  solo.checkFaults();
});

test.run();
