// Consumers: who wants the hits of a uprobe, and where the hits go.
//
// consumer (struct uprobe_consumer inside struct trace_uprobe, 192 bytes)
//   offset  bytes  content
//        0      4  next consumer of the same uprobe
//        4      4  CONSUMER_MAGIC; CONSUMER_DEAD_MAGIC once unregistered
//        8      8  sink, uprobe
//       16      4  filter_mm: only this address space gets the breakpoint; 0 any
//       20      8  limited (0, 1), then hits still wanted: "remove after N"
//       28      8  where CPU 0's nhit is, and its chunk, with NHIT_PERCPU (mm/slots.ts)
//       36      4  cookie: what its handler is told about which probe was hit
//       40     12  kind (CONSUMER_), sink of its returns, id (uc->id: never another's)
//       64      4  nhit (tu->nhit): shared, on the line after the links as in the kernel
//      128     16  filter rwlock, then filter_task: only this task's hits count; 0 any
//
// The list of a uprobe is changed under register_rwsem and consumer_rwsem, both for writing, and
// walked by filter_chain under consumer_rwsem, by hits under register_rwsem or in a read section: a
// consumer is written before [A] the link that shows it, and freed after a grace period that began
// after [B] it was taken out; its own link stays, for hits that stand on it.
//
// plain: `CONSUMER_UPROBE` under those semaphores. `CONSUMER_NHIT_SLOT`, `NHIT_CHUNK`, `slot`:
// fixed before A, and a count of this CPU's own. `SINK_*` but for hits, `CONSUMER_SINK`,
// `RETURN_SINK`, `CONSUMER_KIND`, `CONSUMER_ID`, `FILTER_*`, `LIMITED`, `COOKIE` never change once
// the address is known. `SINK_HITS`: a sink's block is its CPU's own, and readers take snapshots.
// `TASK_*`, `UTASK_COOKIE`: the executing task's own. `CONSUMER_NHIT` is a plain increment on a
// shared line because the kernel's is: concurrent hits lose counts, nothing depends on it, and its
// cost is the point.

import {
  CONSUMER_DEAD_MAGIC,
  CONSUMER_MAGIC,
  CONSUMER_NHIT,
  FAULT_CONSUMER_FREED,
} from "../layout";
import { CONSUMER_NHIT_SLOT, FILTER_LOCKLESS, NHIT_PERCPU, NHIT_STRIDE } from "../layout";
import { CONSUMER_ENTRY, CONSUMER_RETURN, CONSUMER_SESSION, HANDLER_COUNT } from "../layout";
import { HANDLER_LATENCY, INSN_NOP, INSN_PUSH } from "../layout";
import { SINK_AREA, SINK_HITS, SINK_KIND, SINK_STRIDE, STRIDE } from "../layout";
import { add32, load32, store32 } from "../atomics";
import { cpu_now, this_cpu } from "../cpu";
import { arena_alloc, arena_free } from "../mm/arena";
import { slot_alloc, slot_free } from "../mm/slots";
import { read_lock, read_unlock, rwlock_init } from "../sync/rwlock";
import { down_read, down_write, up_read, up_write } from "../sync/rwsem";
import { raise_slow } from "./fault";
import { RC_HANDLED, RC_REMOVE, RC_RETURN, sink_count, sink_return_slow } from "./sink";
import { sink_take_slow } from "./sink";
import { CONSUMERS, CONSUMER_RWSEM, next_consumer_id, nhit_slots, table_arena } from "./table";
import { table_strategy } from "./table";
import { TASK_MM, TASK_PID, UTASK_COOKIE } from "./task";

export const CONSUMER_NEXT = 0;
const CONSUMER_STATE = 4;
const CONSUMER_SINK = 8;
export const CONSUMER_UPROBE = 12;
const FILTER_MM = 16;
const LIMITED = 20;
const REMAINING = 24;
const NHIT_CHUNK = 32;
const COOKIE = 36;
export const CONSUMER_KIND = 40;
const RETURN_SINK = 44;
export const CONSUMER_ID = 48;
const FILTER_LOCK = 128;
const FILTER_TASK = 144;
const CONSUMER_BYTES = 192;

// What sole_counter encodes: the instruction, and whether entries are counted, or returns.
const SOLE_MASK: u32 = 7;
const SOLE_INSN_MASK: u32 = 3;
export const SOLE_NOP: u32 = 0;
export const SOLE_PUSH: u32 = 1;
const SOLE_RET: u32 = 2;
const SOLE_ENTRY: u32 = 4;

// A count a CPU for the consumer, if the strategy wants one. False: the arena is full.
function nhit_create(table: usize, c: usize): bool {
  if ((table_strategy(table) & NHIT_PERCPU) == 0) return true;
  return slot_alloc(nhit_slots(table), c + CONSUMER_NHIT_SLOT, c + NHIT_CHUNK);
}

/**
 * A consumer that is not registered yet. `filter_task`, `filter_mm`: 0 takes all. `limit`: its sink
 * is given exactly that many hits, taken or not, then it asks for removal; 0: all. Returns 0 if the
 * arena is full.
 */
export function consumer_create(
  table: usize,
  sink: usize,
  filter_task: i32,
  filter_mm: usize,
  limit: i32,
): usize {
  const arena = table_arena(table);
  const c = arena_alloc(arena, CONSUMER_BYTES);
  if (c == 0) return 0;
  if (!nhit_create(table, c)) {
    arena_free(arena, c, CONSUMER_BYTES);
    return 0;
  }
  store32(c + CONSUMER_STATE, CONSUMER_MAGIC);
  store<u32>(c, <u32>sink, CONSUMER_SINK);
  store<i32>(c, CONSUMER_ENTRY, CONSUMER_KIND);
  store<u32>(c, <u32>sink, RETURN_SINK);
  store<i32>(c, next_consumer_id(table), CONSUMER_ID);
  store<u32>(c, <u32>filter_mm, FILTER_MM);
  store<i32>(c, limit > 0 ? 1 : 0, LIMITED);
  store32(c + REMAINING, limit);
  rwlock_init(c + FILTER_LOCK);
  store<i32>(c, filter_task, FILTER_TASK);
  return c;
}

/** Which handlers it has (CONSUMER_), and where its returns go; before it is registered. */
export function consumer_set_kind(c: usize, kind: i32, return_sink: usize): void {
  store<i32>(c, kind, CONSUMER_KIND);
  store<u32>(c, <u32>return_sink, RETURN_SINK);
}

/** What its handler is told; before it is registered. */
export function consumer_set_cookie(c: usize, cookie: i32): void {
  store<i32>(c, cookie, COOKIE);
}

/** From here on a handler that still runs on it is a fault: its unregister has returned. */
export function consumer_kill(c: usize): void {
  store32(c + CONSUMER_STATE, CONSUMER_DEAD_MAGIC);
}
export function consumer_is_live(c: usize): bool {
  return load32(c + CONSUMER_STATE) == CONSUMER_MAGIC;
}
/** To be called when no hit can still be on it: after unregistration with its grace period. */
export function consumer_free(table: usize, c: usize): void {
  const slot = <usize>load<u32>(c, CONSUMER_NHIT_SLOT);
  if (slot != 0) slot_free(nhit_slots(table), slot, <usize>load<u32>(c, NHIT_CHUNK));
  arena_free(table_arena(table), c, CONSUMER_BYTES);
}

/** consumer_filter: does this consumer want a breakpoint in `mm`? */
export function consumer_filter(c: usize, mm: usize): bool {
  if (load<i32>(c, LIMITED) != 0 && load32(c + REMAINING) <= 0) return false;
  const only = <usize>load<u32>(c, FILTER_MM);
  return only == 0 || only == mm;
}

/** filter_chain: does any consumer want a breakpoint in `mm`? (C11) */
export function filter_chain(u: usize, mm: usize): bool {
  let wanted = false;
  down_read(u + CONSUMER_RWSEM);
  for (let c = <usize>load32(u + CONSUMERS); c != 0; c = <usize>load32(c + CONSUMER_NEXT)) {
    if (consumer_filter(c, mm)) {
      wanted = true;
      break;
    }
  }
  up_read(u + CONSUMER_RWSEM);
  return wanted;
}

/**
 * How a hit of `u` is counted without asking its consumers, or 0: if there is exactly one, which
 * takes every hit, or every return, and only counts. The word: CPU 0's nhit below; above CPU 0's
 * block of the sink, whose low bits are free and hold the instruction and which of the two it is.
 * Other CPUs' are NHIT_STRIDE and STRIDE further. A consumer's nhit is nobody else's until it is
 * freed: in a read section the same word is the same consumer of the same uprobe.
 */
export function sole_counter(u: usize, opcode: i32): i64 {
  let word: i64 = 0;
  down_read(u + CONSUMER_RWSEM);
  const c = <usize>load32(u + CONSUMERS);
  if (
    c != 0 &&
    load32(c + CONSUMER_NEXT) == 0 &&
    load<i32>(c, FILTER_TASK) == 0 &&
    load<u32>(c, FILTER_MM) == 0 &&
    load<i32>(c, LIMITED) == 0 &&
    load<i32>(c, CONSUMER_KIND) != CONSUMER_SESSION
  ) {
    const returns = load<i32>(c, CONSUMER_KIND) == CONSUMER_RETURN;
    const sink = <usize>(returns ? load<u32>(c, RETURN_SINK) : load<u32>(c, CONSUMER_SINK));
    const slot = load<u32>(c, CONSUMER_NHIT_SLOT);
    if (slot != 0 && load<i32>(sink, SINK_KIND) == HANDLER_COUNT) {
      let what: u32 = opcode == INSN_NOP ? SOLE_NOP : opcode == INSN_PUSH ? SOLE_PUSH : SOLE_RET;
      if (!returns) what |= SOLE_ENTRY;
      word = ((<i64>(load<u32>(sink, SINK_AREA) | what)) << 32) | (<i64>slot);
    }
  }
  up_read(u + CONSUMER_RWSEM);
  return word;
}

/** Where this CPU's nhits and its blocks of sinks lie behind CPU 0's, for count_sole. */
// @ts-ignore: decorator
@inline
export function sole_nhits(): u32 {
  return <u32>(this_cpu() * NHIT_STRIDE);
}
// @ts-ignore: decorator
@inline
export function sole_blocks(): u32 {
  return <u32>(this_cpu() * STRIDE);
}

// @ts-ignore: decorator
@inline
function sole_high(word: i64): u32 {
  return <u32>((<u64>word) >> 32);
}

/** Counts by a word of sole_counter, on this CPU: entries that its consumer saw (nhit), */
// @ts-ignore: decorator
@inline
export function count_sole_nhits(word: i64, nhits: u32, entries: i32): void {
  const slot = <usize>(<u32>word + nhits);
  store<i64>(slot, load<i64>(slot) + <i64>entries);
}
/** and hits that its sink took: of entries, or of returns. */
// @ts-ignore: decorator
@inline
export function count_sole_hits(word: i64, blocks: u32, hits: i32): void {
  const block = <usize>((sole_high(word) & ~SOLE_MASK) + blocks);
  store<i64>(block, load<i64>(block, SINK_HITS) + <i64>hits, SINK_HITS);
}

/** Which instruction a word of sole_counter is for. */
// @ts-ignore: decorator
@inline
export function sole_insn(word: i64): u32 {
  return sole_high(word) & SOLE_INSN_MASK;
}
/** Whether entries are counted; 0 is no. */
// @ts-ignore: decorator
@inline
export function sole_entries(word: i64): bool {
  return (sole_high(word) & SOLE_ENTRY) != 0;
}
/** Whether returns are. */
// @ts-ignore: decorator
@inline
export function sole_returns(word: i64): bool {
  return word != 0 && !sole_entries(word);
}

/** consumer_add: to the head of the list. register_rwsem held for writing. */
export function consumer_add(u: usize, c: usize): void {
  down_write(u + CONSUMER_RWSEM);
  store32(c + CONSUMER_NEXT, load32(u + CONSUMERS));
  store<u32>(c, <u32>u, CONSUMER_UPROBE);
  store32(u + CONSUMERS, <i32>c); // A
  up_write(u + CONSUMER_RWSEM);
}

/** The uprobe whose list it is in, or 0; its caller's registration, so that nobody changes it. */
export function consumer_uprobe(c: usize): usize {
  return <usize>load<u32>(c, CONSUMER_UPROBE);
}

/** consumer_del: false if it is not in the list. register_rwsem held for writing. */
export function consumer_del(u: usize, c: usize): bool {
  let found = false;
  down_write(u + CONSUMER_RWSEM);
  let link = u + CONSUMERS;
  for (let at = <usize>load32(link); at != 0; at = <usize>load32(link)) {
    if (at == c) {
      store32(link, load32(c + CONSUMER_NEXT)); // B
      store<u32>(c, 0, CONSUMER_UPROBE);
      found = true;
      break;
    }
    link = at + CONSUMER_NEXT;
  }
  up_write(u + CONSUMER_RWSEM);
  return found;
}

/**
 * uprobe_dispatcher: one hit for one consumer; RC_ bits. In the kernel's order: nhit, then the
 * filter (v6.9: under its rwlock, also for unfiltered probes), then the program. The strategy is a
 * constant of the caller.
 */
// @ts-ignore: decorator
@inline
export function uprobe_dispatcher(strategy: i32, c: usize, task: usize): i32 {
  if (load32(c + CONSUMER_STATE) != CONSUMER_MAGIC) raise_slow(FAULT_CONSUMER_FREED);
  if ((strategy & NHIT_PERCPU) != 0) {
    const slot = <usize>load<u32>(c, CONSUMER_NHIT_SLOT) + <usize>(this_cpu() * NHIT_STRIDE);
    store<i64>(slot, load<i64>(slot) + 1);
  } else {
    store<i32>(c, load<i32>(c, CONSUMER_NHIT) + 1, CONSUMER_NHIT);
  }

  if ((strategy & FILTER_LOCKLESS) == 0) read_lock(c + FILTER_LOCK);
  const only = load<i32>(c, FILTER_TASK);
  if ((strategy & FILTER_LOCKLESS) == 0) read_unlock(c + FILTER_LOCK);
  if (only != 0 && only != load<i32>(task, TASK_PID)) return 0;
  // uprobe_perf_filter: another consumer's breakpoint in an address space this one does not want.
  const mm = load<u32>(c, FILTER_MM);
  if (mm != 0 && mm != load<u32>(task, TASK_MM)) return RC_REMOVE;

  let rc = RC_HANDLED;
  if (load<i32>(c, LIMITED) != 0) {
    // Exactly N hits go on from here, however many CPUs come at once. One that the sink then does
    // not take is not given back: meanwhile the others may have removed the breakpoint.
    const before = add32(c + REMAINING, -1);
    if (before <= 0) {
      add32(c + REMAINING, 1);
      return RC_REMOVE;
    }
    if (before == 1) rc |= RC_REMOVE;
  }
  const which = load<i32>(c, CONSUMER_KIND);
  const sink = <usize>load<u32>(c, CONSUMER_SINK);
  const kind = load<i32>(sink, SINK_KIND);
  if (which != CONSUMER_ENTRY) {
    // As the kernel's: no program at the entry of a probe of returns only.
    return which == CONSUMER_RETURN ? rc | RC_RETURN : begin_session_slow(kind, sink, c, task, rc);
  }
  const block = block_of(sink);
  if (kind != HANDLER_COUNT) {
    return sink_take_slow(kind, sink, block, load<i32>(c, COOKIE), task, rc);
  }
  store<i64>(block, load<i64>(block, SINK_HITS) + 1, SINK_HITS);
  return rc;
}

// This CPU's block of a sink.
// @ts-ignore: decorator
@inline
function block_of(sink: usize): usize {
  return <usize>load<u32>(sink, SINK_AREA) + <usize>(this_cpu() * load<i32>(sink, SINK_STRIDE));
}

// The entry of a session: its handler takes the hit, says whether the return is wanted, and leaves
// the cookie. One that only times (HANDLER_LATENCY) counts at the return.
function begin_session_slow(kind: i32, sink: usize, c: usize, task: usize, rc: i32): i32 {
  if (kind == HANDLER_LATENCY) {
    store<i64>(task, cpu_now(), UTASK_COOKIE);
    return rc | RC_RETURN;
  }
  store<i64>(task, 0, UTASK_COOKIE);
  const cookie = load<i32>(c, COOKIE);
  const taken =
    kind == HANDLER_COUNT
      ? sink_count(block_of(sink), rc)
      : sink_take_slow(kind, sink, block_of(sink), cookie, task, rc);
  // UPROBE_HANDLER_IGNORE: it did not take the hit.
  return (taken & RC_HANDLED) != 0 ? taken | RC_RETURN : taken;
}

/**
 * uretprobe_dispatcher: one return for one consumer; RC_ bits. `cookie`: where its session's is, or
 * 0. As in the kernel, nhit counts entries only. For a return that it does not want the answer is
 * 0: another consumer's.
 */
// @ts-ignore: decorator
@inline
export function uretprobe_dispatcher(strategy: i32, c: usize, task: usize, cookie: usize): i32 {
  if (load32(c + CONSUMER_STATE) != CONSUMER_MAGIC) raise_slow(FAULT_CONSUMER_FREED);
  if ((strategy & FILTER_LOCKLESS) == 0) read_lock(c + FILTER_LOCK);
  const only = load<i32>(c, FILTER_TASK);
  if ((strategy & FILTER_LOCKLESS) == 0) read_unlock(c + FILTER_LOCK);
  if (only != 0 && only != load<i32>(task, TASK_PID)) return 0;
  const mm = load<u32>(c, FILTER_MM);
  if (mm != 0 && mm != load<u32>(task, TASK_MM)) return 0;
  const sink = <usize>load<u32>(c, RETURN_SINK);
  const kind = load<i32>(sink, SINK_KIND);
  if (kind == HANDLER_COUNT) return sink_count(block_of(sink), RC_HANDLED);
  return sink_return_slow(kind, sink, block_of(sink), load<i32>(c, COOKIE), task, cookie);
}
