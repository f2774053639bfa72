// Small Wasm modules, byte by byte.

import { SECTION } from "../../src/wasm/reader.js";
import { encodeU32 } from "../../src/wasm/leb.js";

export const I32 = 0x7f;
export const I64 = 0x7e;

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

/** A module of these sections, in this order. */
export const module = (...sections: number[][]): Uint8Array =>
  Uint8Array.from([...HEADER, ...sections.flat()]);

/** A section of an id and its content. */
export const section = (id: number, ...content: number[]): number[] => [
  id,
  ...encodeU32(content.length),
  ...content,
];

/** A length and the items. */
export const list = (...items: number[][]): number[] => [
  ...encodeU32(items.length),
  ...items.flat(),
];

/** A length and the UTF-8 of a name. */
export const text = (name: string): number[] => list(...[...Buffer.from(name)].map((b) => [b]));

export const customSection = (name: string, ...content: number[]): number[] =>
  section(SECTION.custom, ...text(name), ...content);

/** A function body without locals: the code and its `end`. */
export const body = (...code: number[]): number[] => [
  ...encodeU32(code.length + 2),
  0x00,
  ...code,
  0x0b,
];

/** A module with one function of no parameters and results; its code, an instruction an array. */
export const moduleOf = (...code: number[][]): Uint8Array =>
  module(
    section(SECTION.type, ...list([0x60, 0x00, 0x00])),
    section(SECTION.function, ...list([0x00])),
    section(SECTION.code, ...list(body(...code.flat()))),
  );
