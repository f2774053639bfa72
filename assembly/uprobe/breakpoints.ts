// The breakpoints of an address space as a hash: address -> uprobe, without a mapping in between
// (strategy TABLE_HASH; ours, not the kernel's).
//
// Open addressing, linear probing. A place that has been given to an address is that address's for
// as long as the table lives, also while there is no breakpoint: what is read there is never
// another's. Changed under mmap_lock held for writing, read without a lock, in a read section.
//
//   offset  bytes  content of a table              offset  bytes  a place
//        0      8  head for the deferred free           0      4  address; 0: free
//        8      4  bytes, of all                        4      4  uprobe; 0: no breakpoint
//       12      4  places - 1, a power of two less 1    8      8  how to count a hit at once, or 0
//       16      4  places taken                                   (consumer.ts, sole_counter)
//       64   16*n  places
//
//   installing   [A] the count, [B] the uprobe, [C] the address, then the trap byte: whoever traps
//                finds it
//   removing     the instruction, then [D] the count and [E] the uprobe, freed after a grace period
//   growing      [F] a new table with all breakpoints, [G] the pointer to it, [H] the old one is
//                emptied, and freed after a grace period (its head is no place's memory, C4)
//
// A breakpoint can be missed: by a lookup in a table that was just outgrown, if a table could not
// grow, by a hit that was on its way when E came. Then the lookup under mmap_lock decides, as after
// a failed speculation. What is found is right at that moment: H leaves nothing in an outgrown
// table, so that nothing old is found there when the address has another uprobe.
//
// plain: `BLOCK_*`, `TAKEN`: under mmap_lock held for writing, or never changed; `MASK` is written
// before G; `place` holds an address or 0, which never becomes another address.

import { LINE } from "../layout";
import { load32, load64, store32, store64 } from "../atomics";
import { arena_alloc, arena_free } from "../mm/arena";
import { MM_BREAKPOINTS } from "../mm/mm";
import { defer, DEFERRED_BREAKPOINTS, table_arena } from "./table";

const BLOCK_BYTES = 8;
const MASK = 12;
const TAKEN = 16;
const PLACES = LINE;

const PLACE_BYTES = 16;
const UPROBE = 4;
const COUNT = 8;

const FIRST_PLACES: i32 = 64;

// Fibonacci hashing: addresses at equal distances, as functions often are, spread evenly.
// @ts-ignore: decorator
@inline
function place_of(block: usize, mask: u32, vaddr: u32): usize {
  return block + PLACES + ((<usize>(((vaddr * 0x9e3779b1) >> 11) & mask)) << 4);
}

// @ts-ignore: decorator
@inline
function next_place(block: usize, mask: u32, place: usize): usize {
  const first = block + PLACES;
  return first + ((place + PLACE_BYTES - first) & (((<usize>mask) << 4) | (PLACE_BYTES - 1)));
}

/** The table of an address space, or 0; to be read again after every quiet moment. */
// @ts-ignore: decorator
@inline
export function breakpoints_of(mm: usize): usize {
  return <usize>load32(mm + MM_BREAKPOINTS);
}
// @ts-ignore: decorator
@inline
export function breakpoints_mask(block: usize): u32 {
  return load<u32>(block, MASK);
}

/** The place of `vaddr` in the table, or 0. */
// @ts-ignore: decorator
@inline
export function find_place(block: usize, mask: u32, vaddr: u32): usize {
  let place = place_of(block, mask, vaddr);
  let at = load<u32>(place);
  while (at != vaddr) {
    if (at == 0) return 0;
    place = next_place(block, mask, place);
    at = load<u32>(place);
  }
  return place;
}

/** What sole_counter said for the breakpoint at this place; 0: ask its uprobe. */
// @ts-ignore: decorator
@inline
export function place_count(place: usize): i64 {
  return load64(place + COUNT);
}

/** The uprobe whose breakpoint is at `vaddr`, or 0: ask under mmap_lock. In a read section. */
// @ts-ignore: decorator
@inline
export function find_breakpoint(mm: usize, vaddr: u32): usize {
  const block = breakpoints_of(mm);
  if (block == 0) return 0;
  const place = find_place(block, breakpoints_mask(block), vaddr);
  return place != 0 ? <usize>load32(place + UPROBE) : 0;
}

function make_block(arena: usize, places: i32): usize {
  const bytes = PLACES + places * PLACE_BYTES;
  const block = arena_alloc(arena, bytes);
  if (block == 0) return 0;
  store<i32>(block, bytes, BLOCK_BYTES);
  store<u32>(block, <u32>places - 1, MASK);
  return block;
}

function put(block: usize, vaddr: u32, u: usize, count: i64): void {
  const mask = breakpoints_mask(block);
  let place = place_of(block, mask, vaddr);
  while (load<u32>(place) != 0) place = next_place(block, mask, place);
  store64(place + COUNT, count); // A
  store32(place + UPROBE, <i32>u); // B
  store32(place, <i32>vaddr); // C
  store<i32>(block, load<i32>(block, TAKEN) + 1, TAKEN);
}

// At most seven eighths full, else a larger one is made. 0: the arena is full.
function with_room(table: usize, mm: usize): usize {
  const old = breakpoints_of(mm);
  if (old == 0) {
    const block = make_block(table_arena(table), FIRST_PLACES);
    store32(mm + MM_BREAKPOINTS, <i32>block);
    return block;
  }
  const have = <i32>breakpoints_mask(old) + 1;
  if ((load<i32>(old, TAKEN) + 1) * 8 <= have * 7) return old;
  const block = make_block(table_arena(table), have * 2);
  if (block == 0) return 0;
  const end = old + PLACES + <usize>(have * PLACE_BYTES);
  for (let place = old + PLACES; place < end; place += PLACE_BYTES) {
    const u = <usize>load32(place + UPROBE);
    if (u != 0) put(block, load<u32>(place), u, load64(place + COUNT)); // F
  }
  store32(mm + MM_BREAKPOINTS, <i32>block); // G
  for (let place = old + PLACES; place < end; place += PLACE_BYTES) {
    store64(place + COUNT, 0); // H
    store32(place + UPROBE, 0);
  }
  defer(table, old, DEFERRED_BREAKPOINTS);
  return block;
}

/** A breakpoint of `u` is about to be at `vaddr`; mmap_lock held for writing. */
export function add_breakpoint(table: usize, mm: usize, vaddr: u32, u: usize, count: i64): void {
  const now = breakpoints_of(mm);
  const place = now != 0 ? find_place(now, breakpoints_mask(now), vaddr) : 0;
  if (place != 0) {
    store64(place + COUNT, count); // A
    store32(place + UPROBE, <i32>u); // B
    return;
  }
  const block = with_room(table, mm);
  if (block != 0) put(block, vaddr, u, count);
}

/** The consumers of the breakpoint at `vaddr` changed; mmap_lock held for writing. */
export function set_place_count(mm: usize, vaddr: u32, count: i64): void {
  const block = breakpoints_of(mm);
  const place = block != 0 ? find_place(block, breakpoints_mask(block), vaddr) : 0;
  if (place != 0) store64(place + COUNT, count); // A, D
}

/** The breakpoint at `vaddr` is gone; mmap_lock held for writing. */
export function del_breakpoint(mm: usize, vaddr: u32): void {
  const block = breakpoints_of(mm);
  const place = block != 0 ? find_place(block, breakpoints_mask(block), vaddr) : 0;
  if (place == 0) return;
  store64(place + COUNT, 0); // D
  store32(place + UPROBE, 0); // E
}

/** The grace period of an outgrown table is over. */
export function free_breakpoints(table: usize, head: usize): void {
  arena_free(table_arena(table), head, load<i32>(head, BLOCK_BYTES));
}
