import { WasmprobeError, type ErrorCode } from "../../src/base/errors.js";

/** The message of the error that `action` throws; it must be ours, of this code, and one line. */
export function messageOf(code: ErrorCode, action: () => unknown): string {
  const error = thrownBy(action);
  if (!(error instanceof WasmprobeError)) throw error;
  if (error.code !== code) throw new Error(`${error.code} instead of ${code}: ${error.message}`);
  if (error.message.includes("\n")) throw new Error(`more than one line: ${error.message}`);
  return error.message;
}

/** As messageOf, of a promise. */
export async function rejectionOf(code: ErrorCode, promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => new Error("nothing was thrown"),
    (thrown: unknown) => thrown,
  );
  return messageOf(code, () => {
    throw error;
  });
}

function thrownBy(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return new Error("nothing was thrown");
}
