// Impossible events: counted in the engine's header, named by the host, zero in a healthy engine.

import { HDR_FAULTS } from "../layout";
import { add32 } from "../atomics";

let engine: usize = 0;

/** The engine that this instance belongs to; 0 before engine_attach. */
// @ts-ignore: decorator
@inline
export function this_engine(): usize {
  return engine;
}

export function set_engine(base: usize): void {
  engine = base;
}

/** WARN_ON: records that the impossible happened (a FAULT_ constant) and goes on. */
export function raise_slow(fault: i32): void {
  add32(engine + HDR_FAULTS + <usize>(fault << 2), 1);
}
