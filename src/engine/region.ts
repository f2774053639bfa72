// Where an engine lies: in a memory of its own, or somewhere in the user's.

import { WasmprobeError } from "../base/errors.js";
import * as abi from "./abi.js";
import { EngineMemory } from "./memory.js";

/** Room for the engine's own structures and a few thousand probes. */
const MEMORY_BYTES = 64 << 20;
/** The engine's sizes are signed words. */
const REGION_MOST = 2 ** 31 - abi.STRIDE;

export interface RegionOptions {
  /** Bytes of a memory of the engine's own; reserved once. @default 64 MiB */
  memoryBytes?: number;
  /** Instead: a shared memory of yours, which others may use as well. */
  memory?: WebAssembly.Memory;
  /** Where in `memory` the engine lies: a multiple of 128. @default 0 */
  base?: number;
  /** How much of it is the engine's: a multiple of 128. @default all from `base` on */
  bytes?: number;
}

export interface Region {
  memory: EngineMemory;
  bytes: number;
}

export function regionOf(options: RegionOptions): Region {
  const { memory, base = 0 } = options;
  if (memory === undefined) {
    if (base !== 0 || options.bytes !== undefined) {
      const line = "base and bytes are places in a memory of yours, and none is given";
      throw new WasmprobeError("E_VALUE", line);
    }
    const own = EngineMemory.create(options.memoryBytes ?? MEMORY_BYTES);
    return { memory: new EngineMemory(own), bytes: own.buffer.byteLength };
  }
  const most = memory.buffer.byteLength;
  if (!(memory.buffer instanceof SharedArrayBuffer)) {
    throw new WasmprobeError("E_VALUE", "memory is not shared; CPUs need a shared one");
  }
  const { bytes = most - base } = options;
  for (const [name, value] of Object.entries({ base, bytes })) {
    if (!Number.isInteger(value) || value < 0 || value % abi.STRIDE !== 0) {
      const valid = `a multiple of ${abi.STRIDE}`;
      throw new WasmprobeError("E_VALUE", `${name} is ${value}; it must be ${valid}`);
    }
  }
  if (base + bytes > most || bytes > REGION_MOST) {
    const where = `[${base}, ${base + bytes})`;
    const valid = `it must end by ${most} and be at most ${REGION_MOST} bytes`;
    throw new WasmprobeError("E_VALUE", `the engine's region is ${where}; ${valid}`);
  }
  return { memory: new EngineMemory(memory, base), bytes };
}
