// SRCU, step by step (C13): who is waited for, by whom, and who is not.
// runs alone

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { sleep } from "../helpers/engine.js";
import { DOMAIN, NOT_MS, type Puppets, withPuppets } from "../helpers/puppets.js";

const CPUS = 8;
const IDX = DOMAIN + 64;
const lockCount = (puppets: Puppets, cpu: number, idx: number): number =>
  puppets.word(cpu, abi.PCPU_SRCU + 4 * idx);
const unlockCount = (puppets: Puppets, cpu: number, idx: number): number =>
  lockCount(puppets, cpu, idx) + 8;

const srcu = (body: (puppets: Puppets) => Promise<void>): (() => Promise<void>) =>
  withPuppets(async (puppets) => {
    await puppets.call(0, "srcu_init", DOMAIN, CPUS);
    await body(puppets);
  });

const lock = (puppets: Puppets, cpu: number): Promise<number> =>
  puppets.call(cpu, "srcu_read_lock", DOMAIN);
const unlock = (puppets: Puppets, cpu: number, idx: number): Promise<number> =>
  puppets.call(cpu, "srcu_read_unlock", DOMAIN, idx);

test(
  "C13: without readers a grace period ends, and turns the index over twice",
  srcu(async (puppets) => {
    await puppets.call(0, "synchronize_srcu", DOMAIN);
    assert.is(puppets.memory.load(IDX), 2);
    assert.is(puppets.memory.gracePeriods(DOMAIN).completed, 1);
  }),
);

for (const half of [0, 1]) {
  test(
    `C13: a grace period waits for a section that began before it, in half ${half}`,
    srcu(async (puppets) => {
      puppets.memory.store(IDX, half);
      const idx = await lock(puppets, 1);
      assert.is(idx, half);
      const grace = puppets.start(0, "synchronize_srcu", DOMAIN);
      await sleep(NOT_MS);
      assert.not.ok(grace.over());
      await unlock(puppets, 1, idx);
      await grace.result;
    }),
  );
}

test(
  "C13: a grace period does not wait for a section that began after its second turn",
  srcu(async (puppets) => {
    const first = await lock(puppets, 1);
    const grace = puppets.start(0, "synchronize_srcu", DOMAIN);
    await puppets.until(() => puppets.memory.load(IDX) === 1, "the first turn");
    const second = await lock(puppets, 2);
    await unlock(puppets, 1, first);
    await puppets.until(() => puppets.memory.load(IDX) === 2, "the second turn");
    const later = await lock(puppets, 1);
    await unlock(puppets, 2, second);
    await grace.result;
    await unlock(puppets, 1, later);
  }),
);

test(
  "C13: a grace period waits for the outer section when the inner one has ended",
  srcu(async (puppets) => {
    const outer = await lock(puppets, 1);
    const inner = await lock(puppets, 1);
    await unlock(puppets, 1, inner);
    const grace = puppets.start(0, "synchronize_srcu", DOMAIN);
    await sleep(NOT_MS);
    assert.not.ok(grace.over());
    await unlock(puppets, 1, outer);
    await grace.result;
  }),
);

test(
  "C13: sections on either side of a turn nest, and count in both halves",
  srcu(async (puppets) => {
    const outer = await lock(puppets, 1);
    const grace = puppets.start(0, "synchronize_srcu", DOMAIN);
    await puppets.until(() => puppets.memory.load(IDX) === 1, "the first turn");
    const inner = await lock(puppets, 1);
    assert.equal([outer, inner], [0, 1]);
    await unlock(puppets, 1, inner);
    await sleep(NOT_MS);
    assert.not.ok(grace.over());
    await unlock(puppets, 1, outer);
    await grace.result;
  }),
);

test(
  "C13: a section may end on another CPU: only the sums over all CPUs count",
  srcu(async (puppets) => {
    const idx = await lock(puppets, 1);
    await unlock(puppets, 2, idx);
    await puppets.call(0, "synchronize_srcu", DOMAIN);
    assert.is(puppets.memory.load(lockCount(puppets, 1, 0)), 1);
    assert.is(puppets.memory.load(unlockCount(puppets, 2, 0)), 1);
  }),
);

test(
  "C13: counts wrap",
  srcu(async (puppets) => {
    puppets.memory.store(lockCount(puppets, 1, 0), 0x7fffffff);
    puppets.memory.store(unlockCount(puppets, 2, 0), 0x7fffffff);
    const idx = await lock(puppets, 1);
    const grace = puppets.start(0, "synchronize_srcu", DOMAIN);
    await sleep(NOT_MS);
    assert.not.ok(grace.over());
    await unlock(puppets, 1, idx);
    await grace.result;
  }),
);

for (const half of [0, 1]) {
  test(
    `C13: a reader that read index ${half} and counts itself in a grace period late is waited for`,
    srcu(async (puppets) => {
      // The test is the reader: between its load of the index and its count others go on.
      puppets.memory.store(IDX, half);
      await puppets.call(0, "synchronize_srcu", DOMAIN);
      puppets.memory.store(lockCount(puppets, 1, half), 1);
      const grace = puppets.start(0, "synchronize_srcu", DOMAIN);
      await sleep(NOT_MS);
      assert.not.ok(grace.over());
      puppets.memory.store(unlockCount(puppets, 1, half), 1);
      await grace.result;
    }),
  );
}

test(
  "C13: sections that come and go between the sums do not stand for one that is still inside",
  withPuppets(async (puppets) => {
    // Many CPUs: the sums are far apart. Readers that had read the old index come late, again and
    // again, on the last CPU; the first holds a section throughout.
    const cpus = abi.CPUS_MAX + 2;
    const stop = 2048;
    await puppets.call(0, "srcu_init", DOMAIN, cpus);
    const idx = await lock(puppets, 1);
    const late = [lockCount(puppets, cpus - 1, idx), unlockCount(puppets, cpus - 1, idx)];
    const others = puppets.start(2, "in_and_out", ...late, stop, 400);
    const grace = puppets.start(0, "synchronize_srcu", DOMAIN);
    for (let i = 0; i < 25 && !grace.over(); i++) await sleep(NOT_MS);
    assert.not.ok(grace.over());
    puppets.memory.store(stop, 1);
    await others.result;
    await unlock(puppets, 1, idx);
    await grace.result;
  }, abi.CPUS_MAX + 1),
);

test(
  "C13: several updaters wait for one section, and all go on when it ends",
  srcu(async (puppets) => {
    const idx = await lock(puppets, 1);
    const graces = [0, 2, 3].map((cpu) => puppets.start(cpu, "synchronize_srcu", DOMAIN));
    await sleep(NOT_MS);
    assert.equal(
      graces.map((grace) => grace.over()),
      [false, false, false],
    );
    await unlock(puppets, 1, idx);
    await Promise.all(graces.map((grace) => grace.result));
    assert.is(puppets.memory.gracePeriods(DOMAIN).completed, 3);
  }),
);

test(
  "C13: the highest CPU number is waited for, and may wait",
  withPuppets(async (puppets) => {
    const last = abi.CPUS_MAX + 1;
    await puppets.call(last, "srcu_init", DOMAIN, last + 1);
    const idx = await lock(puppets, last);
    const grace = puppets.start(last - 1, "synchronize_srcu", DOMAIN);
    await sleep(NOT_MS);
    assert.not.ok(grace.over());
    await unlock(puppets, last, idx);
    await grace.result;
    await puppets.call(last, "synchronize_srcu", DOMAIN);
  }, abi.CPUS_MAX + 1),
);

test(
  "a grace period that is held up for a second names the CPU",
  srcu(async (puppets) => {
    const idx = await lock(puppets, 1);
    const grace = puppets.start(0, "synchronize_srcu", DOMAIN);
    const periods = () => puppets.memory.gracePeriods(DOMAIN);
    await puppets.until(() => periods().waitsFor === 1, "that it waits for CPU 1");
    puppets.pass(999);
    await sleep(NOT_MS);
    assert.is(periods().stalls, 0);
    puppets.pass(1);
    await puppets.until(() => periods().stalls === 1, "a stall");
    assert.is(periods().stalledBy, 1);
    puppets.pass(5000);
    await sleep(NOT_MS);
    assert.is(periods().stalls, 1, "said once");
    await unlock(puppets, 1, idx);
    await grace.result;
    assert.is(periods().waitsFor, undefined);
  }),
);

test.run();
