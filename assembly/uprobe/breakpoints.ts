// The breakpoints of an address space as a hash: address -> uprobe, without a mapping in between
// (strategy TABLE_HASH; ours, not the kernel's).
//
// Open addressing, linear probing, without a turn at the end: behind the places that addresses
// belong to there are TAIL more, the last of which is always free. A place that has been given to
// an address is that address's for as long as the table lives, also while there is no breakpoint:
// what is read there is never another's. Changed under mmap_lock held for writing, read without a
// lock, in a read section.
//
//   offset  bytes  content of a table              offset  bytes  a place
//        0      8  head for the deferred free           0      4  address; 0: free
//        8      4  bytes, of all                        4      4  uprobe; 0: no breakpoint
//       12      4  places, a power of two               8      8  how to count a hit at once, or 0
//       16      8  places taken, shift of the hash                (consumer.ts, sole_counter)
//       64   16*n  places, and the tail
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
// plain: `BLOCK_*`, `TAKEN`: under mmap_lock held for writing, or never changed; `COUNT_PLACES` and
// `SHIFT` are written before G; `place` (also `second`, `likely`) holds an address or 0, which
// never becomes another address.

import { LINE } from "../layout";
import { load32, load64, store32, store64 } from "../atomics";
import { arena_alloc, arena_free } from "../mm/arena";
import { MM_BREAKPOINTS } from "../mm/mm";
import { defer, DEFERRED_BREAKPOINTS, no_breakpoints, table_arena } from "./table";

const BLOCK_BYTES = 8;
const COUNT_PLACES = 12;
const TAKEN = 16;
const SHIFT = 20;
const PLACES = LINE;

const PLACE_BYTES = 16;
const UPROBE = 4;
const COUNT = 8;

const FIRST_PLACES: i32 = 64;
const TAIL: i32 = 16;

// Multiplicative hashing; the factor is 2^32 / 16 times the golden ratio's fraction. Sites at equal
// distances, as functions often are, must not fall into step: of 100 000 sites 16 bytes apart in
// 2^17 places 73 in a hundred are where they belong, the others in the next place. With 2^32 times
// the ratio it is 28 (bench/README.md).
// @ts-ignore: decorator
@inline
export function place_of(block: usize, shift: u32, vaddr: u32): usize {
  return block + PLACES + ((<usize>((vaddr * 0x09e3779b) >> shift)) << 4);
}

/** The table of an address space, or 0; to be read again after every quiet moment. */
// @ts-ignore: decorator
@inline
export function breakpoints_of(mm: usize): usize {
  return <usize>load32(mm + MM_BREAKPOINTS);
}
// @ts-ignore: decorator
@inline
export function breakpoints_shift(block: usize): u32 {
  return load<u32>(block, SHIFT);
}

/** The place of `vaddr` in the table, or 0; `place` is where it belongs (place_of). */
// @ts-ignore: decorator
@inline
export function find_place(place: usize, vaddr: u32): usize {
  let at = load<u32>(place);
  while (at != vaddr) {
    if (at == 0) return 0;
    place += PLACE_BYTES;
    at = load<u32>(place);
  }
  return place;
}

/**
 * The same, for addresses that nobody can predict: which of the first two places it is is no
 * branch. A branch that is predicted wrongly costs more than the look at a place.
 */
// @ts-ignore: decorator
@inline
export function find_random_place(place: usize, vaddr: u32): usize {
  const second = place + PLACE_BYTES;
  const likely = select(second, place, load<u32>(second) == vaddr);
  return load<u32>(likely) == vaddr ? likely : find_place(place, vaddr);
}

/** A place of an empty table. */
// @ts-ignore: decorator
@inline
export function no_place(table: usize): usize {
  return no_breakpoints(table) + PLACES;
}

/** Where a place's count is; and what sole_counter said there, or 0: ask the uprobe. */
// @ts-ignore: decorator
@inline
export function count_word_at(place: usize): usize {
  return place + COUNT;
}
// @ts-ignore: decorator
@inline
export function count_word(at: usize): i64 {
  return load64(at);
}

/**
 * The uprobe that the count at `at` is of, if it still says `word`; or 0. A uprobe that was taken
 * from its place does not come back to it, so that no other was there in between.
 */
// @ts-ignore: decorator
@inline
export function counted_uprobe(at: usize, word: i64): usize {
  const u = <usize>load32(at - COUNT + UPROBE);
  return load64(at) == word ? u : 0;
}

/** The uprobe whose breakpoint is at `vaddr`, or 0: ask under mmap_lock. In a read section. */
// @ts-ignore: decorator
@inline
export function find_breakpoint(mm: usize, vaddr: u32): usize {
  const block = breakpoints_of(mm);
  if (block == 0) return 0;
  const place = locate(block, vaddr);
  return place != 0 ? <usize>load32(place + UPROBE) : 0;
}

function locate(block: usize, vaddr: u32): usize {
  return find_place(place_of(block, breakpoints_shift(block), vaddr), vaddr);
}

function set_places(block: usize, places: i32): void {
  store<i32>(block, places, COUNT_PLACES);
  store<u32>(block, 32 - <u32>ctz(places), SHIFT);
}

/** Makes the zeroed EMPTY_BYTES at `block` a table in which nothing is found. */
export function breakpoints_init_empty(block: usize): void {
  set_places(block, 2);
}

function block_bytes(places: i32): i32 {
  return PLACES + (places + TAIL) * PLACE_BYTES;
}

function end_of(block: usize): usize {
  return block + <usize>block_bytes(load<i32>(block, COUNT_PLACES));
}

// False: the run of taken places that it would end reaches the end of the table.
function put(block: usize, vaddr: u32, u: usize, count: i64): bool {
  let place = place_of(block, breakpoints_shift(block), vaddr);
  while (load<u32>(place) != 0) place += PLACE_BYTES;
  if (place + PLACE_BYTES == end_of(block)) return false;
  store64(place + COUNT, count); // A
  store32(place + UPROBE, <i32>u); // B
  store32(place, <i32>vaddr); // C
  store<i32>(block, load<i32>(block, TAKEN) + 1, TAKEN);
  return true;
}

// A table of `places` with all breakpoints of `old` (0: none). 0: the arena is full, or they do not
// fit.
function copied(table: usize, old: usize, places: i32): usize {
  const arena = table_arena(table);
  const bytes = block_bytes(places);
  const block = arena_alloc(arena, bytes);
  if (block == 0) return 0;
  store<i32>(block, bytes, BLOCK_BYTES);
  set_places(block, places);
  if (old == 0) return block;
  for (let place = old + PLACES; place < end_of(old); place += PLACE_BYTES) {
    const u = <usize>load32(place + UPROBE);
    if (u != 0 && !put(block, load<u32>(place), u, load64(place + COUNT))) {
      arena_free(arena, block, bytes); // nobody has seen it
      return 0;
    }
  }
  return block;
}

// How many places the next table needs: twice as many, unless at most half of those that may be
// taken have a breakpoint. A program that maps at ever new addresses leaves places behind.
function next_places(old: usize): i32 {
  if (old == 0) return FIRST_PLACES;
  const places = load<i32>(old, COUNT_PLACES);
  let live = 0;
  for (let place = old + PLACES; place < end_of(old); place += PLACE_BYTES) {
    if (load32(place + UPROBE) != 0) live++;
  }
  return (live + 1) * 16 > places * 7 ? places * 2 : places;
}

// Puts a table of `places` in the place of `old`. 0: the arena is full.
function grow(table: usize, mm: usize, old: usize, places: i32): usize {
  const block = copied(table, old, places); // F
  if (block == 0) return 0;
  store32(mm + MM_BREAKPOINTS, <i32>block); // G
  if (old == 0) return block;
  for (let place = old + PLACES; place < end_of(old); place += PLACE_BYTES) {
    store64(place + COUNT, 0); // H
    store32(place + UPROBE, 0);
  }
  defer(table, old, DEFERRED_BREAKPOINTS);
  return block;
}

/**
 * Gives a child what its parent has; mmap_lock of both held for writing, and no registration is
 * under way: all that is named lives, and will be taken away in the child, too. False: the arena is
 * full.
 */
export function copy_breakpoints(table: usize, parent: usize, child: usize): bool {
  const old = breakpoints_of(parent);
  if (old == 0) return true;
  const block = copied(table, old, load<i32>(old, COUNT_PLACES)); // F
  if (block == 0) return false;
  store32(child + MM_BREAKPOINTS, <i32>block); // G
  return true;
}

/** A breakpoint of `u` is about to be at `vaddr`; mmap_lock held for writing. */
export function add_breakpoint(table: usize, mm: usize, vaddr: u32, u: usize, count: i64): void {
  const now = breakpoints_of(mm);
  const place = now != 0 ? locate(now, vaddr) : 0;
  if (place != 0) {
    store64(place + COUNT, count); // A
    store32(place + UPROBE, <i32>u); // B
    return;
  }
  // At most seven eighths full: then the runs of taken places are short.
  let block = now;
  if (now == 0 || (load<i32>(now, TAKEN) + 1) * 8 > load<i32>(now, COUNT_PLACES) * 7) {
    block = grow(table, mm, now, next_places(now));
  }
  if (block == 0 || put(block, vaddr, u, count)) return;
  block = grow(table, mm, block, load<i32>(block, COUNT_PLACES) * 2);
  if (block != 0) put(block, vaddr, u, count);
}

/** The consumers of the breakpoint at `vaddr` changed; mmap_lock held for writing. */
export function set_place_count(mm: usize, vaddr: u32, count: i64): void {
  const block = breakpoints_of(mm);
  const place = block != 0 ? locate(block, vaddr) : 0;
  if (place != 0) store64(place + COUNT, count); // A, D
}

/** The breakpoint at `vaddr` is gone; mmap_lock held for writing. */
export function del_breakpoint(mm: usize, vaddr: u32): void {
  const block = breakpoints_of(mm);
  const place = block != 0 ? locate(block, vaddr) : 0;
  if (place == 0) return;
  store64(place + COUNT, 0); // D
  store32(place + UPROBE, 0); // E
}

/** The grace period of an outgrown table is over. */
export function free_breakpoints(table: usize, head: usize): void {
  arena_free(table_arena(table), head, load<i32>(head, BLOCK_BYTES));
}
