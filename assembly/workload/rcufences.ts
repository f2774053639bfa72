// The fences of the read sides, as store-buffering litmus tests of the engine's own functions: one
// reader, one updater, round by round.
//
//   offset  bytes  content                                         written by
//        0    128  the domain: struct of srcu.ts or tasks_trace.ts
//      128      4  current: number of the object to be found       updater
//      192      4  freed: all objects below it are gone            updater
//      256      4  round that the updater has begun                updater
//      320      4  round that the reader has begun                 reader
//      384  48*64  a crowd of lines that nobody reads              both
//
// Updater: [A] current, a grace period, [B] freed. Reader: [C] enters, [D] current, a while, [E]
// freed, leaves. Forbidden: E reads more than D did: what D found was freed in the section.
// Without its fence, C is in the reader's store buffer while D reads; the longer, the more stores
// to lines of the other CPU are before it. So each round begins with the crowd at the updater, and
// the reader stores to all of it before C.
//
// plain: `crowd_of`: nobody reads it
//
// plain: `t`: the CPU's own random state

import { FAULT_GRACE, LINE, PCPU_GP_SLEEP, PCPU_TORTURE, TORTURE_RANDOM } from "../layout";
import { load32, store32 } from "../atomics";
import { cpu_delay, this_cpu, this_cpu_ptr } from "../cpu";
import { srcu_read_lock, srcu_read_unlock, synchronize_srcu } from "../rcu/srcu";
import { rcu_offline, rcu_online, rcu_read_lock_trace } from "../rcu/tasks_trace";
import { rcu_read_unlock_trace, synchronize_rcu_tasks_trace } from "../rcu/tasks_trace";
import { park } from "../sync/park";
import { raise_slow } from "../uprobe/fault";

const SRCU: i32 = 0;
const TRACE: i32 = 1;

const CURRENT = 128;
const FREED = 192;
const UPDATER = 256;
const READER = 320;
const CROWD: i32 = 384;
const CROWD_LINES = 48;

/** Looks at the other side before a sleep, which lets it have the core if it needs this one. */
const LOOKS = 5_000;
const SLEEP_NS: i64 = 20_000;
/** Sleeps before a batch ends: it may have left the run. */
const SLEEPS = 10;

function crowd(p: usize, value: i32): void {
  for (let i = 0; i < CROWD_LINES; i++) {
    const crowd_of = p + <usize>(CROWD + i * LINE);
    store<i32>(crowd_of, value);
  }
}

function random(): i32 {
  const t = this_cpu_ptr(PCPU_TORTURE);
  let x = load<u32>(t, TORTURE_RANDOM);
  if (x == 0) x = (<u32>this_cpu() + 1) * 0x9e3779b9;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  store<u32>(t, x, TORTURE_RANDOM);
  return <i32>(x >> 8);
}

/** Waits for the other side's round. False if it does not come. */
function meet(p: usize, round: i32): bool {
  for (let sleeps = 0; sleeps < SLEEPS; sleeps++) {
    for (let i = 0; i < LOOKS; i++) if (load32(p) == round) return true;
    park(this_cpu_ptr(PCPU_GP_SLEEP), 0, SLEEP_NS);
  }
  return false;
}

// @ts-ignore: decorator
@inline
function updater(kind: i32, p: usize, n: i32): i32 {
  for (let i = 0; i < n; i++) {
    const round = load32(p + READER) + 1;
    crowd(p, round);
    store32(p + UPDATER, round);
    if (!meet(p + READER, round)) return i;
    cpu_delay(random() & 127);
    store32(p + CURRENT, round); // A
    if (kind == SRCU) synchronize_srcu(p);
    else synchronize_rcu_tasks_trace(p);
    store32(p + FREED, round); // B
  }
  return n;
}

// @ts-ignore: decorator
@inline
function reader(kind: i32, p: usize, n: i32): i32 {
  for (let i = 0; i < n; i++) {
    const round = load32(p + READER) + 1;
    if (!meet(p + UPDATER, round)) return i;
    const delay = random();
    store32(p + READER, round);
    cpu_delay(delay & 31);
    crowd(p, round);
    let idx = 0;
    if (kind == SRCU)
      idx = srcu_read_lock(p); // C
    else {
      rcu_online(p); // C
      rcu_read_lock_trace();
    }
    const found = load32(p + CURRENT); // D
    cpu_delay(1_000);
    if (load32(p + FREED) > found) raise_slow(FAULT_GRACE); // E
    if (kind == SRCU) srcu_read_unlock(p, idx);
    else {
      rcu_read_unlock_trace(p);
      rcu_offline();
    }
  }
  return n;
}

export function fences_srcu_reader(p: usize, n: i32): i32 {
  return reader(SRCU, p, n);
}
export function fences_srcu_updater(p: usize, n: i32): i32 {
  return updater(SRCU, p, n);
}
export function fences_trace_reader(p: usize, n: i32): i32 {
  return reader(TRACE, p, n);
}
export function fences_trace_updater(p: usize, n: i32): i32 {
  return updater(TRACE, p, n);
}
