// Spinlock: test, then test-and-set.
//
// The word (4 bytes, 4-aligned): 0 free, 1 held. Nothing else is legal.
//
// Guarantees: G1 mutual exclusion. No order among the waiters: who is near the line wins again and
// again. Waiters spin on a load, so the line stays shared until the holder lets go.
// Progress: blocking.

import { cas32, load32, store32 } from "../atomics";
import { spin_wait } from "./park";

export function spin_init(p: usize): void {
  store32(p, 0);
}

// @ts-ignore: decorator
@inline
export function spin_lock(p: usize): void {
  if (cas32(p, 0, 1) != 0) spin_lock_slow(p); // [A] pairs with [R]
}

// @ts-ignore: decorator
@inline
export function spin_trylock(p: usize): bool {
  return load32(p) == 0 && cas32(p, 0, 1) == 0; // [A]
}

// @ts-ignore: decorator
@inline
export function spin_unlock(p: usize): void {
  store32(p, 0); // [R] who takes the lock at [A] sees all we wrote inside
}

export function spin_lock_slow(p: usize): void {
  let i = 0;
  for (;;) {
    while (load32(p) != 0) spin_wait(p, 1, i++);
    if (cas32(p, 0, 1) == 0) return; // [A]
  }
}
