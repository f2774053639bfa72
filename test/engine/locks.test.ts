// runs alone

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { WasmprobeError } from "../../src/base/errors.js";
import {
  type LockExports,
  Mutex,
  QueuedSpinlock,
  RefCount,
  RwLock,
  Rwsem,
  SequenceCount,
  Spinlock,
  TicketLock,
} from "../../src/engine/locks.js";
import { AT, cpusOnThisThread, sleep, withThreads } from "../helpers/engine.js";

const EXCLUSIVE = [Spinlock, TicketLock, QueuedSpinlock, Mutex];
const SHARED = [RwLock, Rwsem];

const refusal = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof WasmprobeError && error.code === "E_STATE") return error.message;
    throw error;
  }
  return "";
};

test("on a main thread every lock refuses to wait, free or not, and takes nothing", () => {
  const { exports, thread, word } = cpusOnThisThread(1);
  const main = { ...thread, canBlock: false };
  const [cpu] = exports as [LockExports];
  for (const Kind of EXCLUSIVE) {
    const lock = new Kind(cpu, AT, main);
    lock.init();
    assert.match(
      refusal(() => lock.lock()),
      new RegExp(`${Kind.name}.lock may block`),
    );
    assert.is(word(), 0);
  }
  for (const Kind of SHARED) {
    const lock = new Kind(cpu, AT, main);
    lock.init();
    assert.match(
      refusal(() => lock.readLock()),
      new RegExp(`${Kind.name}.readLock may block`),
    );
    assert.match(
      refusal(() => lock.writeLock()),
      new RegExp(`${Kind.name}.writeLock may block`),
    );
    assert.is(word(), 0);
  }
  const mutex = new Mutex(cpu, AT, main);
  assert.match(
    refusal(() => mutex.lockTimeout(1)),
    /Mutex.lockTimeout may block/,
  );
  const count = new SequenceCount(cpu, AT, main);
  assert.match(
    refusal(() => count.readBegin()),
    /SequenceCount.readBegin may block/,
  );
});

test("lock, tryLock and unlock work through the handle on a thread that may block", () => {
  const { exports, thread } = cpusOnThisThread(2);
  const [a, b] = exports as [LockExports, LockExports];
  for (const Kind of EXCLUSIVE) {
    const one = new Kind(a, AT, thread);
    const other = new Kind(b, AT, thread);
    one.init();
    one.lock();
    assert.is(other.tryLock(), false, Kind.name);
    one.unlock();
    assert.is(other.tryLock(), true, Kind.name);
    other.unlock();
  }
  for (const Kind of SHARED) {
    const one = new Kind(a, AT, thread);
    const other = new Kind(b, AT, thread);
    one.init();
    one.readLock();
    assert.is(other.tryReadLock(), true, Kind.name);
    assert.is(other.tryWriteLock(), false, Kind.name);
    other.readUnlock();
    one.readUnlock();
    one.writeLock();
    assert.is(other.tryReadLock(), false, Kind.name);
    one.writeUnlock();
    assert.is(other.tryWriteLock(), true, Kind.name);
    other.writeUnlock();
  }
});

test("lockAsync resolves once the holder lets go, and leaves the event loop running", async () => {
  const { exports, thread } = cpusOnThisThread(2);
  const [a, b] = exports as [LockExports, LockExports];
  for (const Kind of EXCLUSIVE) {
    const holder = new Kind(a, AT, thread);
    const waiter = new Kind(b, AT, { ...thread, canBlock: false });
    holder.init();
    holder.lock();
    let got = false;
    const waiting = waiter.lockAsync().then(() => {
      got = true;
    });
    await sleep(5);
    assert.is(got, false, Kind.name);
    holder.unlock();
    await waiting;
    assert.is(holder.tryLock(), false, Kind.name);
    waiter.unlock();
  }
});

test("readLockAsync and writeLockAsync serve a main thread", async () => {
  const { exports, thread } = cpusOnThisThread(2);
  const [a, b] = exports as [LockExports, LockExports];
  for (const Kind of SHARED) {
    const holder = new Kind(a, AT, thread);
    const waiter = new Kind(b, AT, { ...thread, canBlock: false });
    holder.init();
    holder.writeLock();
    const reading = waiter.readLockAsync();
    await sleep(2);
    holder.writeUnlock();
    await reading;
    waiter.readUnlock();
    holder.readLock();
    const writing = waiter.writeLockAsync();
    await sleep(2);
    holder.readUnlock();
    await writing;
    assert.is(holder.tryReadLock(), false);
    waiter.writeUnlock();
  }
});

test("lockAsync gets its turns among two workers that fight over the mutex", () =>
  withThreads(2, async (runner) => {
    const p = await runner.command(abi.OP_ALLOC, abi.LOCK_AREA_BYTES);
    const exports = runner.host.exports as unknown as LockExports;
    const mutex = new Mutex(exports, p, { canBlock: false, i32: runner.memory.i32 });
    const job = { entry: "bench_mutex", args: [p] };
    const run = await runner.run([job, job]);
    let mine = 0;
    for (let i = 0; i < 50; i++) {
      await mutex.lockAsync();
      const at = (p + abi.LOCK_DATA) >> 3;
      runner.memory.i64[at] = (runner.memory.i64[at] ?? 0n) + 1n; // not atomic: the lock's work
      mine++;
      mutex.unlock();
    }
    await run.stop();
    const theirs = [0, 1].map((c) => runner.memory.load64(runner.memory.perCpu(abi.PCPU_OPS, c)));
    assert.is(
      runner.memory.load64(p + abi.LOCK_DATA),
      theirs.reduce((a, b) => a + b, mine),
    );
  }));

test("footprints are those of the kernel's locks", () => {
  const bytes = [...EXCLUSIVE, ...SHARED, SequenceCount, RefCount].map((Kind) => Kind.BYTES);
  assert.equal(bytes, [4, 4, 4, 32, 8, 40, 4, 4]);
});

test("an address that is not a multiple of 8 is refused", () => {
  const { exports, thread } = cpusOnThisThread(1);
  for (const address of [-8, 4, 1.5, Number.NaN]) {
    assert.throws(() => new Mutex(exports[0] as LockExports, address, thread), /multiple of 8/);
  }
});

test.run();
