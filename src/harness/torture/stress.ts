// The stress part of `torture probes`, after uprobe-stress: a hundred functions that call each
// other at random, 72 deep, on tasks that any CPU goes on with (workload/stress*.ts).
//
//   caller    goes on with some task: calls, tail calls, returns, longjmps
//   attacher  attaches and detaches links of up to ten probes: at entries, at returns, sessions;
//             for one task or all, some for so many hits only
//   mapper    maps and unmaps parts of the file, and calls what is there
//   forker    forks tasks in the midst of their calls; the children go on, and end
// The housekeeper plays those parts that no CPU does, attaches in any case, and checks the tree in
// between.
//
// The oracle is one task whose every call is watched by consumers that are there throughout: all
// are handled, and entries = returns + missed, by cause, + pending. Of all tasks the identities are
// known; what attachers, mappers and forkers do they check themselves.

import * as abi from "../../engine/abi.js";
import { sumHits } from "../../engine/memory.js";
import type { Job, Runner } from "../../engine/runner.js";
import { addTask, identityLines, type Totals } from "./counts.js";
import { optionsOf, type RoundPlan } from "./plan.js";
import { faultLines, runWatched, type TortureContext } from "./run.js";

const FUNCTIONS = 100;
/** Most probes at a time: attachers' links, the watched ones, and what waits for a grace period. */
const UPROBES_MAX = 1024;

type Role = "caller" | "attacher" | "mapper" | "forker";
/** Roles of CPU 0, 1, 2 ... in turn; shifted by one each turn, so that two CPUs see them all. */
const ROLES: readonly Role[] = ["caller", "attacher", "caller", "mapper", "forker", "caller"];
const ENTRIES = {
  caller: "stress_calls",
  attacher: "stress_attaches",
  mapper: "stress_maps",
  forker: "stress_forks",
} as const;
/** What the housekeeper does of each in a row. */
const STEPS: Record<Role, readonly [part: number, steps: number]> = {
  caller: [abi.STRESS_CALLS, 500],
  attacher: [abi.STRESS_ATTACHES, 6],
  mapper: [abi.STRESS_MAPS, 10],
  forker: [abi.STRESS_FORKS, 10],
};

interface Round {
  area: number;
  /** One a CPU, then the housekeeper's. */
  members: number[];
  own: number;
  tasks: number[];
}

async function setUp(runner: Runner, cpus: number, seed: number): Promise<Round> {
  const { memory } = runner;
  const tasks = 2 * cpus + 2;
  const area = await runner.command(abi.OP_STRESS_CREATE, FUNCTIONS, tasks, cpus + 1, seed);
  const members: number[] = [];
  for (let i = 0; i <= cpus; i++) {
    members.push(await runner.command(abi.OP_STRESS_JOIN, area, i, seed + 77 * (i + 1)));
  }
  const slot = (i: number) => area + abi.STRESS_SLOTS_AT + i * abi.STRESS_SLOT_BYTES;
  return {
    area,
    members,
    own: members[cpus] ?? 0,
    tasks: Array.from({ length: tasks }, (_, i) => memory.load(slot(i))),
  };
}

/** One round; returns its failures. */
export async function stressRound(
  context: TortureContext,
  plan: RoundPlan,
  totals: Totals,
): Promise<string[]> {
  const { runner, cpus } = context;
  const { memory } = runner;
  const { preset, turn } = plan;
  const roles = Array.from(
    { length: cpus },
    (_, cpu) => ROLES[(cpu + turn) % ROLES.length] ?? "caller",
  );
  context.onStep(`${preset}: stress by ${roles.join(", ")}`);
  await runner.format({ ...optionsOf(plan, cpus), uprobesMax: UPROBES_MAX });
  await runner.command(abi.OP_NOP);
  const before = memory.arena();
  const round = await setUp(runner, cpus, plan.seed);
  const jobs: Job[] = roles.map((role, cpu) => ({
    entry: ENTRIES[role],
    args: [round.members[cpu] ?? 0],
  }));
  const counted = (offset: number) =>
    round.members.reduce((sum, member) => sum + memory.load(member + offset), 0);
  const called = () => sumHits(round.tasks.map((task) => memory.task(task))).triggers;
  const all = Object.keys(ENTRIES) as Role[];
  const own = all.filter((role) => role === "attacher" || !roles.includes(role));
  const busy = () =>
    called() > 0 &&
    [abi.STRESS_DETACHED, abi.STRESS_MMAPS, abi.STRESS_FORKED].every((at) => counted(at) > 0);
  await runWatched(context, jobs, plan.ms, {
    everybody: busy,
    meanwhile: async (ended) => {
      while (!ended()) {
        for (const role of own) await runner.command(abi.OP_STRESS, round.own, ...STEPS[role]);
        await runner.command(abi.OP_CHECK_TREE);
      }
    },
  });

  const failures: string[] = [];
  const expect = (ok: boolean, line: string) => {
    if (!ok) failures.push(`${preset}: ${line}`);
  };
  const waived = context.interrupt.aborted || Object.keys(memory.faults()).length > 0;
  expect(waived || busy(), "somebody did nothing");
  await runner.command(abi.OP_STRESS_UNWIND, round.area, round.own);
  for (const member of round.members) await runner.command(abi.OP_STRESS_LEAVE, member);
  failures.push(...countedLines(context, round, totals).map((line) => `${preset}: ${line}`));
  const refused = counted(abi.STRESS_ERRORS);
  expect(refused === 0, `${refused} steps were refused although there was room`);
  totals.links += counted(abi.STRESS_LINKS);
  totals.uprobes += counted(abi.STRESS_UPROBES);
  totals.uretprobes += counted(abi.STRESS_URETPROBES);
  totals.checks += counted(abi.STRESS_CHECKS);
  totals.maps += counted(abi.STRESS_MMAPS);
  totals.forks += counted(abi.STRESS_FORKED);
  failures.push(...(await takeDown(runner, round, before)).map((line) => `${preset}: ${line}`));
  return [...faultLines(runner, preset), ...failures];
}

/** The identities of all tasks, and the oracle of the one that is watched. */
function countedLines(context: TortureContext, round: Round, totals: Totals): string[] {
  const { memory } = context.runner;
  const failures: string[] = [];
  const graves = round.members.map((member) => memory.load(member + abi.STRESS_GRAVE));
  for (const [i, task] of [...round.tasks, ...graves].entries()) {
    addTask(totals, memory, task);
    const what = i < round.tasks.length ? `task ${i}` : "those that ended";
    failures.push(...identityLines(what, memory.task(task), memory.returns(task)));
  }
  const watched = round.tasks[0] ?? 0;
  const hits = memory.task(watched);
  const returns = memory.returns(watched);
  const expect = (ok: boolean, line: string) => {
    if (!ok) failures.push(`the watched task: ${line}`);
  };
  const lost = hits.triggers - hits.handled;
  expect(lost === 0, `${lost} of ${hits.triggers} calls missed`);
  const unseen = hits.triggers - returns.entries;
  expect(unseen === 0, `${unseen} of ${hits.triggers} calls had no return probe`);
  for (const cause of ["memory", "gone", "no-consumer", "ring-full"] as const) {
    expect(returns.missed[cause] === 0, `${returns.missed[cause]} returns missed by "${cause}"`);
  }
  expect(returns.filtered === 0, `${returns.filtered} returns filtered`);
  const sink = memory.load(round.area + abi.STRESS_WATCH_SINK);
  const given = memory.sinkHits(sink, context.cpus + 1).reduce((a, b) => a + b, 0);
  const session = memory.load(round.area + abi.STRESS_WATCH_KIND) === abi.CONSUMER_SESSION;
  const wanted = returns.returns + (session ? hits.handled : 0);
  expect(given === wanted, `its consumers saw ${given} entries and returns of ${wanted}`);
  return failures;
}

async function takeDown(
  runner: Runner,
  round: Round,
  before: { liveBytes: number; liveObjects: number },
): Promise<string[]> {
  const { memory } = runner;
  for (const member of round.members) {
    await runner.command(abi.OP_FREE, memory.load(member + abi.STRESS_GRAVE), abi.TASK_BYTES);
    await runner.command(abi.OP_FREE, member, abi.STRESS_MEMBER_BYTES);
  }
  await runner.command(abi.OP_STRESS_DESTROY, round.area);
  await runner.command(abi.OP_SYNCHRONIZE);
  const nodes = await runner.command(abi.OP_CHECK_TREE);
  const left = await runner.command(abi.OP_RETURNS_LEFT);
  const { alive, inTree } = memory.uprobes();
  const failures: string[] = [];
  if (alive !== 0 || inTree !== 0 || nodes !== 0) {
    failures.push(`after the last unregister ${alive} uprobes are alive, ${nodes} in the tree`);
  }
  if (left !== 0) failures.push(`${left} leases or return instances are left`);
  const after = memory.arena();
  let made = 0;
  for (let cpu = 0; cpu < runner.cpus + 2; cpu++) {
    made += memory.load(memory.perCpu(abi.PCPU_RETURNS, cpu) + abi.RETURNS_MADE);
  }
  const objects = after.liveObjects - before.liveObjects - made / abi.RETURNS_SLAB;
  const bytes = after.liveBytes - before.liveBytes - made * abi.RETURN_INSTANCE_BYTES;
  if (objects !== 0 || bytes !== 0) {
    failures.push(`${objects} objects (${bytes} bytes) were not given back`);
  }
  return failures;
}
