// The one error type a user ever sees, and the exit codes it stands for.
//
// A message is one line: what went wrong, with which value, and what would have been valid.

/** Exit code of every error code. The codes are stable: scripts may match on them. */
const EXIT_OF = {
  /** The command line makes no sense as a whole. */
  E_USAGE: 2,
  /** A name that does not exist (bench, preset, option, format, ...). */
  E_NAME: 2,
  /** A value outside of what an option takes. */
  E_VALUE: 2,
  /** A file that cannot be read, written, or is not what it should be. */
  E_FILE: 1,
  /** A table, arena or slot set is full. */
  E_FULL: 1,
  /** A worker did not come up, died or stalled. */
  E_WORKER: 1,
  /** Something took longer than its stated limit. */
  E_TIMEOUT: 1,
  /** The engine saw an impossible thing, or a counting identity does not hold. */
  E_FAULT: 1,
  /** A call that this thread or state does not allow. */
  E_STATE: 1,
  /** This platform lacks something. */
  E_PLATFORM: 1,
  /** The engine's module is not the one this host was built for. */
  E_ABI: 1,
  /** Neighbours on this machine left too few rounds to judge. */
  E_HOST_BUSY: 3,
  /** The user ended the run. */
  E_INTERRUPTED: 130,
} as const;

export type ErrorCode = keyof typeof EXIT_OF;

export const EXIT_OK = 0;
export const EXIT_RUNTIME = 1;
export const EXIT_USAGE = 2;
export const EXIT_HOST_BUSY = 3;
export const EXIT_INTERRUPTED = 130;

export class WasmprobeError extends Error {
  readonly code: ErrorCode;
  /** What the process ends with when nobody handles this error. */
  readonly exitCode: number;

  constructor(code: ErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "WasmprobeError";
    this.code = code;
    this.exitCode = EXIT_OF[code];
  }
}

/** What to end with after `error`; anything that is not ours is a runtime failure. */
export function exitCodeOf(error: unknown): number {
  return error instanceof WasmprobeError ? error.exitCode : EXIT_RUNTIME;
}

/** One line for `error`, whatever was thrown. Stacks are for debuggers, not for users. */
export function lineOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replace(/\s*\n\s*/g, " ").trim() || "unknown error";
}
