// The locks as API: handles over an address of shared memory. The algorithms are in assembly/sync;
// a handle adds types, and one rule: a thread that must not block never waits in a lock.
//
// Ordering, for all of them: what one holder wrote inside its section, by plain or atomic accesses,
// is seen by every later holder. Waiting is in the order and at the cost that each class states.
// None is recursive. A lock belongs to the CPU that took it: the same instance unlocks.

import { WasmprobeError } from "../base/errors.js";
import * as abi from "./abi.js";

/** The functions of assembly/sync. Addresses are byte offsets; a bool comes back as 0 or 1. */
export interface LockExports {
  cpu_set_blocking(blocks: number): void;

  spin_init(p: number): void;
  spin_lock(p: number): void;
  spin_trylock(p: number): number;
  spin_unlock(p: number): void;

  ticket_init(p: number): void;
  ticket_lock(p: number): void;
  ticket_trylock(p: number): number;
  ticket_unlock(p: number): void;

  qspin_init(p: number): void;
  qspin_lock(p: number): void;
  qspin_trylock(p: number): number;
  qspin_unlock(p: number): void;

  rwlock_init(p: number): void;
  read_lock(p: number): void;
  read_trylock(p: number): number;
  read_unlock(p: number): void;
  write_lock(p: number): void;
  write_trylock(p: number): number;
  write_unlock(p: number): void;

  rwsem_init(p: number): void;
  down_read(p: number): void;
  down_read_trylock(p: number): number;
  up_read(p: number): void;
  down_write(p: number): void;
  down_write_trylock(p: number): number;
  up_write(p: number): void;

  mutex_init(p: number): void;
  mutex_lock(p: number): void;
  mutex_trylock(p: number): number;
  mutex_lock_timeout(p: number, ns: bigint): number;
  mutex_unlock(p: number): void;
  mutex_owner(p: number): number;

  osq_init(p: number): void;
  osq_lock(p: number, spins: number, deadline: bigint): number;
  osq_unlock(p: number): void;

  seqcount_init(p: number): void;
  write_seqcount_begin(p: number): void;
  write_seqcount_end(p: number): void;
  read_seqcount_begin(p: number): number;
  read_seqcount_retry(p: number, begin: number): number;

  refcount_set(p: number, n: number): void;
  refcount_read(p: number): number;
  refcount_inc(p: number): number;
  refcount_inc_not_zero(p: number): number;
  refcount_dec_and_test(p: number): number;
  refcount_saturated(p: number): number;
}

/** What a handle must know of the thread it is used on. */
export interface LockThread {
  /** False on a main thread: `lock` throws there, also where the runtime would let it wait. */
  readonly canBlock: boolean;
  /** View of the memory the locks are in; lockAsync waits on it. */
  readonly i32: Int32Array;
}

/** Some 146 years; more, as an i64, could turn negative. */
const TIMEOUT_NS_MAX = 2 ** 62;
/** First and longest pause of lockAsync between two attempts, milliseconds. */
const PAUSE_MS_MIN = 1;
const PAUSE_MS_MAX = 16;
/** Attempts in a row before a pause: a lock that is fought over is free for moments only. */
const ATTEMPTS = 100;

type WaitAsync = (
  view: Int32Array,
  index: number,
  seen: number,
  timeoutMs: number,
) => { async: boolean; value: string | Promise<string> };

/** Ends after `ms`, or as soon as the word is known to have changed. Blocks nobody. */
async function pause(i32: Int32Array, address: number, ms: number): Promise<void> {
  const index = address >>> 2; // unsigned: addresses from 2 GiB on
  const { waitAsync } = Atomics as unknown as { waitAsync?: WaitAsync };
  // The timer alone would do, but browsers stretch it, in the background to a second. The wait
  // alone would not: a pending one does not keep the program alive.
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  const wait = waitAsync?.(i32, index, Atomics.load(i32, index), ms);
  await (wait?.async === true ? Promise.race([timeout, wait.value]) : timeout);
  clearTimeout(timer);
}

/** Common to all handles: where, with whose functions, on what kind of thread. */
abstract class Handle {
  readonly address: number;
  protected readonly exports: LockExports;
  protected readonly thread: LockThread;

  /**
   * `exports`: the instance of the calling CPU (cpu_init done, a CPU number of its own also for a
   * main thread). `address`: BYTES bytes of shared memory, 8-aligned.
   */
  constructor(exports: LockExports, address: number, thread: LockThread) {
    if (!Number.isInteger(address) || address < 0 || address % 8 !== 0) {
      throw new WasmprobeError("E_VALUE", `lock address ${address} is not a multiple of 8`);
    }
    this.exports = exports;
    this.address = address;
    this.thread = thread;
    // Inside, even tryLock and unlock take short spinlocks: they spin there and never sleep.
    if (!thread.canBlock) exports.cpu_set_blocking(0);
  }

  protected checkBlocking(what: string): void {
    if (this.thread.canBlock) return;
    throw new WasmprobeError(
      "E_STATE",
      `${this.constructor.name}.${what} may block, which a main thread must not: use its ` +
        `asynchronous or trying form there`,
    );
  }

  /**
   * Attempts until one succeeds, pausing in between. Whoever waits so has no place in the lock's
   * queue: under constant contention it may be overtaken for long.
   */
  protected async until(attempt: () => boolean): Promise<void> {
    for (let ms = PAUSE_MS_MIN; ; ms = Math.min(ms * 2, PAUSE_MS_MAX)) {
      for (let i = 0; i < ATTEMPTS; i++) if (attempt()) return;
      await pause(this.thread.i32, this.address, ms);
    }
  }
}

/** A lock with one way in: lock, tryLock, lockAsync, unlock. */
abstract class ExclusiveLock extends Handle {
  /** Makes the memory a free lock. Zeroed memory is one. */
  abstract init(): void;
  /** Waits until the lock is ours. Throws on a main thread. */
  abstract lock(): void;
  /** Takes the lock if that needs no waiting. */
  abstract tryLock(): boolean;
  abstract unlock(): void;

  /** Resolves when the lock is ours, without ever blocking the thread. For main threads. */
  lockAsync(): Promise<void> {
    return this.until(() => this.tryLock());
  }
}

/** A lock that readers share: readLock..., writeLock... */
abstract class SharedLock extends Handle {
  /** Makes the memory a free lock. Zeroed memory is one. */
  abstract init(): void;
  /** Waits until we are in as a reader. Throws on a main thread. */
  abstract readLock(): void;
  abstract tryReadLock(): boolean;
  abstract readUnlock(): void;
  /** Waits until we are in alone. Throws on a main thread. */
  abstract writeLock(): void;
  abstract tryWriteLock(): boolean;
  abstract writeUnlock(): void;

  /** As readLock, without ever blocking the thread. For main threads. */
  readLockAsync(): Promise<void> {
    return this.until(() => this.tryReadLock());
  }
  /** As writeLock, without ever blocking the thread. For main threads. */
  writeLockAsync(): Promise<void> {
    return this.until(() => this.tryWriteLock());
  }
}

/**
 * Test-and-test-and-set spinlock: the cheapest pair, no order among waiters, all of them on the
 * lock's line. For short sections that are seldom fought over.
 */
export class Spinlock extends ExclusiveLock {
  static readonly BYTES = abi.SPINLOCK_BYTES;
  override init(): void {
    this.exports.spin_init(this.address);
  }
  override lock(): void {
    this.checkBlocking("lock");
    this.exports.spin_lock(this.address);
  }
  override tryLock(): boolean {
    return this.exports.spin_trylock(this.address) !== 0;
  }
  override unlock(): void {
    this.exports.spin_unlock(this.address);
  }
}

/** Ticket lock: first come, first served; all waiters spin on the lock's line. */
export class TicketLock extends ExclusiveLock {
  static readonly BYTES = abi.TICKET_BYTES;
  override init(): void {
    this.exports.ticket_init(this.address);
  }
  override lock(): void {
    this.checkBlocking("lock");
    this.exports.ticket_lock(this.address);
  }
  override tryLock(): boolean {
    return this.exports.ticket_trylock(this.address) !== 0;
  }
  override unlock(): void {
    this.exports.ticket_unlock(this.address);
  }
}

/**
 * Queued spinlock (the kernel's): first come, first served from the second waiter on, and each of
 * those spins on a line of its own. For short sections that many CPUs fight over.
 */
export class QueuedSpinlock extends ExclusiveLock {
  static readonly BYTES = abi.QSPINLOCK_BYTES;
  override init(): void {
    this.exports.qspin_init(this.address);
  }
  override lock(): void {
    this.checkBlocking("lock");
    this.exports.qspin_lock(this.address);
  }
  override tryLock(): boolean {
    return this.exports.qspin_trylock(this.address) !== 0;
  }
  override unlock(): void {
    this.exports.qspin_unlock(this.address);
  }
}

/**
 * Mutex: waiters spin for some microseconds, one at a time, then sleep; a waiter that was woken in
 * vain is given the lock next time. For sections of any length.
 */
export class Mutex extends ExclusiveLock {
  static readonly BYTES = abi.MUTEX_BYTES;
  override init(): void {
    this.exports.mutex_init(this.address);
  }
  override lock(): void {
    this.checkBlocking("lock");
    this.exports.mutex_lock(this.address);
  }
  override tryLock(): boolean {
    return this.exports.mutex_trylock(this.address) !== 0;
  }
  override unlock(): void {
    this.exports.mutex_unlock(this.address);
  }
  /**
   * Waits at most `timeoutNs`. True with the mutex held; false not before the time is over, and
   * then nothing of the attempt is left. Throws on a main thread.
   */
  lockTimeout(timeoutNs: number): boolean {
    this.checkBlocking("lockTimeout");
    const ns = BigInt(Math.ceil(Math.min(timeoutNs, TIMEOUT_NS_MAX)));
    return this.exports.mutex_lock_timeout(this.address, ns) !== 0;
  }
  /** CPU that holds the mutex, or undefined; stale at once. */
  owner(): number | undefined {
    const cpu = this.exports.mutex_owner(this.address);
    return cpu < 0 ? undefined : cpu;
  }
}

/**
 * Queued reader-writer spinlock: readers share at the price of two atomic updates of one word; a
 * waiting writer stops new readers; who waits is served in order.
 */
export class RwLock extends SharedLock {
  static readonly BYTES = abi.RWLOCK_BYTES;
  override init(): void {
    this.exports.rwlock_init(this.address);
  }
  override readLock(): void {
    this.checkBlocking("readLock");
    this.exports.read_lock(this.address);
  }
  override tryReadLock(): boolean {
    return this.exports.read_trylock(this.address) !== 0;
  }
  override readUnlock(): void {
    this.exports.read_unlock(this.address);
  }
  override writeLock(): void {
    this.checkBlocking("writeLock");
    this.exports.write_lock(this.address);
  }
  override tryWriteLock(): boolean {
    return this.exports.write_trylock(this.address) !== 0;
  }
  override writeUnlock(): void {
    this.exports.write_unlock(this.address);
  }
}

/**
 * Reader-writer semaphore: sleeps instead of spinning on; writers spin a little first. A waiter
 * that was overtaken for 4 ms is next.
 */
export class Rwsem extends SharedLock {
  static readonly BYTES = abi.RWSEM_BYTES;
  override init(): void {
    this.exports.rwsem_init(this.address);
  }
  override readLock(): void {
    this.checkBlocking("readLock");
    this.exports.down_read(this.address);
  }
  override tryReadLock(): boolean {
    return this.exports.down_read_trylock(this.address) !== 0;
  }
  override readUnlock(): void {
    this.exports.up_read(this.address);
  }
  override writeLock(): void {
    this.checkBlocking("writeLock");
    this.exports.down_write(this.address);
  }
  override tryWriteLock(): boolean {
    return this.exports.down_write_trylock(this.address) !== 0;
  }
  override writeUnlock(): void {
    this.exports.up_write(this.address);
  }
}

/**
 * Sequence count: readers write nothing and read again if a writer was there. Writers need a lock
 * of their own against each other. What was read may be used once readRetry said false.
 */
export class SequenceCount extends Handle {
  static readonly BYTES = abi.SEQCOUNT_BYTES;
  init(): void {
    this.exports.seqcount_init(this.address);
  }
  writeBegin(): void {
    this.exports.write_seqcount_begin(this.address);
  }
  writeEnd(): void {
    this.exports.write_seqcount_end(this.address);
  }
  /** Waits until no writer is inside. Throws on a main thread. */
  readBegin(): number {
    this.checkBlocking("readBegin");
    return this.exports.read_seqcount_begin(this.address);
  }
  /** As readBegin; undefined if a writer is inside. */
  tryReadBegin(): number | undefined {
    const seen = Atomics.load(this.thread.i32, this.address >>> 2);
    return (seen & 1) === 0 ? seen : undefined;
  }
  readRetry(begin: number): boolean {
    return this.exports.read_seqcount_retry(this.address, begin) !== 0;
  }
}

/** Reference count that saturates instead of wrapping. Never waits: for all threads. */
export class RefCount extends Handle {
  static readonly BYTES = abi.REFCOUNT_BYTES;
  set(n: number): void {
    this.exports.refcount_set(this.address, n);
  }
  read(): number {
    return this.exports.refcount_read(this.address);
  }
  /** One more, for who holds one already. False, and saturated for good, if there was none. */
  inc(): boolean {
    return this.exports.refcount_inc(this.address) !== 0;
  }
  /** One more, unless the count is 0, which is final. */
  incNotZero(): boolean {
    return this.exports.refcount_inc_not_zero(this.address) !== 0;
  }
  /** One less; true for who dropped the last. */
  decAndTest(): boolean {
    return this.exports.refcount_dec_and_test(this.address) !== 0;
  }
  /** Whether the count was ever used wrongly. */
  saturated(): boolean {
    return this.exports.refcount_saturated(this.address) !== 0;
  }
}
