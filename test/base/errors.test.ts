import { test } from "uvu";
import * as assert from "uvu/assert";
import { WasmprobeError, exitCodeOf, lineOf } from "../../src/base/errors.js";

test("exit codes: 1 runtime, 2 usage, 3 host too busy, 130 interrupted", () => {
  assert.is(new WasmprobeError("E_WORKER", "x").exitCode, 1);
  assert.is(new WasmprobeError("E_FILE", "x").exitCode, 1);
  assert.is(new WasmprobeError("E_NAME", "x").exitCode, 2);
  assert.is(new WasmprobeError("E_VALUE", "x").exitCode, 2);
  assert.is(new WasmprobeError("E_USAGE", "x").exitCode, 2);
  assert.is(new WasmprobeError("E_HOST_BUSY", "x").exitCode, 3);
  assert.is(new WasmprobeError("E_INTERRUPTED", "x").exitCode, 130);
});

test("an error that is not ours is a runtime failure", () => {
  assert.is(exitCodeOf(new TypeError("x")), 1);
  assert.is(exitCodeOf(undefined), 1);
  assert.is(exitCodeOf(new WasmprobeError("E_NAME", "x")), 2);
});

test("whatever is thrown, the user reads one line", () => {
  assert.is(lineOf(new Error("first\n  second\n")), "first second");
  assert.is(lineOf(new Error("")), "Error");
  assert.is(lineOf("text"), "text");
  assert.is(lineOf(undefined), "undefined");
  assert.is(lineOf(""), "unknown error");
});

test("a cause is kept, and absent when there is none", () => {
  const cause = new Error("below");
  assert.is(new WasmprobeError("E_FILE", "x", cause).cause, cause);
  assert.not("cause" in new WasmprobeError("E_FILE", "x"));
});

test.run();
