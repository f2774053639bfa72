// Broken twins of sync/rwsem.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "rwsem-last-reader-does-not-wake",
    file: "sync/rwsem.ts",
    find: "if ((count & (LOCKED | WAITERS)) == WAITERS) rwsem_wake_slow(p);",
    replace: "",
    kills: "torture locks --lock rwsem",
  },
  {
    name: "rwsem-writer-does-not-wake",
    file: "sync/rwsem.ts",
    find: "if ((add32(p, -WRITER) & WAITERS) != 0) rwsem_wake_slow(p); // [U]",
    replace: "add32(p, -WRITER); // [U]",
    kills: "torture locks --lock rwsem",
  },
  {
    name: "rwsem-sleeping-writer-does-not-say",
    file: "sync/rwsem.ts",
    find: "or32(p, WAITERS); // [D]",
    replace: "// [D]",
    kills: "torture locks --lock rwsem",
  },
  {
    name: "rwsem-backing-out-does-not-look",
    file: "sync/rwsem.ts",
    find: "const chain = mark_wake_if_free(p, add32(p, change) + change);",
    replace: `add32(p, change);
  const chain: usize = 0;`,
    kills: "torture locks --lock rwsem --seconds 10",
  },
  {
    name: "rwsem-waiting-writer-ignores-readers",
    file: "sync/rwsem.ts",
    find: `if ((count & LOCKED) != 0) {
      if`,
    replace: `if ((count & WRITER) != 0) {
      if`,
    kills: "torture locks --lock rwsem",
  },
  {
    name: "rwsem-spinning-writer-ignores-readers",
    file: "sync/rwsem.ts",
    find: "if ((count & (LOCKED | HANDOFF)) == 0 &&",
    replace: "if ((count & (WRITER | HANDOFF)) == 0 &&",
    kills: "torture locks --lock rwsem",
  },
  {
    name: "rwsem-prepares-after-the-try",
    file: "sync/rwsem.ts",
    find: `if (!spin || !spin_until_free(p)) park(wait_word(node), 0, -1);
    // Before the next try: who leaves after that try stores \`woken\` after this.
    wait_prepare(node);`,
    replace: `wait_prepare(node);
    if (!spin || !spin_until_free(p)) park(wait_word(node), 0, -1);`,
    kills: "torture locks --lock rwsem",
    unkillable:
      "the waker needs the lock that the sleeper dropped an instant ago; the window " +
      "is shorter than that: an explorer has to find it",
  },
  {
    name: "rwsem-granted-reader-not-counted",
    file: "sync/rwsem.ts",
    find: "change = granted * READER - change;",
    replace: "change = -change;",
    kills: "torture locks --lock rwsem",
  },
  {
    name: "rwsem-grant-ignores-thief",
    file: "sync/rwsem.ts",
    find: `if ((count & WRITER) != 0) {
      // A writer was quicker`,
    replace: `if (false) {
      // A writer was quicker`,
    kills: "torture locks --lock rwsem -p 4 --seconds 10",
  },
  {
    name: "rwsem-reader-ignores-waiters",
    file: "sync/rwsem.ts",
    find: "const READ_FAILED: i32 = WRITER | WAITERS | HANDOFF;",
    replace: "const READ_FAILED: i32 = WRITER;",
    kills: "test sync/rwsem",
  },
  {
    name: "rwsem-steals-past-handoff",
    file: "sync/rwsem.ts",
    find: "if (!amongReaders && (count & (WRITER | HANDOFF)) == 0) {",
    replace: "if (!amongReaders && (count & WRITER) == 0) {",
    kills: "torture locks --lock rwsem",
    unkillable:
      "two CPUs take turns anyway: only a third can keep a waiter out for 4 ms, and " +
      "nothing but time is lost",
  },
];
