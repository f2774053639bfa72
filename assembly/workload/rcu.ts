// RCU: the read side's price, and torture after the kernel's rcutorture.
//
// An updater replaces the current object; the old one moves through a pipe of ten stages, one a
// grace period, is poisoned, and is used again. A reader notes the stage of the object it holds
// at the end of its section: 0, or 1 if it was replaced meanwhile. Later is a grace period that was
// too short.
//
//   offset      bytes  content
//        0        128  the domain: struct of srcu.ts or tasks_trace.ts
//      128          4  current: address of the object that readers find
//      192          4  updates done
//      256      16*64  objects: stage, mbtest (1 from before it is found until it is poisoned)
// Readers count into PCPU_TORTURE: sections by the stage they saw, i64 each, from TORTURE_PIPE on,
// the last for all later ones; a stage above 1, or a poisoned object, also raises FAULT_GRACE.
//
// Updater: [A] mbtest and stage of the new object, [B] current. Reader: [C] current, [D] mbtest.
// Forbidden: an object found before it is made.
//
// plain: `object`, `o`, `fresh`, `STAGE`: objects belong to the updater; that readers may still
// look at one is what grace periods are for
//
// plain: `t`, `bin`, `count`: the CPU's own random state and counters

import { FAULT_GRACE, PCPU_COUNT, PCPU_TORTURE, RCU_CURRENT } from "../layout";
import { RCU_OBJECTS_AT, RCU_UPDATES, TORTURE_PIPE, TORTURE_RANDOM } from "../layout";
import { load32, store32 } from "../atomics";
import { cpu_begin_batch, cpu_delay, cpu_slept, this_cpu, this_cpu_ptr } from "../cpu";
import { srcu_init, srcu_read_lock, srcu_read_unlock, synchronize_srcu } from "../rcu/srcu";
import { rcu_init, rcu_offline, rcu_online, rcu_quiescent } from "../rcu/tasks_trace";
import { rcu_read_lock_trace, rcu_read_unlock_trace } from "../rcu/tasks_trace";
import { synchronize_rcu_qsbr, synchronize_rcu_tasks_trace } from "../rcu/tasks_trace";
import { raise_slow } from "../uprobe/fault";

const SRCU: i32 = 0;
const TRACE: i32 = 1;
const QSBR: i32 = 2;

const STAGES: i32 = 10;
const OBJECTS: i32 = 16; // the pipe, the current one, and some to choose from
const OBJECT_BYTES: i32 = 64;
const STAGE = 0;
const MBTEST = 4;
const FREE: i32 = -1;

/** Makes the area of `kind` (0 SRCU, 1 Tasks Trace, 2 QSBR) for `cpus` CPUs, with an object. */
export function rcu_area_init(p: usize, kind: i32, cpus: i32): void {
  if (kind == SRCU) srcu_init(p, cpus);
  else rcu_init(p, cpus);
  for (let i = 0; i < OBJECTS; i++) store<i32>(object(p, i), FREE, STAGE);
  store<i32>(object(p, 0), 0, STAGE);
  store<i32>(object(p, 0), 1, MBTEST);
  store32(p + RCU_CURRENT, <i32>object(p, 0));
}

function object(p: usize, i: i32): usize {
  return p + <usize>(RCU_OBJECTS_AT + i * OBJECT_BYTES);
}

function random(t: usize, seed: i32): u32 {
  let x = load<u32>(t, TORTURE_RANDOM);
  if (x == 0) x = ((<u32>seed + 1) * 0x9e3779b9 + <u32>(this_cpu() + 1) * 0x85ebca6b) | 1;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  store<u32>(t, x, TORTURE_RANDOM);
  return x;
}

// The read side by kind; `kind` is a constant in every caller, so each call folds.

// @ts-ignore: decorator
@inline
function read_lock(kind: i32, p: usize): i32 {
  if (kind == SRCU) return srcu_read_lock(p);
  if (kind == TRACE) rcu_read_lock_trace();
  return 0;
}

// @ts-ignore: decorator
@inline
function read_unlock(kind: i32, p: usize, idx: i32): void {
  if (kind == SRCU) srcu_read_unlock(p, idx);
  else if (kind == TRACE) rcu_read_unlock_trace(p);
  else rcu_quiescent(p);
}

// @ts-ignore: decorator
@inline
function torture_reader(kind: i32, p: usize, seed: i32, n: i32): i32 {
  const t = this_cpu_ptr(PCPU_TORTURE);
  cpu_begin_batch();
  if (kind != SRCU) rcu_online(p);
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    const r = random(t, seed);
    if (kind != SRCU && (r & 0x7000) == 0) {
      rcu_offline();
      cpu_delay(<i32>((r >> 15) & 255));
      rcu_online(p);
    }
    const idx = read_lock(kind, p);
    const nested = kind != QSBR && (r & 0x700) == 0 ? read_lock(kind, p) : -1;
    const o = <usize>load32(p + RCU_CURRENT); // C
    const alive = load<i32>(o, MBTEST) == 1; // D
    // Mostly short; one in 1024 longer than a grace period of idle readers takes.
    cpu_delay((r & 1023) == 0 ? 20_000 : <i32>((r >> 10) & 63));
    if (nested >= 0) {
      // Still in the outer section, and for long enough that grace periods pass by.
      read_unlock(kind, p, nested);
      cpu_delay(2_000);
    }
    const stage = load32(o + STAGE);
    if (!alive || stage > 1 || stage < 0 || load<i32>(o, MBTEST) != 1) raise_slow(FAULT_GRACE);
    read_unlock(kind, p, idx);
    const bin = t + <usize>(TORTURE_PIPE + (<u32>stage > 2 ? 2 : stage) * 8);
    store<i64>(bin, load<i64>(bin) + 1);
    cpu_delay(<i32>((r >> 20) & 63));
  }
  if (kind != SRCU) rcu_offline();
  return i;
}

// @ts-ignore: decorator
@inline
function synchronize(kind: i32, p: usize): void {
  if (kind == SRCU) synchronize_srcu(p);
  else if (kind == TRACE) synchronize_rcu_tasks_trace(p);
  else synchronize_rcu_qsbr(p);
}

// One update: a new current object, one grace period, and everything replaced ages by one stage.
function update(kind: i32, p: usize): void {
  let free = 0;
  while (load<i32>(object(p, free), STAGE) != FREE) free++;
  const fresh = object(p, free);
  store<i32>(fresh, 1, MBTEST); // A
  store32(fresh + STAGE, 0);
  const old = <usize>load32(p + RCU_CURRENT);
  store32(p + RCU_CURRENT, <i32>fresh); // B
  store32(old + STAGE, 1);
  synchronize(kind, p);
  for (let i = 0; i < OBJECTS; i++) {
    const o = object(p, i);
    const stage = load<i32>(o, STAGE);
    if (stage < 1) continue;
    if (stage < STAGES) {
      store32(o + STAGE, stage + 1);
    } else {
      store<i32>(o, 0, MBTEST);
      store32(o + STAGE, FREE);
    }
  }
  store32(p + RCU_UPDATES, load32(p + RCU_UPDATES) + 1);
}

// @ts-ignore: decorator
@inline
function torture_updater(kind: i32, p: usize, n: i32): i32 {
  let i = 0;
  cpu_begin_batch();
  while (i < n && !cpu_slept()) {
    i++;
    update(kind, p);
  }
  return i;
}

export function torture_srcu_reader(p: usize, seed: i32, n: i32): i32 {
  return torture_reader(SRCU, p, seed, n);
}
export function torture_srcu_updater(p: usize, seed: i32, n: i32): i32 {
  return torture_updater(SRCU, p, n);
}
export function torture_trace_reader(p: usize, seed: i32, n: i32): i32 {
  return torture_reader(TRACE, p, seed, n);
}
export function torture_trace_updater(p: usize, seed: i32, n: i32): i32 {
  return torture_updater(TRACE, p, n);
}
export function torture_qsbr_reader(p: usize, seed: i32, n: i32): i32 {
  return torture_reader(QSBR, p, seed, n);
}
export function torture_qsbr_updater(p: usize, seed: i32, n: i32): i32 {
  return torture_updater(QSBR, p, n);
}

// @ts-ignore: decorator
@inline
function bench_read(kind: i32, p: usize, n: i32): void {
  const count = this_cpu_ptr(PCPU_COUNT);
  if (kind != SRCU) rcu_online(p);
  for (let i = n; i > 0; i--) {
    const idx = read_lock(kind, p);
    const o = <usize>load32(p + RCU_CURRENT);
    store<i64>(count, load<i64>(count) + <i64>load<i32>(o, MBTEST));
    read_unlock(kind, p, idx);
  }
  if (kind != SRCU) rcu_offline();
}

/** `n` read sections, each of which counts one in PCPU_COUNT by what it reads. */
export function rcu_read_srcu(p: usize, n: i32): void {
  bench_read(SRCU, p, n);
}
export function rcu_read_tasks_trace(p: usize, n: i32): void {
  bench_read(TRACE, p, n);
}
export function rcu_read_qsbr(p: usize, n: i32): void {
  bench_read(QSBR, p, n);
}
