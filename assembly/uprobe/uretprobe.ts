// Return probes: the return address of a probed call is hijacked, so that the return traps too.
//
// Entry (prepare_uretprobe), after the consumers: one of them wants the return
//   1  frames that a longjmp left behind are dropped: their stack pointers say so
//   2  no more than RETURNS_MAX pending (C20); what does not fit is counted
//   3  the address on the stack is swapped for TRAMPOLINE; a tail call finds that there already,
//      and shares the original address of the call before it ("chained")
//   4  the uprobe is kept alive until the return: by a reference, or by a lease (hprobe.ts), whose
//      fence [B] comes after all that the timer reads of the instance
//   5  the instance is [A] published at the head of the task's list
// Return (handle_trampoline), the breakpoint that every hijacked return meets:
//   6  the task goes on at the original address; all instances of the chain are popped [C], their
//      uprobes consumed [D] (a locked operation), their consumers run, the lease or reference ended
//   7  and freed: after a grace period, or, with RETURN_POOL, reused at once if [E] no timer is
//      walking (C21)
// Timer (ri_timer.ts): raises the sequence [F] to odd, a fence, [G] follows the list. Nobody arms
// it: a round looks at every task's list, so that no lease is left to itself. Forbidden: what G
// finds is not yet written (B before A, A before G).
// Forbidden: an instance in the pool while a walk may stand on it. If E missed F, then the walk's G
// came after D, so after C: it cannot find the instance. What E sees odd waits for a grace period,
// and the walk is in a read section.
//
// plain: `RI_*` as in return_instance.ts. `RETURN_*`, `TASK_*`, `UTASK_*`, and its stack (`sp`):
// the executing task's own; A: see B. `MAGIC` of a uprobe that is held. `CONSUMER_*` never change
// once published. `HDR_*` is read-only.

import { CONSUMER_KIND, CONSUMER_ID, CONSUMER_NEXT, uretprobe_dispatcher } from "./consumer";
import { CONSUMER_RETURN, CONSUMER_SESSION, FAULT_RETURN, HDR_ARENA, RETURN_MASK } from "../layout";
import { FAULT_UPROBE_FREED, UPROBE_MAGIC } from "../layout";
import {
  READERS_MASK,
  READERS_REFCOUNT,
  RETURN_POOL,
  RETURN_REFCOUNT,
  RETURNS_MAX,
} from "../layout";
import { RETURN_SECTION, TASK_IP, TASK_RETURN_DEPTH, TASK_RETURN_ENTRIES } from "../layout";
import { TASK_RETURN_FILTERED, TASK_RETURN_GONE, TASK_RETURN_LONGJMP } from "../layout";
import { TASK_RETURN_MEMORY, TASK_RETURN_NO_CONSUMER, TASK_RETURN_PENDING } from "../layout";
import { TASK_RETURN_RING_FULL, TASK_RETURNS, TASK_SP, TRAMPOLINE } from "../layout";
import { load32, store32 } from "../atomics";
import { arena_free } from "../mm/arena";
import { down_read, up_read } from "../sync/rwsem";
import { raise_slow, this_engine } from "./fault";
import { HPROBE_LEASED, HPROBE_STABLE, HPROBE_UNUSED, hprobe_consume } from "./hprobe";
import { hprobe_finalize, hprobe_init_leased, hprobe_init_stable, hprobe_settle } from "./hprobe";
import { readers_enter, readers_exit } from "./readers";
import { ri_alloc, RI_BYTES, RI_CHAINED, RI_COOKIE, ri_free, ri_free_rcu } from "./return_instance";
import { RETURN_STACK_BYTES, RI_FUNC, RI_MORE, RI_NEXT, ri_of_stack } from "./return_instance";
import { RI_ORIG, RI_SESSION, ri_share } from "./return_instance";
import { RI_STACK, RI_STATE, RI_UPROBE } from "./return_instance";
import { RC_HANDLED, RC_LOST } from "./sink";
import { CONSUMERS, get_uprobe, MAGIC, REGISTER_RWSEM, try_get_uprobe } from "./table";
import { RETURN_INSTANCES, RETURN_POOL_AT, RETURN_SEQ, RETURN_STACK } from "./task";
import { UTASK_COOKIE, UTASK_VADDR } from "./task";

/** In return_consumers' answer: there was a consumer to ask. */
const SEEN: i32 = 1 << 16;
/** want_return: no memory for an instance; prepare_uretprobe counts it. */
const NO_MEMORY: usize = 1;

// @ts-ignore: decorator
@inline
function count(task: usize, counter: i32): void {
  const at = task + <usize>counter;
  store<i64>(at, load<i64>(at) + 1); // plain: the executing task's own
}

// -- Instances -----------------------------------------------------------------------------------

// alloc_return_instance: from where the strategy keeps them; 0: there is no memory.
// @ts-ignore: decorator
@inline
function alloc_instance(strategy: i32, task: usize): usize {
  const kind = strategy & RETURN_MASK;
  if (kind == RETURN_SECTION) {
    return ri_of_stack(task, load<i32>(task, TASK_RETURN_PENDING));
  }
  if (kind == RETURN_POOL) {
    const ri = <usize>load<u32>(task, RETURN_POOL_AT);
    if (ri != 0) {
      store<u32>(task, load<u32>(ri, RI_NEXT), RETURN_POOL_AT);
      store<i32>(ri, 0, RI_SESSION);
      store<u32>(ri, 0, RI_MORE);
      return ri;
    }
  }
  return ri_alloc();
}

// The further sessions of a call; nobody else ever looks at them.
function free_more_slow(ri: usize): void {
  let more = <usize>load<u32>(ri, RI_MORE);
  while (more != 0) {
    const next = <usize>load<u32>(more, RI_MORE);
    ri_free(more);
    more = next;
  }
}

// free_ret_instance: unlinked, and its state consumed.
// @ts-ignore: decorator
@inline
function free_instance(strategy: i32, task: usize, ri: usize): void {
  const kind = strategy & RETURN_MASK;
  if (load<u32>(ri, RI_MORE) != 0) free_more_slow(ri);
  if (kind == RETURN_SECTION) return;
  if (kind == RETURN_REFCOUNT) {
    ri_free(ri); // there is no timer
  } else if (kind == RETURN_POOL && (load32(task + RETURN_SEQ) & 1) == 0) {
    // E
    store<i32>(ri, HPROBE_UNUSED, RI_STATE);
    store<u32>(ri, load<u32>(task, RETURN_POOL_AT), RI_NEXT);
    store<u32>(task, <u32>ri, RETURN_POOL_AT);
  } else {
    ri_free_rcu(ri);
  }
}

// An instance that was allocated and never linked.
// @ts-ignore: decorator
@inline
function discard_instance(strategy: i32, task: usize, ri: usize): void {
  const kind = strategy & RETURN_MASK;
  if (load<u32>(ri, RI_MORE) != 0) free_more_slow(ri);
  if (kind == RETURN_SECTION) store<i32>(ri, 0, RI_SESSION);
  else ri_free(ri);
}

// -- Entry ---------------------------------------------------------------------------------------

/**
 * A consumer wants the return of this call. `ri`: what the last one got, 0 for the first. A session
 * keeps the cookie that its entry handler left in UTASK_COOKIE.
 */
// @ts-ignore: decorator
@inline
export function want_return(strategy: i32, task: usize, ri: usize, c: usize): usize {
  if (ri == 0) {
    ri = alloc_instance(strategy, task);
    if (ri == 0) return NO_MEMORY;
    if ((strategy & RETURN_MASK) == RETURN_SECTION) {
      store<i32>(ri, 0, RI_SESSION);
      store<u32>(ri, 0, RI_MORE);
    }
  }
  if (load<i32>(c, CONSUMER_KIND) == CONSUMER_SESSION && ri != NO_MEMORY) {
    push_session_slow(ri, load<i32>(c, CONSUMER_ID), load<i64>(task, UTASK_COOKIE));
  }
  return ri;
}

// push_consumer. Without memory for a further session its return is not seen, as the kernel's.
function push_session_slow(ri: usize, id: i32, cookie: i64): void {
  let at = ri;
  if (load<i32>(ri, RI_SESSION) != 0) {
    at = ri_alloc();
    if (at == 0) return;
    store<u32>(at, load<u32>(ri, RI_MORE), RI_MORE);
    store<u32>(ri, <u32>at, RI_MORE);
  }
  store<i32>(at, id, RI_SESSION);
  store<i64>(at, cookie, RI_COOKIE);
}

// return_consumer_find: where the cookie of a consumer's session is, or 0.
function find_session_slow(ri: usize, id: i32): usize {
  for (let at = ri; at != 0; at = <usize>load<u32>(at, RI_MORE)) {
    if (load<i32>(at, RI_SESSION) == id) return at + RI_COOKIE;
  }
  return 0;
}

// Ends one instance whose return will not come.
function drop_instance(strategy: i32, table: usize, task: usize, ri: usize): void {
  store32(task + RETURN_INSTANCES, load<i32>(ri, RI_NEXT)); // C
  store<i32>(task, load<i32>(task, TASK_RETURN_PENDING) - 1, TASK_RETURN_PENDING);
  hprobe_finalize(strategy, table, ri, hprobe_consume(strategy, ri)); // D
  free_instance(strategy, task, ri);
  count(task, TASK_RETURN_LONGJMP);
}

// cleanup_return_instances: a frame is alive while the stack is deeper than at its entry; a tail
// call has the same depth as the call before it.
// @ts-ignore: decorator
@inline
function cleanup_instances(
  strategy: i32,
  table: usize,
  task: usize,
  chained: bool,
  sp: usize,
): void {
  let ri = <usize>load<u32>(task, RETURN_INSTANCES);
  while (ri != 0) {
    const stack = <usize>load<u32>(ri, RI_STACK);
    if (sp < stack || (chained && sp == stack)) break;
    const next = <usize>load<u32>(ri, RI_NEXT);
    drop_instance(strategy, table, task, ri);
    ri = next;
  }
}

/**
 * The consumers of `u` have run, and one wants the return; the task's registers are as at the
 * function's entry. `ri`: from want_return.
 */
// @ts-ignore: decorator
@inline
export function prepare_uretprobe(
  strategy: i32,
  table: usize,
  task: usize,
  u: usize,
  ri: usize,
): void {
  count(task, TASK_RETURN_ENTRIES);
  if (ri == NO_MEMORY) {
    count(task, TASK_RETURN_MEMORY);
    return;
  }
  const sp = <usize>load<i64>(task, TASK_SP);
  let orig = load<u32>(sp);
  const chained = orig == TRAMPOLINE;
  const was_pending = load<i32>(task, TASK_RETURN_PENDING);
  // The kernel looks at the depth first, and goes on refusing frames that were left for good.
  if (was_pending != 0) cleanup_instances(strategy, table, task, chained, sp);
  const pending = load<i32>(task, TASK_RETURN_PENDING);
  const newest = <usize>load<u32>(task, RETURN_INSTANCES);
  if (pending >= RETURNS_MAX) {
    count(task, TASK_RETURN_DEPTH);
    discard_instance(strategy, task, ri);
    return;
  }
  if (chained) {
    if (newest == 0) {
      // Nobody hijacked it: the program itself jumps to the trampoline.
      raise_slow(FAULT_RETURN);
      count(task, TASK_RETURN_GONE);
      discard_instance(strategy, task, ri);
      return;
    }
    orig = load<u32>(newest, RI_ORIG);
  }
  if ((strategy & RETURN_MASK) == RETURN_SECTION && pending != was_pending) {
    // Frames were dropped below the place that this one was given.
    ri = move_instance_slow(task, ri, pending);
  }
  if ((strategy & RETURN_MASK) == RETURN_REFCOUNT) {
    // The kernel's: a reference that the caller, who holds one, or its section makes safe.
    if ((strategy & READERS_MASK) == READERS_REFCOUNT) {
      get_uprobe(u);
      hprobe_init_stable(ri, u);
    } else {
      hprobe_init_stable(ri, try_get_uprobe(u) ? u : 0);
    }
  }
  store<i64>(sp, <i64>TRAMPOLINE);
  store<u32>(ri, <u32>load<i64>(task, TASK_IP), RI_FUNC);
  store<u32>(ri, <u32>sp, RI_STACK);
  store<u32>(ri, orig, RI_ORIG);
  store<i32>(ri, chained ? 1 : 0, RI_CHAINED);
  store<u32>(ri, <u32>newest, RI_NEXT);
  store<i32>(task, pending + 1, TASK_RETURN_PENDING);
  if ((strategy & RETURN_MASK) != RETURN_REFCOUNT) hprobe_init_leased(strategy, ri, u); // B
  store<u32>(task, <u32>ri, RETURN_INSTANCES); // A
}

// The array of a RETURN_SECTION task is a stack: the newest instance is at the place of its depth.
function move_instance_slow(task: usize, from: usize, depth: i32): usize {
  const to = ri_of_stack(task, depth);
  if (to != from) memory.copy(to, from, RI_BYTES); // plain: `task`'s own
  return to;
}

// -- Return --------------------------------------------------------------------------------------

// handle_uretprobe_chain's walk: RC_ bits of all who wanted it.
// @ts-ignore: decorator
@inline
function return_consumers(strategy: i32, u: usize, ri: usize, task: usize): i32 {
  let any = 0;
  for (let c = <usize>load32(u + CONSUMERS); c != 0; c = <usize>load32(c + CONSUMER_NEXT)) {
    const kind = load<i32>(c, CONSUMER_KIND);
    if ((kind & CONSUMER_RETURN) == 0) continue;
    let cookie: usize = 0;
    if (kind == CONSUMER_SESSION) {
      cookie = find_session_slow(ri, load<i32>(c, CONSUMER_ID));
      if (cookie == 0) continue; // its entry did not want the return, or was before its time
    }
    any |= uretprobe_dispatcher(strategy, c, task, cookie) | SEEN;
  }
  return any;
}
// @ts-ignore: decorator
@inline
function handle_uretprobe_chain(strategy: i32, u: usize, ri: usize, task: usize): i32 {
  if ((strategy & READERS_MASK) == READERS_REFCOUNT) {
    down_read(u + REGISTER_RWSEM);
    const rc = return_consumers(strategy, u, ri, task);
    up_read(u + REGISTER_RWSEM);
    return rc;
  }
  const idx = readers_enter(strategy);
  const rc = return_consumers(strategy, u, ri, task);
  readers_exit(strategy, idx);
  return rc;
}

/** Counts how a return ended that its instance's consumers were asked about. */
function count_return_slow(task: usize, rc: i32): void {
  if (rc == 0) count(task, TASK_RETURN_NO_CONSUMER);
  else if ((rc & RC_LOST) != 0) count(task, TASK_RETURN_RING_FULL);
  else count(task, TASK_RETURN_FILTERED);
}

// The first instance behind those that share an original address with `ri`, or 0.
// @ts-ignore: decorator
@inline
function next_chain(ri: usize): usize {
  while (load<i32>(ri, RI_CHAINED) != 0) ri = <usize>load<u32>(ri, RI_NEXT);
  return <usize>load<u32>(ri, RI_NEXT);
}

/**
 * handle_trampoline: the task has returned to TRAMPOLINE; its sp is above the return address.
 * Afterwards its ip is where the call came from. Outside of every read section.
 */
// @ts-ignore: decorator
@inline
export function handle_trampoline(strategy: i32, table: usize, task: usize): void {
  const sp = <usize>load<i64>(task, TASK_SP);
  let ri = <usize>load<u32>(task, RETURN_INSTANCES);
  let valid = false;
  while (!valid) {
    if (ri == 0) {
      raise_slow(FAULT_RETURN);
      return;
    }
    // Frames that a longjmp left behind go first: a chain is this return's own if the next one is
    // still alive.
    const after = next_chain(ri);
    valid = after == 0 || sp <= <usize>load<u32>(after, RI_STACK);
    store<i64>(task, <i64>load<u32>(ri, RI_ORIG), TASK_IP);
    while (ri != after) {
      const next = <usize>load<u32>(ri, RI_NEXT);
      if (valid) finish_instance(strategy, table, task, ri);
      else drop_instance(strategy, table, task, ri);
      ri = next;
    }
  }
}

// @ts-ignore: decorator
@inline
function finish_instance(strategy: i32, table: usize, task: usize, ri: usize): void {
  store<u32>(task, load<u32>(ri, RI_NEXT), RETURN_INSTANCES); // C, ordered by D
  store<i32>(task, load<i32>(task, TASK_RETURN_PENDING) - 1, TASK_RETURN_PENDING);
  store<u32>(task, load<u32>(ri, RI_FUNC), UTASK_VADDR);
  const state = hprobe_consume(strategy, ri); // D
  if (state == HPROBE_LEASED || state == HPROBE_STABLE) {
    const u = <usize>load<u32>(ri, RI_UPROBE);
    if (load<i32>(u, MAGIC) != UPROBE_MAGIC) raise_slow(FAULT_UPROBE_FREED);
    const rc = handle_uretprobe_chain(strategy, u, ri, task);
    if ((rc & RC_HANDLED) != 0) count(task, TASK_RETURNS);
    else count_return_slow(task, rc);
  } else {
    count(task, TASK_RETURN_GONE);
  }
  hprobe_finalize(strategy, table, ri, state);
  free_instance(strategy, task, ri);
}

// -- Tasks ---------------------------------------------------------------------------------------

/**
 * Before a CPU says that it holds nothing: the leases of its read section become references
 * (RETURN_SECTION; nothing otherwise). Older ones were settled before.
 */
// @ts-ignore: decorator
@inline
export function returns_settle(strategy: i32, task: usize): void {
  if ((strategy & RETURN_MASK) != RETURN_SECTION) return;
  if (load<i32>(task, TASK_RETURN_PENDING) != 0) settle_slow(task);
}

function settle_slow(task: usize): void {
  let ri = <usize>load<u32>(task, RETURN_INSTANCES);
  while (ri != 0 && load<i32>(ri, RI_STATE) == HPROBE_LEASED) {
    hprobe_settle(ri);
    ri = <usize>load<u32>(ri, RI_NEXT);
  }
}

/**
 * uprobe_free_utask: ends all pending returns of a task that nobody executes, and that is in no
 * list any more, and frees what it has for others. On any CPU.
 */
export function returns_free(strategy: i32, table: usize, task: usize): void {
  let ri = <usize>load<u32>(task, RETURN_INSTANCES);
  while (ri != 0) {
    const next = <usize>load<u32>(ri, RI_NEXT);
    drop_instance(strategy, table, task, ri);
    ri = next;
  }
  ri = <usize>load<u32>(task, RETURN_POOL_AT);
  while (ri != 0) {
    const next = <usize>load<u32>(ri, RI_NEXT);
    ri_free(ri);
    ri = next;
  }
  store<u32>(task, 0, RETURN_POOL_AT);
  const stack = <usize>load<u32>(task, RETURN_STACK);
  const arena = <usize>load<u32>(this_engine(), HDR_ARENA);
  if (stack != 0) arena_free(arena, stack, RETURN_STACK_BYTES);
  store<u32>(task, 0, RETURN_STACK);
  ri_share();
}
