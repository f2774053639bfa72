import { test } from "uvu";
import * as assert from "uvu/assert";
import { WasmFormatError } from "../../src/wasm/leb.js";
import { SECTION, bodyOf, exportedFunction, readModule } from "../../src/wasm/reader.js";
import * as wasm from "../helpers/module.js";
import { I32, I64, body, customSection, list, section, text } from "../helpers/module.js";

function refuses(bytes: Uint8Array, problem: RegExp): void {
  assert.throws(
    () => readModule(bytes),
    (error: unknown) => {
      assert.instance(error, WasmFormatError);
      assert.match((error as WasmFormatError).message, problem);
      return true;
    },
  );
}

test("an empty module has nothing", () => {
  const read = readModule(wasm.module());
  assert.equal(read.sections, []);
  assert.equal(read.imports, []);
  assert.is(read.names.functions.size, 0);
});

test("imports of every kind, with limits and mutability", () => {
  const from = (name: string, ...rest: number[]): number[] => [
    ...text("m"),
    ...text(name),
    ...rest,
  ];
  const bytes = wasm.module(
    section(SECTION.type, ...list([0x60, ...list([I32], [I64]), ...list([I64])])),
    section(
      SECTION.import,
      ...list(
        from("f", 0x00, 0x00),
        from("t", 0x01, 0x70, 0x00, 0x05),
        from("mem", 0x02, 0x03, 0x01, 0x80, 0x80, 0x04),
        from("g", 0x03, I32, 0x01),
        from("x", 0x04, 0x00, 0x00),
      ),
    ),
  );
  const { imports, types } = readModule(bytes);
  assert.equal(types, [{ params: [I32, I64], results: [I64] }]);
  const unshared = { min: 5n, max: undefined, shared: false, wide: false };
  assert.equal(imports, [
    { module: "m", name: "f", kind: "func", type: 0 },
    { module: "m", name: "t", kind: "table", limits: unshared },
    {
      module: "m",
      name: "mem",
      kind: "memory",
      limits: { min: 1n, max: 65536n, shared: true, wide: false },
    },
    { module: "m", name: "g", kind: "global", type: I32, mutable: true },
    { module: "m", name: "x", kind: "tag", type: 0 },
  ]);
});

test("functions count from the imported ones, and names follow their index", () => {
  const name = (index: number, what: string): number[] => [index, ...text(what)];
  const names = list(name(0, "imported"), name(1, "own"));
  const bytes = wasm.module(
    section(SECTION.type, ...list([0x60, 0, 0])),
    section(SECTION.import, ...list([...text("m"), ...text("f"), 0, 0])),
    section(SECTION.function, ...list([0])),
    section(SECTION.export, ...list([...text("run"), 0, 1])),
    section(SECTION.code, ...list(body(0x01))),
    customSection("name", 1, names.length, ...names),
  );
  const read = readModule(bytes);
  const index = exportedFunction(read, "run");
  assert.is(index, 1);
  assert.is(exportedFunction(read, "walk"), undefined);
  assert.is(read.names.functions.get(1), "own");
  assert.is(bodyOf(read, 0), undefined);
  const own = bodyOf(read, 1);
  assert.equal(bytes.slice(own?.code, own?.end), Uint8Array.of(0x01, 0x0b));
});

test("globals: initialisers of every type are stepped over, names are read", () => {
  const names = list([1, ...text("second")]);
  const bytes = wasm.module(
    section(
      SECTION.global,
      ...list(
        [I32, 0x01, 0x41, 0x7f, 0x0b],
        [I64, 0x00, 0x42, 0x80, 0x0b, 0x0b], // the constant contains the byte of `end`
        [0x7d, 0x00, 0x43, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b],
        [0x7c, 0x01, 0x44, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b],
        [I32, 0x00, 0x23, 0x00, 0x41, 0x01, 0x6a, 0x0b],
      ),
    ),
    customSection("name", 7, names.length, ...names),
  );
  const { globals, names: read } = readModule(bytes);
  assert.equal(
    globals.map((g) => g.mutable),
    [true, false, false, true, false],
  );
  assert.is(read.globals.get(1), "second");
});

test("custom sections carry their name, and their content begins behind it", () => {
  const { sections } = readModule(wasm.module(customSection("sites", 7, 8, 9)));
  assert.equal(sections, [{ id: 0, name: "sites", start: 16, end: 19 }]);
});

test("sections that are not read are still listed: start, data, data count", () => {
  const bytes = wasm.module(
    section(SECTION.start, 0),
    section(SECTION.dataCount, 1),
    section(SECTION.data, ...list([0x01, ...list([7], [8])])),
  );
  assert.equal(
    readModule(bytes).sections.map((s) => s.id),
    [SECTION.start, SECTION.dataCount, SECTION.data],
  );
});

test("what is not a module is refused with its place", () => {
  refuses(Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]), /not a Wasm module at byte 0/);
  refuses(Uint8Array.from([0, 0x61, 0x73]), /unexpected end at byte 3/);
  refuses(Uint8Array.from([0, 0x61, 0x73, 0x6d, 2, 0, 0, 0]), /version 2 is not 1/);
});

test("broken sections are refused", () => {
  refuses(wasm.module([99, 0]), /unknown section 99/);
  refuses(wasm.module([1, 50, 0]), /50 bytes wanted, 1 left/);
  refuses(wasm.module(section(SECTION.type, 0), section(SECTION.type, 0)), /a second section 1/);
  refuses(wasm.module(section(SECTION.type, 0, 0)), /1 bytes left in section 1/);
  refuses(wasm.module(section(SECTION.type, ...list([0x4f, 0, 0]))), /type form 0x4f/);
  refuses(wasm.module(section(SECTION.memory, ...list([0x09, 1]))), /unknown limits 0x9/);
  refuses(wasm.module(section(SECTION.function, ...list([0]))), /1 functions, 0 bodies/);
  refuses(wasm.module(section(SECTION.export, ...list([...text("a"), 9, 0]))), /unknown kind 9/);
  refuses(wasm.module(section(SECTION.global, ...list([I32, 2, 0x0b]))), /mutability 2/);
});

test.run();
