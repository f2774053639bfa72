// Broken twins of sync/rwlock.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "rwlock-reader-ignores-waiting-writer",
    file: "sync/rwlock.ts",
    find: "if ((add32(p, READER) & WRITER_ANY) != 0) read_lock_slow(p);",
    replace: "if ((add32(p, READER) & WRITER) != 0) read_lock_slow(p);",
    kills: "torture locks --lock rwlock_readers",
  },
  {
    name: "rwlock-trylock-ignores-waiting-writer",
    file: "sync/rwlock.ts",
    find: `if ((load32(p) & WRITER_ANY) != 0) return false;
  if ((add32(p, READER) & WRITER_ANY) == 0) return true; // [A]`,
    replace: `if ((load32(p) & WRITER) != 0) return false;
  if ((add32(p, READER) & WRITER) == 0) return true; // [A]`,
    kills: "torture locks --lock rwlock_readers",
  },
  {
    name: "rwlock-reader-does-not-back-out",
    file: "sync/rwlock.ts",
    find: "add32(p, -READER); // back out",
    replace: "// back out",
    kills: "torture locks --lock rwlock",
  },
  {
    name: "rwlock-queued-reader-does-not-wait",
    file: "sync/rwlock.ts",
    find:
      "while (((counts = load32(p)) & WRITER) != 0) spin_wait(p, counts, i++); // " +
      "pairs with [U]",
    replace: "if (((counts = load32(p)) & WRITER) != 0) spin_wait(p, counts, i++);",
    kills: "torture locks --lock rwlock",
  },
  {
    name: "rwlock-unlock-stores-the-word",
    file: "sync/rwlock.ts",
    find: "store8(p, 0); // [U]",
    replace: "store32(p, 0); //",
    kills: "torture locks --lock rwlock",
  },
  {
    name: "rwlock-writer-ignores-readers",
    file: "sync/rwlock.ts",
    find: "if (counts == WRITER_WAITS && cas32(p, counts, WRITER) == counts) break;",
    replace: `const taken = (counts & ~WRITER_ANY) | WRITER;
      if ((counts & WRITER) == 0 && cas32(p, counts, taken) == counts) break;`,
    kills: "torture locks --lock rwlock",
  },
  {
    name: "rwlock-writer-does-not-announce",
    file: "sync/rwlock.ts",
    find: "or32(p, WRITER_WAITS); // from here",
    replace: `let old = load32(p);
    while (old != 0 || cas32(p, 0, WRITER) != 0) old = load32(p);
    qspin_unlock(p + WAIT_LOCK);
    return; // from here`,
    kills: "torture locks --lock rwlock_readers",
    unkillable:
      "with one reader at a time a writer gets in between two of its sections; " +
      "overlapping readers take a third CPU",
  },
];
