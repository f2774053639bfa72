// Broken twins of registration, the hit path and the probe table.

import type { Mutant } from "./types.js";

const PROBES = "torture probes";
/** For what is rare: the oldest presets have a second turn, which is longer. */
const PROBES_LONG = "torture probes --seconds 10";
const LATE_HITS = "test engine/late-hits";

/** In place of their import: functions of these names that do nothing. */
function without(...names: readonly string[]): string {
  return names.map((name) => `function ${name}(p: usize): void {}\n`).join("");
}

export const mutants: readonly Mutant[] = [
  {
    name: "register-no-breakpoint",
    file: "uprobe/register.ts",
    find: "if (consumer_filter(added, mm)) rc = install_breakpoint(table, u, vma, vaddr);",
    replace: "if (!consumer_filter(added, mm)) rc = install_breakpoint(table, u, vma, vaddr);",
    kills: PROBES,
  },
  {
    name: "register-one-mapping-only",
    file: "uprobe/register.ts",
    find: "    mm_put(mm);\n  }\n",
    replace: "    mm_put(mm);\n    break;\n  }\n",
    kills: PROBES,
  },
  {
    name: "register-on-a-dead-uprobe",
    file: "uprobe/register.ts",
    find: "if (uprobe_is_active(u)) {",
    replace: "if (u != 0) {",
    kills: PROBES,
  },
  {
    name: "register-without-mmap-lock",
    file: "uprobe/register.ts",
    find: 'mm_put, mmap_write_lock, mmap_write_unlock } from "../mm/mm";',
    replace: 'mm_put } from "../mm/mm";\n' + without("mmap_write_lock", "mmap_write_unlock"),
    kills: PROBES,
  },
  {
    name: "register-keeps-its-reference",
    file: "uprobe/register.ts",
    find: "  up_write(u + REGISTER_RWSEM);\n  put_uprobe(table, u);\n  return rc;\n}\n\n// In",
    replace: "  up_write(u + REGISTER_RWSEM);\n  return rc;\n}\n\n// In",
    kills: PROBES,
  },
  {
    name: "insert-ignores-an-equal-key",
    file: "uprobe/table.ts",
    find: "    if (is_key(inode, offset, n)) {\n      if (get_equal",
    replace: "    if (n == 0) {\n      if (get_equal",
    kills: PROBES,
  },
  {
    name: "insert-without-rebalancing",
    file: "uprobe/table.ts",
    find: "  rb_insert_color(table + TREE, u);\n",
    replace: "",
    kills: PROBES,
  },
  {
    name: "insert-under-read-lock",
    file: "uprobe/table.ts",
    find: "  rb_link_node(u, parent, link);\n  rb_insert_color(table + TREE, u);\n",
    replace:
      "  treeunlock_write(table);\n  rb_link_node(u, parent, link);\n" +
      "  rb_insert_color(table + TREE, u);\n  treelock_write(table);\n",
    kills: PROBES,
  },
  {
    name: "unregister-leaves-the-breakpoint",
    file: "uprobe/register.ts",
    find:
      "if (!filter_chain(u, mm)) remove_breakpoint(table, u, vma, vaddr);\n" +
      "        else refresh",
    replace: "if (filter_chain(u, mm)) refresh",
    kills: PROBES,
  },
  {
    name: "unregister-ignores-other-consumers",
    file: "uprobe/register.ts",
    find:
      "if (!filter_chain(u, mm)) remove_breakpoint(table, u, vma, vaddr);\n" +
      "        else refresh",
    replace: "remove_breakpoint(table, u, vma, vaddr);\n        if (false) refresh",
    kills: PROBES,
  },
  {
    name: "unregister-erases-before-the-breakpoint",
    file: "uprobe/register.ts",
    find:
      "  const rc = unregister_locked(table, u, c);\n" +
      "  if (rc == 0 && load32(u + CONSUMERS) == 0) delete_uprobe(table, u);\n  return rc;\n",
    replace:
      "  if (!consumer_del(u, c)) return ENOENT;\n" +
      "  if (load32(u + CONSUMERS) == 0) delete_uprobe(table, u);\n" +
      "  register_for_each_vma(table, u, 0);\n  return 0;\n",
    kills: PROBES,
  },
  {
    name: "unregister-keeps-the-consumer",
    file: "uprobe/consumer.ts",
    find: "      store32(link, load32(c + CONSUMER_NEXT)); // B\n",
    replace: "",
    kills: PROBES,
  },
  {
    name: "unregister-without-register-rwsem",
    file: "uprobe/register.ts",
    find:
      "    down_write(u + REGISTER_RWSEM);\n" +
      "    const rc = unregister_by_reference(table, u, c);\n" +
      "    up_write(u + REGISTER_RWSEM);\n",
    replace: "    const rc = unregister_by_reference(table, u, c);\n",
    kills: PROBES,
  },
  {
    name: "unregister-never-erases",
    file: "uprobe/register.ts",
    find: "  if (rc == 0 && load32(u + CONSUMERS) == 0) delete_uprobe(table, u);\n",
    replace: "",
    kills: PROBES,
  },
  {
    name: "erase-without-treelock",
    file: "uprobe/table.ts",
    find: "  treelock_write(table);\n  erase_uprobe(table, u);\n  treeunlock_write(table);\n",
    replace: "  erase_uprobe(table, u);\n",
    kills: PROBES_LONG,
  },
  {
    name: "erase-without-rebalancing",
    file: "uprobe/rbtree.ts",
    find: "  if (lost_black) erase_color(root, child, parent);\n",
    replace: "",
    kills: PROBES,
  },
  {
    name: "find-without-treelock",
    file: "uprobe/table.ts",
    find:
      "  treelock_read(table, strategy);\n  const u = search(table, inode, offset);\n" +
      "  if (u != 0) get_uprobe(u);\n  treeunlock_read(table, strategy);",
    replace: "  const u = search(table, inode, offset);\n  if (u != 0) get_uprobe(u);",
    kills: PROBES,
  },
  {
    name: "find-without-reference",
    file: "uprobe/table.ts",
    find: "  const u = search(table, inode, offset);\n  if (u != 0) get_uprobe(u);",
    replace: "  const u = search(table, inode, offset);",
    kills: PROBES,
  },
  {
    name: "hit-drops-its-reference-before-the-handlers",
    file: "uprobe/hit.ts",
    find:
      "  const outcome = handler_chain(table, u, task, mm, vaddr);\n" +
      "  if (!skip_sstep(strategy, task, insn)) " +
      "single_step(strategy, task, u, entry, trap_units);\n" +
      "  if (own && entry != 0) put_thread_breakpoint(table, entry);\n" +
      "  else put_uprobe(table, u);\n",
    replace:
      "  if (entry == 0) put_uprobe(table, u);\n" +
      "  const outcome = handler_chain(table, u, task, mm, vaddr);\n" +
      "  if (!skip_sstep(strategy, task, insn)) " +
      "single_step(strategy, task, u, entry, trap_units);\n" +
      "  if (own && entry != 0) put_thread_breakpoint(table, entry);\n",
    kills: PROBES,
  },
  {
    name: "hit-keeps-its-reference",
    file: "uprobe/hit.ts",
    find: "  else put_uprobe(table, u);\n  return outcome;",
    replace: "  return outcome;",
    kills: PROBES,
  },
  {
    name: "hit-walks-consumers-without-register-rwsem",
    file: "uprobe/hit.ts",
    find: 'import { down_read, up_read } from "../sync/rwsem";',
    replace: without("down_read", "up_read"),
    kills: PROBES,
  },
  {
    name: "hit-without-probe-is-always-sigtrap",
    file: "uprobe/hit.ts",
    find: "    if (u == 0) u = is_trap_at(vma, vaddr) ? SWBP : GONE;",
    replace: "    if (u == 0) u = SWBP;",
    kills: PROBES,
  },
  {
    name: "hit-without-probe-is-never-sigtrap",
    file: "uprobe/hit.ts",
    find: "  if (u == SWBP) return HIT_SIGTRAP;",
    replace: "  if (u == SWBP) return HIT_NO_CONSUMER;",
    kills: "test engine/limits",
  },
  {
    name: "hit-without-mmap-lock",
    file: "uprobe/hit.ts",
    find: "import { mmap_read_lock, mmap_read_unlock, mmap_speculate_begin }",
    replace: without("mmap_read_lock", "mmap_read_unlock") + "import { mmap_speculate_begin }",
    kills: PROBES_LONG,
  },
  {
    name: "remove-if-one-consumer-says-so",
    file: "uprobe/hit.ts",
    find:
      "  return all != 0 ? outcome | WANTS_REMOVAL : outcome;\n}\n\n" +
      "// handler_chain of v6.9: the list under register_rwsem.\n" +
      "function handler_chain(table: usize, u: usize, task: usize, mm: usize, " +
      "vaddr: u32): i32 {\n" +
      "  down_read(u + REGISTER_RWSEM);\n" +
      "  const outcome = consumers(PRESET_RWLOCK, table, u, task);\n" +
      "  // UPROBE_HANDLER_REMOVE by all of them. Still under register_rwsem, so no consumer" +
      " can be added\n  // in between, and asked again: one that wants other address spaces only" +
      " has no say (C11).\n  if ((outcome & WANTS_REMOVAL) != 0 && !filter_chain(u, mm)) unapply",
    replace:
      "  return (any & RC_REMOVE) != 0 ? outcome | WANTS_REMOVAL : outcome;\n}\n" +
      "function handler_chain(table: usize, u: usize, task: usize, mm: usize, " +
      "vaddr: u32): i32 {\n" +
      "  down_read(u + REGISTER_RWSEM);\n" +
      "  const outcome = consumers(PRESET_RWLOCK, table, u, task);\n" +
      "  if ((outcome & WANTS_REMOVAL) != 0) unapply",
    kills: PROBES,
  },
  {
    name: "limit-takes-one-hit-too-many",
    file: "uprobe/consumer.ts",
    find: "    if (before <= 0) {",
    replace: "    if (before < 0) {",
    kills: PROBES,
  },
  {
    name: "copy-insn-without-the-instruction",
    file: "uprobe/breakpoint.ts",
    find: "      store<u16>(u, <u16>insn, INSN); // A\n",
    replace: "",
    kills: "test engine/registration",
  },
  {
    name: "copy-insn-flag-before-the-instruction",
    file: "uprobe/breakpoint.ts",
    find:
      "      store<u16>(u, <u16>insn, INSN); // A\n" +
      "      store32(u + FLAGS, load32(u + FLAGS) | COPY_INSN); // B\n",
    replace:
      "      store32(u + FLAGS, load32(u + FLAGS) | COPY_INSN);\n" +
      "      store<u16>(u, <u16>insn, INSN);\n",
    kills: PROBES,
    unkillable:
      "the stores are neighbours on one line, and x86 keeps their order: torture lookup reads " +
      "between them too rarely; insn-after-its-flag puts an unlock in between",
  },
  {
    name: "arena-without-lock",
    file: "mm/arena.ts",
    find: 'import { qspin_init, qspin_lock, qspin_unlock } from "../sync/qspinlock";',
    replace: without("qspin_init", "qspin_lock", "qspin_unlock"),
    kills: PROBES,
  },
  {
    name: "arena-free-twice",
    file: "mm/arena.ts",
    find: "    put_large(arena, p, size);\n  }\n  store<i32>(arena, load",
    replace: "    put_large(arena, p, size + LINE);\n  }\n  store<i32>(arena, load",
    kills: "test engine/arena",
  },
  {
    name: "mmap-does-not-patch-a-new-mapping",
    file: "uprobe/breakpoint.ts",
    find: "    uprobe_mmap(table, vma);\n",
    replace: "",
    kills: "test engine/registration",
  },
  {
    name: "removal-of-the-next-breakpoint",
    file: "uprobe/hit.ts",
    find:
      "  if (!try_get_uprobe(u)) return;\n  down_read(u + REGISTER_RWSEM);\n" +
      "  if (!filter_chain(u, mm)) unapply_uprobe_slow(u, mm, vaddr);\n" +
      "  up_read(u + REGISTER_RWSEM);\n  put_uprobe(",
    replace:
      "  down_read(u + REGISTER_RWSEM);\n" +
      "  if (!filter_chain(u, mm)) unapply_uprobe_slow(u, mm, vaddr);\n" +
      "  up_read(u + REGISTER_RWSEM);\n  if (u == 0) put_uprobe(",
    kills: LATE_HITS,
  },
  {
    name: "full-while-another-cpu-frees",
    file: "uprobe/table.ts",
    find: "  return has_deferred(table) || load32(table + RECLAIMING) != 0;\n",
    replace: "  return has_deferred(table);\n",
    kills: LATE_HITS,
  },
  {
    name: "single-step-without-executing",
    file: "uprobe/step.ts",
    find: "  execute_insn(task, <i32>load<u8>(slot));\n",
    replace: "",
    kills: "test engine/registration",
  },
];
