// Queued reader-writer spinlock: the kernel's qrwlock.
//
//   offset 0  counts
//     [7:0]   0xff: a writer holds the lock
//     [8]     0x100: a writer waits (it is the head of the queue and holds wait_lock)
//     [31:9]  readers inside, or on their way in or back out, in units of 0x200
//   offset 4  wait_lock, a queued spinlock: the queue of everybody who has to wait
// Legal: 0 free · n*0x200 readers · 0xff (+ n*0x200 readers that back out or queue) written
//        · 0x100 + n*0x200 a writer waits for n readers. 0xff and 0x100 together: a writer waits
//        for another that holds the lock.
//
// Guarantees: G1 a writer excludes everybody. G2 (C25) a waiting writer stops new readers: they see
// 0x100, back out, and queue behind it on wait_lock, which it holds until it has got in. So the
// writer waits for the readers that were inside, and for no later one. G3 first come, first served
// among those who wait. Progress: blocking. Not recursive: a reader that locks again while a writer
// waits deadlocks.

import { add32, cas32, load32, or32, store32, store8 } from "../atomics";
import { spin_wait } from "./park";
import { qspin_init, qspin_lock, qspin_unlock } from "./qspinlock";

const WRITER: i32 = 0xff;
const WRITER_WAITS: i32 = 0x100;
const WRITER_ANY: i32 = 0x1ff;
const READER: i32 = 0x200;
const WAIT_LOCK: usize = 4;

export function rwlock_init(p: usize): void {
  store32(p, 0);
  qspin_init(p + WAIT_LOCK);
}

// @ts-ignore: decorator
@inline
export function read_lock(p: usize): void {
  // [A] announce, and see in the same step whether a writer is there. Pairs with [W] and [X]: "no
  // writer seen" and "no reader seen" cannot both happen, since all are updates of one word.
  if ((add32(p, READER) & WRITER_ANY) != 0) read_lock_slow(p);
}

// @ts-ignore: decorator
@inline
export function read_trylock(p: usize): bool {
  if ((load32(p) & WRITER_ANY) != 0) return false;
  if ((add32(p, READER) & WRITER_ANY) == 0) return true; // [A]
  add32(p, -READER);
  return false;
}

// @ts-ignore: decorator
@inline
export function read_unlock(p: usize): void {
  add32(p, -READER); // [B] a writer that finds no reader at [W], [X] sees all we did inside
}

// @ts-ignore: decorator
@inline
export function write_lock(p: usize): void {
  if (cas32(p, 0, WRITER) != 0) write_lock_slow(p); // [W]
}

// @ts-ignore: decorator
@inline
export function write_trylock(p: usize): bool {
  return load32(p) == 0 && cas32(p, 0, WRITER) == 0; // [W]
}

// @ts-ignore: decorator
@inline
export function write_unlock(p: usize): void {
  store8(p, 0); // [U] one byte: the readers' count and the waiting flag are not ours
}

export function read_lock_slow(p: usize): void {
  add32(p, -READER); // back out: a writer must not wait for readers that are queued behind it
  qspin_lock(p + WAIT_LOCK);
  // Head of the queue, so no writer waits. Announce again; at most a writer that holds the lock is
  // left, and the next writer has to wait for us.
  add32(p, READER); // [A]
  let i = 0;
  let counts = 0;
  while (((counts = load32(p)) & WRITER) != 0) spin_wait(p, counts, i++); // pairs with [U]
  qspin_unlock(p + WAIT_LOCK);
}

export function write_lock_slow(p: usize): void {
  qspin_lock(p + WAIT_LOCK);
  if (load32(p) != 0 || cas32(p, 0, WRITER) != 0) {
    or32(p, WRITER_WAITS); // from here on new readers go to the queue (G2)
    let i = 0;
    for (;;) {
      const counts = load32(p);
      // [X] The last reader or writer has left: waiting -> locked.
      if (counts == WRITER_WAITS && cas32(p, counts, WRITER) == counts) break;
      spin_wait(p, counts, i++);
    }
  }
  qspin_unlock(p + WAIT_LOCK);
}
