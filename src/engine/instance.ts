// Instantiating the engine's module: once per CPU, over one memory.

import { instantiateSync } from "@assemblyscript/loader";
import { WasmprobeError } from "../base/errors.js";
import * as abi from "./abi.js";

/** Functions of the engine that the host calls itself; workloads are looked up by name. */
export interface EngineExports {
  engine_init(
    base: number,
    bytes: number,
    cpus: number,
    strategy: number,
    uprobesMax: number,
    trapUnits: number,
    arch: number,
    xolSlots: number,
    leaseUs: number,
  ): number;
  engine_attach(base: number, cpu: number): number;
  cpu_init(areas: number, cpu: number): void;
  cpu_delay(units: number): void;
  housekeeper_run(timeoutNs: bigint): number;
  rcu_area_init(area: number, kind: number, cpus: number): void;
  /** This instance's own: where its consumers' handlers are. */
  readonly table: WebAssembly.Table;
}

/**
 * A workload: called with its arguments and, last, the number of iterations. Returns how many it
 * has done, or nothing if it always does all.
 */
export type Workload = (...args: number[]) => unknown;

export interface EngineInstance {
  readonly exports: EngineExports;
  /** The exported function `name`, or one clear error. */
  workload(name: string): Workload;
}

export async function compileEngine(bytes: Uint8Array): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(bytes as BufferSource);
  } catch (cause) {
    throw new WasmprobeError(
      "E_ABI",
      `the engine's module does not compile here (threads are needed): ${(cause as Error).message}`,
      cause,
    );
  }
}

/** What the module exports, if it is an engine's. */
function exportsOf(
  module: WebAssembly.Module,
  imports: Parameters<typeof instantiateSync>[1],
): Record<string, unknown> {
  let found: Record<string, unknown>;
  try {
    found = instantiateSync(module, imports).exports as unknown as Record<string, unknown>;
  } catch (cause) {
    const why = (cause as Error).message;
    throw new WasmprobeError("E_ABI", `the module cannot be an engine here: ${why}`, cause);
  }
  if (typeof found["engine_init"] === "function") return found;
  throw new WasmprobeError("E_ABI", `the module is no engine: it has no function "engine_init"`);
}

/** One CPU's instance. `nowMs`: a monotonic clock, milliseconds. */
export function instantiateEngine(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  nowMs: () => number,
): EngineInstance {
  const all = exportsOf(module, {
    env: { memory },
    cpu: { now: nowMs },
    host: { empty: () => {} },
  });
  return {
    exports: all as unknown as EngineExports,
    workload(name) {
      const found = all[name];
      if (typeof found !== "function") {
        throw new WasmprobeError("E_ABI", `the engine has no function "${name}"`);
      }
      return found as Workload;
    },
  };
}

const ERRNO_NAMES: Record<number, string> = {
  [abi.ENOENT]: "ENOENT: there is no such thing",
  [abi.EAGAIN]: "EAGAIN: try again",
  [abi.ENOMEM]: "ENOMEM: the arena is full",
  [abi.EBUSY]: "EBUSY: still in use",
  [abi.EEXIST]: "EEXIST: overlaps what is there",
  [abi.EINVAL]: "EINVAL: an argument is out of range",
  [abi.ENOSPC]: "ENOSPC: the table is full",
  [abi.ETIMEDOUT]: "ETIMEDOUT: took too long",
};

/** An errno in words. */
export function errnoText(errno: number): string {
  return ERRNO_NAMES[errno] ?? `errno ${errno}`;
}

/** True for a command's negative result; addresses above 2 GiB look negative too. */
export function isErrno(result: number): boolean {
  return result < 0 && result >= abi.ETIMEDOUT;
}
