// Address spaces: sorted VMAs under mmap_lock, and the sequence count beside it.
//
// mm
//   offset  bytes  content
//        0     40  mmap_lock (rwsem): count and owner on one line, as the kernel's
//       40      4  mm_lock_seq: odd while a writer holds mmap_lock
//       64      4  users: whoever can still reach this address space
//       68      8  number of VMAs, room for VMAs
//       76      4  maps: array of {start, end, vma, pgoff, inode}, 32 bytes each, sorted, disjoint
//       80      4  arena
//       84      4  has_uprobes (MMF_HAS_UPROBES)
//       88      4  breakpoints by address (uprobe/breakpoints.ts), its bytes at +8; 0: none
//       96      4  XOL area (uprobe/xol.ts), XOL_BYTES of it; 0: none yet
//      100      8  reference counters that are raised here (uprobe/ref_ctr.ts): first entry, lock
//      128      4  sighand: siglock (uprobe/signal.ts), on a line of its own
// vma (a mapping of a file; its text is a private copy, as after the kernel's copy on write)
//        0      8  start, end: addresses [start, end)
//        8      4  pgoff: file offset of start, in bytes
//       12      4  inode
//       16      4  text: address of the byte at `start`
//       20      8  mm, next VMA in the inode's i_mmap
//       32      8  pass: the last registration pass that visited it (uprobe/register.ts)
//
// Lock order: mmap_lock, that of a child that is being forked, then i_mmap_mutex.
//
// Speculation (map_lookup_speculative): a lookup reads [A] mm_lock_seq, gives up if it is odd,
// reads [B] the maps, and [C] mm_lock_seq again; only if that is the same is the answer one that
// was right at C (C6). A writer makes it odd [D] after it has mmap_lock, changes the maps, and
// makes it even [E] before it drops the lock (C8). Forbidden: an answer from a state in between, or
// half of two. B are atomic loads, so they lie between A and C; the array's words are atomic stores
// between D and E. What is read may be of any moment, but it is always memory of this array, which
// stays until the address space goes (C7); the inode is compared, never followed.
//
// plain: `MAP_*` under mmap_lock, written atomically for speculation; `MM_*`, `INODE_*` never
// change once the address is known; `VM_*` and the `text` it points to are written before the VMA
// is linked; the links (`I_MMAP`, `VM_NEXT`, `link`) and VM_PASS under i_mmap_mutex; `out` is the
// caller's own.

import { EEXIST, EINVAL, ENOMEM, ENOSPC, MM_XOL_AREA, XOL_AREA_BYTES, XOL_PAGE } from "../layout";
import { load32, store32 } from "../atomics";
import { arena_alloc, arena_free } from "./arena";
import { I_MMAP, i_mmap_lock, i_mmap_unlock, INODE_DATA, INODE_SIZE } from "./inode";
import { qspin_init } from "../sync/qspinlock";
import { refcount_dec_and_test, refcount_inc_not_zero, refcount_set } from "../sync/refcount";
import { down_read, down_write, rwsem_init, up_read, up_write } from "../sync/rwsem";
import { seqcount_init, write_seqcount_begin, write_seqcount_end } from "../sync/seqcount";

const MMAP_LOCK = 0;
const MM_LOCK_SEQ = 40;
const MM_USERS = 64;
const MAP_COUNT = 68;
const MAP_MAX = 72;
const MM_MAPS = 76;
const MM_ARENA = 80;
const MM_HAS_UPROBES = 84;
export const MM_BREAKPOINTS = 88;
const BREAKPOINTS_BYTES = 8;
export const MM_REF_CTRS = 100;
export const MM_REF_CTR_LOCK = 104;
/** Bytes of an entry, whose first word is the next one. */
export const REF_CTR_BYTES = 64;
export const XOL_BYTES = XOL_PAGE + XOL_AREA_BYTES;
const MM_SIGLOCK = 128;
const MM_BYTES = 256;

const MAP_BYTES = 32;
const MAPS_MOST: u32 = 0x7fffffff / MAP_BYTES;
const MAP_START = 0;
const MAP_END = 4;
const MAP_VMA = 8;
const MAP_PGOFF = 12;
const MAP_INODE = 16;
const MAP_WORDS = 5;

const VM_START = 0;
const VM_END = 4;
const VM_PGOFF = 8;
export const VM_INODE = 12;
const VM_TEXT = 16;
export const VM_MM = 20;
export const VM_NEXT = 24;
export const VM_PASS = 32;
const VMA_BYTES = 64;

/** An empty address space with room for `maps_max` mappings. 0: the arena is full. */
export function mm_create(arena: usize, maps_max: i32): usize {
  if (<u32>maps_max > MAPS_MOST) return 0; // their bytes would wrap, and too few be allocated
  const maps = arena_alloc(arena, maps_max * MAP_BYTES);
  if (maps == 0) return 0;
  const mm = arena_alloc(arena, MM_BYTES);
  if (mm == 0) {
    arena_free(arena, maps, maps_max * MAP_BYTES);
    return 0;
  }
  rwsem_init(mm + MMAP_LOCK);
  seqcount_init(mm + MM_LOCK_SEQ);
  qspin_init(mm + MM_REF_CTR_LOCK);
  refcount_set(mm + MM_USERS, 1);
  qspin_init(mm + MM_SIGLOCK);
  store<i32>(mm, maps_max, MAP_MAX);
  store<u32>(mm, <u32>maps, MM_MAPS);
  store<u32>(mm, <u32>arena, MM_ARENA);
  return mm;
}

/** What its parts are allocated from. */
export function mm_arena(mm: usize): usize {
  return <usize>load<u32>(mm, MM_ARENA);
}

/** sighand->siglock of the process. */
// @ts-ignore: decorator
@inline
export function mm_siglock(mm: usize): usize {
  return mm + MM_SIGLOCK;
}

/** mmget_not_zero: false if the address space is already going away. */
export function mm_get(mm: usize): bool {
  return refcount_inc_not_zero(mm + MM_USERS);
}

/** Drops one use; the last one frees the address space with all its mappings. */
export function mm_put(mm: usize): void {
  if (!refcount_dec_and_test(mm + MM_USERS)) return;
  mmap_write_lock(mm);
  while (load<i32>(mm, MAP_COUNT) > 0) {
    remove_map(mm, load<i32>(mm, MAP_COUNT) - 1);
  }
  mmap_write_unlock(mm);
  const arena = <usize>load<u32>(mm, MM_ARENA);
  arena_free(arena, <usize>load<u32>(mm, MM_MAPS), load<i32>(mm, MAP_MAX) * MAP_BYTES);
  const breakpoints = <usize>load32(mm + MM_BREAKPOINTS);
  // plain: its size never changes.
  if (breakpoints != 0) arena_free(arena, breakpoints, load<i32>(breakpoints, BREAKPOINTS_BYTES));
  free_ref_ctrs(arena, mm);
  arena_free(arena, <usize>load32(mm + MM_XOL_AREA), XOL_BYTES);
  arena_free(arena, mm, MM_BYTES);
}

// plain: nobody else has the address space any more.
function free_ref_ctrs(arena: usize, mm: usize): void {
  let entry = load<u32>(mm, MM_REF_CTRS);
  while (entry != 0) {
    const next = load<u32>(<usize>entry);
    arena_free(arena, <usize>entry, REF_CTR_BYTES);
    entry = next;
  }
}

// @ts-ignore: decorator
@inline
export function mmap_read_lock(mm: usize): void {
  down_read(mm + MMAP_LOCK);
}
// @ts-ignore: decorator
@inline
export function mmap_read_unlock(mm: usize): void {
  up_read(mm + MMAP_LOCK);
}
/** The sequence is odd from after the lock is taken until before it is dropped (C8). */
export function mmap_write_lock(mm: usize): void {
  down_write(mm + MMAP_LOCK);
  write_seqcount_begin(mm + MM_LOCK_SEQ);
}
export function mmap_write_unlock(mm: usize): void {
  write_seqcount_end(mm + MM_LOCK_SEQ);
  up_write(mm + MMAP_LOCK);
}

/** MMF_HAS_UPROBES: set by the first breakpoint, never cleared; a hint that saves work. */
export function mm_has_uprobes(mm: usize): bool {
  return load32(mm + MM_HAS_UPROBES) != 0;
}
export function mm_set_has_uprobes(mm: usize): void {
  store32(mm + MM_HAS_UPROBES, 1);
}

// Index of the first map whose end lies above `vaddr`: binary search.
// @ts-ignore: decorator
@inline
function map_index(mm: usize, vaddr: u32): i32 {
  const maps = <usize>load<u32>(mm, MM_MAPS);
  let low = 0;
  let high = load<i32>(mm, MAP_COUNT);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (load<u32>(maps + <usize>(middle * MAP_BYTES), MAP_END) > vaddr) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** How many mappings there are, and the VMA of one, in the order of addresses. mmap_lock held. */
export function mm_map_count(mm: usize): i32 {
  return load<i32>(mm, MAP_COUNT);
}
export function mm_vma(mm: usize, index: i32): usize {
  const map = <usize>load<u32>(mm, MM_MAPS) + <usize>(index * MAP_BYTES);
  return <usize>load<u32>(map, MAP_VMA);
}

/** vma_lookup: the VMA that holds `vaddr`, or 0. mmap_lock held. */
// @ts-ignore: decorator
@inline
export function vma_lookup(mm: usize, vaddr: u32): usize {
  const index = map_index(mm, vaddr);
  if (index == load<i32>(mm, MAP_COUNT)) return 0;
  const map = <usize>load<u32>(mm, MM_MAPS) + <usize>(index * MAP_BYTES);
  return load<u32>(map, MAP_START) <= vaddr ? <usize>load<u32>(map, MAP_VMA) : 0;
}

/** mmap_lock_speculate_try_begin: the sequence, or odd: a writer is there, do not wait for it. */
// @ts-ignore: decorator
@inline
export function mmap_speculate_begin(mm: usize): i32 {
  return load32(mm + MM_LOCK_SEQ); // A
}

/** mmap_lock_speculate_retry: true if what was read since begin is not to be used. */
// @ts-ignore: decorator
@inline
export function mmap_speculate_retry(mm: usize, seq: i32): bool {
  return load32(mm + MM_LOCK_SEQ) != seq; // C
}

/**
 * Where the entry of `vaddr` is, or 0, without the lock: of no meaning before mmap_speculate_retry
 * has said false. Terminates whatever it reads.
 */
// @ts-ignore: decorator
@inline
export function map_lookup_speculative(mm: usize, vaddr: u32): usize {
  const maps = <usize>load<u32>(mm, MM_MAPS);
  let low = 0;
  const count = load32(mm + MAP_COUNT); // B, as all below
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (<u32>load32(maps + <usize>(middle * MAP_BYTES + MAP_END)) > vaddr) high = middle;
    else low = middle + 1;
  }
  const map = maps + <usize>(low * MAP_BYTES);
  return low < count && <u32>load32(map + MAP_START) <= vaddr ? map : 0;
}

/** Inode of an entry, to be compared only; and the file offset of `vaddr` there. */
// @ts-ignore: decorator
@inline
export function map_inode_speculative(map: usize): usize {
  return <usize>load32(map + MAP_INODE); // B
}
// @ts-ignore: decorator
@inline
export function map_offset_speculative(map: usize, vaddr: u32): i32 {
  return load32(map + MAP_PGOFF) + <i32>(vaddr - <u32>load32(map + MAP_START)); // B
}

/** File offset of an address inside the VMA. */
// @ts-ignore: decorator
@inline
export function vaddr_to_offset(vma: usize, vaddr: u32): i32 {
  return load<i32>(vma, VM_PGOFF) + <i32>(vaddr - load<u32>(vma, VM_START));
}

/** Address at which the VMA maps a file offset, or 0 if it does not. */
export function offset_to_vaddr(vma: usize, offset: i32): u32 {
  const into = offset - load<i32>(vma, VM_PGOFF);
  const length = <i32>(load<u32>(vma, VM_END) - load<u32>(vma, VM_START));
  return into >= 0 && into < length ? load<u32>(vma, VM_START) + <u32>into : 0;
}

/** Where the instruction byte of an address lies. The byte itself is accessed atomically. */
// @ts-ignore: decorator
@inline
export function text_ptr(vma: usize, vaddr: u32): usize {
  return <usize>load<u32>(vma, VM_TEXT) + <usize>(vaddr - load<u32>(vma, VM_START));
}

/** First file offset of the VMA, and how many bytes it maps. */
export function vma_first_offset(vma: usize): i32 {
  return load<i32>(vma, VM_PGOFF);
}
export function vma_length(vma: usize): i32 {
  return <i32>(load<u32>(vma, VM_END) - load<u32>(vma, VM_START));
}

/**
 * Maps [pgoff, pgoff + length) of a file at `vaddr`; mmap_lock held for writing. Writes the VMA's
 * address to `out`. EINVAL: empty, at 0, or outside the file. EEXIST: overlaps. ENOSPC: no room
 * for another mapping. ENOMEM: the arena is full.
 */
export function mmap_region(
  mm: usize,
  inode: usize,
  vaddr: u32,
  length: i32,
  pgoff: i32,
  out: usize,
): i32 {
  const size = load<i32>(inode, INODE_SIZE);
  if (length <= 0 || vaddr == 0 || vaddr + <u32>length <= vaddr) return EINVAL;
  if (pgoff < 0 || pgoff > size - length) return EINVAL;
  const count = load<i32>(mm, MAP_COUNT);
  if (count == load<i32>(mm, MAP_MAX)) return ENOSPC;
  const index = map_index(mm, vaddr);
  const at = <usize>load<u32>(mm, MM_MAPS) + <usize>(index * MAP_BYTES);
  if (index < count && load<u32>(at, MAP_START) < vaddr + <u32>length) return EEXIST;

  const data = <usize>load<u32>(inode, INODE_DATA) + <usize>pgoff;
  const vma = make_vma(mm, inode, vaddr, length, pgoff, data);
  if (vma == 0) return ENOMEM;
  link_vma(mm, index, vma);
  store<u32>(out, <u32>vma);
  return 0;
}

// A VMA that nobody knows yet, its text a copy of the bytes at `data`. 0: the arena is full.
function make_vma(
  mm: usize,
  inode: usize,
  vaddr: u32,
  length: i32,
  pgoff: i32,
  data: usize,
): usize {
  const arena = <usize>load<u32>(mm, MM_ARENA);
  const vma = arena_alloc(arena, VMA_BYTES);
  if (vma == 0) return 0;
  const text = arena_alloc(arena, length);
  if (text == 0) {
    arena_free(arena, vma, VMA_BYTES);
    return 0;
  }
  memory.copy(text, data, length);
  store<u32>(vma, vaddr, VM_START);
  store<u32>(vma, vaddr + <u32>length, VM_END);
  store<i32>(vma, pgoff, VM_PGOFF);
  store<u32>(vma, <u32>inode, VM_INODE);
  store<u32>(vma, <u32>text, VM_TEXT);
  store<u32>(vma, <u32>mm, VM_MM);
  return vma;
}

// Into the address space, as its map number `index`, and into its file's list.
function link_vma(mm: usize, index: i32, vma: usize): void {
  const maps = <usize>load<u32>(mm, MM_MAPS);
  const at = maps + <usize>(index * MAP_BYTES);
  const inode = <usize>load<u32>(vma, VM_INODE);
  const count = load<i32>(mm, MAP_COUNT);
  for (let i = count; i > index; i--) {
    copy_map(maps + <usize>(i * MAP_BYTES), maps + <usize>((i - 1) * MAP_BYTES));
  }
  store32(at + MAP_START, load<i32>(vma, VM_START));
  store32(at + MAP_END, load<i32>(vma, VM_END));
  store32(at + MAP_VMA, <i32>vma);
  store32(at + MAP_PGOFF, load<i32>(vma, VM_PGOFF));
  store32(at + MAP_INODE, <i32>inode);
  store32(mm + MAP_COUNT, count + 1);

  i_mmap_lock(inode);
  store<u32>(vma, load<u32>(inode, I_MMAP), VM_NEXT);
  store<u32>(inode, <u32>vma, I_MMAP);
  i_mmap_unlock(inode);
}

/** An empty address space with as much room as `mm` has. 0: the arena is full. */
export function mm_create_like(mm: usize): usize {
  return mm_create(<usize>load<u32>(mm, MM_ARENA), load<i32>(mm, MAP_MAX));
}

/**
 * Gives the empty address space `child` all mappings of `parent`, each with its text as it is
 * there, breakpoints and all. mmap_lock of both held for writing, so that no byte of the text
 * changes but by the program itself. False: the arena is full; `child` has some of them.
 */
export function mm_copy_maps(parent: usize, child: usize): bool {
  const maps = <usize>load<u32>(parent, MM_MAPS);
  const count = load<i32>(parent, MAP_COUNT);
  for (let i = 0; i < count; i++) {
    const map = maps + <usize>(i * MAP_BYTES);
    const vma = <usize>load<u32>(map, MAP_VMA);
    const copy = make_vma(
      child,
      <usize>load<u32>(vma, VM_INODE),
      load<u32>(vma, VM_START),
      vma_length(vma),
      load<i32>(vma, VM_PGOFF),
      <usize>load<u32>(vma, VM_TEXT),
    );
    if (copy == 0) return false;
    link_vma(child, i, copy);
  }
  return true;
}

// Word by word, atomically: speculation may be reading.
function copy_map(to: usize, from: usize): void {
  for (let i = 0; i < MAP_WORDS; i++) {
    store32(to + <usize>(i << 2), load32(from + <usize>(i << 2)));
  }
}

// mmap_lock held for writing.
function remove_map(mm: usize, index: i32): void {
  const at = <usize>load<u32>(mm, MM_MAPS) + <usize>(index * MAP_BYTES);
  const vma = <usize>load<u32>(at, MAP_VMA);
  const inode = <usize>load<u32>(vma, VM_INODE);
  i_mmap_lock(inode);
  let link = inode + I_MMAP;
  while (<usize>load<u32>(link) != vma) link = <usize>load<u32>(link) + VM_NEXT;
  store<u32>(link, load<u32>(vma, VM_NEXT));
  i_mmap_unlock(inode);

  const count = load<i32>(mm, MAP_COUNT) - 1;
  const maps = <usize>load<u32>(mm, MM_MAPS);
  for (let i = index; i < count; i++) {
    copy_map(maps + <usize>(i * MAP_BYTES), maps + <usize>((i + 1) * MAP_BYTES));
  }
  store32(mm + MAP_COUNT, count);
  const arena = <usize>load<u32>(mm, MM_ARENA);
  const length = vma_length(vma);
  arena_free(arena, <usize>load<u32>(vma, VM_TEXT), length);
  arena_free(arena, vma, VMA_BYTES);
}

/**
 * Removes the mapping that begins at `vaddr`; mmap_lock held for writing. EINVAL: there is none.
 * Its text is gone: no task may be executing in it.
 */
export function munmap_region(mm: usize, vaddr: u32): i32 {
  const index = map_index(mm, vaddr);
  if (index == load<i32>(mm, MAP_COUNT)) return EINVAL;
  const at = <usize>load<u32>(mm, MM_MAPS) + <usize>(index * MAP_BYTES);
  if (load<u32>(at, MAP_START) != vaddr) return EINVAL;
  remove_map(mm, index);
  return 0;
}
