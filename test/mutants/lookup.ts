// Broken twins of what is looked up without a lock: the tree, the maps, and the frees behind them.

import type { Mutant } from "./types.js";

const LOOKUP = "torture lookup";
const HASH = "test engine/breakpoints";
/** Long enough for every preset's round. */
const PROBES_ALL = "torture probes --seconds 8";

export const mutants: readonly Mutant[] = [
  // C1
  {
    name: "lookup-no-retry-check",
    file: "uprobe/table.ts",
    find: "  if (!read_seqcount_retry(table + SEQCOUNT, seq)) return false;",
    replace: "  if (seq != -1) return false;",
    kills: LOOKUP,
  },
  {
    name: "lookup-begins-while-a-writer-is-there",
    file: "uprobe/table.ts",
    find: "    seq = read_seqcount_begin(table + SEQCOUNT);",
    replace: "    seq = load32(table + SEQCOUNT);",
    kills: LOOKUP,
  },
  {
    name: "lookup-links-before-the-key",
    file: "uprobe/table.ts",
    find: "  const cur = insert_uprobe(table, u, inode, offset);\n",
    replace:
      "  store<u32>(u, 0, UPROBE_INODE);\n  store<i32>(u, 0, UPROBE_OFFSET);\n" +
      "  store<i32>(u, 0, MAGIC);\n" +
      "  const cur = insert_uprobe(table, u, inode, offset);\n" +
      "  store<u32>(u, <u32>inode, UPROBE_INODE);\n  store<i32>(u, offset, UPROBE_OFFSET);\n" +
      "  store<i32>(u, UPROBE_MAGIC, MAGIC);\n",
    kills: LOOKUP,
  },
  {
    name: "lookup-links-before-its-children",
    file: "uprobe/rbtree.ts",
    find: "  store32(n + LEFT, 0);\n  store32(n + RIGHT, 0);\n  store32(link, <i32>n); // A\n",
    replace: "  store32(link, <i32>n);\n  store32(n + LEFT, 0);\n  store32(n + RIGHT, 0);\n",
    kills: LOOKUP,
    unkillable:
      "a node is linked once, from memory that arena_alloc has zeroed, which is what both stores " +
      "write; lookup-links-before-the-key shows the order",
  },
  // C2
  {
    name: "free-before-the-grace-period",
    file: "uprobe/reclaim.ts",
    find:
      "    readers_synchronize(strategy); // B, 1\n    synchronize_leases(table); // B, 2\n" +
      "  }\n  readers_synchronize(strategy); // B, 3\n",
    replace: "    synchronize_leases(table);\n  }\n",
    kills: LOOKUP,
  },
  {
    name: "free-at-once",
    file: "uprobe/table.ts",
    find: "  treeunlock_write(table);\n  defer(table, u + RCU_HEAD, DEFERRED_UPROBE);\n",
    replace: "  treeunlock_write(table);\n  free_uprobe(table, u);\n",
    kills: LOOKUP,
  },
  {
    name: "free-what-came-after-the-grace-period",
    file: "uprobe/reclaim.ts",
    find:
      "  let head = call_rcu_take(table + DEFERRED); // A\n" +
      "  const strategy = table_strategy(table);\n  if (has_leases(strategy)) {\n" +
      "    readers_synchronize(strategy); // B, 1\n    synchronize_leases(table); // B, 2\n" +
      "  }\n  readers_synchronize(strategy); // B, 3\n",
    replace:
      "  const strategy = table_strategy(table);\n  synchronize_leases(table);\n" +
      "  readers_synchronize(strategy);\n  let head = call_rcu_take(table + DEFERRED);\n",
    kills: LOOKUP,
  },
  {
    name: "free-before-the-erase",
    file: "uprobe/table.ts",
    find:
      "  treelock_write(table);\n  if (uprobe_is_active(u)) erase_uprobe(table, u); // B\n" +
      "  treeunlock_write(table);\n  defer(table, u + RCU_HEAD, DEFERRED_UPROBE);\n",
    replace:
      "  free_uprobe(table, u);\n  treelock_write(table);\n" +
      "  if (uprobe_is_active(u)) erase_uprobe(table, u);\n  treeunlock_write(table);\n",
    kills: LOOKUP,
  },
  // C4
  {
    name: "free-head-in-the-node",
    file: "uprobe/table.ts",
    find: "const RCU_HEAD = 176;",
    replace: "const RCU_HEAD = 8;",
    kills: LOOKUP,
  },
  // C5
  {
    name: "insn-after-its-flag",
    file: "uprobe/breakpoint.ts",
    find:
      "      store<u16>(u, <u16>insn, INSN); // A\n" +
      "      store32(u + FLAGS, load32(u + FLAGS) | COPY_INSN); // B\n" +
      "    }\n  }\n  up_write(u + CONSUMER_RWSEM);\n",
    replace:
      "      store32(u + FLAGS, load32(u + FLAGS) | COPY_INSN);\n" +
      "    }\n  }\n  up_write(u + CONSUMER_RWSEM);\n" +
      "  if (rc == 0) store<u16>(u, <u16>analyze_insn(original_insn(u)), INSN);\n",
    kills: LOOKUP,
  },
  // C6
  {
    name: "speculation-not-validated",
    file: "uprobe/hit.ts",
    find: "  return u != 0 && !mmap_speculate_retry(mm, seq) ? u : 0;",
    replace: "  return u;",
    kills: LOOKUP,
  },
  {
    name: "speculation-validated-before-the-last-load",
    file: "uprobe/hit.ts",
    find:
      "  const inode = map_inode_speculative(map);\n  if (pause != 0) cpu_delay(pause);\n" +
      "  const u = find_uprobe_rcu(table, task, inode, map_offset_speculative(map, vaddr));\n" +
      "  return u != 0 && !mmap_speculate_retry(mm, seq) ? u : 0;",
    replace:
      "  const inode = map_inode_speculative(map);\n" +
      "  if (mmap_speculate_retry(mm, seq)) return 0;\n  if (pause != 0) cpu_delay(pause);\n" +
      "  return find_uprobe_rcu(table, task, inode, map_offset_speculative(map, vaddr));",
    kills: LOOKUP,
  },
  {
    name: "speculation-begins-while-it-is-odd",
    file: "uprobe/hit.ts",
    find: "  if ((seq & 1) != 0) return 0;\n",
    replace: "",
    kills: LOOKUP,
  },
  {
    name: "speculation-concludes-from-a-miss",
    file: "uprobe/hit.ts",
    find:
      "    const u = find_active_uprobe_speculative(table, task, mm, vaddr, 0);\n" +
      "    return u != 0 ? u : find_active_uprobe_slow(table, task, mm, vaddr);",
    replace:
      "    const u = find_active_uprobe_speculative(table, task, mm, vaddr, 0);\n" +
      "    return u != 0 ? u : SWBP;",
    kills: PROBES_ALL,
  },
  // C7
  {
    name: "maps-freed-with-the-mapping",
    file: "mm/mm.ts",
    find: "  store32(mm + MAP_COUNT, count);\n  const arena",
    replace:
      "  store32(mm + MAP_COUNT, count);\n" +
      "  const owner = <usize>load<u32>(mm, MM_ARENA);\n" +
      "  const moved = arena_alloc(owner, load<i32>(mm, MAP_MAX) * MAP_BYTES);\n" +
      "  memory.copy(moved, maps, load<i32>(mm, MAP_MAX) * MAP_BYTES);\n" +
      "  store<u32>(mm, <u32>moved, MM_MAPS);\n" +
      "  memory.fill(maps, 0x6b, load<i32>(mm, MAP_MAX) * MAP_BYTES);\n" +
      "  arena_free(owner, maps, load<i32>(mm, MAP_MAX) * MAP_BYTES);\n" +
      "  const arena",
    kills: LOOKUP,
    unkillable:
      "what is freed inside the write section is garbage that is only compared, and never used " +
      "since the sequence has changed: that C7 asks for no more is the point of it",
  },
  // C8
  {
    name: "sequence-is-never-odd",
    file: "mm/mm.ts",
    find:
      "  write_seqcount_begin(mm + MM_LOCK_SEQ);\n}\n" +
      "export function mmap_write_unlock(mm: usize): void {\n" +
      "  write_seqcount_end(mm + MM_LOCK_SEQ);\n",
    replace:
      "}\nexport function mmap_write_unlock(mm: usize): void {\n" +
      "  store32(mm + MM_LOCK_SEQ, load32(mm + MM_LOCK_SEQ) + 2);\n",
    kills: LOOKUP,
  },
  {
    name: "sequence-odd-before-the-lock",
    file: "mm/mm.ts",
    find: "  down_write(mm + MMAP_LOCK);\n  write_seqcount_begin(mm + MM_LOCK_SEQ);\n",
    replace: "  write_seqcount_begin(mm + MM_LOCK_SEQ);\n  down_write(mm + MMAP_LOCK);\n",
    kills: LOOKUP,
  },
  {
    name: "sequence-even-after-the-lock",
    file: "mm/mm.ts",
    find: "  write_seqcount_end(mm + MM_LOCK_SEQ);\n  up_write(mm + MMAP_LOCK);\n",
    replace: "  up_write(mm + MMAP_LOCK);\n  write_seqcount_end(mm + MM_LOCK_SEQ);\n",
    kills: LOOKUP,
  },
  {
    name: "maps-changed-after-the-lock",
    file: "uprobe/breakpoint.ts",
    find: "  const rc = munmap_region(mm, vaddr);\n  mmap_write_unlock(mm);\n",
    replace: "  mmap_write_unlock(mm);\n  const rc = munmap_region(mm, vaddr);\n",
    kills: LOOKUP,
  },
  // C12
  {
    name: "remapping-is-not-patched",
    file: "uprobe/breakpoint.ts",
    find: "    if (filter_chain(u, mm)) {\n",
    replace: "    if (!filter_chain(u, mm)) {\n",
    kills: LOOKUP,
  },
  // The hash of breakpoints (fastest)
  {
    name: "hash-count-stays-behind",
    file: "uprobe/breakpoints.ts",
    find: "  store64(place + COUNT, 0); // D\n  store32(place + UPROBE, 0); // E\n",
    replace: "  store32(place + UPROBE, 0); // E\n",
    kills: HASH,
    unkillable: "the trap byte has gone before it, so nobody asks; the next one there sets its own",
  },
  {
    name: "hash-sole-counter-of-two",
    file: "uprobe/consumer.ts",
    find: "    load32(c + CONSUMER_NEXT) == 0 &&\n",
    replace: "",
    kills: PROBES_ALL,
  },
  {
    name: "hash-sole-counter-of-a-filter",
    file: "uprobe/consumer.ts",
    find: "    load<i32>(c, FILTER_TASK) == 0 &&\n",
    replace: "",
    kills: HASH,
  },
  {
    name: "hash-sole-counter-of-a-limit",
    file: "uprobe/consumer.ts",
    find: "    load<i32>(c, LIMITED) == 0 &&\n",
    replace: "",
    kills: HASH,
  },
  {
    name: "hash-mapping-leaves-its-places",
    file: "uprobe/breakpoint.ts",
    find: "  if (is_start && has_hash(table)) uprobe_munmap(table, vma);\n",
    replace: "",
    kills: HASH,
  },
  {
    name: "hash-forgets-a-mapping-that-stays",
    file: "uprobe/breakpoint.ts",
    find: "  if (is_start && has_hash(table)) uprobe_munmap(table, vma);\n",
    replace: "  if (vma != 0 && has_hash(table)) uprobe_munmap(table, vma);\n",
    kills: "test engine/breakpoints",
  },
  {
    name: "hash-only-grows",
    file: "uprobe/breakpoints.ts",
    find: "  return (live + 1) * 16 > places * 7 ? places * 2 : places;",
    replace: "  return live >= 0 ? places * 2 : places;",
    kills: HASH,
  },
];
