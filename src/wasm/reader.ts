// A module's outline: its sections, and what they declare. Function bodies stay byte ranges
// (code.ts walks them), as do initialisers and segments: nothing is copied out of the bytes.
//
//   const module = readModule(bytes);
//   module.imports                 [{ kind: "func", module: "cpu", name: "now", type: 3 }, ...]
//   module.bodies[0]               { index: 2, start: 310, code: 313, end: 402 }
//   module.names.functions.get(2)  "sync/mutex/mutex_lock_slow"
//
// Indices count imports first, as the format does. Read is the format of 2.0 with threads; a
// recursive type of the GC proposal is refused by name.

import { Cursor, WasmFormatError } from "./leb.js";

/** Ids of the sections, as the format numbers them. */
export const SECTION = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  table: 4,
  memory: 5,
  global: 6,
  export: 7,
  start: 8,
  element: 9,
  code: 10,
  data: 11,
  dataCount: 12,
  tag: 13,
} as const;

export interface Section {
  readonly id: number;
  /** The name of a custom section; undefined for the others. */
  readonly name: string | undefined;
  /** Where the content begins (behind id, size and a custom section's name), and ends. */
  readonly start: number;
  readonly end: number;
}

/** Value types by their byte: 0x7f is i32, 0x7e i64, 0x7d f32, 0x7c f64, 0x70 funcref, ... */
export type ValueType = number;

export interface FunctionType {
  readonly params: readonly ValueType[];
  readonly results: readonly ValueType[];
}

export interface Limits {
  readonly min: bigint;
  readonly max: bigint | undefined;
  readonly shared: boolean;
  /** 64-bit addresses. */
  readonly wide: boolean;
}

export interface GlobalType {
  readonly type: ValueType;
  readonly mutable: boolean;
}

export type Import = { readonly module: string; readonly name: string } & (
  | { readonly kind: "func"; readonly type: number }
  | { readonly kind: "table"; readonly limits: Limits }
  | { readonly kind: "memory"; readonly limits: Limits }
  | ({ readonly kind: "global" } & GlobalType)
  | { readonly kind: "tag"; readonly type: number }
);

export type ExternalKind = Import["kind"];
const KINDS: readonly ExternalKind[] = ["func", "table", "memory", "global", "tag"];

export interface Export {
  readonly name: string;
  readonly kind: ExternalKind;
  readonly index: number;
}

/** The bytes of one function's body: [start, end) with its locals, [code, end) without. */
export interface Body {
  /** Index of the function, imported ones counted. */
  readonly index: number;
  readonly start: number;
  readonly code: number;
  readonly end: number;
}

/** What the name section says, by index. Empty maps where it is missing. */
export interface Names {
  readonly functions: ReadonlyMap<number, string>;
  readonly globals: ReadonlyMap<number, string>;
}

export interface WasmModule {
  readonly bytes: Uint8Array;
  readonly sections: readonly Section[];
  readonly types: readonly FunctionType[];
  readonly imports: readonly Import[];
  /** Types of the module's own functions: index of function minus number of imported ones. */
  readonly functions: readonly number[];
  readonly memories: readonly Limits[];
  readonly globals: readonly GlobalType[];
  readonly exports: readonly Export[];
  readonly bodies: readonly Body[];
  readonly names: Names;
}

const MAGIC = 0x6d736100;
const VERSION = 1;

/** Reads a module's outline. Throws WasmFormatError where the bytes are not one. */
export function readModule(bytes: Uint8Array): WasmModule {
  const sections = readSections(bytes);
  const the = (id: number): Cursor | undefined => {
    const found = sections.filter((s) => s.id === id);
    const [first, second] = found;
    if (second) throw new WasmFormatError(`a second section ${id}`, second.start);
    return first && new Cursor(bytes, first.start, first.end);
  };
  const items = <T>(id: number, item: (at: Cursor, index: number) => T): T[] => {
    const at = the(id);
    if (!at) return [];
    const list = at.list((index) => item(at, index));
    if (!at.done) throw new WasmFormatError(`${at.end - at.at} bytes left in section ${id}`, at.at);
    return list;
  };

  const types = items(SECTION.type, readFunctionType);
  const imports = items(SECTION.import, readImport);
  const functions = items(SECTION.function, (at) => at.u32());
  const imported = imports.filter((i) => i.kind === "func").length;
  const bodies = items(SECTION.code, (at, index) => readBody(at, imported + index));
  if (bodies.length !== functions.length) {
    throw new WasmFormatError(
      `${functions.length} functions, ${bodies.length} bodies`,
      bytes.length,
    );
  }
  return {
    bytes,
    sections,
    types,
    imports,
    functions,
    memories: items(SECTION.memory, readLimits),
    globals: items(SECTION.global, readGlobal),
    exports: items(SECTION.export, (at) => ({
      name: at.text(),
      kind: readKind(at),
      index: at.u32(),
    })),
    bodies,
    names: readNames(bytes, sections),
  };
}

/** The index of the function exported as `name`, or undefined. */
export function exportedFunction(module: WasmModule, name: string): number | undefined {
  return module.exports.find((e) => e.kind === "func" && e.name === name)?.index;
}

/** The body of the function at `index`; undefined for an imported one. */
export function bodyOf(module: WasmModule, index: number): Body | undefined {
  return module.bodies.find((body) => body.index === index);
}

function readSections(bytes: Uint8Array): Section[] {
  const at = new Cursor(bytes);
  if (readFixed32(at) !== MAGIC) throw new WasmFormatError("not a Wasm module", 0);
  const version = readFixed32(at);
  if (version !== VERSION) throw new WasmFormatError(`version ${version} is not 1`, 4);
  const sections: Section[] = [];
  while (!at.done) {
    const idAt = at.at;
    const id = at.u8();
    if (id > SECTION.tag) throw new WasmFormatError(`unknown section ${id}`, idAt);
    const content = at.part(at.u32());
    const name = id === SECTION.custom ? content.text() : undefined;
    sections.push({ id, name, start: content.at, end: content.end });
  }
  return sections;
}

function readFixed32(at: Cursor): number {
  return at.u8() | (at.u8() << 8) | (at.u8() << 16) | (at.u8() << 24);
}

function readFunctionType(at: Cursor): FunctionType {
  const start = at.at;
  const form = at.u8();
  if (form !== 0x60) {
    throw new WasmFormatError(`type form 0x${form.toString(16)} (only functions are read)`, start);
  }
  return { params: at.list(() => at.u8()), results: at.list(() => at.u8()) };
}

function readKind(at: Cursor): ExternalKind {
  const start = at.at;
  const byte = at.u8();
  const kind = KINDS[byte];
  if (!kind) throw new WasmFormatError(`unknown kind ${byte} of import or export`, start);
  return kind;
}

function readImport(at: Cursor): Import {
  const from = { module: at.text(), name: at.text() };
  const kind = readKind(at);
  switch (kind) {
    case "func":
      return { ...from, kind, type: at.u32() };
    case "table":
      at.u8(); // the element type
      return { ...from, kind, limits: readLimits(at) };
    case "memory":
      return { ...from, kind, limits: readLimits(at) };
    case "global":
      return { ...from, kind, ...readGlobalType(at) };
    case "tag":
      at.u8(); // attribute: 0, an exception
      return { ...from, kind, type: at.u32() };
  }
}

function readLimits(at: Cursor): Limits {
  const start = at.at;
  const flags = at.u8(); // 1 has a maximum, 2 shared, 4 addresses of 64 bits
  if (flags > 7) throw new WasmFormatError(`unknown limits 0x${flags.toString(16)}`, start);
  const wide = (flags & 4) !== 0;
  const size = (): bigint => (wide ? at.u64() : BigInt(at.u32()));
  const min = size();
  return { min, max: flags & 1 ? size() : undefined, shared: (flags & 2) !== 0, wide };
}

function readGlobalType(at: Cursor): GlobalType {
  const type = at.u8();
  const start = at.at;
  const mutable = at.u8();
  if (mutable > 1) throw new WasmFormatError(`mutability ${mutable} is not 0 or 1`, start);
  return { type, mutable: mutable === 1 };
}

function readGlobal(at: Cursor): GlobalType {
  const type = readGlobalType(at);
  const start = at.at;
  for (;;) {
    const opcode = at.u8();
    if (opcode === 0x0b) return type; // end
    if (!skipImmediate(at, opcode)) {
      throw new WasmFormatError(`opcode 0x${opcode.toString(16)} in an initialiser`, start);
    }
  }
}

/** Steps over what follows an opcode of a constant expression; false if it may not be in one. */
function skipImmediate(at: Cursor, opcode: number): boolean {
  switch (opcode) {
    case 0x41: // i32.const
      at.s32();
      return true;
    case 0x42: // i64.const
      at.s64();
      return true;
    case 0x43: // f32.const
      at.skip(4);
      return true;
    case 0x44: // f64.const
      at.skip(8);
      return true;
    case 0x23: // global.get
    case 0xd2: // ref.func
      at.u32();
      return true;
    case 0xd0: // ref.null
      at.s33();
      return true;
    default:
      // add, sub and mul of either integer type: the extended constant expressions
      return [0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e].includes(opcode);
  }
}

function readBody(at: Cursor, index: number): Body {
  const body = at.part(at.u32());
  const start = body.at;
  body.list(() => [body.u32(), body.u8()]); // locals: how many, of which type
  return { index, start, code: body.at, end: body.end };
}

const NAME_SUBSECTION = { functions: 1, globals: 7 } as const;

function readNames(bytes: Uint8Array, sections: readonly Section[]): Names {
  const functions = new Map<number, string>();
  const globals = new Map<number, string>();
  const section = sections.find((s) => s.id === SECTION.custom && s.name === "name");
  if (!section) return { functions, globals };
  const at = new Cursor(bytes, section.start, section.end);
  while (!at.done) {
    const id = at.u8();
    const part = at.part(at.u32());
    if (id === NAME_SUBSECTION.functions) part.list(() => functions.set(part.u32(), part.text()));
    if (id === NAME_SUBSECTION.globals) part.list(() => globals.set(part.u32(), part.text()));
  }
  return { functions, globals };
}
