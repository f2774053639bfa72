// The churn part of `torture probes`: hits of few probes, while registrations come and go.
//
//   hitter   triggers one permanent probe. The oracle: missed 0, handled = triggers
//   roamer   triggers all sites in random order. Only the identity is known, and: no SIGTRAP
//   lone     triggers a probe that is no churner's, whose one consumer takes every hit: what
//            fastest counts in its own loop. A guest beside it comes and goes, and sees its hits
//   churner  registers and unregisters at random, checking each step (workload/churn.ts)
// The housekeeper churns too, maps and unmaps the file, and checks the tree's rules in between. At
// the end of a round all is taken back: no uprobe is left, and the arena's accounting is as before.

import * as abi from "../../engine/abi.js";
import { sumHits } from "../../engine/memory.js";
import type { Job, Runner } from "../../engine/runner.js";
import type { PresetName } from "../../engine/presets.js";
import { SITE_STRIDE, SITE_VADDR, triggerEntry } from "../cell.js";
import { identityLines, signalLines, type Totals } from "./counts.js";
import { optionsOf, type RoundPlan } from "./plan.js";
import { faultLines, runWatched, type TortureContext } from "./run.js";

const SITES = 16;
const FILE_BYTES = 4096;
/** Where the lone probe is: behind those that come and go. */
const LONE_SITE = SITES * SITE_STRIDE;
const GUEST_MS = 2;
/** Task id of hitters: the permanent probe counts theirs only. */
const HITTER_PID = 7;
const ROAMER_PID = 8;
/** Registrations the housekeeper does between two looks at the tree. */
const CHURN_STEPS = 200;
/** Addresses the file is mapped at: registration has to patch several mappings. */
const MAPPINGS = 3;
/** Where it is mapped for moments: below the others, so that their entries move. */
const PASSING_VADDR = SITE_VADDR / 2;

type Role = "hitter" | "lone" | "roamer" | "churner";
/** Roles of CPU 0, 1, 2 ... in turn; shifted by one each turn, so that two CPUs see them all. */
const ROLES: readonly Role[] = ["hitter", "churner", "roamer", "churner", "lone"];

interface Round {
  inode: number;
  mm: number;
  sink: number;
  permanent: number;
  /** The lone probe's consumer and sink, and the sink of its guests. */
  lone: number;
  loneSink: number;
  guestSink: number;
  hitters: number[];
  lones: number[];
  roamers: number[];
  churns: number[];
  /** Churn state of the housekeeper itself. */
  own: number;
  jobs: Job[];
}

async function setUp(
  runner: Runner,
  preset: PresetName,
  roles: readonly Role[],
  seed: number,
): Promise<Round> {
  const inode = await runner.command(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_PUSH);
  const mm = await runner.command(abi.OP_MM_CREATE, MAPPINGS + 1);
  for (let i = 0; i < MAPPINGS; i++) {
    await runner.command(abi.OP_MMAP, mm, inode, SITE_VADDR * (i + 1), FILE_BYTES, 0);
  }
  const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
  const permanent = await runner.command(abi.OP_REGISTER, inode, 0, sink, HITTER_PID, 0, 0);
  const loneSink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
  const guestSink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
  const lone = await runner.command(abi.OP_REGISTER, inode, LONE_SITE, loneSink);
  const task = (pid: number, sites: number, salt: number, at = 0) =>
    runner.command(abi.OP_TASK_CREATE, mm, pid, SITE_VADDR + at, SITE_STRIDE, sites, seed + salt);
  const churn = (salt: number) => {
    const vaddr = SITE_VADDR * (1 + ((salt + 1) % MAPPINGS));
    const at = [mm, inode, vaddr, 0, SITE_STRIDE, SITES];
    return runner.command(abi.OP_CHURN_CREATE, ...at, seed + 77 * (salt + 1));
  };
  const round: Round = {
    inode,
    mm,
    sink,
    permanent,
    lone,
    loneSink,
    guestSink,
    hitters: [],
    lones: [],
    roamers: [],
    churns: [],
    own: await churn(-1),
    jobs: [],
  };
  for (const [cpu, role] of roles.entries()) {
    if (role === "churner") {
      const state = await churn(cpu);
      round.churns.push(state);
      round.jobs.push({ entry: "churn_probes", args: [state] });
    } else if (role === "hitter") {
      const hitter = await task(HITTER_PID, 1, cpu);
      round.hitters.push(hitter);
      round.jobs.push({ entry: triggerEntry(preset, false), args: [hitter] });
    } else if (role === "lone") {
      const own = await task(ROAMER_PID, 1, cpu, LONE_SITE);
      round.lones.push(own);
      round.jobs.push({ entry: triggerEntry(preset, false), args: [own] });
    } else {
      const roamer = await task(ROAMER_PID, SITES, cpu);
      round.roamers.push(roamer);
      round.jobs.push({ entry: triggerEntry(preset, true), args: [roamer] });
    }
  }
  return round;
}

const tasksOf = ({ hitters, lones, roamers }: Round): number[] => [
  ...hitters,
  ...lones,
  ...roamers,
];

/** A consumer that comes to the lone probe and goes: every hit in between is also its own. */
async function guest(runner: Runner, round: Round): Promise<string[]> {
  const { memory } = runner;
  const triggers = () => sumHits(round.lones.map((task) => memory.task(task))).triggers;
  const hits = () => memory.sinkHits(round.guestSink, runner.cpus + 1).reduce((a, b) => a + b, 0);
  const had = hits();
  const at = [round.inode, LONE_SITE, round.guestSink];
  const consumer = await runner.command(abi.OP_REGISTER, ...at);
  await runner.command(abi.OP_SYNCHRONIZE); // then loops have written what they had counted
  const from = triggers();
  await new Promise((resolve) => setTimeout(resolve, GUEST_MS));
  const made = triggers() - from - round.lones.length; // one each may just be on its way
  await runner.command(abi.OP_UNREGISTER, consumer);
  const seen = hits() - had;
  return seen >= made ? [] : [`a second consumer saw ${seen} of ${made} hits`];
}

/** What the housekeeper does while the CPUs run: churn, map, look at the tree, unmap. */
async function meanwhile(
  runner: Runner,
  round: Round,
  ended: () => boolean,
  failures: string[],
): Promise<number> {
  let maps = 0;
  while (!ended() && failures.length === 0) {
    if (round.lones.length > 0) failures.push(...(await guest(runner, round)));
    await runner.command(abi.OP_CHURN, round.own, CHURN_STEPS);
    await runner.command(abi.OP_MMAP, round.mm, round.inode, PASSING_VADDR, FILE_BYTES, 0);
    await runner.command(abi.OP_CHECK_TREE);
    for (const task of tasksOf(round)) {
      await runner.command(abi.OP_SIGNAL_SEND, task, maps & 31);
    }
    await runner.command(abi.OP_MUNMAP, round.mm, PASSING_VADDR);
    maps++;
  }
  return maps;
}

/** Roles of the CPUs in the `turn`-th round. fastest begins with the role that is about it. */
function rolesOf(preset: PresetName, turn: number, cpus: number): Role[] {
  const shift = preset === "fastest" ? ROLES.indexOf("lone") - 1 + turn : turn;
  return Array.from({ length: cpus }, (_, cpu) => ROLES[(cpu + shift) % ROLES.length] ?? "churner");
}

/** One round; returns its failures. */
export async function churnRound(
  context: TortureContext,
  plan: RoundPlan,
  totals: Totals,
): Promise<string[]> {
  const { runner, cpus } = context;
  const { memory } = runner;
  const { preset, seed } = plan;
  const roles = rolesOf(preset, plan.turn, cpus);
  context.onStep(`${preset}: ${roles.join(", ")}`);
  await runner.format({ ...optionsOf(plan, cpus), uprobesMax: SITES * 4 });
  await runner.command(abi.OP_NOP);
  const before = memory.arena();
  const round = await setUp(runner, preset, roles, seed);
  const busy = () => round.churns.every((state) => memory.load(state + abi.CHURN_REGISTERED) > 0);
  const guests: string[] = [];
  await runWatched(context, round.jobs, plan.ms, {
    everybody: busy,
    meanwhile: async (ended) => {
      totals.maps += await meanwhile(runner, round, ended, guests);
    },
  });

  const failures = [...faultLines(runner, preset), ...guests.map((line) => `${preset}: ${line}`)];
  const lone = sumHits(round.lones.map((task) => memory.task(task)));
  const hits = sumHits(round.hitters.map((task) => memory.task(task)));
  const roamed = sumHits(round.roamers.map((task) => memory.task(task)));
  const states = [...round.churns, round.own];
  const called = sumHits(states.map((s) => memory.task(memory.load(s + abi.CHURN_TASK))));
  failures.push(...identityLines(`${preset} hitters`, hits));
  failures.push(...identityLines(`${preset} roamers`, roamed));
  failures.push(...identityLines(`${preset} churners`, called));
  for (const task of tasksOf(round)) {
    failures.push(...signalLines(`${preset} task`, memory, task));
  }
  const expect = (ok: boolean, line: string) => {
    if (!ok) failures.push(`${preset}: ${line}`);
  };
  const lost = hits.triggers - hits.handled;
  expect(lost === 0, `the permanent probe missed ${lost} of ${hits.triggers} hits`);
  const counted = memory.sinkHits(round.sink, cpus + 1).reduce((a, b) => a + b, 0);
  expect(counted === hits.handled, `${hits.handled} hits handled, ${counted} in the consumer`);

  const alone = memory.sinkHits(round.loneSink, cpus + 1).reduce((a, b) => a + b, 0);
  expect(lone.triggers === lone.handled, `the lone probe missed ${lone.triggers - lone.handled}`);
  expect(alone === lone.handled, `${lone.handled} hits of the lone probe, ${alone} counted`);
  totals.calls += lone.triggers;
  totals.hits += lone.handled;

  const churned = (offset: number) => states.reduce((sum, s) => sum + memory.load(s + offset), 0);
  const errors = churned(abi.CHURN_ERRORS);
  expect(errors === 0, `${errors} registrations were refused although there was room`);
  totals.calls += hits.triggers + roamed.triggers + called.triggers;
  totals.hits += hits.handled + roamed.handled + called.handled;
  totals.registered += churned(abi.CHURN_REGISTERED);
  totals.unregistered += churned(abi.CHURN_UNREGISTERED);
  totals.checks += churned(abi.CHURN_CHECKS);
  totals.restarts += hits.restarts + roamed.restarts + called.restarts;
  const waived = failures.length > 0 || context.interrupt.aborted;
  expect(waived || busy(), "a churner registered nothing");
  failures.push(...(await takeDown(runner, preset, round, before)));
  return failures;
}

async function takeDown(
  runner: Runner,
  preset: PresetName,
  round: Round,
  before: { liveBytes: number; liveObjects: number },
): Promise<string[]> {
  const { memory } = runner;
  for (const state of [...round.churns, round.own]) {
    await runner.command(abi.OP_CHURN_DESTROY, state);
  }
  await runner.command(abi.OP_UNREGISTER, round.permanent);
  await runner.command(abi.OP_UNREGISTER, round.lone);
  await runner.command(abi.OP_SYNCHRONIZE);
  const nodes = await runner.command(abi.OP_CHECK_TREE);
  for (const task of tasksOf(round)) {
    await runner.command(abi.OP_TASK_DESTROY, task);
  }
  for (const sink of [round.sink, round.loneSink, round.guestSink]) {
    await runner.command(abi.OP_SINK_DESTROY, sink);
  }
  await runner.command(abi.OP_MM_DESTROY, round.mm);
  await runner.command(abi.OP_INODE_DESTROY, round.inode);
  const { alive, inTree } = memory.uprobes();
  const after = memory.arena();
  // Faults raised while taking down count too; those of the run are reported already.
  const failures: string[] = [];
  if (alive !== 0 || inTree !== 0 || nodes !== 0) {
    failures.push(
      `${preset}: after the last unregister ${alive} uprobes are alive, ${nodes} in the tree`,
    );
  }
  const objects = after.liveObjects - before.liveObjects;
  const bytes = after.liveBytes - before.liveBytes;
  if (objects !== 0 || bytes !== 0) {
    failures.push(`${preset}: ${objects} objects (${bytes} bytes) were not given back`);
  }
  return failures;
}
