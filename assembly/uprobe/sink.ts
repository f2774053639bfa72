// Sinks: where the hits that consumers took go (what a BPF map is to the kernel's bench).
//
// sink, 64 bytes
//   offset  bytes  content
//        0     12  handler kind, bytes between blocks, address of CPU 0's block
//       12      8  number of blocks, arena
//       20      8  by kind: records a ring, whether they get a time; place in the function table
//
// A block per CPU, so that nothing is shared on the way:
//   HANDLER_COUNT  hits
//   HANDLER_HIST   hits; from 64 on buckets by bit length
//   HANDLER_EMIT   hits, records lost; from 64 on a ring (below)
//   HANDLER_CALL   hits: those that the user's function took
//   HANDLER_LATENCY  returns; from 64 on buckets by bit length of the nanoseconds they took
//
// The ring has one producer, its CPU, and one consumer, the host (src/engine/event-ring.ts). It is
// as many records long as SINK_SIZE says, a power of two; HEAD and TAIL count records ever written
// and ever read, each on a line of its own. When it is full the new record is dropped, and counted.
//   producer  [A] TAIL: is there room?  [B] the record  [C] HEAD
//   consumer  [D] HEAD  [E] the records before it  [F] TAIL
// Forbidden: a record that is read before it is there (B before C, D before E), and one that is
// overwritten while it is read (E before F, A before B). Neither side ever waits for the other.
//
// plain: `SINK_*` but for hits never change once the address is known. `SINK_HITS`, `EMIT_LOST`,
// `bucket`: a block is its CPU's own, and readers take snapshots. `EMIT_HEAD`: this CPU's own word,
// read back. `RECORD_*`: B, between A and C. `TASK_*`, `UTASK_*`, `session`: the executing task's
// own.

import { EMIT_HEAD, EMIT_LOST, EMIT_RECORDS, EMIT_TAIL, HANDLER_CALL } from "../layout";
import {
  HANDLER_EMIT,
  HANDLER_HIST,
  RECORD_ARGUMENT,
  RECORD_BYTES,
  RECORD_COOKIE,
} from "../layout";
import { RECORD_NUMBER, RECORD_PID, RECORD_TIME, RECORD_VADDR } from "../layout";
import { SINK_AREA, SINK_BUCKETS, SINK_BUCKET_COUNT, SINK_CLOCK, SINK_HITS } from "../layout";
import { SINK_KIND, SINK_SIZE, SINK_STRIDE, STRIDE, TASK_AX } from "../layout";
import { HANDLER_LATENCY, TASK_DI } from "../layout";
import { load32, store32 } from "../atomics";
import { cpu_now } from "../cpu";
import { arena_alloc, arena_free } from "../mm/arena";
import { TASK_PID, UTASK_COOKIE, UTASK_VADDR } from "./task";

const SINK_BLOCKS = 12;
const SINK_ARENA = 16;
const SINK_BYTES = 64;

// What a handler says, one bit each.
/** The handler ran and took the hit. */
export const RC_HANDLED = 1;
/** UPROBE_HANDLER_REMOVE: this consumer wants no breakpoint in this address space any more. */
export const RC_REMOVE = 2;
/** The handler wanted the hit, and had no room for it. */
export const RC_LOST = 4;
/** The return of this call is wanted as well. */
export const RC_RETURN = 8;

// Whether this CPU is in a user's handler.
let in_handler: bool = false;

export function is_in_handler(): bool {
  return in_handler;
}

function block_bytes(kind: i32, size: i32): i64 {
  let bytes: i64 = SINK_HITS + 8;
  if (kind == HANDLER_HIST || kind == HANDLER_LATENCY) bytes = SINK_BUCKETS + SINK_BUCKET_COUNT * 8;
  else if (kind == HANDLER_EMIT) bytes = EMIT_RECORDS + <i64>size * RECORD_BYTES;
  return (bytes + STRIDE - 1) & -STRIDE;
}

/**
 * Blocks for `cpus` CPUs. `size`: records a ring (HANDLER_EMIT, a power of two), or the place of
 * the function (HANDLER_CALL). `clock`: whether records get a time. 0: the arena is full.
 */
export function sink_create(arena: usize, kind: i32, cpus: i32, size: i32, clock: i32): usize {
  const stride = block_bytes(kind, size);
  if (stride * <i64>cpus > i32.MAX_VALUE) return 0;
  const area = arena_alloc(arena, <i32>stride * cpus);
  if (area == 0) return 0;
  const sink = arena_alloc(arena, SINK_BYTES);
  if (sink == 0) {
    arena_free(arena, area, <i32>stride * cpus);
    return 0;
  }
  store<i32>(sink, kind, SINK_KIND);
  store<i32>(sink, <i32>stride, SINK_STRIDE);
  store<u32>(sink, <u32>area, SINK_AREA);
  store<i32>(sink, cpus, SINK_BLOCKS);
  store<u32>(sink, <u32>arena, SINK_ARENA);
  store<i32>(sink, size, SINK_SIZE);
  store<i32>(sink, clock, SINK_CLOCK);
  return sink;
}

/** No consumer may still use it. */
export function sink_destroy(sink: usize): void {
  const arena = <usize>load<u32>(sink, SINK_ARENA);
  const bytes = load<i32>(sink, SINK_STRIDE) * load<i32>(sink, SINK_BLOCKS);
  arena_free(arena, <usize>load<u32>(sink, SINK_AREA), bytes);
  arena_free(arena, sink, SINK_BYTES);
}

// @ts-ignore: decorator
@inline
function count_hit(block: usize): void {
  store<i64>(block, load<i64>(block, SINK_HITS) + 1, SINK_HITS);
}

/** One hit for a sink that only counts; returns `rc`. */
// @ts-ignore: decorator
@inline
export function sink_count(block: usize, rc: i32): i32 {
  count_hit(block);
  return rc;
}

// By the number of bits that the value has.
function count_bucket(block: usize, value: i64): void {
  count_hit(block);
  const bucket = block + SINK_BUCKETS + <usize>((64 - <i32>clz(value)) << 3);
  store<i64>(bucket, load<i64>(bucket) + 1);
}

// One record to this CPU's ring; false if there is no room for it.
function emit(sink: usize, block: usize, cookie: i32, task: usize, value: i64): bool {
  const size = load<i32>(sink, SINK_SIZE);
  const head = load<i32>(block, EMIT_HEAD);
  const lost = load<i64>(block, EMIT_LOST);
  if (head - load32(block + EMIT_TAIL) >= size) {
    // [A] said no: the consumer has not read the oldest record yet.
    store<i64>(block, lost + 1, EMIT_LOST);
    return false;
  }
  const at = block + EMIT_RECORDS + <usize>((head & (size - 1)) * RECORD_BYTES);
  const time: i64 = load<i32>(sink, SINK_CLOCK) != 0 ? cpu_now() : 0;
  store<i64>(at, time, RECORD_TIME); // B, and the next five
  store<i64>(at, value, RECORD_ARGUMENT);
  store<i32>(at, cookie, RECORD_COOKIE);
  store<i32>(at, load<i32>(task, TASK_PID), RECORD_PID);
  store<u32>(at, load<u32>(task, UTASK_VADDR), RECORD_VADDR);
  store<i32>(at, <i32>(load<i64>(block, SINK_HITS) + lost), RECORD_NUMBER);
  store32(block + EMIT_HEAD, head + 1); // C
  count_hit(block);
  return true;
}

// The user's function, in the instance of its module on this CPU; its answer is whether it took
// the hit, and the cookie of a session that begins so.
function call(sink: usize, cookie: i32, task: usize): i32 {
  const place = load<i32>(sink, SINK_SIZE);
  const pid = load<i32>(task, TASK_PID);
  const vaddr = load<i32>(task, UTASK_VADDR);
  in_handler = true;
  const took = call_indirect<i32>(place, cookie, pid, vaddr, load<i64>(task, TASK_DI));
  in_handler = false;
  return took;
}

// The same at a return, with what the function returns; in a session, with its cookie too.
function call_return(sink: usize, cookie: i32, task: usize, session: usize): i32 {
  const place = load<i32>(sink, SINK_SIZE);
  const pid = load<i32>(task, TASK_PID);
  const vaddr = load<i32>(task, UTASK_VADDR);
  const value = load<i64>(task, TASK_AX);
  in_handler = true;
  const took =
    session == 0
      ? call_indirect<i32>(place, cookie, pid, vaddr, value)
      : call_indirect<i32>(place, cookie, pid, vaddr, value, load<i64>(session));
  in_handler = false;
  return took;
}

/**
 * One hit for a sink that does more than count, of kind `kind`. `rc`: what the consumer says if it
 * is taken. Returns RC_ bits.
 */
export function sink_take_slow(
  kind: i32,
  sink: usize,
  block: usize,
  cookie: i32,
  task: usize,
  rc: i32,
): i32 {
  if (kind == HANDLER_EMIT) {
    return emit(sink, block, cookie, task, load<i64>(task, TASK_DI))
      ? rc
      : (rc & ~RC_HANDLED) | RC_LOST;
  }
  if (kind == HANDLER_CALL) {
    const took = call(sink, cookie, task);
    if (took == 0) return rc & ~RC_HANDLED;
    store<i64>(task, <i64>took, UTASK_COOKIE);
    count_hit(block);
    return rc;
  }
  count_bucket(block, load<i64>(task, TASK_DI));
  return rc;
}

/**
 * One return for a sink that does more than count. `session`: where its cookie is, or 0. Returns
 * RC_ bits.
 */
export function sink_return_slow(
  kind: i32,
  sink: usize,
  block: usize,
  cookie: i32,
  task: usize,
  session: usize,
): i32 {
  const value = load<i64>(task, TASK_AX);
  if (kind == HANDLER_EMIT) {
    return emit(sink, block, cookie, task, value) ? RC_HANDLED : RC_LOST;
  }
  if (kind == HANDLER_CALL) {
    if (call_return(sink, cookie, task, session) == 0) return 0;
    count_hit(block);
  } else if (kind == HANDLER_LATENCY) {
    const began = load<i64>(session);
    count_bucket(block, cpu_now() - began);
  } else {
    count_bucket(block, value);
  }
  return RC_HANDLED;
}
