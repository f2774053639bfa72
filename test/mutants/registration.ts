// Broken twins of lifetimes, fork, reference counters and batches.

import type { Mutant } from "./types.js";

const LIFETIMES = "test engine/lifetimes";
const UNREGISTER = "test engine/unregister";
const BATCH = "test engine/batch";
const FORK = "test engine/fork";
const REF_CTR = "test engine/ref-counter";
const GROWTH = "test engine/growth";

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
  // C9
  {
    name: "unregister-without-its-grace-period",
    file: "uprobe/register.ts",
    find:
      "export function uprobe_unregister_sync(table: usize): void {\n" +
      "  uprobes_reclaim(table);\n",
    replace: "export function uprobe_unregister_sync(table: usize): void {\n",
    kills: UNREGISTER,
  },
  {
    name: "unregister-without-the-readers-of-fastest",
    file: "uprobe/readers.ts",
    find: "  else if (readers == READERS_QSBR) synchronize_rcu_qsbr(this_engine() + HDR_RCU);\n",
    replace: "  else if (readers < 0) synchronize_rcu_qsbr(this_engine() + HDR_RCU);\n",
    kills: UNREGISTER,
  },
  {
    name: "unregister-without-the-readers-of-srcu",
    file: "uprobe/readers.ts",
    find: "  if (readers == READERS_SRCU) synchronize_srcu(this_engine() + HDR_SRCU);\n",
    replace: "  if (readers < 0) synchronize_srcu(this_engine() + HDR_SRCU);\n",
    kills: UNREGISTER,
  },
  {
    name: "unregister-frees-before-it-waits",
    file: "workload/registrar.ts",
    find: "  uprobe_unregister_sync(table);\n  free_consumer(table, c);\n",
    replace: "  free_consumer(table, c);\n  uprobe_unregister_sync(table);\n",
    kills: UNREGISTER,
  },
  {
    name: "batch-frees-before-it-waits",
    file: "workload/registrar.ts",
    find: "    if (rc == 0) continue;\n    store<i32>(at, rc);\n",
    replace:
      "    if (rc == 0) consumer_kill(<usize>load<u32>(at));\n    if (rc == 0) continue;\n" +
      "    store<i32>(at, rc);\n",
    kills: UNREGISTER,
  },
  {
    name: "batch-waits-for-each",
    file: "workload/registrar.ts",
    find: "    if (rc == 0) continue;\n    store<i32>(at, rc);\n",
    replace:
      "    if (rc == 0) uprobe_unregister_sync(table);\n    if (rc == 0) continue;\n" +
      "    store<i32>(at, rc);\n",
    kills: BATCH,
  },
  {
    name: "batch-keeps-what-was-before-a-failure",
    file: "workload/registrar.ts",
    find: "    take_back(table, list, i);\n",
    replace: "",
    kills: BATCH,
  },
  // C12: fork
  {
    name: "fork-without-dup-mmap-sem",
    file: "uprobe/fork.ts",
    find: 'import { down_read, up_read } from "../sync/rwsem";',
    replace: "function down_read(p: usize): void {}\nfunction up_read(p: usize): void {}",
    kills: FORK,
  },
  {
    name: "fork-without-the-hash",
    file: "uprobe/fork.ts",
    find: "  return ref_ctr_fork(parent, child) && copy_breakpoints(table, parent, child);\n",
    replace:
      "  if (!mm_has_uprobes(child)) return copy_breakpoints(table, parent, child);\n" +
      "  return ref_ctr_fork(parent, child);\n",
    kills: FORK,
  },
  {
    name: "fork-shares-the-hash",
    file: "uprobe/breakpoints.ts",
    find: "  const block = copied(table, old, load<i32>(old, COUNT_PLACES)); // F\n",
    replace: "  const block = old;\n",
    kills: FORK,
  },
  {
    name: "fork-forgets-that-there-are-breakpoints",
    file: "uprobe/fork.ts",
    find: "  mm_set_has_uprobes(child);\n",
    replace: "",
    kills: FORK,
  },
  {
    name: "fork-copies-the-file",
    file: "mm/mm.ts",
    find: "      <usize>load<u32>(vma, VM_TEXT),\n    );",
    replace:
      "      <usize>load<u32>(<usize>load<u32>(vma, VM_INODE), INODE_DATA) +\n" +
      "        <usize>load<i32>(vma, VM_PGOFF),\n    );",
    kills: FORK,
  },
  {
    name: "fork-that-failed-leaves-its-child",
    file: "uprobe/fork.ts",
    find: "  if (!done) mm_put(child);\n",
    replace: "  if (!done) mm_set_has_uprobes(child);\n",
    kills: FORK,
  },
  // C11
  {
    name: "remove-without-the-re-check",
    file: "uprobe/hit.ts",
    find:
      "  if (!filter_chain(u, mm)) unapply_uprobe_slow(u, mm, vaddr);\n" +
      "  up_read(u + REGISTER_RWSEM);\n  put_uprobe(",
    replace: "  unapply_uprobe_slow(u, mm, vaddr);\n  up_read(u + REGISTER_RWSEM);\n  put_uprobe(",
    kills: "test engine/late-hits",
  },
  // Reference counters
  {
    name: "ref-ctr-counts-a-breakpoint-that-is-there",
    file: "uprobe/breakpoint.ts",
    find: "  if (!is_trap_at(vma, vaddr) && !update_ref_ctr(mm, u, 1)) return ENOMEM;\n",
    replace: "  if (!update_ref_ctr(mm, u, 1)) return ENOMEM;\n",
    kills: REF_CTR,
  },
  {
    name: "ref-ctr-counts-a-breakpoint-that-is-gone",
    file: "uprobe/breakpoint.ts",
    find: "  if (there == INSN_TRAP) update_ref_ctr(",
    replace: "  if (there != 0) update_ref_ctr(",
    kills: REF_CTR,
  },
  {
    name: "ref-ctr-not-lowered-by-munmap",
    file: "uprobe/breakpoint.ts",
    find: "  if (is_start) ref_ctr_munmap(mm, vma);\n",
    replace: "",
    kills: REF_CTR,
  },
  {
    name: "ref-ctr-not-raised-by-mmap",
    file: "uprobe/breakpoint.ts",
    find: "    ref_ctr_mmap(mm, vma);\n",
    replace: "",
    kills: REF_CTR,
  },
  {
    name: "ref-ctr-raised-after-the-breakpoints",
    file: "uprobe/breakpoint.ts",
    find: "    ref_ctr_mmap(mm, vma);\n    uprobe_mmap(table, vma);\n",
    replace: "    uprobe_mmap(table, vma);\n    ref_ctr_mmap(mm, vma);\n",
    kills: REF_CTR,
  },
  {
    name: "ref-ctr-of-the-first-mapping-only",
    file: "uprobe/ref_ctr.ts",
    find: "    if (at != 0) update_word(at, by);\n",
    replace: "    if (at == 0) continue;\n    update_word(at, by);\n    return;\n",
    kills: REF_CTR,
  },
  {
    name: "ref-ctr-below-zero",
    file: "uprobe/ref_ctr.ts",
    find: "  if (by >= 0 || before + by >= 0) return;\n",
    replace: "  if (by >= 0 || before >= 0) return;\n",
    kills: REF_CTR,
  },
  {
    name: "ref-ctr-of-another-probe-is-taken",
    file: "uprobe/register.ts",
    find: "    if (load<i32>(u, UPROBE_REF_CTR) != ref_ctr) {\n",
    replace: "    if (load<i32>(u, UPROBE_REF_CTR) < 0) {\n",
    kills: REF_CTR,
  },
  {
    name: "ref-ctr-not-known-to-the-child",
    file: "uprobe/fork.ts",
    find: "  return ref_ctr_fork(parent, child) && copy_breakpoints(table, parent, child);\n",
    replace:
      "  if (!mm_has_uprobes(child)) return ref_ctr_fork(parent, child);\n" +
      "  return copy_breakpoints(table, parent, child);\n",
    kills: REF_CTR,
  },
  // The hash of breakpoints grows under hits
  {
    name: "growth-leaves-the-old-table-as-it-was",
    file: "uprobe/breakpoints.ts",
    find: "    store64(place + COUNT, 0); // H\n    store32(place + UPROBE, 0);\n",
    replace: "",
    kills: GROWTH,
  },
  {
    name: "growth-frees-the-old-table-at-once",
    file: "uprobe/breakpoints.ts",
    find: "  defer(table, old, DEFERRED_BREAKPOINTS);\n",
    replace: "  free_breakpoints(table, old);\n",
    kills: GROWTH,
  },
  {
    name: "growth-never-frees-the-old-table",
    file: "uprobe/breakpoints.ts",
    find: "  defer(table, old, DEFERRED_BREAKPOINTS);\n",
    replace: "",
    kills: GROWTH,
  },
  {
    name: "growth-forgets-what-was-there",
    file: "uprobe/breakpoints.ts",
    find: "  const block = copied(table, old, places); // F\n",
    replace: "  const block = copied(table, 0, places);\n",
    kills: GROWTH,
  },
];
