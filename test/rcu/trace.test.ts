// Tasks Trace and QSBR, step by step (C14): the three ways past a CPU, and when there is none.
// runs alone

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { sleep } from "../helpers/engine.js";
import { type Call, DOMAIN, NOT_MS, type Puppets, withPuppets } from "../helpers/puppets.js";

const CPUS = 8;
const GENERATION = DOMAIN + 64;
/** Beyond every patience and drain time of the engine, milliseconds of the puppets' clock. */
const LONG_MS = 50;

const rcu = (body: (puppets: Puppets) => Promise<void>): (() => Promise<void>) =>
  withPuppets(async (puppets) => {
    await puppets.call(0, "rcu_init", DOMAIN, CPUS);
    await body(puppets);
  });

const online = (puppets: Puppets, cpu: number) => puppets.call(cpu, "rcu_online", DOMAIN);
const lock = (puppets: Puppets, cpu: number) => puppets.call(cpu, "rcu_read_lock_trace");
const unlock = (puppets: Puppets, cpu: number) =>
  puppets.call(cpu, "rcu_read_unlock_trace", DOMAIN);
const quiescent = (puppets: Puppets, cpu: number) => puppets.call(cpu, "rcu_quiescent", DOMAIN);
const nesting = (puppets: Puppets, cpu: number) => puppets.word(cpu, abi.PCPU_RCU);

const trace = (puppets: Puppets, cpu = 0): Call =>
  puppets.start(cpu, "synchronize_rcu_tasks_trace", DOMAIN);
const qsbr = (puppets: Puppets, cpu = 0): Call =>
  puppets.start(cpu, "synchronize_rcu_qsbr", DOMAIN);

const isWaiting = (puppets: Puppets): boolean =>
  puppets.memory.gracePeriods(DOMAIN).waitsFor !== undefined;

/** However much time passes, it does not return. */
async function waits(puppets: Puppets, call: Call): Promise<void> {
  await puppets.until(() => isWaiting(puppets), "a wait");
  for (let i = 0; i < 4; i++) {
    puppets.pass(LONG_MS);
    await sleep(NOT_MS / 4);
  }
  assert.not.ok(call.over());
}

/** It returns, for which time may have to pass. */
async function ends(puppets: Puppets, call: Call): Promise<void> {
  await puppets.until(() => {
    puppets.pass(1);
    return call.over();
  }, "the end of a grace period");
}

test(
  "C14: offline CPUs are passed at once: no time passes",
  rcu(async (puppets) => {
    await online(puppets, 1);
    await puppets.call(1, "rcu_offline");
    await trace(puppets).result;
    await qsbr(puppets).result;
    assert.is(puppets.memory.gracePeriods(DOMAIN).completed, 2);
  }),
);

test(
  "C14: a grace period waits for a section that began before it, and its end is enough",
  rcu(async (puppets) => {
    await online(puppets, 1);
    await lock(puppets, 1);
    const grace = trace(puppets);
    await waits(puppets, grace);
    await unlock(puppets, 1);
    await grace.result;
  }),
);

test(
  "C14: a CPU that has announced since is not waited for, though it is in a section",
  rcu(async (puppets) => {
    for (const cpu of [1, 2]) await online(puppets, cpu);
    for (const cpu of [1, 2]) await lock(puppets, cpu);
    const grace = trace(puppets);
    await puppets.until(() => puppets.memory.load(GENERATION) === 1, "the generation");
    await unlock(puppets, 2);
    await lock(puppets, 2);
    await unlock(puppets, 1);
    await grace.result;
    await unlock(puppets, 2);
  }),
);

test(
  "C14: the end of an inner section announces nothing",
  rcu(async (puppets) => {
    await online(puppets, 1);
    await lock(puppets, 1);
    await lock(puppets, 1);
    const grace = trace(puppets);
    await puppets.until(() => puppets.memory.load(GENERATION) === 1, "the generation");
    await unlock(puppets, 1);
    await waits(puppets, grace);
    await unlock(puppets, 1);
    await grace.result;
  }),
);

test(
  "C14: a CPU that goes offline in a section is waited for until the section ends",
  rcu(async (puppets) => {
    await online(puppets, 1);
    await lock(puppets, 1);
    await puppets.call(1, "rcu_offline");
    const grace = trace(puppets);
    await waits(puppets, grace);
    await online(puppets, 1);
    await waits(puppets, grace);
    const later = trace(puppets, 2);
    await unlock(puppets, 1);
    await Promise.all([grace.result, ends(puppets, later)]);
  }),
);

test(
  "C14: a CPU that comes back in a section is waited for by grace periods that begin later",
  rcu(async (puppets) => {
    await online(puppets, 1);
    await lock(puppets, 1);
    await puppets.call(1, "rcu_offline");
    await online(puppets, 1);
    const grace = trace(puppets);
    await waits(puppets, grace);
    await unlock(puppets, 1);
    await grace.result;
  }),
);

test(
  "C14: a CPU that is online and comes by no quiet moment is passed in the end",
  rcu(async (puppets) => {
    await online(puppets, 1);
    const grace = trace(puppets);
    await puppets.until(() => puppets.memory.gracePeriods(DOMAIN).waitsFor === 1, "a wait");
    await sleep(NOT_MS);
    assert.not.ok(grace.over(), "without time");
    await ends(puppets, grace);
  }),
);

test(
  "C14: a silent thread in a section is waited for, between sections it is passed",
  rcu(async (puppets) => {
    await puppets.call(1, "rcu_online_silent", DOMAIN);
    await ends(puppets, trace(puppets));
    await lock(puppets, 1);
    const grace = trace(puppets);
    await waits(puppets, grace);
    await unlock(puppets, 1);
    await grace.result;
  }),
);

test(
  "C14: one look at a silent thread's nesting is not enough: its store may come late",
  rcu(async (puppets) => {
    // The test is the thread: it is in a section all the time, and its nesting, still in a store
    // buffer when the first look is taken, gets into memory before the second.
    puppets.memory.store(nesting(puppets, 1) + 8, 2);
    const grace = trace(puppets);
    await puppets.until(() => puppets.memory.gracePeriods(DOMAIN).waitsFor === 1, "a wait");
    await sleep(NOT_MS);
    puppets.pass(1.5);
    await sleep(NOT_MS);
    puppets.memory.store(nesting(puppets, 1), 1);
    await sleep(NOT_MS);
    await waits(puppets, grace);
    puppets.memory.store(nesting(puppets, 1), 0);
    await ends(puppets, grace);
  }),
);

test(
  "C14: generations wrap, signed and unsigned",
  rcu(async (puppets) => {
    for (const last of [0x7fffffff, -1]) {
      puppets.memory.store(GENERATION, last);
      await online(puppets, 1);
      await lock(puppets, 1);
      const grace = trace(puppets);
      await waits(puppets, grace);
      assert.is(puppets.memory.load(GENERATION), (last + 1) | 0);
      await unlock(puppets, 1);
      await grace.result;
    }
  }),
);

test(
  "C14: several updaters, all of them online, wait for one section and not for each other",
  rcu(async (puppets) => {
    for (const cpu of [0, 1, 2, 3]) await online(puppets, cpu);
    await lock(puppets, 1);
    const graces = [0, 2, 3].map((cpu) => trace(puppets, cpu));
    for (const grace of graces) await waits(puppets, grace);
    await unlock(puppets, 1);
    // CPU 1 is quiet for good now: each grace period but the first passes it by its nesting.
    await Promise.all(graces.map((grace) => ends(puppets, grace)));
    assert.is(puppets.memory.gracePeriods(DOMAIN).completed, 3);
  }),
);

test(
  "C14: the highest CPU number is waited for, and may wait",
  withPuppets(async (puppets) => {
    const last = abi.CPUS_MAX + 1;
    await puppets.call(last, "rcu_init", DOMAIN, last + 1);
    await online(puppets, last);
    await lock(puppets, last);
    const grace = trace(puppets, last - 1);
    await waits(puppets, grace);
    await unlock(puppets, last);
    await grace.result;
    await trace(puppets, last).result;
  }, abi.CPUS_MAX + 1),
);

test(
  "QSBR: every online CPU must come by a quiet moment, however long it takes",
  rcu(async (puppets) => {
    for (const cpu of [1, 2]) await online(puppets, cpu);
    const grace = qsbr(puppets);
    await puppets.until(() => puppets.memory.load(GENERATION) === 1, "the generation");
    await quiescent(puppets, 1);
    await waits(puppets, grace);
    await quiescent(puppets, 2);
    await grace.result;
  }),
);

test(
  "QSBR: a quiet moment before the grace period is none",
  rcu(async (puppets) => {
    await online(puppets, 1);
    await quiescent(puppets, 1);
    const grace = qsbr(puppets);
    await waits(puppets, grace);
    await puppets.call(1, "rcu_offline");
    await grace.result;
  }),
);

test(
  "QSBR: updaters that are online do not wait for each other, nor for themselves",
  rcu(async (puppets) => {
    const cpus = [0, 1];
    for (const cpu of cpus) await online(puppets, cpu);
    await Promise.all(
      cpus.map(async (cpu) => {
        await qsbr(puppets, cpu).result;
        assert.is(puppets.memory.load(nesting(puppets, cpu) + 8), 1, "online again");
        // Or the other one would rightly wait for it.
        await puppets.call(cpu, "rcu_offline");
      }),
    );
  }),
);

test(
  "a QSBR grace period that is held up for a second names the CPU",
  rcu(async (puppets) => {
    for (const cpu of [1, 2]) await online(puppets, cpu);
    puppets.memory.store(DOMAIN + abi.GP_STALL_MS, 10);
    const grace = qsbr(puppets);
    const periods = () => puppets.memory.gracePeriods(DOMAIN);
    await puppets.until(() => periods().waitsFor === 1, "that it waits for CPU 1");
    await quiescent(puppets, 1);
    await puppets.until(() => periods().waitsFor === 2, "that it waits for CPU 2");
    puppets.pass(9);
    await sleep(NOT_MS);
    assert.is(periods().stalls, 0);
    puppets.pass(1);
    await puppets.until(() => periods().stalls === 1, "a stall");
    assert.is(periods().stalledBy, 2);
    await quiescent(puppets, 2);
    await grace.result;
  }),
);

test.run();
