import { test } from "uvu";
import * as assert from "uvu/assert";
import * as fc from "fast-check";
import { Cursor, WasmFormatError, encodeU32 } from "../../src/wasm/leb.js";

const on = (...bytes: number[]): Cursor => new Cursor(Uint8Array.from(bytes));

function refuses(read: () => unknown, problem: RegExp, offset: number): void {
  assert.throws(read, (error: unknown) => {
    assert.instance(error, WasmFormatError);
    assert.match((error as WasmFormatError).message, problem);
    assert.is((error as WasmFormatError).offset, offset);
    return true;
  });
}

test("u32: what encodeU32 writes is read back, and all of it", () => {
  fc.assert(
    fc.property(fc.nat(0xffffffff), (value) => {
      const at = on(...encodeU32(value));
      assert.is(at.u32(), value);
      assert.ok(at.done);
    }),
  );
});

test("the specification's own examples", () => {
  assert.is(on(0xe5, 0x8e, 0x26).u32(), 624485);
  assert.is(on(0xc0, 0xbb, 0x78).s32(), -123456);
  assert.is(on(0x7f).s32(), -1);
  assert.is(on(0x80, 0x7f).s32(), -128);
  assert.is(on(0x40).s33(), -64);
  assert.is(on(0x83, 0x00).u32(), 3); // longer than needed is allowed
});

test("the bounds of each width are read, one bit more is refused", () => {
  assert.is(on(0xff, 0xff, 0xff, 0xff, 0x0f).u32(), 0xffffffff);
  refuses(() => on(0xff, 0xff, 0xff, 0xff, 0x1f).u32(), /more than 32 bits/, 0);
  assert.is(on(0x80, 0x80, 0x80, 0x80, 0x78).s32(), -(2 ** 31));
  refuses(() => on(0x80, 0x80, 0x80, 0x80, 0x70).s32(), /more than 32 bits/, 0);
  refuses(() => on(0x80, 0x80, 0x80, 0x80, 0x80, 0x00).u32(), /more than 32 bits/, 0);
  const max = on(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
  assert.is(max.u64(), 2n ** 64n - 1n);
  const min = on(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f);
  assert.is(min.s64(), -(2n ** 63n));
});

test("a number or name that the bytes end in is refused at its place", () => {
  refuses(() => on(0x80).u32(), /unexpected end/, 1);
  refuses(() => on(0x05, 0x61, 0x62).text(), /5 bytes wanted, 2 left/, 1);
  refuses(() => on(0x01, 0xff).text(), /not UTF-8/, 0);
  refuses(() => on(0x02, 0x00).part(3), /3 bytes wanted, 2 left/, 0);
});

test("a list longer than the bytes left is refused before it is read", () => {
  const endless = on(0xff, 0xff, 0xff, 0xff, 0x0f, 0x00);
  refuses(() => endless.list(() => 0), /a list of 4294967295 items, 1 bytes left/, 0);
});

test("a part ends where it was told to, not where the bytes do", () => {
  const part = on(0x01, 0x02, 0x03).part(2);
  assert.equal([part.u8(), part.u8()], [1, 2]);
  refuses(() => part.u8(), /unexpected end/, 2);
});

test("names are read from shared memory too", () => {
  const shared = new Uint8Array(new SharedArrayBuffer(3));
  shared.set([2, 0x68, 0x69]);
  assert.is(new Cursor(shared).text(), "hi");
});

test.run();
