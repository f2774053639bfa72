// Which CPU am I, where is my per-CPU area, what time is it, and how long is a delay.
//
// The globals are per instance, and an instance is one CPU: the Wasm twin of a per-CPU
// register. Nothing else in the module may be a mutable global (layout.ts holds what is shared).

import { PERCPU_BYTES } from "./layout";

let cpu_id: i32 = 0;
let cpu_areas: usize = 0;
let cpu_area: usize = 0;
let cpu_blocks: bool = true;
let cpu_has_slept: bool = false;

/**
 * Makes this instance CPU `cpu` of the set whose areas begin at `areas` (64-aligned, zeroed,
 * PERCPU_BYTES each). To be called once per instance, before anything that waits or counts.
 */
export function cpu_init(areas: usize, cpu: i32): void {
  cpu_areas = areas;
  cpu_id = cpu;
  cpu_area = areas + <usize>(cpu * PERCPU_BYTES);
}

/** Whether this CPU's thread may sleep; a browser's main thread may not, and spins on instead. */
export function cpu_set_blocking(blocks: bool): void {
  cpu_blocks = blocks;
}
// @ts-ignore: decorator
@inline
export function cpu_may_block(): bool {
  return cpu_blocks;
}

/**
 * A batch that slept is no longer short: workloads end it early and return what they have done,
 * or a batch that was sized without contention would last minutes with more CPUs than cores.
 */
export function cpu_note_sleep(): void {
  cpu_has_slept = true;
}
/** To be called at the beginning of a batch. */
// @ts-ignore: decorator
@inline
export function cpu_begin_batch(): void {
  cpu_has_slept = false;
}
// @ts-ignore: decorator
@inline
export function cpu_slept(): bool {
  return cpu_has_slept;
}

/** Number of this CPU, 0-based. */
// @ts-ignore: decorator
@inline
export function this_cpu(): i32 {
  return cpu_id;
}
/** Address of this CPU's block at `offset` (a PCPU_ constant). */
// @ts-ignore: decorator
@inline
export function this_cpu_ptr(offset: i32): usize {
  return cpu_area + <usize>offset;
}
/** Address of another CPU's block. */
// @ts-ignore: decorator
@inline
export function per_cpu_ptr(offset: i32, cpu: i32): usize {
  return cpu_areas + <usize>(cpu * PERCPU_BYTES + offset);
}

// @ts-ignore: decorator
@external("cpu", "now")
declare function host_now(): f64;

/** Monotonic time, nanoseconds. Costs a call out of Wasm (tens of ns): slow paths only. */
export function cpu_now(): i64 {
  return <i64>(host_now() * 1e6);
}

// Kept in a global so that the loop has a result that is used; private to the instance.
let delay_sink: u32 = 1;

/**
 * A private delay of `units` dependent steps: no memory access, no shared line, no system call.
 * The host measures what a unit costs on this machine (src/harness/delay.ts).
 */
export function cpu_delay(units: i32): void {
  let x: u32 = delay_sink;
  for (let i = units; i > 0; i--) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  delay_sink = x;
}
