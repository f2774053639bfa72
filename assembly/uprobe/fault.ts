// What every part of an engine may do to its header: count an impossible event, which the host
// names and a healthy engine has none of; and wake the housekeeper.

import { HDR_BELL, HDR_FAULTS } from "../layout";
import { add32, notify } from "../atomics";

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

/** There is work for the housekeeper: wakes it if it is parked. */
export function ring_housekeeper_slow(): void {
  add32(engine + HDR_BELL, 1);
  notify(engine + HDR_BELL, 1);
}
