// The instructions of a function body, one after the other, with their immediates.
//
// Known is what the engine is compiled to: the first version of Wasm with sign extension,
// saturating conversion, bulk memory, reference types and threads. Another opcode is refused:
// stepping over an instruction needs the shape of its immediates.

import { Cursor, WasmFormatError } from "./leb.js";
import type { Body, WasmModule } from "./reader.js";

export interface Instruction {
  /** The byte; behind a prefix (0xfc, 0xfe) prefix << 8 | number. */
  readonly opcode: number;
  /** As the text format writes it. */
  readonly name: string;
  readonly offset: number;
  /** Whole-number immediates, in order; of an access to memory: alignment exponent, offset. */
  readonly immediates: readonly number[];
}

// A shape says what follows the opcode: u an index, m a memory argument (alignment, offset), b a
// block type, i l f d a constant, t a branch table, v a list of value types, 0 a byte that is zero.
type Shape = "" | "u" | "uu" | "m" | "b" | "i" | "l" | "f" | "d" | "t" | "v" | "0" | "00" | "u0";

const table = new Map<number, { name: string; shape: Shape }>();

/** Adds names that follow one another from `first`; a dot alone leaves its number out. */
function known(first: number, shape: Shape, names: string): void {
  for (const [i, name] of names.split(" ").entries()) {
    if (name !== ".") table.set(first + i, { name, shape });
  }
}

known(0x00, "", "unreachable nop");
known(0x02, "b", "block loop if");
known(0x05, "", "else");
known(0x0b, "", "end");
known(0x0c, "u", "br br_if");
known(0x0e, "t", "br_table");
known(0x0f, "", "return");
known(0x10, "u", "call");
known(0x11, "uu", "call_indirect");
known(0x12, "u", "return_call");
known(0x13, "uu", "return_call_indirect");
known(0x1a, "", "drop select");
known(0x1c, "v", "select");
known(0x20, "u", "local.get local.set local.tee global.get global.set table.get table.set");
known(
  0x28,
  "m",
  "i32.load i64.load f32.load f64.load i32.load8_s i32.load8_u i32.load16_s i32.load16_u " +
    "i64.load8_s i64.load8_u i64.load16_s i64.load16_u i64.load32_s i64.load32_u " +
    "i32.store i64.store f32.store f64.store i32.store8 i32.store16 i64.store8 i64.store16 " +
    "i64.store32",
);
known(0x3f, "0", "memory.size memory.grow");
known(0x41, "i", "i32.const");
known(0x42, "l", "i64.const");
known(0x43, "f", "f32.const");
known(0x44, "d", "f64.const");

const INT_COMPARE = "eqz eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u";
const FLOAT_COMPARE = "eq ne lt gt le ge";
const INT_MATH =
  "clz ctz popcnt add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u rotl rotr";
const FLOAT_MATH = "abs neg ceil floor trunc nearest sqrt add sub mul div min max copysign";
const typed = (type: string, names: string): string => names.replace(/\S+/g, `${type}.$&`);

known(0x45, "", typed("i32", INT_COMPARE));
known(0x50, "", typed("i64", INT_COMPARE));
known(0x5b, "", typed("f32", FLOAT_COMPARE));
known(0x61, "", typed("f64", FLOAT_COMPARE));
known(0x67, "", typed("i32", INT_MATH));
known(0x79, "", typed("i64", INT_MATH));
known(0x8b, "", typed("f32", FLOAT_MATH));
known(0x99, "", typed("f64", FLOAT_MATH));
known(
  0xa7,
  "",
  "i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u " +
    "i64.extend_i32_s i64.extend_i32_u i64.trunc_f32_s i64.trunc_f32_u i64.trunc_f64_s " +
    "i64.trunc_f64_u f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u " +
    "f32.demote_f64 f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u " +
    "f64.promote_f32 i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32 " +
    "f64.reinterpret_i64 i32.extend8_s i32.extend16_s i64.extend8_s i64.extend16_s i64.extend32_s",
);
known(0xd0, "u", "ref.null");
known(0xd1, "", "ref.is_null");
known(0xd2, "u", "ref.func");

known(
  0xfc00,
  "",
  "i32.trunc_sat_f32_s i32.trunc_sat_f32_u i32.trunc_sat_f64_s i32.trunc_sat_f64_u " +
    "i64.trunc_sat_f32_s i64.trunc_sat_f32_u i64.trunc_sat_f64_s i64.trunc_sat_f64_u",
);
known(0xfc08, "u0", "memory.init");
known(0xfc09, "u", "data.drop");
known(0xfc0a, "00", "memory.copy");
known(0xfc0b, "0", "memory.fill");
known(0xfc0c, "uu", "table.init");
known(0xfc0d, "u", "elem.drop");
known(0xfc0e, "uu", "table.copy");
known(0xfc0f, "u", "table.grow table.size table.fill");

known(0xfe00, "m", "memory.atomic.notify memory.atomic.wait32 memory.atomic.wait64");
known(0xfe03, "0", "atomic.fence");
known(
  0xfe10,
  "m",
  "i32.atomic.load i64.atomic.load i32.atomic.load8_u i32.atomic.load16_u i64.atomic.load8_u " +
    "i64.atomic.load16_u i64.atomic.load32_u " +
    "i32.atomic.store i64.atomic.store i32.atomic.store8 i32.atomic.store16 i64.atomic.store8 " +
    "i64.atomic.store16 i64.atomic.store32",
);
for (const [i, op] of ["add", "sub", "and", "or", "xor", "xchg", "cmpxchg"].entries()) {
  known(
    0xfe1e + 7 * i,
    "m",
    `i32.atomic.rmw.${op} i64.atomic.rmw.${op} i32.atomic.rmw8.${op}_u i32.atomic.rmw16.${op}_u ` +
      `i64.atomic.rmw8.${op}_u i64.atomic.rmw16.${op}_u i64.atomic.rmw32.${op}_u`,
  );
}

/** All instructions of a body, in order, the closing `end` included. */
export function* instructions(module: WasmModule, body: Body): Generator<Instruction> {
  const at = new Cursor(module.bytes, body.code, body.end);
  while (!at.done) yield readInstruction(at);
}

function readInstruction(at: Cursor): Instruction {
  const offset = at.at;
  let opcode = at.u8();
  if (opcode === 0xfc || opcode === 0xfe) opcode = (opcode << 8) | at.u32();
  const entry = table.get(opcode);
  if (!entry) throw new WasmFormatError(`unknown opcode 0x${opcode.toString(16)}`, offset);
  return { opcode, name: entry.name, offset, immediates: readImmediates(at, entry.shape) };
}

function readImmediates(at: Cursor, shape: Shape): number[] {
  switch (shape) {
    case "":
      return [];
    case "u":
      return [at.u32()];
    case "uu":
      return [at.u32(), at.u32()];
    case "u0":
      return [at.u32(), at.u8()];
    case "0":
      return [at.u8()];
    case "00":
      return [at.u8(), at.u8()];
    case "m":
      return [at.u32(), at.u32()];
    case "b":
      return [at.s33()];
    case "i":
      return [at.s32()];
    case "l":
      at.s64(); // may not fit a number
      return [];
    case "f":
      at.skip(4);
      return [];
    case "d":
      at.skip(8);
      return [];
    case "t":
      return [...at.list(() => at.u32()), at.u32()];
    case "v":
      return at.list(() => at.u8());
  }
}
