// Broken twins of sync/refcount.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "refcount-zero-is-not-final",
    file: "sync/refcount.ts",
    find: "if (seen == 0) return false;",
    replace: "",
    kills: "torture locks --lock refcount",
  },
  {
    name: "refcount-drop-is-not-atomic",
    file: "sync/refcount.ts",
    find: "const before = add32(p, -1); // [D]",
    replace: `const before = load32(p);
  store32(p, before - 1); // [D]`,
    kills: "torture locks --lock refcount",
  },
  {
    name: "refcount-drop-looks-again",
    file: "sync/refcount.ts",
    find: `if (before == 1) return true;
  if (before <= 0) refcount_saturate_slow(p);`,
    replace: `if (load32(p) == 0) return true;
  if (before <= 0) refcount_saturate_slow(p);`,
    kills: "torture locks --lock refcount",
  },
  {
    name: "refcount-inc-is-not-atomic",
    file: "sync/refcount.ts",
    find: "const before = add32(p, 1);",
    replace: `const before = load32(p);
  store32(p, before + 1);`,
    kills: "torture locks --lock refcount",
  },
  {
    name: "refcount-inc-of-zero-passes",
    file: "sync/refcount.ts",
    find: "if (<u32>(before - 1) < 0x7ffffffe) return true;",
    replace: "if (before >= 0) return true;",
    kills: "test sync/refcount",
  },
  {
    name: "refcount-underflow-passes",
    file: "sync/refcount.ts",
    find: "if (before <= 0) refcount_saturate_slow(p);",
    replace: "",
    kills: "test sync/refcount",
  },
];
