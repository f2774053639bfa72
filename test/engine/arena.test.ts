// The arena against a naive model: a list of blocks, each with its own pattern.

import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { Solo } from "../helpers/solo.js";

/** What so many bytes occupy: whole lines, and whole pairs of lines above 64 lines. */
function occupied(bytes: number): number {
  const lines = Math.ceil(Math.max(bytes, 1) / abi.LINE);
  return (lines <= 64 ? lines : lines + (lines % 2)) * abi.LINE;
}

interface Block {
  address: number;
  bytes: number;
  pattern: number;
}

// A broken arena may have a list that ends nowhere: after the first failure nothing else is tried.
let broken = false;

function guarded<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    broken = true;
    throw error;
  }
}

class Model {
  readonly solo: Solo;
  readonly u8: Uint8Array;
  readonly before: ReturnType<Solo["memory"]["arena"]>;
  live: Block[] = [];
  peak: number;
  #pattern = 0;

  constructor(memoryBytes = 4 * 65_536) {
    assert.not(broken, "an earlier test has found the arena broken");
    this.solo = new Solo({ memoryBytes });
    this.u8 = new Uint8Array(this.solo.memory.memory.buffer);
    this.before = this.solo.memory.arena();
    this.peak = this.before.liveBytes;
  }

  /** Allocates and checks all that a block promises. False: none left. */
  alloc(bytes: number): boolean {
    return guarded(() => this.#alloc(bytes));
  }

  #alloc(bytes: number): boolean {
    const address = this.solo.op(abi.OP_ALLOC, bytes);
    if (address === abi.ENOMEM) {
      assert.is(this.solo.memory.arena().failedBytes, bytes, "the size that failed");
      return false;
    }
    const size = occupied(bytes);
    const arena = this.solo.memory.header(abi.HDR_ARENA);
    assert.ok(address > arena && address + size <= this.u8.length, `inside: ${address}`);
    const alignment = size % abi.STRIDE === 0 ? abi.STRIDE : abi.LINE;
    assert.is(address % alignment, 0, `${bytes} bytes at ${address}`);
    for (const other of this.live) {
      const apart =
        other.address + occupied(other.bytes) <= address || address + size <= other.address;
      assert.ok(apart, `${bytes} bytes at ${address} overlap ${other.bytes} at ${other.address}`);
    }
    const fresh = this.u8.subarray(address, address + size);
    assert.is(
      fresh.findIndex((byte) => byte !== 0),
      -1,
      "zeroed",
    );
    this.#pattern = (this.#pattern % 255) + 1;
    fresh.fill(this.#pattern);
    this.live.push({ address, bytes, pattern: this.#pattern });
    return true;
  }

  /** Frees one block that nobody has written to meanwhile. */
  free(index: number): void {
    guarded(() => this.#free(index));
  }

  #free(index: number): void {
    const [block] = this.live.splice(index % this.live.length, 1);
    if (block === undefined) return;
    const { address, bytes, pattern } = block;
    const mine = this.u8.subarray(address, address + occupied(bytes));
    assert.is(
      mine.findIndex((byte) => byte !== pattern),
      -1,
      "its bytes are its owner's",
    );
    assert.is(this.solo.op(abi.OP_FREE, address, bytes), 0);
  }

  checkAccounts(): void {
    const { liveBytes, liveObjects, peakBytes } = this.solo.memory.arena();
    const sum = this.live.reduce((total, block) => total + occupied(block.bytes), 0);
    assert.is(liveBytes, this.before.liveBytes + sum);
    assert.is(liveObjects, this.before.liveObjects + this.live.length);
    this.peak = Math.max(this.peak, liveBytes);
    assert.is(peakBytes, this.peak);
  }
}

const bytes = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 400 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 40 }).map((n) => n * abi.STRIDE) },
  { weight: 2, arbitrary: fc.integer({ min: 4000, max: 9000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 9000, max: 60_000 }) },
);
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ alloc: bytes }) },
  { weight: 2, arbitrary: fc.record({ free: fc.nat() }) },
);

test("arena: the rest of a large block that was cut is used, and its neighbours are not", () => {
  const model = new Model();
  while (model.alloc(24_576));
  const { address } = model.live[2] as Block;
  model.free(2);
  for (let i = 0; i < 3; i++) assert.ok(model.alloc(8192));
  const parts = model.live.slice(-3).map((block) => block.address);
  assert.equal(parts, [address, address + 8192, address + 16_384]);
  assert.not(model.alloc(8192), "there is no more");
  while (model.live.length > 0) model.free(0);
});

test("arena: blocks are aligned, zeroed and apart, and the accounts are exact", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 200 }), (steps) => {
      const model = new Model();
      for (const one of steps) {
        if ("free" in one) model.free(one.free);
        else model.alloc(one.alloc);
        model.checkAccounts();
      }
      while (model.alloc(2048)); // until it is full
      model.checkAccounts();
      while (model.live.length > 0) model.free(0);
      model.checkAccounts();
      model.solo.checkFaults();
    }),
    { numRuns: 60 },
  );
});

test("arena: a multiple of 128 is 128-aligned, and the line it skipped is the next one's", () => {
  const solo = new Solo();
  let first = solo.ok(abi.OP_ALLOC, 64);
  if (first % abi.STRIDE !== 0) first = solo.ok(abi.OP_ALLOC, 64);
  const pair = solo.ok(abi.OP_ALLOC, 128);
  const line = solo.ok(abi.OP_ALLOC, 64);
  assert.equal([first % 128, pair, line], [0, first + 128, first + 64]);
});

for (const size of [64, 192, 4096, 8192]) {
  test(`arena: full of blocks of ${size} bytes it says ENOMEM, and all come back`, () => {
    const model = new Model();
    while (model.alloc(size));
    const most = model.live.length;
    const { liveBytes } = model.solo.memory.arena();
    const arenaBytes = model.u8.length - model.solo.memory.header(abi.HDR_ARENA);
    assert.ok(most * size > arenaBytes - 2 * size - 2048, `${most} of ${size} in ${arenaBytes}`);
    model.checkAccounts();
    for (let i = 0; model.live.length > 0; i++) model.free(i * 7919);
    assert.is(model.solo.memory.arena().liveBytes, model.before.liveBytes);
    while (model.alloc(size));
    assert.is(model.live.length, most, "as many as the first time");
    assert.is(model.solo.memory.arena().liveBytes, liveBytes);
    assert.is(model.solo.memory.arena().peakBytes, liveBytes);
  });
}

test("arena: large neighbours merge, in whatever order they are freed", () => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.nat()), fc.constantFrom(4224, 5000, 8192), (order, size) => {
      const model = new Model();
      while (model.alloc(size));
      const whole = model.live.length * occupied(size);
      for (const index of order) {
        if (model.live.length === 0) break;
        model.free(index);
      }
      assert.ok(model.alloc(whole), `one block of ${whole} bytes out of all the freed ones`);
      model.checkAccounts();
    }),
    { numRuns: 20 },
  );
});

test("arena: sizes below 0 and beyond the memory are ENOMEM and leave no trace", () => {
  const model = new Model();
  for (const size of [-1, -64, -(2 ** 31), 2 ** 31 - 1, 2 ** 31 - 64, 4 * 65_536]) {
    assert.not(model.alloc(size), `${size} bytes`);
    model.checkAccounts();
  }
  assert.ok(model.alloc(0), "0 bytes are one line");
  assert.is(model.solo.op(abi.OP_FREE, 0, 64), 0, "freeing nothing is nothing");
  model.checkAccounts();
});

test.run();
