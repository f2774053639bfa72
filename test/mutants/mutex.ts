// Broken twins of sync/mutex.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "mutex-trylock-takes-a-held-lock",
    file: "sync/mutex.ts",
    find: `        return word;
      }
    } else {`,
    replace: `        owner = self;
      }
    } else {`,
    kills: "torture locks --lock mutex",
  },
  {
    name: "mutex-steals-a-handed-lock",
    file: "sync/mutex.ts",
    find: "if (owner != self) return word;",
    replace: "owner = self;",
    kills: "torture locks --lock mutex -p 4 --seconds 10",
  },
  {
    name: "mutex-unlock-does-not-look",
    file: "sync/mutex.ts",
    find: "if (cas32(p, self, 0) != self) mutex_unlock_slow(p); // [R]",
    replace: "store32(p, self - self); // [R]",
    kills: "torture locks --lock mutex",
  },
  {
    name: "mutex-unlock-does-not-wake",
    file: "sync/mutex.ts",
    find: "if (first != 0) wait_notify(first);",
    replace: "",
    kills: "torture locks --lock mutex",
  },
  {
    name: "mutex-sleeper-does-not-say",
    file: "sync/mutex.ts",
    find: "if (wait_list_add(list, node, WAIT_WRITE, 0)) or32(p, WAITERS); // [W]",
    replace: "wait_list_add(list, node, WAIT_WRITE, 0);",
    kills: "torture locks --lock mutex",
  },
  {
    name: "mutex-no-last-look",
    file: "sync/mutex.ts",
    find: `      if (mutex_try(p, false) == 0) break;
      let left`,
    replace: "      let left",
    kills: "torture locks --lock mutex --seconds 10",
    unkillable:
      "killed in 18 of 20 runs of 10 s: the lock must be given up between the last attempt and " +
      "the waiter's mark; too rarely for a verdict",
  },
  {
    name: "mutex-prepares-after-the-try",
    file: "sync/mutex.ts",
    find: "      park(wait_word(node), 0, left);",
    replace: `      wait_prepare(node);
      park(wait_word(node), 0, left);`,
    kills: "torture locks --lock mutex",
    unkillable:
      "the waker needs the lock that the sleeper dropped an instant ago; the window " +
      "is shorter than that: an explorer has to find it",
  },
  {
    name: "mutex-hands-over-to-nobody",
    file: "sync/mutex.ts",
    find: "const heir = node != 0 ? ((wait_cpu(node) + 1) << OWNER_SHIFT) | PICKUP : 0;",
    replace: "const heir = 0;",
    kills: "torture locks --lock mutex -p 4 --seconds 10",
  },
  {
    name: "mutex-handed-over-without-pickup",
    file: "sync/mutex.ts",
    find: "((wait_cpu(node) + 1) << OWNER_SHIFT) | PICKUP : 0;",
    replace: "(wait_cpu(node) + 1) << OWNER_SHIFT : 0;",
    kills: "torture locks --lock mutex",
  },
  {
    name: "mutex-timed-out-stays-listed",
    file: "sync/mutex.ts",
    find: `          mutex_remove_waiter(p, node);
          qspin_unlock`,
    replace: "          qspin_unlock",
    kills: "torture locks --lock mutex_timed",
  },
  {
    name: "mutex-times-out-with-the-lock",
    file: "sync/mutex.ts",
    find: "const first = wait_list_first(list) == node;",
    replace: `if (deadline != 0 && cpu_now() >= deadline) {
        qspin_lock(p + WAIT_LOCK);
        mutex_remove_waiter(p, node);
        qspin_unlock(p + WAIT_LOCK);
        return false;
      }
      const first = wait_list_first(list) == node;`,
    kills: "torture locks --lock mutex_timed --seconds 10",
  },
  {
    name: "mutex-times-out-early",
    file: "sync/mutex.ts",
    find: "if (left <= 0) {",
    replace: "if (left <= 20_000) {",
    kills: "torture locks --lock mutex_timed",
  },
];
