// Small per-CPU counters, packed: a slot is 8 bytes on every CPU, and slots of one CPU are
// neighbours while slots of different CPUs never share a line. So a counter costs 8 bytes a CPU,
// not a line.
//
//   slots                             chunk
//   offset  bytes  content            offset  bytes   content
//        0      4  lock                    0       8  previous, next chunk with a free slot
//        4      4  first chunk with        8       4  free slots
//                  a free slot            64      64  bit i set: slot i is free
//        8      8  arena, CPUs           128  4096*n  CPU 0's 512 slots, CPU 1's, ...
//
// A CPU's slots of a chunk fill a page: with many probes, hits at random touch as few pages as they
// can. With 16 slots and a CPU's next ones 640 bytes on, 100 000 probes cost twice as much a hit
// (bench/README.md). A chunk whose last slot is freed goes back to the arena.
//
// plain: `slots`, `chunk`, its bits (`word`) and the links (`PREVIOUS`, `NEXT`) under the lock;
// `SLOTS_*` never change; a `slot`, and the caller's words (`slot_to`, `chunk_to`), are nobody
// else's before it is used.

import { LINE, NHIT_STRIDE, STRIDE } from "../layout";
import { arena_alloc, arena_free } from "./arena";
import { qspin_init, qspin_lock, qspin_unlock } from "../sync/qspinlock";

const FIRST = 4;
const SLOTS_ARENA = 8;
const SLOTS_CPUS = 12;
export const SLOTS_BYTES = LINE;

const PREVIOUS = 0;
const NEXT = 4;
const FREE = 8;
const BITS = LINE;
const SLOTS: i32 = NHIT_STRIDE / 8;
const ALL_FREE: i64 = -1;

function chunk_bytes(slots: usize): i32 {
  return STRIDE + load<i32>(slots, SLOTS_CPUS) * NHIT_STRIDE;
}

export function slots_init(slots: usize, arena: usize, cpus: i32): void {
  memory.fill(slots, 0, SLOTS_BYTES);
  qspin_init(slots);
  store<u32>(slots, <u32>arena, SLOTS_ARENA);
  store<i32>(slots, cpus, SLOTS_CPUS);
}

function link(slots: usize, chunk: usize): void {
  const first = load<u32>(slots, FIRST);
  store<u32>(chunk, 0, PREVIOUS);
  store<u32>(chunk, first, NEXT);
  if (first != 0) store<u32>(<usize>first, <u32>chunk, PREVIOUS);
  store<u32>(slots, <u32>chunk, FIRST);
}

function unlink(slots: usize, chunk: usize): void {
  const previous = load<u32>(chunk, PREVIOUS);
  const next = load<u32>(chunk, NEXT);
  if (previous != 0) store<u32>(<usize>previous, next, NEXT);
  else store<u32>(slots, next, FIRST);
  if (next != 0) store<u32>(<usize>next, previous, PREVIOUS);
}

function make_chunk(slots: usize): usize {
  const chunk = arena_alloc(<usize>load<u32>(slots, SLOTS_ARENA), chunk_bytes(slots));
  if (chunk == 0) return 0;
  store<i32>(chunk, SLOTS, FREE);
  for (let i = 0; i < SLOTS >> 6; i++) {
    const word = chunk + BITS + <usize>(i << 3);
    store<i64>(word, ALL_FREE);
  }
  link(slots, chunk);
  return chunk;
}

// The first free slot of a chunk that has one: no longer free.
function take_slot(slots: usize, chunk: usize): i32 {
  let i = 0;
  let word = chunk + BITS;
  while (load<i64>(word) == 0) {
    word += 8;
    i += 64;
  }
  const bits = load<i64>(word);
  store<i64>(word, bits & (bits - 1));
  const free = load<i32>(chunk, FREE) - 1;
  store<i32>(chunk, free, FREE);
  if (free == 0) unlink(slots, chunk);
  return i + <i32>ctz(bits);
}

/**
 * A zeroed slot: its address on CPU 0 goes to the word at `slot_to` (CPU c's is c * NHIT_STRIDE
 * further), its chunk to the word at `chunk_to`. False: the arena is full.
 */
export function slot_alloc(slots: usize, slot_to: usize, chunk_to: usize): bool {
  qspin_lock(slots);
  let chunk = <usize>load<u32>(slots, FIRST);
  if (chunk == 0) chunk = make_chunk(slots);
  if (chunk == 0) {
    qspin_unlock(slots);
    return false;
  }
  const slot = chunk + STRIDE + <usize>(take_slot(slots, chunk) << 3);
  qspin_unlock(slots);
  const cpus = load<i32>(slots, SLOTS_CPUS);
  for (let cpu = 0; cpu < cpus; cpu++) store<i64>(slot + <usize>(cpu * NHIT_STRIDE), 0);
  store<u32>(slot_to, <u32>slot);
  store<u32>(chunk_to, <u32>chunk);
  return true;
}

/** Gives back a slot of `chunk`, by its address on CPU 0. No CPU may still count in it. */
export function slot_free(slots: usize, slot: usize, chunk: usize): void {
  const i = <i32>((slot - chunk - STRIDE) >> 3);
  const word = chunk + BITS + <usize>((i >> 6) << 3);
  qspin_lock(slots);
  store<i64>(word, load<i64>(word) | ((<i64>1) << ((<i64>i) & 63)));
  const free = load<i32>(chunk, FREE) + 1;
  store<i32>(chunk, free, FREE);
  if (free == 1) link(slots, chunk);
  if (free == SLOTS) unlink(slots, chunk);
  qspin_unlock(slots);
  if (free == SLOTS) arena_free(<usize>load<u32>(slots, SLOTS_ARENA), chunk, chunk_bytes(slots));
}
