// The probe table: uprobes_tree under uprobes_treelock, keyed (inode, offset).
//
//   offset  bytes  content
//        0      4  uprobes_tree: root
//        8     16  uprobes_treelock: a queued spinlock, else a queued rwlock (strategy)
//       24      4  uprobes_seqcount: odd while the lock's holder changes the tree
//                  root, lock and count are neighbours, as the kernel's static variables are
//       64      4  strategy, a PRESET_ constant: fixed at init
//       68      4  arena
//       72      8  uprobes alive (allocated, not yet freed), most allowed
//       80      4  uprobes in the tree
//       96      8  what is to be freed after a grace period (uprobe/reclaim.ts); CPUs that have
//                  taken some of it and are not done
//      104      8  number of the last consumer made; spare return instances
//      128     40  dup_mmap_sem: registration against fork of address spaces
//      168      8  number of the last registration pass, under dup_mmap_sem. 64 bits: a million
//                  passes a second would bring 32 back to an old mapping's number in 72 minutes
//      192  13*64  uprobes_mmap_mutex[inode hash]: patching of new mappings
//     1024     64  per-CPU counters of consumers (mm/slots.ts), with NHIT_PERCPU
//     1088    128  an empty table of breakpoints (uprobe/breakpoints.ts): never changed
//     1216     64  all tasks: the first, and at +32 the mutex of the list
//     1280     16  lease timer (uprobe/ri_timer.ts): when the next round is due, i64; whether
//                  somebody is at it
//
// Lookups, by strategy:
//   TABLE_SPINLOCK, TABLE_RWLOCK   under treelock, with a reference for the caller
//   TABLE_RCU, TABLE_HASH          without a lock, in a read section of the strategy's readers, and
//                                  that keeps alive what is found; no reference is taken
// A lockless search can miss what is there, since a rotation hides a subtree for a moment; it
// cannot find what never was there. So what is found counts at once, and "not there" only if no
// writer was at work: the sequence count is even, and the same before and after (C1).
//
// Lifetimes (C3), by the strategy's readers:
//   by reference (v6.9)  the tree holds a reference, which delete_uprobe drops under register_rwsem
//                        when the last consumer has left; who finds the uprobe and then locks it
//                        looks whether it is still active
//   in sections (v6.12)  the tree holds none, each registration one. [A] The last put makes the
//                        uprobe dead, for ever: a count of 0 is final. [B] It is then erased,
//                        unless it is no longer active, and freed after a grace period. Between A
//                        and B the tree names a dead uprobe: who wants a reference gets none [C],
//                        and an insertion of its key [D] erases and clears it and takes its place,
//                        in one write section, so that B does not erase it again. Forbidden: a
//                        reference from zero; two live uprobes with one key; a node erased twice.
//
// plain: `PASS` under dup_mmap_sem; `STRATEGY`, `TABLE_*`, `MAX` never change after init;
// `UPROBE_*` are written before the uprobe is in the tree, `MAGIC` also when nobody can hold it any
// more.

import { RCU_HEAD_KIND, READERS_MASK, READERS_REFCOUNT, TABLE_ALIVE } from "../layout";
import { TABLE_IN_TREE } from "../layout";
import { TABLE_MASK, TABLE_RCU, TABLE_SPINLOCK, TASK_RETRIES, UPROBE_FREED_MAGIC } from "../layout";
import { FAULT_DOUBLE_ERASE, FAULT_REFCOUNT, UPROBE_MAGIC } from "../layout";
import { add32, load32 } from "../atomics";
import { arena_alloc, arena_free } from "../mm/arena";
import { slots_init, SLOTS_BYTES } from "../mm/slots";
import { call_rcu_push } from "../rcu/callbacks";
import { mutex_init } from "../sync/mutex";
import { qspin_init, qspin_lock, qspin_unlock } from "../sync/qspinlock";
import { refcount_dec_and_test, refcount_inc, refcount_inc_not_zero } from "../sync/refcount";
import { refcount_set } from "../sync/refcount";
import { read_lock, read_unlock, rwlock_init, write_lock, write_unlock } from "../sync/rwlock";
import { rwsem_init } from "../sync/rwsem";
import { read_seqcount_begin, read_seqcount_retry } from "../sync/seqcount";
import { write_seqcount_begin, write_seqcount_end } from "../sync/seqcount";
import { raise_slow, ring_housekeeper_slow } from "./fault";
import { rb_clear_node, rb_empty_node, rb_erase, rb_insert_color, rb_left } from "./rbtree";
import { rb_left_link, rb_link_node, rb_right, rb_right_link } from "./rbtree";

const TREE = 0;
const TREELOCK = 8;
const SEQCOUNT = 24;
const STRATEGY = 64;
const TABLE_ARENA = 68;
const MAX = 76;
export const DEFERRED = 96;
export const RECLAIMING = 100;
const NEXT_ID = 104;
/** Return instances that some CPU had too many of (uprobe/return_instance.ts). */
export const RETURNS_SPARE = 108;
const DUP_MMAP_SEM = 128;
const PASS = 168;
const MMAP_MUTEX = 192;
const MMAP_MUTEXES = 13; // UPROBES_HASH_SZ
const NHIT_SLOTS = 192 + MMAP_MUTEXES * 64;
const NO_BREAKPOINTS = NHIT_SLOTS + SLOTS_BYTES;
const TASKS = NO_BREAKPOINTS + 128;
const TASKS_MUTEX = 32;
export const TIMER_NEXT = TASKS + 64;
export const TIMER_BUSY = TASKS + 72;
export const TABLE_BYTES = TASKS + 128;

// struct uprobe, the kernel's places (v6.9, 64-bit): rb_node, ref and the head of register_rwsem
// share a line, and the walk of other CPUs reads the links on it. On purpose: the published
// "before" figures depend on that false sharing.
//
//   offset  bytes  content
//        0     24  rb_node
//       24      4  ref
//       32     40  register_rwsem
//       72     40  consumer_rwsem
//      128      8  consumers: list, changed under both semaphores
//      136      8  inode, the key's first half
//      144      8  offset, the second
//      152      8  ref_ctr_offset: where in the file its reference counter is, or 0
//      160      8  flags
//      168      2  the displaced instruction, and how it is executed (INSN_ bits)
//      172      4  UPROBE_MAGIC, or UPROBE_FREED_MAGIC
//      176      8  head for the deferred free: not in the node, which lockless walks may still
//                  follow when the free is already pending (C4)
const REF = 24;
export const REGISTER_RWSEM = 32;
export const CONSUMER_RWSEM = 72;
export const CONSUMERS = 128;
export const UPROBE_INODE = 136;
export const UPROBE_OFFSET = 144;
export const UPROBE_REF_CTR = 152;
export const FLAGS = 160;
export const INSN = 168;
/** The instruction's byte; it is stepped out of line, else emulated; afterwards the instruction
 *  pointer has to be moved back. */
export const INSN_OPCODE = 0xff;
export const INSN_STEPPED = 0x100;
export const INSN_FIX_IP = 0x200;
export const MAGIC = 172;
const RCU_HEAD = 176;
const UPROBE_BYTES = 192;

// What a deferred head belongs to (rcu/callbacks.ts), for reclaim.ts.
export const DEFERRED_UPROBE = 1;
export const DEFERRED_BREAKPOINTS = 2;

/** No tree that fits the memory is deeper. */
const STEPS_MOST = 64;

/** `cpus`: how many CPUs can hit, the housekeeper among them. */
export function table_init(table: usize, arena: usize, strategy: i32, max: i32, cpus: i32): void {
  memory.fill(table, 0, TABLE_BYTES);
  if ((strategy & TABLE_MASK) == TABLE_SPINLOCK) qspin_init(table + TREELOCK);
  else rwlock_init(table + TREELOCK);
  rwsem_init(table + DUP_MMAP_SEM);
  for (let i = 0; i < MMAP_MUTEXES; i++) mutex_init(table + MMAP_MUTEX + <usize>(i * 64));
  store<i32>(table, strategy, STRATEGY);
  store<u32>(table, <u32>arena, TABLE_ARENA);
  store<i32>(table, max, MAX);
  slots_init(table + NHIT_SLOTS, arena, cpus);
  mutex_init(table + TASKS + TASKS_MUTEX);
}

export function table_arena(table: usize): usize {
  return <usize>load<u32>(table, TABLE_ARENA);
}
export function dup_mmap_sem(table: usize): usize {
  return table + DUP_MMAP_SEM;
}
export function nhit_slots(table: usize): usize {
  return table + NHIT_SLOTS;
}
/** The list of all tasks (uprobe/task.ts): its first, and its mutex. */
export function table_tasks(table: usize): usize {
  return table + TASKS;
}
export function tasks_mutex(table: usize): usize {
  return table + TASKS + TASKS_MUTEX;
}
/** A table of breakpoints in which nothing is found: for whoever has none. */
export function no_breakpoints(table: usize): usize {
  return table + NO_BREAKPOINTS;
}
/** A number that no mapping carries as its last pass; dup_mmap_sem held for writing. */
export function next_pass(table: usize): i64 {
  const pass = load<i64>(table, PASS) + 1;
  store<i64>(table, pass, PASS);
  return pass;
}
/** uprobes_mmap_hash: the mutex that keeps two new mappings of a file from patching at once. */
export function mmap_mutex(table: usize, inode: usize): usize {
  return table + MMAP_MUTEX + <usize>((((<u32>inode) >> 6) % MMAP_MUTEXES) * 64);
}

/** A number that no other consumer of this table has had; wraps after 2^32. */
export function next_consumer_id(table: usize): i32 {
  return add32(table + NEXT_ID, 1) + 1;
}

export function table_strategy(table: usize): i32 {
  return load<i32>(table, STRATEGY);
}
/** Whether hits read without references, so that frees wait for a grace period. */
export function table_is_deferring(table: usize): bool {
  return (table_strategy(table) & READERS_MASK) != READERS_REFCOUNT;
}

// The strategy as a compile-time constant on the hit path, at run time elsewhere.
// @ts-ignore: decorator
@inline
export function treelock_read(table: usize, strategy: i32): void {
  if ((strategy & TABLE_MASK) == TABLE_SPINLOCK) qspin_lock(table + TREELOCK);
  else read_lock(table + TREELOCK);
}
// @ts-ignore: decorator
@inline
export function treeunlock_read(table: usize, strategy: i32): void {
  if ((strategy & TABLE_MASK) == TABLE_SPINLOCK) qspin_unlock(table + TREELOCK);
  else read_unlock(table + TREELOCK);
}
/** Excludes readers under the lock; and, when it is to change the tree, tells those without. */
export function treelock_write(table: usize): void {
  const kind = table_strategy(table) & TABLE_MASK;
  if (kind == TABLE_SPINLOCK) qspin_lock(table + TREELOCK);
  else write_lock(table + TREELOCK);
  if (kind >= TABLE_RCU) write_seqcount_begin(table + SEQCOUNT);
}
export function treeunlock_write(table: usize): void {
  const kind = table_strategy(table) & TABLE_MASK;
  if (kind >= TABLE_RCU) write_seqcount_end(table + SEQCOUNT);
  if (kind == TABLE_SPINLOCK) qspin_unlock(table + TREELOCK);
  else write_unlock(table + TREELOCK);
}
export function table_tree(table: usize): usize {
  return table + TREE;
}

// Keys order by inode, then by offset.
// @ts-ignore: decorator
@inline
export function is_before(inode: usize, offset: i32, u: usize): bool {
  const other = <usize>load<u32>(u, UPROBE_INODE);
  return inode != other ? inode < other : offset < load<i32>(u, UPROBE_OFFSET);
}
// @ts-ignore: decorator
@inline
export function is_key(inode: usize, offset: i32, u: usize): bool {
  return offset == load<i32>(u, UPROBE_OFFSET) && inode == <usize>load<u32>(u, UPROBE_INODE);
}

// __find_uprobe: under treelock, or without (then see find_uprobe_rcu).
// @ts-ignore: decorator
@inline
function search(table: usize, inode: usize, offset: i32): usize {
  let n = <usize>load32(table + TREE);
  for (let steps = 0; n != 0; steps++) {
    if (is_key(inode, offset, n)) return n;
    n = is_before(inode, offset, n) ? rb_left(n) : rb_right(n);
    if (steps == STEPS_MOST) return 0; // an unlucky walk among rotations: a miss, tried again
  }
  return 0;
}

/** find_uprobe_rcu: the uprobe of a key, or 0. In a read section, which keeps it alive. */
// @ts-ignore: decorator
@inline
export function find_uprobe_rcu(table: usize, task: usize, inode: usize, offset: i32): usize {
  let u: usize;
  let seq: i32;
  do {
    seq = read_seqcount_begin(table + SEQCOUNT);
    u = search(table, inode, offset);
    if (u != 0) return u;
  } while (retry_slow(table, task, seq));
  return 0;
}

// A miss is the slow path: the count is looked at, and a repeated search counted.
function retry_slow(table: usize, task: usize, seq: i32): bool {
  if (!read_seqcount_retry(table + SEQCOUNT, seq)) return false;
  // plain: a counter of the executing task's own.
  if (task != 0) store<i64>(task, load<i64>(task, TASK_RETRIES) + 1, TASK_RETRIES);
  return true;
}

/** get_uprobe: one more reference on a uprobe that the caller knows to be alive. */
// @ts-ignore: decorator
@inline
export function get_uprobe(u: usize): void {
  if (!refcount_inc(u + REF)) raise_slow(FAULT_REFCOUNT);
}

/** put_uprobe: drops a reference; the last one makes it dead, and frees it. */
// @ts-ignore: decorator
@inline
export function put_uprobe(table: usize, u: usize): void {
  if (refcount_dec_and_test(u + REF)) free_uprobe_slow(table, u); // A
}

/**
 * try_get_uprobe: one more reference, unless the last one is gone (C17). In a read section, or with
 * treelock held.
 */
// @ts-ignore: decorator
@inline
export function try_get_uprobe(u: usize): bool {
  return refcount_inc_not_zero(u + REF); // C
}

// Out of the tree; treelock held for writing. Who takes it for active must not find it afterwards:
// the node is cleared last.
function erase_uprobe(table: usize, u: usize): void {
  if (!uprobe_is_active(u)) {
    raise_slow(FAULT_DOUBLE_ERASE);
    return;
  }
  rb_erase(table + TREE, u);
  add32(table + TABLE_IN_TREE, -1);
  rb_clear_node(u);
}

// Nobody holds a reference. By reference: nobody can find it any more either. In sections: hits
// that found it before may still read it, so it is freed after a grace period (C2).
function free_uprobe_slow(table: usize, u: usize): void {
  if (load<i32>(u, MAGIC) != UPROBE_MAGIC) raise_slow(FAULT_REFCOUNT); // freed twice
  if (!table_is_deferring(table)) {
    if (uprobe_is_active(u)) raise_slow(FAULT_REFCOUNT); // the tree still has it
    free_uprobe(table, u);
    return;
  }
  treelock_write(table);
  if (uprobe_is_active(u)) erase_uprobe(table, u); // B
  treeunlock_write(table);
  defer(table, u + RCU_HEAD, DEFERRED_UPROBE);
}

function free_uprobe(table: usize, u: usize): void {
  // plain: nobody holds it. All of it is poison, MAGIC too, so that who still reads it notices.
  memory.fill(u, <u8>UPROBE_FREED_MAGIC, UPROBE_BYTES);
  arena_free(<usize>load<u32>(table, TABLE_ARENA), u, UPROBE_BYTES);
  add32(table + TABLE_ALIVE, -1);
}

/** The grace period of a deferred uprobe is over. */
export function free_deferred_uprobe(table: usize, head: usize): void {
  free_uprobe(table, head - RCU_HEAD);
}

/**
 * call_rcu: `head` (8 bytes, in what is to be freed) is handed to the next reclaim: of who finds no
 * room, of the unregistration that waits anyway, or of the housekeeper, which looks once a second.
 * It is woken for large things only: who takes probes away in batches does not want it beside him.
 */
export function defer(table: usize, head: usize, kind: i32): void {
  store<i32>(head, kind, RCU_HEAD_KIND); // plain: the caller's own until it is pushed
  const first = call_rcu_push(table + DEFERRED, head);
  if (first && kind == DEFERRED_BREAKPOINTS) ring_housekeeper_slow();
}

/** Whether something waits to be freed after a grace period, and nobody has taken it yet. */
export function has_deferred(table: usize): bool {
  return load32(table + DEFERRED) != 0;
}
/** The same, or somebody has taken it: there will be room. */
export function has_unfreed(table: usize): bool {
  return has_deferred(table) || load32(table + RECLAIMING) != 0;
}

/** find_uprobe by reference: the uprobe of a key with a reference for the caller, or 0. */
// @ts-ignore: decorator
@inline
export function find_uprobe(table: usize, strategy: i32, inode: usize, offset: i32): usize {
  treelock_read(table, strategy);
  const u = search(table, inode, offset);
  if (u != 0) get_uprobe(u);
  treeunlock_read(table, strategy);
  return u;
}

/** The same by any strategy: a dead uprobe is not found. */
export function find_live_uprobe(table: usize, inode: usize, offset: i32): usize {
  const strategy = table_strategy(table);
  if (!table_is_deferring(table)) return find_uprobe(table, strategy, inode, offset);
  treelock_read(table, strategy);
  const u = search(table, inode, offset);
  const found = u != 0 && try_get_uprobe(u);
  treeunlock_read(table, strategy);
  return found ? u : 0;
}

/** Leftmost uprobe of the inode with offset >= `offset`, or 0; treelock held. */
export function first_at_or_after(table: usize, inode: usize, offset: i32): usize {
  let n = <usize>load32(table + TREE);
  let best: usize = 0;
  while (n != 0) {
    if (is_before(inode, offset, n) || is_key(inode, offset, n)) {
      best = n;
      n = rb_left(n);
    } else {
      n = rb_right(n);
    }
  }
  return best != 0 && <usize>load<u32>(best, UPROBE_INODE) == inode ? best : 0;
}

/** uprobe_is_active: still in the tree. */
export function uprobe_is_active(u: usize): bool {
  return !rb_empty_node(u);
}

/** True if no further uprobe may be made, whatever the arena has. */
export function uprobe_limit_reached(table: usize): bool {
  return load32(table + TABLE_ALIVE) >= load<i32>(table, MAX);
}

// A uprobe that nobody knows yet, or 0: the table or the arena is full.
function make_uprobe(table: usize, inode: usize, offset: i32, ref_ctr: i32): usize {
  if (add32(table + TABLE_ALIVE, 1) >= load<i32>(table, MAX)) {
    add32(table + TABLE_ALIVE, -1);
    return 0;
  }
  const u = arena_alloc(<usize>load<u32>(table, TABLE_ARENA), UPROBE_BYTES);
  if (u == 0) {
    add32(table + TABLE_ALIVE, -1);
    return 0;
  }
  store<u32>(u, <u32>inode, UPROBE_INODE);
  store<i32>(u, offset, UPROBE_OFFSET);
  store<i32>(u, ref_ctr, UPROBE_REF_CTR);
  store<i32>(u, UPROBE_MAGIC, MAGIC);
  rwsem_init(u + REGISTER_RWSEM);
  rwsem_init(u + CONSUMER_RWSEM);
  rb_clear_node(u);
  refcount_set(u + REF, table_is_deferring(table) ? 1 : 2);
  return u;
}

/**
 * alloc_uprobe: the uprobe of a key with a reference for the caller; made and inserted if there is
 * none (by reference, the tree has one on it too). 0: the table or the arena is full; the caller
 * tells which by uprobe_limit_reached. `ref_ctr` is of a new one: the caller looks what it has got.
 */
export function alloc_uprobe(table: usize, inode: usize, offset: i32, ref_ctr: i32): usize {
  const u = make_uprobe(table, inode, offset, ref_ctr);
  // Full for new keys; an existing key still takes consumers.
  if (u == 0) return find_live_uprobe(table, inode, offset);
  const cur = insert_uprobe(table, u, inode, offset);
  if (cur != u) {
    arena_free(<usize>load<u32>(table, TABLE_ARENA), u, UPROBE_BYTES);
    add32(table + TABLE_ALIVE, -1);
  }
  return cur;
}

// A reference on what an insertion has found, unless it is dead.
function get_equal(table: usize, u: usize): bool {
  if (table_is_deferring(table)) return try_get_uprobe(u);
  get_uprobe(u);
  return true;
}

// Inserts `u`, or takes a reference on the uprobe that already has the key and returns that. A dead
// one that has it makes room (D): all in one write section, so that no search finds neither.
function insert_uprobe(table: usize, u: usize, inode: usize, offset: i32): usize {
  treelock_write(table);
  let link = table + TREE;
  let parent: usize = 0;
  for (let n = <usize>load32(link); n != 0; n = <usize>load32(link)) {
    if (is_key(inode, offset, n)) {
      if (get_equal(table, n)) {
        treeunlock_write(table);
        return n;
      }
      erase_uprobe(table, n);
      link = table + TREE; // the tree has changed: from the root again
      parent = 0;
      continue;
    }
    parent = n;
    link = is_before(inode, offset, n) ? rb_left_link(n) : rb_right_link(n);
  }
  rb_link_node(u, parent, link);
  rb_insert_color(table + TREE, u);
  add32(table + TABLE_IN_TREE, 1);
  treeunlock_write(table);
  return u;
}

/** delete_uprobe, by reference: out of the tree, and its reference with it. register_rwsem held. */
export function delete_uprobe(table: usize, u: usize): void {
  treelock_write(table);
  erase_uprobe(table, u);
  treeunlock_write(table);
  put_uprobe(table, u);
}
