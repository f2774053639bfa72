// Rounds between controls, on a machine whose time and rates are the test's.

import { test } from "uvu";
import * as assert from "uvu/assert";
import { cellOf } from "../../src/harness/goals.js";
import { ratios, undisturbed } from "../../src/harness/rounds.js";
import { interruptible, Machine } from "../helpers/machine.js";

/** Rounds of one cell; the control on two CPUs scales by `shares`, then perfectly. */
function rounds(wanted: number, shares: number[], stopAfterMs = Number.POSITIVE_INFINITY) {
  const machine = new Machine();
  const interrupt = interruptible();
  let share = 1;
  machine.onRun = (entry, cpus) => {
    share = entry === "count_percpu" && cpus > 1 ? (shares.shift() ?? 1) : 1;
  };
  machine.rate = () => 1000 * share;
  if (Number.isFinite(stopAfterMs)) {
    machine.at(machine.nowMs() + stopAfterMs, () => interrupt.abort());
  }
  const dropped: number[] = [];
  const times = { warmupSec: 0.1, durationSec: 0.2, rounds: wanted };
  const kept = machine.use(() =>
    undisturbed([cellOf("count-atomic", 1)], {
      runner: machine.runner,
      nowMs: machine.nowMs,
      unitNs: 1,
      interrupt,
      ...times,
      onDropped: (scaling) => dropped.push(Number(scaling.toFixed(1))),
    }),
  );
  return kept.then((found) => ({ ...found, machine, said: dropped }));
}

test("a round is its cells between controls on one CPU and on two", async () => {
  const { rates, scaling, dropped, busy, machine } = await rounds(2, []);
  const round = ["count_percpu x1", "count_percpu x2", "count_atomic x1", "count_percpu x2"];
  assert.equal(machine.runs, [...round, ...round]);
  assert.equal([rates.length, rates[0]?.length, dropped, busy], [1, 2, 0, false]);
  for (const by of scaling) assert.ok(Math.abs(by - 2) < 0.01, String(by));
});

for (const [when, shares] of [
  ["before", [0.8]],
  ["after", [1, 0.8]],
] as const) {
  test(`a round whose control does not scale ${when} it is measured again`, async () => {
    const { rates, scaling, dropped, busy, said } = await rounds(3, [...shares]);
    assert.equal([rates[0]?.length, scaling.length, dropped, busy], [3, 3, 1, false]);
    assert.equal(said, [1.6]);
  });
}

test("a round that is disturbed four times ends it: the host is too busy", async () => {
  const shares = [...Array<number>(6).fill(0.5), 1, 1, ...Array<number>(20).fill(0.5)];
  const { rates, dropped, busy } = await rounds(3, shares);
  assert.equal([rates[0]?.length, dropped, busy], [1, 7, true]);
});

test("an interruption ends it, and is no disturbance", async () => {
  const { rates, dropped, busy, said } = await rounds(5, [], 1300);
  assert.equal([rates[0]?.length, dropped, busy, said], [1, 0, false, []]);
});

test("ratios are of the same round", () => {
  assert.equal(ratios([4, 9], [2, 3]), { median: 2.5, min: 2, max: 3, rounds: 2 });
});

test.run();
