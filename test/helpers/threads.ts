// Pools of real threads that are small and impatient, and what they refuse.

import { pathToFileURL } from "node:url";
import * as assert from "uvu/assert";
import { WasmprobeError, type ErrorCode } from "../../src/base/errors.js";
import { startThreads } from "../../src/engine/threads.js";
import type { ThreadsOptions, ThreadsRunner } from "../../src/engine/threads.js";
import { nodePlatform } from "../../src/platform/node.js";
import { WASM } from "./engine.js";

/** Long enough for a healthy worker on a busy machine, short enough to wait for. */
export const LIMIT_MS = 2000;

export function start(options: Partial<ThreadsOptions> = {}): Promise<ThreadsRunner> {
  const wasm = pathToFileURL(WASM);
  return startThreads({ platform: nodePlatform, cpus: 2, memoryBytes: 1 << 20, wasm, ...options });
}

export async function withRunner(
  options: Partial<ThreadsOptions>,
  body: (runner: ThreadsRunner) => Promise<void>,
): Promise<void> {
  const runner = await start(options);
  try {
    await body(runner);
  } finally {
    await runner.close();
  }
}

/** The one line of the error that `promise` rejects with. */
export async function refusal(code: ErrorCode, promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => new Error("it did not reject"),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof WasmprobeError)) throw error;
  assert.is(error.code, code, error.message);
  assert.not(error.message.includes("\n"), `more than one line: ${error.message}`);
  return error.message;
}
