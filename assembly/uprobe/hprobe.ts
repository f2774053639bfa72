// hprobe: what keeps the uprobe of a pending return alive, and who ends that (kernel.md 6).
//
//   LEASED    the SRCU lock of the domain HDR_URET_SRCU that the entry took, in half `idx`; or,
//             with RETURN_SECTION, the read section that the CPU is in
//   STABLE    a reference
//   GONE      nothing: its last reference was gone when one was to be taken
//   CONSUMED  nothing any more: the return was handled, or will never come
//   UNUSED    no call's instance: pooled, free, or not yet one
//
// A lease makes grace periods wait for a return that may never come. So the timer expires it: it
// takes a reference instead, if there is still one to be had. Owner and timer race for the state
// with locked operations, [A] the owner's exchange, [B] the timer's compare-exchange: exactly one
// of them sees LEASED, and gives the lock back (C18). Forbidden: given back twice, or never.
// The timer looks at the uprobe in sections that began [C] before it read LEASED [D]: whoever ended
// the lease after D did so within them. One is of the leases' own domain, as the kernel's: a grace
// period that begins after C waits for it. One that had begun before C need not, though it waits
// for the lease; then the other, a read section of RCU Tasks Trace, is what the uprobe waits for:
// such a grace period follows (reclaim.ts, step 3). Forbidden: a reference taken on freed memory.
//
// With RETURN_SECTION there is no timer and no race: the CPU that owns the task settles all leases
// before it says that it holds nothing (hprobe_settle), so a lease never outlives its section.
//
// plain: `RI_*`: as in return_instance.ts; the state too, where only the owner changes it

import { HDR_URET_SRCU, PCPU_URET_SRCU, RETURN_ALLOC, RETURN_MASK, RETURN_POOL } from "../layout";
import { FAULT_LEASE } from "../layout";
import { cas32, load32, xchg32 } from "../atomics";
import { srcu_read_lock_into, srcu_read_unlock_at } from "../rcu/srcu";
import { raise_slow, this_engine } from "./fault";
import { RI_SRCU, RI_STATE, RI_UNUSED, RI_UPROBE } from "./return_instance";
import { get_uprobe, put_uprobe, try_get_uprobe } from "./table";

export const HPROBE_LEASED = 0;
export const HPROBE_STABLE = 1;
export const HPROBE_GONE = 2;
export const HPROBE_CONSUMED = 3;
export const HPROBE_UNUSED = RI_UNUSED;

/** Whether a strategy's returns have leases that the timer ends. */
// @ts-ignore: decorator
@inline
export function has_leases(strategy: i32): bool {
  const kind = strategy & RETURN_MASK;
  return kind == RETURN_ALLOC || kind == RETURN_POOL;
}

/**
 * hprobe_init_leased. In the read section that found `u`; the last thing before the instance is
 * published: what was written before it is behind its fence.
 */
// @ts-ignore: decorator
@inline
export function hprobe_init_leased(strategy: i32, ri: usize, u: usize): void {
  store<u32>(ri, <u32>u, RI_UPROBE);
  store<i32>(ri, HPROBE_LEASED, RI_STATE);
  if (has_leases(strategy)) {
    const domain = this_engine() + HDR_URET_SRCU;
    srcu_read_lock_into(domain, PCPU_URET_SRCU, ri + RI_SRCU);
  }
}

/** hprobe_init_stable: the caller's reference on `u` becomes the instance's; 0: GONE. */
// @ts-ignore: decorator
@inline
export function hprobe_init_stable(ri: usize, u: usize): void {
  store<u32>(ri, <u32>u, RI_UPROBE);
  store<i32>(ri, u != 0 ? HPROBE_STABLE : HPROBE_GONE, RI_STATE);
}

/** hprobe_consume: the owner's. The state it had; LEASED and STABLE: its uprobe is alive. */
// @ts-ignore: decorator
@inline
export function hprobe_consume(strategy: i32, ri: usize): i32 {
  if (has_leases(strategy)) return xchg32(ri + RI_STATE, HPROBE_CONSUMED); // A
  const state = load<i32>(ri, RI_STATE);
  store<i32>(ri, HPROBE_CONSUMED, RI_STATE);
  return state;
}

/** hprobe_finalize: gives back what the consumed state held. */
// @ts-ignore: decorator
@inline
export function hprobe_finalize(strategy: i32, table: usize, ri: usize, state: i32): void {
  if (state == HPROBE_LEASED) {
    if (has_leases(strategy)) srcu_read_unlock_at(load<i32>(ri, RI_SRCU), PCPU_URET_SRCU);
  } else if (state == HPROBE_STABLE) {
    put_uprobe(table, <usize>load<u32>(ri, RI_UPROBE));
  }
}

/**
 * hprobe_expire: ends the lease, if there still is one. The caller is in a section of the leases'
 * SRCU domain, and in a read section [C]. With `keep` it gets a reference on the uprobe that it
 * returns, 0 if it is gone.
 */
export function hprobe_expire(table: usize, ri: usize, keep: bool): usize {
  const state = load32(ri + RI_STATE); // D
  const u = <usize>load<u32>(ri, RI_UPROBE);
  if (state == HPROBE_UNUSED) raise_slow(FAULT_LEASE); // C21: reused under the timer's eyes
  if (state == HPROBE_STABLE) {
    if (keep) get_uprobe(u);
    return u;
  }
  if (state != HPROBE_LEASED) return 0;
  const got = try_get_uprobe(u);
  const next = got ? HPROBE_STABLE : HPROBE_GONE;
  if (cas32(ri + RI_STATE, HPROBE_LEASED, next) == HPROBE_LEASED) {
    // B
    srcu_read_unlock_at(load<i32>(ri, RI_SRCU), PCPU_URET_SRCU);
    if (!got) return 0;
    if (keep) get_uprobe(u);
    return u;
  }
  // The owner, or another expiry, was first, and gives the lease back.
  if (!got) return 0;
  if (!keep) put_uprobe(table, u);
  return u;
}

/** A lease of the section that the owner's CPU is in: it takes a reference before that ends. */
export function hprobe_settle(ri: usize): void {
  const got = try_get_uprobe(<usize>load<u32>(ri, RI_UPROBE));
  store<i32>(ri, got ? HPROBE_STABLE : HPROBE_GONE, RI_STATE);
}
