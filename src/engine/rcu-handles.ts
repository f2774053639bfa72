// RCU as API: handles over an address of shared memory. The algorithms are in assembly/rcu.
//
// Ordering, for all flavours: let an updater unlink an object (an atomic store of the pointer that
// readers follow) and then call synchronize. A read section that began before the call has ended
// when it returns, and everything it read and wrote, by plain or atomic accesses, happened before
// that. A section that begins after the unlink is seen finds the new pointer; what the updater
// wrote to the new object before its store, such a section sees. So after synchronize nobody holds
// the old object, and its memory may be reused. Readers never wait, for anybody.
//
// Readers follow the pointer by an atomic load (Atomics.load), inside the section, each time anew.

import { WasmprobeError } from "../base/errors.js";
import * as abi from "./abi.js";
import { gracePeriodsIn, type GracePeriods } from "./memory.js";

/** The functions of assembly/rcu. Addresses are byte offsets. */
export interface RcuExports {
  srcu_init(p: number, cpus: number): void;
  srcu_read_lock(p: number): number;
  srcu_read_unlock(p: number, idx: number): void;
  synchronize_srcu(p: number): void;

  rcu_init(p: number, cpus: number): void;
  rcu_online(p: number): void;
  rcu_online_silent(p: number): void;
  rcu_offline(): void;
  rcu_quiescent(p: number): void;
  rcu_read_lock_trace(): void;
  rcu_read_unlock_trace(p: number): void;
  synchronize_rcu_tasks_trace(p: number): void;
  synchronize_rcu_qsbr(p: number): void;
}

/** The calling thread as a CPU: what openCpu returned. */
export interface RcuCpu {
  readonly exports: RcuExports;
  readonly thread: { readonly canBlock: boolean; readonly i32: Int32Array };
  /** Where the CPUs' areas begin. */
  readonly areas: number;
}

/** Common to both: where, on which CPU. */
abstract class Domain {
  readonly address: number;
  protected readonly cpu: RcuCpu;
  protected readonly exports: RcuExports;

  /**
   * `cpu`: the calling thread (openCpu). `address`: BYTES bytes of the same memory, a multiple of
   * 64. All threads make their handles with the same address and areas.
   */
  constructor(cpu: RcuCpu, address: number) {
    if (!Number.isInteger(address) || address < 0 || address % abi.LINE !== 0) {
      const problem = `RCU address ${address} is not a multiple of ${abi.LINE}`;
      throw new WasmprobeError("E_VALUE", problem);
    }
    this.address = address;
    this.cpu = cpu;
    this.exports = cpu.exports;
  }

  /** How many grace periods ended, and who holds up the current one. A hint, stale at once. */
  gracePeriods(): GracePeriods {
    return gracePeriodsIn(this.cpu.thread.i32, this.address);
  }

  protected checkCpus(cpus: number): void {
    const { areas, thread } = this.cpu;
    const room = Math.floor((thread.i32.byteLength - areas) / abi.PERCPU_BYTES);
    const most = Math.min(room, abi.CPUS_MAX);
    if (Number.isInteger(cpus) && cpus >= 1 && cpus <= most) return;
    throw new WasmprobeError("E_VALUE", `cpus is ${cpus}; there are areas for 1..${most}`);
  }

  protected checkBlocking(what: string): void {
    if (this.cpu.thread.canBlock) return;
    const name = this.constructor.name;
    throw new WasmprobeError(
      "E_STATE",
      `${name}.${what} waits for readers, which a main thread must not: let a worker call it`,
    );
  }
}

/**
 * SRCU: any thread may read at any time, and a section may end on another CPU than it began on.
 * A section costs two fences and two counts on lines of the CPU's own. One domain for each set of
 * CPU areas: the counts are the CPUs'.
 */
export class Srcu extends Domain {
  static readonly BYTES = abi.SRCU_BYTES;

  /** Makes the memory a domain for CPUs 0..cpus - 1. Once, before any of them reads. */
  init(cpus: number): void {
    this.checkCpus(cpus);
    this.exports.srcu_init(this.address, cpus);
  }
  /** Begins a section, and returns what readUnlock wants. Nests. Never waits. */
  readLock(): number {
    return this.exports.srcu_read_lock(this.address);
  }
  readUnlock(index: number): void {
    this.exports.srcu_read_unlock(this.address, index);
  }
  /**
   * Returns when every section that had begun before the call has ended. In a section it would
   * wait for itself. Throws on a main thread.
   */
  synchronize(): void {
    this.checkBlocking("synchronize");
    this.exports.synchronize_srcu(this.address);
  }
}

/**
 * RCU without a fence or an atomic store in readers: sections (the kernel's Tasks Trace), or quiet
 * moments (QSBR); one of the two in a domain. The price is announcing: a thread is online while it
 * may read, and offline before it sleeps for long or returns to its event loop. One domain for
 * each set of CPU areas. Readers' order relies on x86 (TSO): arm64 lacks a tested argument.
 */
export class Rcu extends Domain {
  static readonly BYTES = abi.RCU_BYTES;

  /** Makes the memory a domain for CPUs 0..cpus - 1, all of them offline. Once, before reading. */
  init(cpus: number): void {
    this.checkCpus(cpus);
    this.exports.rcu_init(this.address, cpus);
  }
  /** From here on this thread may read, and grace periods wait for it. */
  online(): void {
    this.exports.rcu_online(this.address);
  }
  /**
   * As online, for a thread that reads in sections and may sit between them for as long as it
   * likes: a grace period that meets it there takes some milliseconds. Not for QSBR.
   */
  onlineSilent(): void {
    this.exports.rcu_online_silent(this.address);
  }
  /** This thread begins no section, and holds nothing that it read outside of one. */
  offline(): void {
    this.exports.rcu_offline();
  }

  /** Begins a section on a thread that is online. Nests. Never waits. */
  readLock(): void {
    this.exports.rcu_read_lock_trace();
  }
  /** The end of the outermost section is what the grace periods wait for. */
  readUnlock(): void {
    this.exports.rcu_read_unlock_trace(this.address);
  }
  /**
   * Returns when every section that had begun before the call has ended. A thread that is online
   * and quiet is passed after some milliseconds. In a section it would wait for itself. Throws on
   * a main thread.
   */
  synchronize(): void {
    this.checkBlocking("synchronize");
    this.exports.synchronize_rcu_tasks_trace(this.address);
  }

  /** QSBR: here this thread holds nothing that it read. */
  quiescent(): void {
    this.exports.rcu_quiescent(this.address);
  }
  /**
   * QSBR: returns when every thread that is online has been quiescent, or gone offline, since the
   * call: a thread that does neither is waited for for ever. Throws on a main thread.
   */
  synchronizeQsbr(): void {
    this.checkBlocking("synchronizeQsbr");
    this.exports.synchronize_rcu_qsbr(this.address);
  }
}
