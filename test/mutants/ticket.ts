// Broken twins of sync/ticket.ts.

import type { Mutant } from "./types.js";

export const mutants: Mutant[] = [
  {
    name: "ticket-trylock-draws-for-a-held-lock",
    file: "sync/ticket.ts",
    find: "return seen >>> 16 == (seen & OWNER) && cas32(p, seen, seen + ONE) == seen; // [A]",
    replace: "return cas32(p, seen, seen + ONE) == seen;",
    kills: "torture locks --lock ticket",
  },
  {
    name: "ticket-unlock-carries-into-next",
    file: "sync/ticket.ts",
    find: "store16(p, <i32>load<u16>(p) + 1); // [R]",
    replace: "add32(p, 1); //",
    kills: "torture locks --lock ticket",
  },
  {
    name: "ticket-unlock-calls-the-last",
    file: "sync/ticket.ts",
    find: "store16(p, <i32>load<u16>(p) + 1); // [R]",
    replace: "store16(p, load32(p) >>> 16); //",
    kills: "torture locks --lock ticket -p 4",
  },
  {
    name: "ticket-waiter-enters-one-early",
    file: "sync/ticket.ts",
    find: "!= ticket) spin_wait(p, seen, i++); // [S]",
    replace: `!= ticket) {
    if ((((seen & OWNER) + 1) & OWNER) == ticket) break;
    spin_wait(p, seen, i++);
  }`,
    kills: "torture locks --lock ticket",
  },
];
