// Ticket lock: the kernel's ticket_spinlock. First come, first served.
//
// The word (4 bytes, 4-aligned):
//   [15:0]   owner  ticket that may enter
//   [31:16]  next   ticket that the next comer gets
// owner == next: free. next - owner (modulo 2^16) is the holder plus the waiters, at most CPUS_MAX
// + 2, so tickets never meet themselves.
//
// Guarantees: G1 mutual exclusion. G2 strict order of the tickets drawn at [A]. All waiters spin on
// the lock's own line. Progress: blocking.

import { add32, cas32, load32, store16, store32 } from "../atomics";
import { spin_wait } from "./park";

const ONE: i32 = 0x10000;
const OWNER: i32 = 0xffff;

export function ticket_init(p: usize): void {
  store32(p, 0);
}

// @ts-ignore: decorator
@inline
export function ticket_lock(p: usize): void {
  // [A] draw a ticket. A carry out of the upper half is lost, as it should be.
  const seen = add32(p, ONE);
  if (seen >>> 16 != (seen & OWNER)) ticket_slow(p, seen >>> 16);
}

// @ts-ignore: decorator
@inline
export function ticket_trylock(p: usize): bool {
  const seen = load32(p);
  return seen >>> 16 == (seen & OWNER) && cas32(p, seen, seen + ONE) == seen; // [A]
}

// @ts-ignore: decorator
@inline
export function ticket_unlock(p: usize): void {
  // plain: only the holder writes the lower half, and that is us
  store16(p, <i32>load<u16>(p) + 1); // [R] pairs with [S]; wraps within its half
}

export function ticket_slow(p: usize, ticket: i32): void {
  let i = 0;
  let seen = 0;
  while (((seen = load32(p)) & OWNER) != ticket) spin_wait(p, seen, i++); // [S]
}
