// Broken twins of a task's own breakpoints.

import type { Mutant } from "./types.js";

const ENTRIES = "test engine/thread-breakpoints";
const FILE = "uprobe/thread_breakpoints.ts";

export const mutants: readonly Mutant[] = [
  {
    name: "thread-breakpoints-outlive-the-uprobe",
    file: "uprobe/breakpoint.ts",
    find: "  if (has_thread_breakpoints(table)) tasks_del_breakpoints(table, mm, vaddr, vaddr);\n",
    replace: "",
    kills: ENTRIES,
  },
  {
    name: "thread-breakpoints-outlive-the-mapping",
    file: "uprobe/breakpoint.ts",
    find: "    tasks_del_breakpoints(table, mm, vaddr, vaddr + <u32>(vma_length(vma) - 1));\n",
    replace: "",
    kills: ENTRIES,
  },
  {
    name: "thread-breakpoints-of-the-last-byte-stay",
    file: FILE,
    find: "    const found = entry != 0 && load<u32>(entry, ENTRY_VADDR) <= last;\n",
    replace:
      "    const found = entry != 0 && (first == last || load<u32>(entry, ENTRY_VADDR) < last);\n",
    kills: ENTRIES,
  },
  {
    name: "thread-breakpoints-outlive-the-task",
    file: "uprobe/utask.ts",
    find: "  del_thread_breakpoints(table, task, 0, u32.MAX_VALUE);\n",
    replace: "",
    kills: ENTRIES,
  },
  {
    name: "thread-breakpoints-of-other-address-spaces-go",
    file: "uprobe/task.ts",
    find: "    if (load<u32>(task, TASK_MM) == <u32>mm) del_thread",
    replace: "    if (mm != 0) del_thread",
    kills: ENTRIES,
  },
  {
    name: "thread-breakpoint-of-a-trap-that-is-gone",
    file: "uprobe/hit.ts",
    find: "  if (!is_trap_at(vma, vaddr) || (load32(u + FLAGS) & COPY_INSN) == 0) return;\n",
    replace: "  if ((load32(u + FLAGS) & COPY_INSN) == 0) return;\n",
    kills: ENTRIES,
  },
  {
    name: "thread-breakpoint-without-its-uprobe's-reference",
    file: FILE,
    find: "  get_uprobe(u);\n  refcount_set(entry + REF, 1);\n",
    replace: "  refcount_set(entry + REF, 1);\n",
    kills: ENTRIES,
  },
  {
    name: "thread-breakpoint-let-go-before-the-handlers",
    file: "uprobe/hit.ts",
    find:
      "  const outcome = handler_chain(table, u, task, mm, vaddr);\n" +
      "  if (!skip_sstep(strategy, task, insn)) " +
      "single_step(strategy, task, u, entry, trap_units);\n" +
      "  if (own && entry != 0) put_thread_breakpoint(table, entry);\n  else put",
    replace:
      "  if (own && entry != 0) put_thread_breakpoint(table, entry);\n" +
      "  const outcome = handler_chain(table, u, task, mm, vaddr);\n" +
      "  if (!skip_sstep(strategy, task, insn)) " +
      "single_step(strategy, task, u, entry, trap_units);\n  if (entry == 0) put",
    kills: "test engine/xol",
  },
  {
    name: "thread-breakpoint-is-kept-by-its-hit",
    file: "uprobe/hit.ts",
    find:
      "  if (own && entry != 0) put_thread_breakpoint(table, entry);\n" +
      "  else put_uprobe(table, u);\n",
    replace: "  if (entry == 0) put_uprobe(table, u);\n",
    kills: ENTRIES,
  },
  {
    name: "thread-breakpoint-never-found",
    file: FILE,
    find: "    if (at == vaddr) {\n",
    replace: "    if (at == vaddr && vaddr == 0) {\n",
    kills: ENTRIES,
  },
  {
    name: "thread-breakpoint-remembers-no-slot",
    file: "uprobe/step.ts",
    find: "    thread_breakpoint_set_slot(entry, nr);\n",
    replace: "",
    kills: ENTRIES,
  },
  {
    name: "thread-breakpoint-believes-what-is-in-its-slot",
    file: "uprobe/xol.ts",
    find: "  if (load<i32>(slot) != opcode) store<i32>(slot, opcode);\n",
    replace: "  if (load<i32>(slot) == 0) store<i32>(slot, opcode);\n",
    kills: ENTRIES,
  },
];
