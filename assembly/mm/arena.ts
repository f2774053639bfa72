// The engine's memory: allocated once at start, handed out and taken back here, never grown.
//
// Sizes are whole lines. Up to SMALL_LINES a size has its own free list (last freed, first
// reused: kernel slab's order); larger blocks are whole line pairs in one address-ordered list
// that merges neighbours. A size that is a multiple of STRIDE is STRIDE-aligned. Small blocks do
// not merge: an engine's objects are of few sizes, and churn reuses them.
//
// Accounting is exact: live + free == size at every moment outside the lock, and the torture
// tests end only when live is what it was before. An allocation that cannot be met returns 0 and
// leaves its size behind, so that the host can say what was asked and what was there.
//
//   offset  bytes  content
//        0      4  lock (queued spinlock)
//        4     12  first byte, end, next never-used byte
//       16     16  live bytes, live objects, most live bytes ever, size of the last failure
//       64    256  heads of the small lists, index = lines - 1
//      320      4  head of the large list
//
// plain: `arena` (its header), `head`, `link`, `BLOCK_*`: under the arena's lock, or before anybody
// knows the arena. `p`: a block that is in no list, so the caller's alone.

import { ARENA_FAILED, ARENA_LIVE_BYTES, ARENA_LIVE_OBJECTS, ARENA_PEAK_BYTES } from "../layout";
import { LINE, STRIDE } from "../layout";
import { qspin_init, qspin_lock, qspin_unlock } from "../sync/qspinlock";

const LOCK = 0;
const BEGIN = 4;
const END = 8;
const NEXT = 12;
const SMALL = 64;
const LARGE = 320;
/** Bytes of the arena's own header. */
export const ARENA_HEADER_BYTES = 384;

const SMALL_LINES = 64;
// A free block: word 0 the next free one, word 1 its bytes (large blocks only).
const BLOCK_NEXT = 0;
const BLOCK_BYTES = 4;

/** Makes an empty arena of the bytes [arena, end); both STRIDE-aligned. */
export function arena_init(arena: usize, end: usize): void {
  memory.fill(arena, 0, ARENA_HEADER_BYTES);
  qspin_init(arena + LOCK);
  store<u32>(arena, <u32>(arena + ARENA_HEADER_BYTES), BEGIN);
  store<u32>(arena, <u32>(arena + ARENA_HEADER_BYTES), NEXT);
  store<u32>(arena, <u32>end, END);
}

/** What `bytes` really occupy: whole lines, and whole pairs when large. */
export function arena_size(bytes: i32): i32 {
  const rounded = (max(bytes, 1) + LINE - 1) & -LINE;
  return rounded <= SMALL_LINES * LINE ? rounded : (rounded + STRIDE - 1) & -STRIDE;
}

function small_head(arena: usize, size: i32): usize {
  return arena + SMALL + <usize>((size / LINE - 1) << 2);
}

function take_large(arena: usize, size: i32): usize {
  let link = arena + LARGE;
  for (let p = <usize>load<u32>(link); p != 0; p = <usize>load<u32>(link)) {
    const have = load<i32>(p, BLOCK_BYTES);
    if (have >= size) {
      if (have == size) {
        store<u32>(link, load<u32>(p, BLOCK_NEXT));
      } else {
        const rest = p + <usize>size;
        store<u32>(rest, load<u32>(p, BLOCK_NEXT), BLOCK_NEXT);
        store<i32>(rest, have - size, BLOCK_BYTES);
        store<u32>(link, <u32>rest);
      }
      return p;
    }
    link = p + BLOCK_NEXT;
  }
  return 0;
}

function take_new(arena: usize, size: i32): usize {
  let p = <usize>load<u32>(arena, NEXT);
  const end = <usize>load<u32>(arena, END);
  const odd = size % STRIDE == 0 && p % STRIDE != 0;
  const skip: usize = odd ? <usize>LINE : 0;
  // Not p + size > end: near 4 GiB the sum wraps.
  if (<usize>size + skip > end - p) return 0;
  if (odd) {
    // The skipped line is not lost: it is a free block of one line.
    const head = small_head(arena, LINE);
    store<u32>(p, load<u32>(head), BLOCK_NEXT);
    store<u32>(head, <u32>p);
    p += skip;
  }
  store<u32>(arena, <u32>(p + <usize>size), NEXT);
  return p;
}

/** `bytes` of zeroed memory, line-aligned (pair-aligned if a multiple of STRIDE); 0: none left. */
export function arena_alloc(arena: usize, bytes: i32): usize {
  const size = arena_size(bytes);
  qspin_lock(arena + LOCK);
  let p: usize = 0;
  if (bytes >= 0 && size > 0) {
    if (size <= SMALL_LINES * LINE) {
      const head = small_head(arena, size);
      p = <usize>load<u32>(head);
      if (p != 0) store<u32>(head, load<u32>(p, BLOCK_NEXT));
    } else {
      p = take_large(arena, size);
    }
    if (p == 0) p = take_new(arena, size);
  }
  if (p != 0) {
    const live = load<i32>(arena, ARENA_LIVE_BYTES) + size;
    store<i32>(arena, live, ARENA_LIVE_BYTES);
    store<i32>(arena, load<i32>(arena, ARENA_LIVE_OBJECTS) + 1, ARENA_LIVE_OBJECTS);
    if (live > load<i32>(arena, ARENA_PEAK_BYTES)) store<i32>(arena, live, ARENA_PEAK_BYTES);
  } else {
    store<i32>(arena, bytes, ARENA_FAILED);
  }
  qspin_unlock(arena + LOCK);
  // Outside the lock: the block is this CPU's alone.
  if (p != 0) memory.fill(p, 0, size);
  return p;
}

function put_large(arena: usize, p: usize, size: i32): void {
  let link = arena + LARGE;
  let before: usize = 0;
  let after = <usize>load<u32>(link);
  while (after != 0 && after < p) {
    before = after;
    link = after + BLOCK_NEXT;
    after = <usize>load<u32>(link);
  }
  let bytes = size;
  if (after != 0 && p + <usize>size == after) {
    bytes += load<i32>(after, BLOCK_BYTES);
    after = <usize>load<u32>(after, BLOCK_NEXT);
  }
  if (before != 0 && before + <usize>load<i32>(before, BLOCK_BYTES) == p) {
    store<i32>(before, load<i32>(before, BLOCK_BYTES) + bytes, BLOCK_BYTES);
    store<u32>(before, <u32>after, BLOCK_NEXT);
  } else {
    store<i32>(p, bytes, BLOCK_BYTES);
    store<u32>(p, <u32>after, BLOCK_NEXT);
    store<u32>(link, <u32>p);
  }
}

/** Takes back what arena_alloc gave for the same `bytes`. No other CPU may still reach it. */
export function arena_free(arena: usize, p: usize, bytes: i32): void {
  if (p == 0) return;
  const size = arena_size(bytes);
  qspin_lock(arena + LOCK);
  if (size <= SMALL_LINES * LINE) {
    const head = small_head(arena, size);
    store<u32>(p, load<u32>(head), BLOCK_NEXT);
    store<u32>(head, <u32>p);
  } else {
    put_large(arena, p, size);
  }
  store<i32>(arena, load<i32>(arena, ARENA_LIVE_BYTES) - size, ARENA_LIVE_BYTES);
  store<i32>(arena, load<i32>(arena, ARENA_LIVE_OBJECTS) - 1, ARENA_LIVE_OBJECTS);
  qspin_unlock(arena + LOCK);
}
