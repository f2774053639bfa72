// Broken twins of sync/seqcount.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "seqcount-reader-does-not-wait",
    file: "sync/seqcount.ts",
    find: "return (seen & 1) == 0 ? seen : read_seqcount_slow(p);",
    replace: "return seen;",
    kills: "torture locks --lock seqcount",
  },
  {
    name: "seqcount-never-retries",
    file: "sync/seqcount.ts",
    find: "return load32(p) != begin; // [D]",
    replace: "return false; // [D]",
    kills: "torture locks --lock seqcount",
  },
  {
    name: "seqcount-never-odd",
    file: "sync/seqcount.ts",
    find: "store<i32>(p, load<i32>(p) + 1); // [A]",
    replace: "store<i32>(p, load<i32>(p) + 2); // [A]",
    kills: "torture locks --lock seqcount",
  },
  {
    name: "seqcount-opens-without-a-fence",
    file: "sync/seqcount.ts",
    find: `// [A]
  fence();`,
    replace: "// [A]",
    kills: "torture locks --lock seqcount",
    unkillable: "x86 keeps plain stores in order, and plain loads: it takes a weakly ordered CPU",
  },
  {
    name: "seqcount-retries-without-a-fence",
    file: "sync/seqcount.ts",
    find: `  fence();
  return load32(p) != begin; // [D]`,
    replace: "  return load32(p) != begin; // [D]",
    kills: "torture locks --lock seqcount",
    unkillable: "x86 keeps plain stores in order, and plain loads: it takes a weakly ordered CPU",
  },
];
