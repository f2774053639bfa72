// Mutex: the kernel's, with optimistic spinning and hand-over.
//
//   offset 0   owner: [31:3] CPU number + 1 of the holder, 0: free
//                     [0] WAITERS  somebody sleeps: unlock must wake the first
//                     [1] HANDOFF  the first waiter was overtaken: unlock must give it the lock
//                     [2] PICKUP   the holder named here was given the lock, and has yet to notice
//          8   wait_lock, a queued spinlock
//          12  osq, the queue of those who spin instead of sleeping
//          16  wait_list, first 16 and last 24
// Legal: 0 free · o held · o|W held, sleepers · o|W|H the next unlock hands over · o|W|P handed to
//        o · W free, and its first sleeper was woken. H or P without an owner never; H and P
//        together never.
//
// Guarantees: G1 mutual exclusion. G2 no wake-up is lost: a sleeper is on the list and WAITERS is
// set before it looks at the owner for the last time, and unlock gives up the owner before it looks
// at WAITERS; both are the same word. G3 a waiter is overtaken at most until its first wake-up
// failed: then HANDOFF. G4 a timed lock leaves no trace: it takes itself off under wait_lock, after
// a last try, so a wake-up or hand-over meant for it is used or was never made.
// Progress: blocking. Costs one read-modify-write each way when nobody else is there.

import { and32, cas32, load32, or32, store32 } from "../atomics";
import { cpu_now, this_cpu, this_cpu_ptr } from "../cpu";
import { PCPU_WAITER } from "../layout";
import { OSQ_SPINS, osq_init, osq_lock, osq_unlock } from "./osq";
import { park } from "./park";
import { qspin_init, qspin_lock, qspin_unlock } from "./qspinlock";
import {
  WAIT_WRITE,
  wait_cpu,
  wait_list_add,
  wait_list_del,
  wait_list_first,
  wait_list_init,
  wait_notify,
  wait_prepare,
  wait_wake,
  wait_word,
} from "./wait_list";

const WAITERS: i32 = 1;
const HANDOFF: i32 = 2;
const PICKUP: i32 = 4;
const FLAGS: i32 = 7;
const OWNER_SHIFT: i32 = 3;
const WAIT_LOCK: usize = 8;
const OSQ: usize = 12;
const WAIT_LIST: usize = 16;
/** Looks at the owner before a CPU rather sleeps: about as long as a sleep and a wake-up take. */
const OWNER_SPINS: i32 = 10_000;
/** cpu_now costs a call out of Wasm: a deadline is looked at once in so many iterations. */
const CLOCK_MASK: i32 = 127;

// @ts-ignore: decorator
@inline
function me(): i32 {
  return (this_cpu() + 1) << OWNER_SHIFT;
}

export function mutex_init(p: usize): void {
  store32(p, 0);
  qspin_init(p + WAIT_LOCK);
  osq_init(p + OSQ);
  wait_list_init(p + WAIT_LIST);
}

// @ts-ignore: decorator
@inline
export function mutex_lock(p: usize): void {
  if (cas32(p, 0, me()) != 0) mutex_lock_slow(p, 0); // [A] pairs with [R]
}

/** Takes the mutex if it is free, or was handed to this CPU. */
export function mutex_trylock(p: usize): bool {
  return mutex_try(p, false) == 0;
}

/** Waits at most `ns`. Returns 1 with the mutex held, 0 not before the time is over. */
export function mutex_lock_timeout(p: usize, ns: i64): i32 {
  if (cas32(p, 0, me()) == 0) return 1; // [A]
  if (ns <= 0) return i32(mutex_trylock(p));
  const deadline = cpu_now() + ns;
  // A sum beyond i64 is negative: never, rather than long ago.
  return i32(mutex_lock_slow(p, deadline > 0 ? deadline : i64.MAX_VALUE));
}

// @ts-ignore: decorator
@inline
export function mutex_unlock(p: usize): void {
  const self = me();
  if (cas32(p, self, 0) != self) mutex_unlock_slow(p); // [R]
}

/** CPU that holds the mutex, -1 if none does; a hint, stale at once. */
export function mutex_owner(p: usize): i32 {
  return (load32(p) >>> OWNER_SHIFT) - 1;
}

/**
 * One attempt. Returns 0 with the mutex held, else the owner word as it was seen. `handoff`: if
 * somebody holds it, ask for the mutex to be handed over (first waiter only).
 */
function mutex_try(p: usize, handoff: bool): i32 {
  const self = me();
  let word = load32(p);
  while (true) {
    let owner = word & ~FLAGS;
    let flags = word & FLAGS;
    let taken = true;
    if (owner != 0) {
      if ((flags & PICKUP) != 0) {
        if (owner != self) return word;
        flags &= ~PICKUP;
      } else if (handoff) {
        if ((flags & HANDOFF) != 0) return word;
        flags |= HANDOFF;
        taken = false;
      } else {
        return word;
      }
    } else {
      owner = self;
    }
    const before = cas32(p, word, owner | flags); // [A]
    if (before == word) return taken ? 0 : word;
    word = before;
  }
}

/** Takes the mutex, or returns false after `deadline` (cpu_now; 0: waits for ever). */
export function mutex_lock_slow(p: usize, deadline: i64): bool {
  if (mutex_try(p, false) == 0 || mutex_spin_slow(p, deadline, true)) return true;

  const node = this_cpu_ptr(PCPU_WAITER);
  const list = p + WAIT_LIST;
  qspin_lock(p + WAIT_LOCK);
  if (mutex_try(p, false) != 0) {
    wait_prepare(node);
    // [W] on the list and WAITERS set, then [T] the last look. Pairs with [R] and [S] in unlock.
    if (wait_list_add(list, node, WAIT_WRITE, 0)) or32(p, WAITERS); // [W]
    while (true) {
      // [T] Under wait_lock, so a hand-over ([H]) has happened entirely, or not at all: looking
      // before giving up is what keeps a timed lock from going away with the mutex in its hands.
      if (mutex_try(p, false) == 0) break;
      let left: i64 = -1;
      if (deadline != 0) {
        left = deadline - cpu_now();
        if (left <= 0) {
          mutex_remove_waiter(p, node);
          qspin_unlock(p + WAIT_LOCK);
          return false;
        }
      }
      qspin_unlock(p + WAIT_LOCK);
      park(wait_word(node), 0, left);
      const first = wait_list_first(list) == node;
      // Before the next try: an unlock after that try stores `woken` after this, so we do not
      // sleep; an unlock before it is seen by the try.
      wait_prepare(node);
      const got = mutex_try(p, first) == 0 || (first && mutex_spin_slow(p, deadline, false));
      qspin_lock(p + WAIT_LOCK);
      if (got) break;
    }
    mutex_remove_waiter(p, node);
  }
  qspin_unlock(p + WAIT_LOCK);
  return true;
}

/** Under wait_lock. The last one to go takes the flags along. */
function mutex_remove_waiter(p: usize, node: usize): void {
  // HANDOFF too: with nobody on the list there is nobody to hand over to. PICKUP cannot be set for
  // another CPU: whoever it names is on the list.
  if (wait_list_del(p + WAIT_LIST, node)) and32(p, ~FLAGS);
}

/**
 * Spins while the holder is likely to let go soon. The kernel spins while the holder runs; user
 * space cannot know that, so the spin has a bound. `queue`: through the osq, so that one CPU at a
 * time looks at the owner word; the first waiter on the list competes with that one directly.
 */
function mutex_spin_slow(p: usize, deadline: i64, queue: bool): bool {
  if (queue && !osq_lock(p + OSQ, OSQ_SPINS, deadline)) return false;
  let got = false;
  for (let i = 0; i < OWNER_SPINS; i++) {
    const word = load32(p);
    if (((word & ~FLAGS) == 0 || (word & PICKUP) != 0) && mutex_try(p, false) == 0) {
      got = true;
      break;
    }
    if (deadline != 0 && (i & CLOCK_MASK) == CLOCK_MASK && cpu_now() >= deadline) break;
  }
  if (queue) osq_unlock(p + OSQ);
  return got;
}

/** Unlock when a flag is set. Wakes the first waiter, and gives it the mutex if it asked. */
export function mutex_unlock_slow(p: usize): void {
  let word = load32(p);
  // [S] Without HANDOFF the mutex is free before anybody is woken, so that a spinner can have it.
  while ((word & HANDOFF) == 0) {
    const before = cas32(p, word, word & FLAGS); // [S]
    if (before == word) {
      if ((word & WAITERS) == 0) return;
      break;
    }
    word = before;
  }

  qspin_lock(p + WAIT_LOCK);
  const first = wait_list_first(p + WAIT_LIST);
  if ((word & HANDOFF) != 0) mutex_handoff(p, first); // [H]
  if (first != 0) wait_wake(first); // under wait_lock: the node is on the list (wait_list.ts)
  qspin_unlock(p + WAIT_LOCK);
  if (first != 0) wait_notify(first);
}

/** Under wait_lock. Names the waiter as the holder; 0, gone meanwhile: just frees the mutex. */
function mutex_handoff(p: usize, node: usize): void {
  const heir = node != 0 ? ((wait_cpu(node) + 1) << OWNER_SHIFT) | PICKUP : 0;
  let word = load32(p);
  while (true) {
    const before = cas32(p, word, heir | (word & WAITERS)); // [H] pairs with [T]
    if (before == word) return;
    word = before;
  }
}
