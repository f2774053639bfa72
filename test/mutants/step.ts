// Broken twins of executing the displaced instruction, and of XOL areas.

import type { Mutant } from "./types.js";

const STEP = "test engine/step";
const SLOTS = "test engine/xol";
const XOL_FILE = "uprobe/xol.ts";
const STEP_FILE = "uprobe/step.ts";

export const mutants: readonly Mutant[] = [
  // C15
  {
    name: "xol-wakes-nobody",
    file: XOL_FILE,
    find: "  if (load32(area + XOL_WAITERS) != 0) wake_slow(area); // B\n",
    replace: "",
    kills: SLOTS,
  },
  {
    // With a delay: without one the window is a few nanoseconds, once at the end of a run, since
    // the next one who lets a slot go wakes those that this one missed.
    name: "xol-looks-for-waiters-before-it-lets-go",
    file: XOL_FILE,
    find:
      "  // Of two holders of a slot one clears what is clear already.\n" +
      "  if ((and32(word_of(area, nr), ~bit) & bit) == 0) raise_slow(FAULT_SLOT); // A\n" +
      "  if ((strategy & STEP_MASK) == STEP_OLD) add32(area + XOL_SLOT_COUNT, -1); // A\n" +
      "  if (load32(area + XOL_WAITERS) != 0) wake_slow(area); // B\n",
    replace:
      "  const waiters = load32(area + XOL_WAITERS);\n" +
      "  for (let i = 0; i < 100000; i++) load32(area + XOL_WOKEN);\n" +
      "  if ((and32(word_of(area, nr), ~bit) & bit) == 0) raise_slow(FAULT_SLOT);\n" +
      "  if ((strategy & STEP_MASK) == STEP_OLD) add32(area + XOL_SLOT_COUNT, -1);\n" +
      "  if (waiters != 0) wake_slow(area);\n",
    kills: SLOTS,
  },
  {
    // Likewise.
    name: "xol-looks-for-a-slot-before-it-announces-itself",
    file: XOL_FILE,
    find:
      "  add32(area + XOL_WAITERS, 1); // C\n  let nr: i32;\n  while (true) {\n" +
      "    const woken = load32(area + XOL_WOKEN);\n" +
      "    nr = xol_get_slot_nr(area, slots); // D\n",
    replace:
      "  let nr: i32;\n  let announced = false;\n  while (true) {\n" +
      "    const woken = load32(area + XOL_WOKEN);\n" +
      "    nr = xol_get_slot_nr(area, slots);\n" +
      "    for (let i = 0; i < 100000 && !announced; i++) load32(area + XOL_WOKEN);\n" +
      "    if (!announced) add32(area + XOL_WAITERS, 1);\n    announced = true;\n",
    kills: SLOTS,
  },
  {
    name: "xol-slot-let-go-twice",
    file: STEP_FILE,
    find: "  xol_free_slot(strategy, area, nr);\n",
    replace: "  xol_free_slot(strategy, area, nr);\n  xol_free_slot(strategy, area, nr);\n",
    kills: STEP,
  },
  {
    // Also with a delay: on a busy machine the two threads seldom run at the same moment.
    name: "xol-takes-what-it-found-without-asking",
    file: XOL_FILE,
    find: "  return (or32(word_of(area, nr), bit) & bit) != 0;\n",
    replace:
      "  for (let i = 0; i < 1000; i++) load32(area + XOL_WOKEN);\n" +
      "  or32(word_of(area, nr), bit);\n  return false;\n",
    kills: SLOTS,
  },
  {
    name: "xol-gives-away-the-trampoline's-slot",
    file: XOL_FILE,
    find: "  set_bit(area, 0);\n",
    replace: "",
    kills: STEP,
  },
  {
    name: "xol-area-outlives-its-address-space",
    file: "mm/mm.ts",
    find: "  arena_free(arena, <usize>load32(mm + MM_XOL_AREA), XOL_BYTES);\n",
    replace: "",
    kills: STEP,
  },
  {
    name: "xol-area-that-came-second-stays",
    file: XOL_FILE,
    find: "  arena_free(arena, area, XOL_BYTES); // another thread of the process was faster\n",
    replace: "",
    kills: SLOTS,
    unkillable: "two threads must make their process's first step within the same microsecond",
  },
  // C17
  {
    name: "step-without-a-reference",
    file: "uprobe/hit.ts",
    find:
      "  } else if (try_get_uprobe(u)) {\n    readers_exit(strategy, idx);\n" +
      "    single_step(strategy, task, u, 0, trap_units);\n    put_uprobe(table, u);\n",
    replace:
      "  } else if (u != 0) {\n    readers_exit(strategy, idx);\n" +
      "    single_step(strategy, task, u, 0, trap_units);\n",
    kills: SLOTS,
  },
  {
    name: "step-keeps-its-reference",
    file: "uprobe/hit.ts",
    find: "    single_step(strategy, task, u, 0, trap_units);\n    put_uprobe(table, u);\n",
    replace: "    single_step(strategy, task, u, 0, trap_units);\n",
    kills: SLOTS,
  },
  {
    name: "step-executes-what-was-in-the-slot",
    file: STEP_FILE,
    find: "    xol_copy(slot, opcode);\n",
    replace: "",
    kills: STEP,
  },
  {
    name: "step-leaves-the-instruction-pointer-in-the-slot",
    file: STEP_FILE,
    find: "    store<i64>(task, load<i64>(task, TASK_IP) + back, TASK_IP);\n",
    replace: "    store<i64>(task, load<i64>(task, TASK_IP) + 0 * back, TASK_IP);\n",
    kills: STEP,
  },
  {
    name: "step-lost-without-memory",
    file: STEP_FILE,
    find: "  execute_insn(task, <i32>load<u8>(u, INSN)); // plain: written before COPY_INSN\n",
    replace: "",
    kills: STEP,
  },
];
