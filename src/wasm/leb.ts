// Reading and writing the atoms of the Wasm binary format: bytes, LEB128 numbers, names.
//
// LEB128 holds seven bits a byte, lowest first; the top bit says that another byte follows. The
// format bounds each number's length, and its unused bits must be zero (or copies of the sign):
// what breaks that is refused, as an engine would.

import { WasmprobeError } from "../base/errors.js";

/** The bytes are not the module they claim to be. `offset` is where that showed. */
export class WasmFormatError extends WasmprobeError {
  readonly offset: number;

  constructor(problem: string, offset: number) {
    super("E_FILE", `${problem} at byte ${offset} (0x${offset.toString(16)})`);
    this.name = "WasmFormatError";
    this.offset = offset;
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** A position in some bytes, and an end that no read may cross. */
export class Cursor {
  readonly bytes: Uint8Array;
  readonly end: number;
  /** Offset of the next byte, from the start of `bytes`. */
  at: number;

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  get done(): boolean {
    return this.at >= this.end;
  }

  u8(): number {
    const byte = this.at < this.end ? this.bytes[this.at] : undefined;
    if (byte === undefined) throw new WasmFormatError("unexpected end", this.at);
    this.at++;
    return byte;
  }

  u32(): number {
    return Number(BigInt.asUintN(32, this.leb(32, false)));
  }

  s32(): number {
    return Number(BigInt.asIntN(32, this.leb(32, true)));
  }

  /** A signed number of 33 bits: block types, where the negative ones are value types. */
  s33(): number {
    return Number(BigInt.asIntN(33, this.leb(33, true)));
  }

  u64(): bigint {
    return BigInt.asUintN(64, this.leb(64, false));
  }

  s64(): bigint {
    return BigInt.asIntN(64, this.leb(64, true));
  }

  /** Steps over `count` bytes and returns where they began. */
  skip(count: number): number {
    const start = this.at;
    if (count > this.end - start) {
      throw new WasmFormatError(`${count} bytes wanted, ${this.end - start} left`, start);
    }
    this.at += count;
    return start;
  }

  /** A length and that many bytes of UTF-8. */
  text(): string {
    const start = this.at;
    const length = this.u32();
    const from = this.skip(length);
    try {
      // A copy: the decoder takes no view of shared memory.
      return utf8.decode(this.bytes.slice(from, from + length));
    } catch {
      throw new WasmFormatError("a name is not UTF-8", start);
    }
  }

  /** A length, then that many items. */
  list<T>(item: (index: number) => T): T[] {
    const start = this.at;
    const length = this.u32();
    // Every item takes at least one byte; said here, a bad length does not become a long loop.
    if (length > this.end - this.at) {
      throw new WasmFormatError(
        `a list of ${length} items, ${this.end - this.at} bytes left`,
        start,
      );
    }
    return Array.from({ length }, (_, index) => item(index));
  }

  /** A cursor over the next `count` bytes; this one steps over them. */
  part(count: number): Cursor {
    const start = this.skip(count);
    return new Cursor(this.bytes, start, start + count);
  }

  private leb(bits: number, signed: boolean): bigint {
    const start = this.at;
    let value = 0n;
    for (let shift = 0; ; shift += 7) {
      if (shift >= bits) throw new WasmFormatError(`a number of more than ${bits} bits`, start);
      const byte = this.u8();
      value |= BigInt(byte & 0x7f) << BigInt(shift);
      if (byte & 0x80) continue;
      const width = shift + 7;
      if (signed) value = BigInt.asIntN(width, value);
      const fits = signed ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
      if (fits !== value) throw new WasmFormatError(`a number of more than ${bits} bits`, start);
      return value;
    }
  }
}

/** The bytes of an unsigned LEB128 number. */
export function encodeU32(value: number): number[] {
  const bytes = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return bytes;
}
