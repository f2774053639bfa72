import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import binaryen from "binaryen";
import { instructions } from "../../src/wasm/code.js";
import { WasmFormatError } from "../../src/wasm/leb.js";
import { readModule } from "../../src/wasm/reader.js";
import { moduleOf } from "../helpers/module.js";
import { ROOT } from "../helpers/root.js";

function namesOf(bytes: Uint8Array): string[] {
  const read = readModule(bytes);
  return read.bodies.flatMap((b) => [...instructions(read, b)].map((i) => i.name));
}

test("immediates are stepped over, whatever bytes they hold", () => {
  const names = namesOf(
    moduleOf(
      [0x41, 0x8b, 0x16, 0x1a], // i32.const with the byte of `end` in it
      [0x42, 0x0b, 0x1a],
      [0x43, 0x0b, 0x0b, 0x0b, 0x0b, 0x1a],
      [0x44, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x1a],
      [0x02, 0x40, 0x41, 0x00, 0x0e, 0x01, 0x00, 0x00, 0x0b], // br_table in a block
      [0xfe, 0x03, 0x00],
      [0xfc, 0x0a, 0x00, 0x00],
    ),
  );
  assert.is(
    names.join(" "),
    "i32.const drop i64.const drop f32.const drop f64.const drop " +
      "block i32.const br_table end atomic.fence memory.copy end",
  );
});

test("a memory access gives its alignment exponent and offset", () => {
  const read = readModule(moduleOf([0xfe, 0x1f, 0x03, 0x80, 0x01]));
  const [add] = read.bodies.flatMap((b) => [...instructions(read, b)]);
  assert.is(add?.name, "i64.atomic.rmw.add");
  assert.is(add?.opcode, 0xfe1f);
  assert.equal(add?.immediates, [3, 128]);
});

test("an opcode of another proposal is refused by number and place", () => {
  assert.throws(
    () => namesOf(moduleOf([0xfd, 0x0c])),
    (error: unknown) =>
      error instanceof WasmFormatError && /unknown opcode 0xfd at byte/.test(error.message),
  );
});

test("the engine's instructions are those that binaryen's disassembler counts", () => {
  const bytes = readFileSync(join(ROOT, "dist", "engine.wasm"));
  const parsed = binaryen.readBinary(bytes);
  const wat = parsed.emitText();
  parsed.dispose();
  const count = (names: Iterable<string>): Record<string, number> => {
    const counts: Record<string, number> = {};
    // Only operators: binaryen folds blocks and branches, and the reader of text sees types too.
    for (const name of names) {
      if (/^(i32|i64|f64|memory|atomic|call|return)/.test(name) && name.includes(".")) {
        counts[name] = (counts[name] ?? 0) + 1;
      }
    }
    return Object.fromEntries(Object.entries(counts).sort());
  };
  const theirs = [...wat.matchAll(/\(([a-z0-9_]+\.[a-z0-9_.]+)/g)].map((m) => m[1] ?? "");
  const inCode = count(namesOf(bytes));
  const inText = count(theirs);
  // Initialisers of globals are in the text, not in the bodies.
  for (const type of ["i32.const", "i64.const", "f64.const"]) {
    const globals = [...wat.matchAll(new RegExp(`\\(global [^\\n]*\\(${type} `, "g"))].length;
    if (globals > 0) inText[type] = (inText[type] ?? 0) - globals;
    if (inText[type] === 0) delete inText[type];
  }
  assert.equal(inCode, inText);
});

test.run();
