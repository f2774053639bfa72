// Files, address spaces and tasks on a Solo engine, as tests of mappings and probes set them up.

import * as abi from "../../src/engine/abi.js";
import type { HitCounts } from "../../src/engine/memory.js";
import { Solo, type SoloOptions } from "./solo.js";

export const VADDR = 0x400000;
export const FILE_BYTES = 4096;

/** Offset of a task's translation: it plus an address is where the instruction byte lies. */
export const TASK_TEXT = 40;

/** What differs from a consumer that takes every hit. */
export interface Wish {
  task?: number;
  mm?: number;
  limit?: number;
}

export class Probes extends Solo {
  readonly inode: number;
  readonly mm: number;

  /** A file of `opcode` and an empty address space. */
  constructor(opcode = abi.INSN_NOP, options: SoloOptions = {}) {
    super(options);
    this.inode = this.ok(abi.OP_INODE_CREATE, FILE_BYTES, opcode);
    this.mm = this.ok(abi.OP_MM_CREATE, 16);
  }

  /** Maps the first file, whole, or `bytes` of it from `pgoff` on. An errno is a result. */
  map(vaddr = VADDR, mm = this.mm, bytes = FILE_BYTES, pgoff = 0, inode = this.inode): number {
    return this.op(abi.OP_MMAP, mm, inode, vaddr, bytes, pgoff);
  }

  /** A task that calls `sites` functions from `vaddr` on, 16 bytes apart; or an errno. */
  task(vaddr = VADDR, mm = this.mm, pid = 1, sites = 1, stride = 16): number {
    return this.op(abi.OP_TASK_CREATE, mm, pid, vaddr, stride, sites, 1);
  }

  sink(kind = abi.HANDLER_COUNT): number {
    return this.ok(abi.OP_SINK_CREATE, kind);
  }

  /** A consumer, or an errno. */
  register(offset: number, sink: number, wish: Wish = {}, inode = this.inode): number {
    const { task = 0, mm = 0, limit = 0 } = wish;
    return this.op(abi.OP_REGISTER, inode, offset, sink, task, mm, limit);
  }

  unregister(consumer: number): number {
    return this.op(abi.OP_UNREGISTER, consumer);
  }

  /** What comes of one call of the function at an address. */
  call1(vaddr: number, mm = this.mm, pid = 1): HitCounts {
    const task = this.ok(abi.OP_TASK_CREATE, mm, pid, vaddr, 16, 1, 1);
    const counts = this.trigger(task);
    this.ok(abi.OP_TASK_DESTROY, task);
    return counts;
  }

  /** The instruction byte that a task will fetch from an address. */
  fetch(task: number, vaddr: number): number {
    const at = (this.memory.load(task + TASK_TEXT) + vaddr) >>> 0;
    return new Uint8Array(this.memory.memory.buffer)[at] ?? -1;
  }

  /** Whether the text at an address has a trap byte. */
  isTrap(vaddr: number, mm = this.mm): boolean {
    const task = this.ok(abi.OP_TASK_CREATE, mm, 1, vaddr, 16, 1, 1);
    const byte = this.fetch(task, vaddr);
    this.ok(abi.OP_TASK_DESTROY, task);
    return byte === abi.INSN_TRAP;
  }

  hits(sink: number): number {
    return this.memory.sinkHits(sink, this.cpus + 1).reduce((a, b) => a + b, 0);
  }
}
