// Files, address spaces and tasks: what is probed, where it is mapped, and who executes it.

import { WasmprobeError } from "../base/errors.js";
import { unknownName } from "../base/text.js";
import * as abi from "./abi.js";
import { type EngineCore, Owned, whole } from "./core.js";
import type { HitCounts, ReturnCounts } from "./memory.js";

const ADDRESS_MOST = 0xffff_ffff;
const BYTES_MOST = 0x7fff_ffff;
const STACK_MOST = 1 << 20;
/** Signals are numbered from 0; a task can have each pending once. */
const SIGNAL_LAST = 31;

const INSTRUCTIONS = { nop: abi.INSN_NOP, push: abi.INSN_PUSH, ret: abi.INSN_RET } as const;

export interface FileOptions {
  /** Size: every byte is an instruction of its own. */
  bytes: number;
  /** What each is: emulated when it is probed (nop, push) or stepped (ret). @default "nop" */
  instruction?: keyof typeof INSTRUCTIONS;
}

/** A file of instructions: what probes are registered in, by offset. */
export class CodeFile extends Owned {
  readonly bytes: number;
  /** @internal */
  readonly inode: number;

  private constructor(core: EngineCore, inode: number, bytes: number) {
    super(core, `the file of ${bytes} bytes`);
    this.inode = inode;
    this.bytes = bytes;
  }

  /** @internal */
  static async create(core: EngineCore, options: FileOptions): Promise<CodeFile> {
    const { bytes, instruction = "nop" } = options;
    core.check();
    whole("bytes", bytes, 1, BYTES_MOST);
    const names = Object.keys(INSTRUCTIONS);
    if (!names.includes(instruction)) {
      throw unknownName("instruction", instruction, names);
    }
    const inode = await core.command(abi.OP_INODE_CREATE, [bytes, INSTRUCTIONS[instruction]]);
    return new CodeFile(core, inode, bytes);
  }

  /** Gives its memory back. E_STATE while it is mapped or probed. */
  close(): Promise<void> {
    return this.giveBack((core) =>
      core.command(abi.OP_INODE_DESTROY, [this.inode], {
        [abi.EBUSY]: () => this.inUse("is still mapped or probed"),
      }),
    );
  }
}

export interface MapOptions {
  /** First address, from 1 on. */
  address: number;
  /** How much of the file. @default all of it from `offset` on */
  bytes?: number;
  /** Where in the file the mapping begins. @default 0 */
  offset?: number;
}

export interface TaskOptions {
  /** Address of its first function. */
  address: number;
  /** How many one-instruction functions it calls, in random order if more than one. @default 1 */
  functions?: number;
  /** Distance of two functions, bytes. @default 16 */
  stride?: number;
  /** Its process number, by which consumers can choose. @default 1 */
  pid?: number;
  /** Of the random order; the same seed, the same order. @default 1 */
  seed?: number;
  /**
   * Its stack, bytes, a multiple of 16: a call that has not returned takes 16, and what its
   * instruction pushes. @default 256, in the task itself
   */
  stackBytes?: number;
}

export interface TaskForkOptions {
  /** The child's process number. @default the parent's */
  pid?: number;
  /** Where it executes: a fork of the parent's space. @default the same: it is a thread */
  space?: AddressSpace;
}

/** Mappings of files at addresses. Probes of a file are in every mapping of it, also later ones. */
export class AddressSpace extends Owned {
  /** @internal */
  readonly mm: number;
  readonly mappingsMax: number;
  /** Probes that are only here: they know it by its place, which the next may get. @internal */
  probes = 0;
  readonly #tasks = new Set<Task>();

  private constructor(core: EngineCore, mm: number, mappingsMax: number) {
    super(core, "the address space");
    this.mm = mm;
    this.mappingsMax = mappingsMax;
  }

  /** @internal */
  static async create(core: EngineCore, mappingsMax: number): Promise<AddressSpace> {
    core.check();
    whole("mappingsMax", mappingsMax, 1, 1 << 20);
    const mm = await core.command(abi.OP_MM_CREATE, [mappingsMax]);
    return new AddressSpace(core, mm, mappingsMax);
  }

  /**
   * Maps a file, with the breakpoints of its probes. E_VALUE: outside of the file, or over another
   * mapping. E_FULL: no room for a further mapping. CPUs may hit meanwhile.
   */
  async map(file: CodeFile, options: MapOptions): Promise<void> {
    const core = this.use();
    file.belongsTo(core);
    const { address, offset = 0 } = options;
    whole("offset", offset, 0, file.bytes - 1);
    const bytes = whole("bytes", options.bytes ?? file.bytes - offset, 1, file.bytes - offset);
    whole("address", address, 1, ADDRESS_MOST - bytes);
    await core.command(abi.OP_MMAP, [this.mm, file.inode, address, bytes, offset], {
      [abi.EEXIST]: () =>
        new WasmprobeError(
          "E_VALUE",
          `[${address}, ${address + bytes}) overlaps a mapping that is there`,
        ),
      [abi.ENOSPC]: () =>
        new WasmprobeError(
          "E_FULL",
          `the address space is full: it has its ${this.mappingsMax} mappings`,
        ),
    });
  }

  /** Takes away the mapping that begins at `address`. E_STATE while a task executes in it. */
  async unmap(address: number): Promise<void> {
    const core = this.use();
    // Where a mapping ends is not known here: a task anywhere keeps them all.
    if (this.#tasks.size > 0) throw this.#busy();
    await core.command(abi.OP_MUNMAP, [this.mm, address], {
      [abi.EINVAL]: () => new WasmprobeError("E_VALUE", `no mapping begins at address ${address}`),
    });
  }

  /**
   * A copy of it: its mappings, with the breakpoints as they are. Probes that come or go later do
   * so in both. One that was registered for this space only is taken out of the copy by the first
   * hit there. CPUs may hit meanwhile.
   */
  async fork(): Promise<AddressSpace> {
    const core = this.use();
    const mm = await core.command(abi.OP_MM_FORK, [this.mm]);
    return new AddressSpace(core, mm, this.mappingsMax);
  }

  /**
   * The program's 16-bit reference counter at `address`: what it was in the file, and one more for
   * each breakpoint here of a probe that names it (`refCtrOffset`). E_VALUE: nothing is mapped
   * there.
   */
  async refCtr(address: number): Promise<number> {
    const core = this.use();
    whole("address", address, 2, ADDRESS_MOST - 1);
    if (address % 2 !== 0) throw new WasmprobeError("E_VALUE", `address is ${address}; it is odd`);
    const at = await core.command(abi.OP_TEXT_AT, [this.mm, address], {
      [abi.EINVAL]: () => new WasmprobeError("E_VALUE", `nothing is mapped at address ${address}`),
    });
    return (core.memory.load(at) >>> (8 * (at & 2))) & 0xffff;
  }

  /** A task that calls functions here. They must lie in one mapping. */
  async task(options: TaskOptions): Promise<Task> {
    const core = this.use();
    const { address, functions = 1, stride = 16, pid = 1, seed = 1, stackBytes = 0 } = options;
    whole("address", address, 1, ADDRESS_MOST);
    whole("functions", functions, 1, BYTES_MOST);
    whole("stride", stride, 1, BYTES_MOST);
    whole("pid", pid, -BYTES_MOST, BYTES_MOST);
    whole("seed", seed, 0, ADDRESS_MOST);
    whole("stackBytes", stackBytes, 0, STACK_MOST);
    if (stackBytes % 16 !== 0) {
      throw new WasmprobeError(
        "E_VALUE",
        `stackBytes is ${stackBytes}; it must be divisible by 16`,
      );
    }
    const args = [this.mm, pid, address, stride, functions, seed, stackBytes];
    const handle = await core.command(abi.OP_TASK_CREATE, args, {
      [abi.EINVAL]: () => {
        const last = address + stride * (functions - 1);
        return new WasmprobeError(
          "E_VALUE",
          `the functions from ${address} to ${last} do not lie in one mapping`,
        );
      },
    });
    return this.adopt(core, handle, { pid, functions });
  }

  /** Its task from now on, until that is closed. @internal */
  adopt(core: EngineCore, handle: number, of: { pid: number; functions: number }): Task {
    const task: Task = new Task(core, handle, this, of, () => this.#tasks.delete(task));
    this.#tasks.add(task);
    return task;
  }

  /** Gives it back with its mappings. E_STATE while it has tasks, or probes of its own. */
  close(): Promise<void> {
    return this.giveBack(async (core) => {
      if (this.#tasks.size > 0) throw this.#busy();
      if (this.probes > 0) {
        throw this.inUse(`still has ${this.probes} probes of its own; unregister them first`);
      }
      await core.command(abi.OP_MM_DESTROY, [this.mm]);
    });
  }

  #busy(): WasmprobeError {
    return this.inUse(`still has ${this.#tasks.size} tasks; close them first`);
  }
}

/** A thread of a program: one CPU executes it at a time. */
export class Task extends Owned {
  /** What a module of yours calls `wasmprobe.call` with: an address in the shared memory. */
  readonly handle: number;
  readonly pid: number;
  readonly functions: number;
  readonly #space: AddressSpace;
  readonly #closed: () => void;
  /** CPU that executes it, as far as runs know. @internal */
  cpu: number | undefined;

  /** @internal */
  constructor(
    core: EngineCore,
    handle: number,
    space: AddressSpace,
    { pid, functions }: { pid: number; functions: number },
    closed: () => void,
  ) {
    super(core, `task ${pid}`);
    this.#space = space;
    this.functions = functions;
    this.handle = handle;
    this.pid = pid;
    this.#closed = closed;
  }

  /**
   * What came of its calls: triggers = handled + filtered + all of missed, exactly once its CPU has
   * left the run; meanwhile a snapshot, in which one call may be under way.
   */
  counts(): HitCounts {
    return this.use().memory.task(this.handle);
  }

  /**
   * What came of its calls whose return was wanted: entries = returns + filtered + all of missed +
   * pending, exactly once its CPU has left the run. A call is wanted once, however many consumers
   * its function has.
   */
  returns(): ReturnCounts {
    return this.use().memory.returns(this.handle);
  }

  /** Instructions executed out of line, at a second exception each. */
  steps(): number {
    return this.use().memory.steps(this.handle).steps;
  }

  /** Signals sent to it and delivered: sent = delivered + those pending. */
  signals(): { sent: number; delivered: number } {
    const { memory } = this.use();
    const delivered = memory.steps(this.handle).signals;
    return { sent: memory.load64(this.handle + abi.TASK_SENT), delivered };
  }

  /**
   * Sends it signal `number`, 0 to 31; false: that one is pending already, and is not sent twice.
   * It is delivered, which is counted, when its CPU returns to user mode: after an exception, or at
   * the next batch of a run that calls its functions; never in the middle of a step.
   */
  async signal(number: number): Promise<boolean> {
    const core = this.use();
    whole("signal", number, 0, SIGNAL_LAST);
    return (await core.command(abi.OP_SIGNAL_SEND, [this.handle, number])) === 1;
  }

  /**
   * A child at the same place of its program, with a copy of the stack: calls that have not
   * returned yet return in both, and are counted in both. Its counts begin with those as entries;
   * signals stay with the parent. E_STATE while a run executes it. E_VALUE: `space` lacks its
   * functions.
   */
  async fork(options: TaskForkOptions = {}): Promise<Task> {
    const core = this.use();
    const { pid = this.pid, space = this.#space } = options;
    space.belongsTo(core);
    whole("pid", pid, -BYTES_MOST, BYTES_MOST);
    if (this.cpu !== undefined) throw this.inUse(`is executed by CPU ${this.cpu}`);
    const handle = await core.command(abi.OP_TASK_FORK, [this.handle, space.mm, pid], {
      [abi.EINVAL]: () =>
        new WasmprobeError("E_VALUE", `the functions of ${this} are not mapped in that space`),
    });
    return space.adopt(core, handle, { pid, functions: this.functions });
  }

  /** Gives it back; its counts are gone. E_STATE while a run executes it. */
  close(): Promise<void> {
    return this.giveBack(async (core) => {
      if (this.cpu !== undefined) throw this.inUse(`is executed by CPU ${this.cpu}`);
      await core.command(abi.OP_TASK_DESTROY, [this.handle]);
      this.#closed();
    });
  }
}
