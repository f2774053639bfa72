// Engines for tests: several CPUs of one engine on this thread, and pools of real threads.
// WASMPROBE_WASM names another module than the built one: a mutant.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { instantiateEngine } from "../../src/engine/instance.js";
import { EngineMemory } from "../../src/engine/memory.js";
import type { LockExports, LockThread } from "../../src/engine/locks.js";
import type { Job, Runner } from "../../src/engine/runner.js";
import { startThreads } from "../../src/engine/threads.js";
import { loadPlatform } from "../../src/platform/index.js";
import { ROOT } from "./root.js";

const chosen = process.env["WASMPROBE_WASM"];
export const WASM = chosen === undefined ? join(ROOT, "dist", "engine.wasm") : resolve(chosen);

/** Where tests put the object under test, and where the CPUs' areas are. */
export const AT = 0x8000;
const AREAS = 0x1000;

export interface Cpus {
  /** exports[i] is CPU i; all on this thread, so nothing that waits may be called. */
  exports: LockExports[];
  i32: Int32Array;
  thread: LockThread;
  /** The word at AT + offset, unsigned. */
  word(offset?: number): number;
  set(value: number, offset?: number): void;
}

/** `count` CPUs over one zeroed memory. */
export function cpusOnThisThread(count: number): Cpus {
  const module = new WebAssembly.Module(readFileSync(WASM));
  const memory = EngineMemory.create(0x10000);
  const i32 = new Int32Array(memory.buffer);
  const exports = Array.from({ length: count }, (_, cpu) => {
    const instance = instantiateEngine(module, memory, () => performance.now());
    instance.exports.cpu_init(AREAS, cpu);
    return instance.exports as unknown as LockExports;
  });
  return {
    exports,
    i32,
    thread: { canBlock: true, i32 },
    word: (offset = 0) => Atomics.load(i32, (AT + offset) >> 2) >>> 0,
    set: (value, offset = 0) => {
      Atomics.store(i32, (AT + offset) >> 2, value);
    },
  };
}

/** Calls `body` with a pool of `cpus` workers, and closes it whatever happens. */
export async function withThreads<T>(
  cpus: number,
  body: (runner: Runner) => Promise<T>,
  options: { leaveLimitMs?: number } = {},
): Promise<T> {
  const runner = await startThreads({
    platform: await loadPlatform(),
    cpus,
    memoryBytes: 4 << 20,
    wasm: pathToFileURL(WASM),
    ...options,
  });
  try {
    return await body(runner);
  } finally {
    await runner.close();
  }
}

/** Progress of each CPU so far, operations. */
export function progress(runner: Runner, pcpuOps: number): number[] {
  const { memory } = runner;
  return Array.from({ length: runner.cpus }, (_, cpu) =>
    memory.load64(memory.perCpu(pcpuOps, cpu)),
  );
}

export const sleep = (ms: number): Promise<void> =>
  new Promise((resolvePromise) => setTimeout(resolvePromise, ms));

/**
 * Runs `jobs` for `ms` and returns what each CPU did. `stop` is bounded by the runner, so a CPU
 * that hangs in a lock is an error that names it, not a hang of the test.
 */
export async function runFor(
  runner: Runner,
  jobs: readonly Job[],
  ms: number,
  pcpuOps: number,
): Promise<number[]> {
  const run = await runner.run(jobs);
  await sleep(ms);
  await run.stop();
  return progress(runner, pcpuOps);
}
