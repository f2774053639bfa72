/** What `torture locks` tests, in its order. Apart, so that the command line needs no test. */
export const LOCK_TEST_NAMES = [
  "spinlock",
  "ticket",
  "qspinlock",
  "rwlock",
  "rwlock_readers",
  "rwsem",
  "rwsem_readers",
  "mutex",
  "mutex_timed",
  "osq",
  "seqcount",
  "refcount",
] as const;

export type LockTestName = (typeof LOCK_TEST_NAMES)[number];
