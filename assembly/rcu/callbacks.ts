// Deferred work, the kernel's call_rcu without its machinery: a list that any CPU pushes to, and
// that one CPU takes as a whole, so that one grace period serves all that was pushed before it.
//
//   offset  bytes  a list, CALLBACKS_BYTES         a head, RCU_HEAD_BYTES, inside an object
//        0      4  head pushed last; 0: none       the next one, pushed before it; 0: none
//        4      4                                  kind: its owner's, says what is to be done
//
// Use: unlink the object, set its head's kind, [A] push. Elsewhere: [B] take, a grace period of
// every flavour whose readers may hold the object, then walk what was taken and free.
// An object's head is its own storage: a reader may still follow every other word of it (C4).
//
// A is a compare-and-swap, B an exchange: whoever is taken was unlinked before B, and the grace
// period begins after it. Forbidden: an object freed whose unlink the grace period does not cover.
// There is no ABA: A only needs the list's first head to be the one that its own `next` names, not
// to have stayed there; nobody takes a single one.

import { RCU_HEAD_NEXT } from "../layout";
import { cas32, load32, store32, xchg32 } from "../atomics";

/** An empty list. Zeroed memory is one. */
export function call_rcu_init(list: usize): void {
  store32(list, 0);
}

/**
 * Adds an object's head; its kind is set. Lock-free, also in a read section. Returns whether the
 * list was empty: then somebody must be told that there is work.
 */
export function call_rcu_push(list: usize, head: usize): bool {
  let first = load32(list);
  while (true) {
    store<i32>(head, first, RCU_HEAD_NEXT); // plain: the pusher's own until [A] succeeds
    const before = cas32(list, first, <i32>head); // A
    if (before == first) return first == 0;
    first = before;
  }
}

/**
 * Takes all heads: the one pushed last, or 0, and from it on by next. They are the caller's, who
 * waits for a grace period before it touches their objects. Not in a read section.
 */
export function call_rcu_take(list: usize): usize {
  return load32(list) == 0 ? 0 : <usize>xchg32(list, 0); // B
}
