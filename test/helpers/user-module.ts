// Users' modules, from their text.

import binaryen from "binaryen";

/** The memory that such a module must import. */
export const MEMORY = `(import "env" "memory" (memory 1 65536 shared))`;
/** What it imports to hit probes. */
export const CALL = `(import "wasmprobe" "call" (func $call (param i32 i32 i32) (result i32)))`;
/** The parameters of a handler, and its result. */
export const HANDLER = `(param $cookie i32) (param $pid i32) (param $address i32)
  (param $argument i64) (result i32)`;

/** The parameters of a handler that ends a session, likewise. */
export const SESSION_RETURN = `(param $cookie i32) (param $pid i32) (param $address i32)
  (param $argument i64) (param $session i64) (result i32)`;
/** What it imports to make calls in their parts. */
export const CALLS: readonly string[] = [
  ...["enter", "jump"].map(
    (name) => `(import "wasmprobe" "${name}" (func $${name} (param i32 i32 i32) (result i32)))`,
  ),
  ...["leave", "longjmp"].map(
    (name) => `(import "wasmprobe" "${name}" (func $${name} (param i32 i32) (result i32)))`,
  ),
];

/** The bytes of a module of these fields. */
export function wat(...fields: string[]): Uint8Array<ArrayBuffer> {
  const read = binaryen.parseText(`(module ${fields.join("\n")})`);
  read.setFeatures(binaryen.Features.All);
  try {
    return read.emitBinary() as Uint8Array<ArrayBuffer>;
  } finally {
    read.dispose();
  }
}
