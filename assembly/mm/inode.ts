// A mapped file: its code bytes, and who maps it (the kernel's inode and address_space.i_mmap).
//
//   offset  bytes  content
//        0     32  i_mmap_mutex, protects the list of mappings
//       32      4  i_mmap: first VMA that maps this file
//       36      4  size in bytes
//       40      4  data: address of the original instruction bytes; never change
//       44      4  arena
//
// plain: `I_MMAP` under i_mmap_mutex; `INODE_*`, `data`: written before the address is handed out
// and never again.

import { arena_alloc, arena_free } from "./arena";
import { mutex_init, mutex_lock, mutex_unlock } from "../sync/mutex";

const I_MMAP_MUTEX = 0;
export const I_MMAP = 32;
export const INODE_SIZE = 36;
export const INODE_DATA = 40;
const INODE_ARENA = 44;
const INODE_BYTES = 64;

/** A file of `size` bytes, each the instruction `opcode`. 0: the arena is full. */
export function inode_create(arena: usize, size: i32, opcode: i32): usize {
  const data = arena_alloc(arena, size);
  if (data == 0) return 0;
  const inode = arena_alloc(arena, INODE_BYTES);
  if (inode == 0) {
    arena_free(arena, data, size);
    return 0;
  }
  memory.fill(data, <u8>opcode, size);
  mutex_init(inode + I_MMAP_MUTEX);
  store<i32>(inode, size, INODE_SIZE);
  store<u32>(inode, <u32>data, INODE_DATA);
  store<u32>(inode, <u32>arena, INODE_ARENA);
  return inode;
}

/** True if nobody mapped it any more, and it is gone; false if it still has mappings. */
export function inode_destroy(inode: usize): bool {
  i_mmap_lock(inode);
  const mapped = load<u32>(inode, I_MMAP) != 0;
  i_mmap_unlock(inode);
  if (mapped) return false;
  const arena = <usize>load<u32>(inode, INODE_ARENA);
  arena_free(arena, <usize>load<u32>(inode, INODE_DATA), load<i32>(inode, INODE_SIZE));
  arena_free(arena, inode, INODE_BYTES);
  return true;
}

export function i_mmap_lock(inode: usize): void {
  mutex_lock(inode + I_MMAP_MUTEX);
}

export function i_mmap_unlock(inode: usize): void {
  mutex_unlock(inode + I_MMAP_MUTEX);
}
