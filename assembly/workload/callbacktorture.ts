// Torture of rcu/callbacks.ts: CPUs push heads of their own again and again, one CPU takes them.
//
//   offset  bytes  content
//        0    128  the list
//      128  128*n  heads of CPU n, 16 of them; kind is 0 while its CPU may push it
// In PCPU_TORTURE: pushes in TORTURE_WRITES, those that found the list empty in TORTURE_TRYFAILS;
// heads taken in TORTURE_READS, takes that found some in TORTURE_TIMEOUTS, heads that were taken
// without having been pushed in TORTURE_FAILS.
//
// plain: `head`: [A] its kind is stored by the taker after its last look, and the pusher waits for
// that
//
// plain: `t`: counters are their CPU's own

import { PCPU_TORTURE, RCU_HEAD_KIND, RCU_HEAD_NEXT, STRIDE, TORTURE_FAILS } from "../layout";
import { TORTURE_READS, TORTURE_TIMEOUTS, TORTURE_TRYFAILS, TORTURE_WRITES } from "../layout";
import { load32, store32 } from "../atomics";
import { cpu_delay, this_cpu, this_cpu_ptr } from "../cpu";
import { call_rcu_push, call_rcu_take } from "../rcu/callbacks";

const HEADS_AT = 128;
const HEADS: i32 = 16;

function count(offset: i32, by: i32): void {
  const t = this_cpu_ptr(PCPU_TORTURE) + <usize>offset;
  store<i64>(t, load<i64>(t) + <i64>by);
}

export function torture_callbacks_push(p: usize, n: i32): void {
  const heads = p + <usize>(HEADS_AT + this_cpu() * STRIDE);
  for (let i = 0; i < n; i++) {
    const head = heads + <usize>((i & (HEADS - 1)) * 8);
    if (load32(head + RCU_HEAD_KIND) != 0) continue; // A
    store32(head + RCU_HEAD_KIND, this_cpu() + 1);
    if (call_rcu_push(p, head)) count(TORTURE_TRYFAILS, 1);
    count(TORTURE_WRITES, 1);
  }
}

export function torture_callbacks_take(p: usize, n: i32): void {
  for (let i = 0; i < n; i++) {
    cpu_delay(i & 127); // or it would find one head at most
    let head = call_rcu_take(p);
    if (head != 0) count(TORTURE_TIMEOUTS, 1);
    while (head != 0) {
      const next = <usize>load<u32>(head, RCU_HEAD_NEXT);
      if (load32(head + RCU_HEAD_KIND) == 0) {
        count(TORTURE_FAILS, 1);
        break; // the list may be a ring by now
      }
      store32(head + RCU_HEAD_KIND, 0); // A
      count(TORTURE_READS, 1);
      head = next;
    }
  }
}
