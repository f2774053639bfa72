import type { SweepResult } from "../result.js";

/** The document of schema wasmprobe.sweep/1; parseResult reads it back. */
export function formatJson(result: SweepResult): string {
  return JSON.stringify(result, null, 2);
}
