// Return instances: what a task remembers of a call whose return is probed, and where the memory
// for it comes from.
//
// return_instance, 64 bytes
//   offset  bytes  content
//        0      4  next, older one of the same task; the lease timer follows it without a lock
//        4      4  state of its hprobe (uprobe/hprobe.ts)
//        8      4  uprobe, alive as the state says
//       12      4  idx of the lease (SRCU)
//       16     12  function's address; sp at its entry; where it returns to
//       28      4  chained: a tail call, which shares that address with the next one
//       32      4  consumer whose session this is; 0: none
//       36      4  more sessions of the same call: further objects of this size, or 0
//       40      8  the session's cookie
//       52     12  while it waits to be freed: next bulk; next in its bulk, or in a free list (a
//                  place of its own: the timer may still stand on it, and follows `next`); the
//                  bulk's grace period
//
// Per CPU, at PCPU_RETURNS: a slab cache as the kernel's kmalloc is to a hit, and kfree_rcu. What
// one CPU frees, it allocates again; what it has too many of, since calls return or tasks end here
// that began elsewhere, others take from a list of spare ones in the table. It is a stack: [A]
// pushed a chain at a time, [B] taken whole.
//   offset  bytes  content
//        0      4  free list
//        4      8  open bulk of those that wait for a grace period, and its length
//       12     12  oldest, newest closed bulk; instances in closed ones
//       24      4  instances made on this CPU
//       28      4  newest of the bulks whose grace period is over
//       32      8  how many bulks are over; instances that came to the free list since somebody
//                  looked how long it is
//
// kfree_rcu gathers BULK instances (the kernel's array fills a page, too), then begins a grace
// period for all of them, and looks for its end when the free list is empty. Nobody waits for it,
// unless so many wait that the memory would grow without bound. As from a slab, what was freed last
// is used first: after one long grace period the CPU does not go through all its memory in turn.
//
// plain: `block`: the CPU's own. `FREE_NEXT`, `BULK_*`: only read by the CPU that has it. `ri`: in
// its CPU's hands, nobody else knows it. `task`: the executing task's own.
//
// An instance is its owner's alone before uretprobe.ts publishes it and after its grace period; in
// between what the timer reads of it never changes, but for the state.

import { HDR_ARENA, HDR_RCU, HDR_TABLE, PCPU_RETURNS, RETURN_INSTANCE_BYTES } from "../layout";
import { RETURNS_MADE, RETURNS_MAX, RETURNS_SLAB } from "../layout";
import { cas32, load32, xchg32 } from "../atomics";
import { per_cpu_ptr, this_cpu_ptr } from "../cpu";
import { arena_alloc } from "../mm/arena";
import { poll_state_synchronize_rcu, start_poll_synchronize_rcu } from "../rcu/tasks_trace";
import { rcu_is_reading, synchronize_rcu_tasks_trace } from "../rcu/tasks_trace";
import { this_engine } from "./fault";
import { RETURNS_SPARE } from "./table";
import { RETURN_STACK } from "./task";

export const RI_NEXT = 0;
export const RI_STATE = 4;
export const RI_UPROBE = 8;
export const RI_SRCU = 12;
export const RI_FUNC = 16;
export const RI_STACK = 20;
export const RI_ORIG = 24;
export const RI_CHAINED = 28;
export const RI_SESSION = 32;
export const RI_MORE = 36;
export const RI_COOKIE = 40;
const BULK_NEXT = 52;
const FREE_NEXT = 56;
const BULK_PERIOD = 60;
export const RI_BYTES = RETURN_INSTANCE_BYTES;
/** The state of an instance that is no call's: the timer never meets one (C21). */
export const RI_UNUSED = 4;

const FREE = 0;
const OPEN = 4;
const OPEN_LENGTH = 8;
const OLDEST = 12;
const NEWEST = 16;
const CLOSED = 20;
const MADE = RETURNS_MADE;
const READY = 28;
const READY_LENGTH = 32;
const FREED = 36;

/** A place for each pending return, and one for the call that may turn out to be one too many. */
export const RETURN_STACK_BYTES: i32 = (RETURNS_MAX + 1) * RI_BYTES;

/** KVFREE_BULK_MAX_ENTR: pointers that fit the kernel's page of them. */
const BULK = 506;
/** Instances made at once. */
const SLAB = RETURNS_SLAB;
/** Instances of one CPU that may wait for grace periods; 4 MiB. */
const WAITING_MOST = 65_536;
/** Free ones that a CPU keeps to itself; 256 KiB. */
const FREE_MOST = 4096;
/** Bulks likewise; more are not in use where calls return on the CPU that they began on. */
const READY_MOST = WAITING_MOST / BULK;

// @ts-ignore: decorator
@inline
function spare_at(): usize {
  return <usize>load<u32>(this_engine(), HDR_TABLE) + RETURNS_SPARE; // plain: read-only
}

// The newest bulk whose grace period is over becomes the free list, or what is spare; else a slab
// is made.
function refill_slow(block: usize): bool {
  const bulk = take_newest(block);
  store<u32>(block, <u32>bulk, FREE);
  if (bulk != 0) return true;
  if (load32(spare_at()) != 0) {
    const chain = xchg32(spare_at(), 0); // B
    store<i32>(block, chain, FREE);
    if (chain != 0) return true;
  }
  const arena = <usize>load<u32>(this_engine() + HDR_ARENA); // plain: read-only
  const slab = arena_alloc(arena, SLAB * RI_BYTES);
  if (slab == 0) return false;
  store<i32>(block, load<i32>(block, MADE) + SLAB, MADE);
  for (let i = 0; i < SLAB; i++) ri_free(slab + <usize>(i * RI_BYTES));
  return true;
}

/** A task has ended on this CPU, which keeps no more than SLAB free instances. */
export function ri_share(): void {
  const block = this_cpu_ptr(PCPU_RETURNS);
  share_free_slow(block, SLAB);
  for (let bulk = take_newest(block); bulk != 0; bulk = take_newest(block)) push_spare(<i32>bulk);
}

// The CPU keeps the `most` that were freed last.
function share_free_slow(block: usize, most: i32): void {
  store<i32>(block, 0, FREED);
  let last = <usize>load<u32>(block, FREE);
  for (let n = 1; n < most && last != 0; n++) last = <usize>load<u32>(last, FREE_NEXT);
  if (last == 0) return;
  const chain = load<i32>(last, FREE_NEXT);
  store<i32>(last, 0, FREE_NEXT);
  if (chain != 0) push_spare(chain);
}

function push_spare(chain: i32): void {
  let last = <usize>(<u32>chain);
  while (load<u32>(last, FREE_NEXT) != 0) last = <usize>load<u32>(last, FREE_NEXT);
  let first = load32(spare_at());
  while (true) {
    store<i32>(last, first, FREE_NEXT); // plain: this CPU's until A succeeds
    const before = cas32(spare_at(), first, chain); // A
    if (before == first) return;
    first = before;
  }
}

// The newest closed bulk whose grace period is over, or 0.
function take_newest(block: usize): usize {
  look_for_ends(block);
  const bulk = <usize>load<u32>(block, READY);
  if (bulk == 0) return 0;
  store<u32>(block, load<u32>(bulk, BULK_NEXT), READY);
  store<i32>(block, load<i32>(block, READY_LENGTH) - 1, READY_LENGTH);
  return bulk;
}

function look_for_ends(block: usize): void {
  while (is_oldest_over(block)) oldest_is_ready(block);
}

function is_oldest_over(block: usize): bool {
  const bulk = <usize>load<u32>(block, OLDEST);
  if (bulk == 0) return false;
  return poll_state_synchronize_rcu(this_engine() + HDR_RCU, load<i32>(bulk, BULK_PERIOD));
}

function oldest_is_ready(block: usize): void {
  const bulk = <usize>load<u32>(block, OLDEST);
  store<u32>(block, load<u32>(bulk, BULK_NEXT), OLDEST);
  store<i32>(block, load<i32>(block, CLOSED) - BULK, CLOSED);
  store<u32>(bulk, load<u32>(block, READY), BULK_NEXT);
  store<u32>(block, <u32>bulk, READY);
  store<i32>(block, load<i32>(block, READY_LENGTH) + 1, READY_LENGTH);
}

/** A zeroed instance, or 0: the arena is full. */
// @ts-ignore: decorator
@inline
export function ri_alloc(): usize {
  const block = this_cpu_ptr(PCPU_RETURNS);
  let ri = <usize>load<u32>(block, FREE);
  if (ri == 0) {
    if (!refill_slow(block)) return 0;
    ri = <usize>load<u32>(block, FREE);
  }
  store<u32>(block, load<u32>(ri, FREE_NEXT), FREE);
  memory.fill(ri, 0, RI_BYTES);
  store<i32>(ri, RI_UNUSED, RI_STATE);
  return ri;
}

/** kfree: nobody can be looking at it. */
// @ts-ignore: decorator
@inline
export function ri_free(ri: usize): void {
  const block = this_cpu_ptr(PCPU_RETURNS);
  store<i32>(ri, RI_UNUSED, RI_STATE);
  store<u32>(ri, load<u32>(block, FREE), FREE_NEXT);
  store<u32>(block, <u32>ri, FREE);
  const freed = load<i32>(block, FREED) + 1;
  store<i32>(block, freed, FREED);
  if (freed == FREE_MOST) share_free_slow(block, FREE_MOST);
}

/**
 * kfree_rcu: the lease timer may be looking at it; unlinked, and a locked operation since. In a
 * read section it never waits.
 */
// @ts-ignore: decorator
@inline
export function ri_free_rcu(ri: usize): void {
  const block = this_cpu_ptr(PCPU_RETURNS);
  store<u32>(ri, load<u32>(block, OPEN), FREE_NEXT);
  store<u32>(block, <u32>ri, OPEN);
  const length = load<i32>(block, OPEN_LENGTH) + 1;
  store<i32>(block, length, OPEN_LENGTH);
  if (length == BULK) close_bulk_slow(block, ri);
}

function close_bulk_slow(block: usize, bulk: usize): void {
  store<i32>(bulk, start_poll_synchronize_rcu(this_engine() + HDR_RCU), BULK_PERIOD);
  store<u32>(bulk, 0, BULK_NEXT);
  const oldest = load<u32>(block, OLDEST);
  if (oldest == 0) store<u32>(block, <u32>bulk, OLDEST);
  else store<u32>(<usize>load<u32>(block, NEWEST), <u32>bulk, BULK_NEXT); // plain: BULK_NEXT
  store<u32>(block, <u32>bulk, NEWEST);
  store<u32>(block, 0, OPEN);
  store<i32>(block, 0, OPEN_LENGTH);
  const closed = load<i32>(block, CLOSED) + BULK;
  store<i32>(block, closed, CLOSED);
  if (closed > WAITING_MOST && !rcu_is_reading()) wait_slow(block);
  look_for_ends(block);
  while (load<i32>(block, READY_LENGTH) > READY_MOST) push_spare(<i32>take_newest(block));
}

// So many wait that some CPU must be slow to say that it is quiet, or says nothing at all: it is
// waited for as an updater waits. All closed bulks began their grace periods before, so that they
// are free now. In a section (a longjmp is noticed in the hit of the next call) the next bulk does.
function wait_slow(block: usize): void {
  synchronize_rcu_tasks_trace(this_engine() + HDR_RCU);
  while (load<u32>(block, OLDEST) != 0) oldest_is_ready(block);
}

/** The instance of the `depth`-th pending return, where they are an array; or 0. */
// @ts-ignore: decorator
@inline
export function ri_of_stack(task: usize, depth: i32): usize {
  let stack = <usize>load<u32>(task, RETURN_STACK);
  if (stack == 0) stack = make_stack_slow(task);
  return stack != 0 ? stack + <usize>(depth * RI_BYTES) : 0;
}

function make_stack_slow(task: usize): usize {
  const arena = <usize>load<u32>(this_engine() + HDR_ARENA); // plain: read-only
  const stack = arena_alloc(arena, RETURN_STACK_BYTES);
  store<u32>(task, <u32>stack, RETURN_STACK);
  return stack;
}

function list_length(first: usize): i32 {
  let n = 0;
  for (let ri = first; ri != 0; ri = <usize>load<u32>(ri, FREE_NEXT)) n++; // plain: see ri_missing
  return n;
}

function bulks_length(first: usize): i32 {
  let n = 0;
  let bulk = first;
  while (bulk != 0) {
    n += list_length(bulk);
    bulk = <usize>load<u32>(bulk, BULK_NEXT); // plain: see ri_missing
  }
  return n;
}

/**
 * Instances that were made and are neither free nor wait to be: those in use by tasks, or lost.
 * While no CPU runs. plain: then nobody else looks at their blocks.
 */
export function ri_missing(cpus: i32): i32 {
  let missing = -list_length(<usize>load32(spare_at()));
  for (let cpu = 0; cpu < cpus; cpu++) {
    const block = per_cpu_ptr(PCPU_RETURNS, cpu);
    missing += load<i32>(block, MADE) - list_length(<usize>load<u32>(block, FREE));
    missing -= list_length(<usize>load<u32>(block, OPEN));
    missing -= bulks_length(<usize>load<u32>(block, OLDEST));
    missing -= bulks_length(<usize>load<u32>(block, READY));
  }
  return missing;
}
