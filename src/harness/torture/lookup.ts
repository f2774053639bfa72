// `torture lookup`: what is looked up without a lock. Rounds on a freshly formatted engine, by
// preset and by part: the tree (one CPU inserts and erases, the others search) and, for presets
// that speculate, the maps (one CPU remaps, the others look up). What is checked inside is the
// engine's (workload/lookuptorture.ts); here it is set up, counted and taken back.

import * as abi from "../../engine/abi.js";
import { type PresetName, strategyOf } from "../../engine/presets.js";
import type { Job, Runner } from "../../engine/runner.js";
import { failureOf, faultLines, runWatched, type TortureContext } from "./run.js";
import type { TortureReport } from "./run.js";

type Part = "tree" | "maps";
/** Lookups without a lock, each with the readers that it is for; maps only where they speculate. */
const ROUNDS: readonly (readonly [PresetName, Part])[] = [
  ["speculative", "maps"],
  ["speculative", "tree"],
  ["srcu", "tree"],
  ["fastest", "tree"],
];
const ROUND_MS = 700;
const FILE_BYTES = 4096;
const REGION_BYTES = 1024;
const REGION_VADDR = 0x400000;
/** Offsets of A's and of B's mapping in their files: apart, so that a decoy is in neither. */
const PGOFFS = [0, 2048] as const;
const INTO = 256;
/** The key that is always there: among those that come and go. */
const FIXED_KEY = (abi.LOOKUP_KEYS / 2) * 16 + 8;

interface Totals {
  changes: number;
  lookups: number;
  open: number;
  retries: number;
  fallbacks: number;
}

interface Round {
  area: number;
  /** Where retries and fallbacks of each CPU are counted. */
  tasks: number[];
  consumers: number[];
  objects: (readonly [op: number, ...args: number[]])[];
}

async function setUp(runner: Runner, cpus: number): Promise<Round> {
  const { memory } = runner;
  const file = () => runner.command(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_PUSH);
  const a = await file();
  const b = await file();
  const mm = await runner.command(abi.OP_MM_CREATE, 4);
  const map = (inode: number, vaddr: number, pgoff: number) =>
    runner.command(abi.OP_MMAP, mm, inode, vaddr, REGION_BYTES, pgoff);
  const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
  const area = await runner.command(abi.OP_ALLOC, abi.LOOKUP_AREA_BYTES);
  const words = [a, b, ...PGOFFS, mm, REGION_VADDR, REGION_BYTES, INTO, FIXED_KEY];
  for (const [i, word] of words.entries()) memory.store(area + 4 * i, word);
  await map(a, REGION_VADDR, PGOFFS[0]);
  // Above it, so that entries move; a half-moved one is a decoy.
  await map(a, REGION_VADDR + REGION_BYTES, PGOFFS[1]);
  const consumers: number[] = [];
  // The probe of each file, and a decoy at the other one's offset; the key that stays.
  const keys: [number, number][] = [[a, FIXED_KEY]];
  for (const inode of [a, b]) for (const at of PGOFFS) keys.push([inode, at + INTO + 1]);
  memory.store(area + abi.LOOKUP_INTO, INTO + 1);
  for (const [inode, offset] of keys) {
    consumers.push(await runner.command(abi.OP_REGISTER, inode, offset, sink));
  }
  const tasks: number[] = [];
  for (let cpu = 0; cpu < cpus; cpu++) {
    tasks.push(await runner.command(abi.OP_ALLOC, abi.TASK_BYTES));
  }
  return {
    area,
    tasks,
    consumers,
    objects: [
      [abi.OP_SINK_DESTROY, sink],
      [abi.OP_MM_DESTROY, mm],
      [abi.OP_INODE_DESTROY, a],
      [abi.OP_INODE_DESTROY, b],
      [abi.OP_FREE, area, abi.LOOKUP_AREA_BYTES],
      ...tasks.map((task) => [abi.OP_FREE, task, abi.TASK_BYTES] as const),
    ],
  };
}

async function oneRound(
  context: TortureContext,
  [preset, part]: readonly [PresetName, Part],
  round: number,
  ms: number,
  totals: Totals,
): Promise<string[]> {
  const { runner } = context;
  const { memory } = runner;
  const cpus = Math.max(context.cpus, 2);
  await runner.format({ cpus, strategy: strategyOf(preset), uprobesMax: 1024 });
  await runner.command(abi.OP_NOP);
  const before = memory.arena();
  const made = await setUp(runner, cpus);
  for (let cpu = 0; cpu < cpus; cpu++) {
    const random = memory.perCpu(abi.PCPU_TORTURE, cpu) + abi.TORTURE_RANDOM;
    memory.store(random, ((context.seed + round) * 2654435761 + cpu * 40503) | 1);
  }
  const writer = round % cpus;
  const jobs: Job[] = made.tasks.map((task, cpu) => {
    if (cpu !== writer) return { entry: `torture_${part}_reader`, args: [made.area, task] };
    const out = memory.perCpu(abi.PCPU_COUNT, cpu); // a line of the CPU's own
    return part === "tree"
      ? { entry: "torture_tree_churner", args: [made.area] }
      : { entry: "torture_maps_mapper", args: [made.area, out] };
  });
  await runWatched(context, jobs, ms);
  const failures = faultLines(runner, `${preset} ${part}`);
  const sum = (offset: number) =>
    jobs.reduce(
      (all, _, cpu) => all + memory.load64(memory.perCpu(abi.PCPU_TORTURE, cpu) + offset),
      0,
    );
  const ofTasks = (offset: number) =>
    made.tasks.reduce((all, task) => all + memory.load64(task + offset), 0);
  totals.changes += sum(abi.TORTURE_WRITES);
  totals.lookups += sum(abi.TORTURE_READS);
  totals.open += sum(abi.TORTURE_TRYFAILS);
  totals.retries += ofTasks(abi.TASK_RETRIES);
  totals.fallbacks += ofTasks(abi.TASK_FALLBACKS);
  if (failures.length > 0) return failures;

  if (part === "tree") {
    const cleared = await runner.run([
      { entry: "torture_tree_clear", args: [made.area], count: 1 },
    ]);
    await cleared.done;
  }
  for (const consumer of made.consumers) await runner.command(abi.OP_UNREGISTER, consumer);
  await runner.command(abi.OP_SYNCHRONIZE);
  const nodes = await runner.command(abi.OP_CHECK_TREE);
  for (const [op, ...args] of made.objects) await runner.command(op, ...args);
  const after = memory.arena();
  const { alive } = memory.uprobes();
  if (alive !== 0 || nodes !== 0) {
    failures.push(`${preset} ${part}: at the end ${alive} uprobes are alive, ${nodes} in the tree`);
  }
  const left = after.liveObjects - before.liveObjects;
  if (left !== 0) failures.push(`${preset} ${part}: ${left} objects were not given back`);
  return [...failures, ...faultLines(runner, `${preset} ${part}, at its end`)];
}

export async function tortureLookup(context: TortureContext): Promise<TortureReport> {
  const { nowMs, interrupt, print } = context;
  const totals: Totals = { changes: 0, lookups: 0, open: 0, retries: 0, fallbacks: 0 };
  const failures: string[] = [];
  const until = nowMs() + context.seconds * 1000;
  let round = 0;
  for (; nowMs() < until && !interrupt.aborted && failures.length === 0; round++) {
    const what = ROUNDS[round % ROUNDS.length] as (typeof ROUNDS)[number];
    context.onStep(what.join(", "));
    try {
      const ms = Math.min(ROUND_MS, until - nowMs());
      failures.push(...(await oneRound(context, what, round, ms, totals)));
    } catch (error) {
      failures.push(`${what.join(" ")}: ${failureOf(error)}`);
    }
  }
  print(`LOOKUPS: ${totals.lookups}  CHANGES: ${totals.changes}  RETRIES: ${totals.retries}`);
  print(`SPECULATION LEFT OPEN: ${totals.open}  FALLBACKS: ${totals.fallbacks}`);
  const waived = failures.length > 0 || interrupt.aborted || round < ROUNDS.length;
  if (!waived && totals.retries === 0) failures.push("no search was ever begun again");
  if (!waived && totals.fallbacks === 0) failures.push("no lookup ever fell back to the lock");
  return { failures, interrupted: interrupt.aborted };
}
