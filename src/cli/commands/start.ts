// Starting the runner of a command and ending it again, however the command ends.

import { WasmprobeError } from "../../base/errors.js";
import { startThreads } from "../../engine/threads.js";
import type { Runner } from "../../engine/runner.js";
import { cellMemoryBytes } from "../../harness/cell.js";
import type { Session } from "../session.js";

/** What an engine's size, an i32, can say. */
const ENGINE_BYTES_MAX = 2 ** 31 - 1;

export interface StartOptions {
  /** Most CPUs and most probes that any cell will need. */
  cpus: number;
  probes: number;
  /** Longest distance of two sites. */
  siteBytes?: number;
  affinity: boolean;
  /** Another engine's file, or null. */
  wasm: string | null;
  /** What a CPU may take to leave its run, milliseconds, where not the usual. */
  leaveLimitMs?: number;
}

export async function withThreads<T>(
  session: Session,
  options: StartOptions,
  use: (runner: Runner) => Promise<T>,
): Promise<T> {
  const { cpus, probes, siteBytes } = options;
  const memoryBytes = cellMemoryBytes(probes, cpus, siteBytes);
  if (memoryBytes > ENGINE_BYTES_MAX) {
    const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
    throw new WasmprobeError(
      "E_VALUE",
      `--probes ${probes} at their distance need ${gib(memoryBytes)}; ` +
        `an engine has at most ${gib(ENGINE_BYTES_MAX)}`,
    );
  }
  const runner = await startThreads({
    platform: session.platform,
    cpus,
    memoryBytes,
    affinity: options.affinity,
    ...(options.leaveLimitMs === undefined ? {} : { leaveLimitMs: options.leaveLimitMs }),
    ...(options.wasm === null ? {} : { wasm: session.platform.fileUrl(options.wasm) }),
  });
  try {
    return await use(runner);
  } finally {
    await runner.close();
  }
}
