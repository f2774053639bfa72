// Starting the runner of a command and ending it again, however the command ends.

import { startThreads } from "../../engine/threads.js";
import type { Runner } from "../../engine/runner.js";
import { cellMemoryBytes } from "../../harness/cell.js";
import type { Session } from "../session.js";

export interface StartOptions {
  /** Most CPUs and most probes that any cell will need. */
  cpus: number;
  probes: number;
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
  const runner = await startThreads({
    platform: session.platform,
    cpus: options.cpus,
    memoryBytes: cellMemoryBytes(options.probes, options.cpus),
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
