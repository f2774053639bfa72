// Broken twins of lifetimes, fork, reference counters and batches.

import type { Mutant } from "./types.js";

const LIFETIMES = "test engine/lifetimes";

export const mutants: readonly Mutant[] = [
  // C3
  {
    name: "lifetime-resurrects-from-zero",
    file: "uprobe/table.ts",
    find: "  return refcount_inc_not_zero(u + REF); // C\n",
    replace: "  add32(u + REF, 1);\n  return true;\n",
    kills: LIFETIMES,
  },
  {
    name: "lifetime-erases-twice",
    file: "uprobe/table.ts",
    find: "  if (uprobe_is_active(u)) erase_uprobe(table, u); // B\n",
    replace: "  erase_uprobe(table, u);\n",
    kills: LIFETIMES,
  },
  {
    name: "lifetime-inserts-beside-the-dead-one",
    file: "uprobe/table.ts",
    find:
      "      erase_uprobe(table, n);\n" +
      "      link = table + TREE; // the tree has changed: from the root again\n" +
      "      parent = 0;\n      continue;\n",
    replace: "",
    kills: LIFETIMES,
  },
  {
    name: "lifetime-takes-the-dead-one",
    file: "uprobe/table.ts",
    find: "      if (get_equal(table, n)) {\n",
    replace: "      if (get_equal(table, n) || n != 0) {\n",
    kills: LIFETIMES,
  },
  {
    name: "lifetime-node-is-not-cleared",
    file: "uprobe/table.ts",
    find: "  add32(table + TABLE_IN_TREE, -1);\n  rb_clear_node(u);\n",
    replace: "  add32(table + TABLE_IN_TREE, -1);\n",
    kills: LIFETIMES,
  },
  {
    name: "lifetime-never-erased",
    file: "uprobe/table.ts",
    find: "  if (uprobe_is_active(u)) erase_uprobe(table, u); // B\n",
    replace: "",
    kills: LIFETIMES,
  },
  {
    name: "lifetime-erased-outside-the-lock",
    file: "uprobe/table.ts",
    find:
      "  treelock_write(table);\n  if (uprobe_is_active(u)) erase_uprobe(table, u); // B\n" +
      "  treeunlock_write(table);\n",
    replace: "  if (uprobe_is_active(u)) erase_uprobe(table, u);\n",
    kills: LIFETIMES,
  },
  {
    name: "lifetime-tree-keeps-a-reference",
    file: "uprobe/table.ts",
    find: "  refcount_set(u + REF, table_is_deferring(table) ? 1 : 2);\n",
    replace: "  refcount_set(u + REF, 2);\n",
    kills: LIFETIMES,
  },
  {
    name: "lifetime-registration-drops-its-reference",
    file: "uprobe/register.ts",
    find: "  if (rc != 0) {\n    put_uprobe(table, u);\n",
    replace: "  put_uprobe(table, u);\n  if (rc != 0) {\n",
    kills: LIFETIMES,
  },
  {
    name: "lifetime-mapping-takes-the-dead-one",
    file: "uprobe/breakpoint.ts",
    find: "    if (!alive) continue;\n",
    replace: "",
    kills: LIFETIMES,
  },
];
