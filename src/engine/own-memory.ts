// Locks and RCU in a memory of the user's own: one call per thread, then handles at any address.

import { WasmprobeError } from "../base/errors.js";
import { loadPlatform } from "../platform/index.js";
import * as abi from "./abi.js";
import { compileEngine, instantiateEngine } from "./instance.js";
import type { LockExports, LockThread } from "./locks.js";
import type { RcuExports } from "./rcu-handles.js";

/** Bytes of shared memory that each CPU needs of its own, beside locks and RCU domains. */
export const CPU_AREA_BYTES = abi.PERCPU_BYTES;

export interface OwnMemoryOptions {
  /** Shared, with a maximum. */
  memory: WebAssembly.Memory;
  /** Where the CPUs' areas begin: CPU_AREA_BYTES each, zeroed, a multiple of 64. */
  areas: number;
  /** Number of the calling thread, from 0; no two threads of one memory may have the same. */
  cpu: number;
}

/** What handles are made with: `new Mutex(cpu.exports, p, cpu.thread)`, `new Srcu(cpu, p)`. */
export interface OwnCpu {
  exports: LockExports & RcuExports;
  thread: LockThread;
  /** As they were given. */
  areas: number;
}

let compiled: Promise<WebAssembly.Module> | undefined;

/** Makes the calling thread a CPU of the locks in `memory`. Once per thread and memory. */
export async function openCpu(options: OwnMemoryOptions): Promise<OwnCpu> {
  const { memory, areas, cpu } = options;
  const bytes = memory.buffer.byteLength;
  if (!(memory.buffer instanceof SharedArrayBuffer)) {
    throw new WasmprobeError("E_VALUE", "memory is not shared; locks are for shared memory");
  }
  if (!Number.isInteger(cpu) || cpu < 0 || cpu >= abi.CPUS_MAX) {
    throw new WasmprobeError("E_VALUE", `cpu is ${cpu}; valid are 0..${abi.CPUS_MAX - 1}`);
  }
  if (areas < 0 || areas % abi.LINE !== 0 || areas + (cpu + 1) * CPU_AREA_BYTES > bytes) {
    const valid = `a multiple of ${abi.LINE} with ${CPU_AREA_BYTES} bytes for each CPU behind it`;
    throw new WasmprobeError("E_VALUE", `areas is ${areas} in ${bytes} bytes; it must be ${valid}`);
  }
  const platform = await loadPlatform();
  compiled ??= platform
    .readBytes(new URL("../engine.wasm", import.meta.url))
    .then((wasm) => compileEngine(wasm));
  const { exports } = instantiateEngine(await compiled, memory, platform.nowMs);
  exports.cpu_init(areas, cpu);
  return {
    exports: exports as unknown as OwnCpu["exports"],
    thread: { canBlock: !platform.isMainThread, i32: new Int32Array(memory.buffer) },
    areas,
  };
}
