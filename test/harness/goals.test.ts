// Goals as data: what they are made of, and how they are judged.

import { test } from "uvu";
import * as assert from "uvu/assert";
import { cellName, cellsOf, FASTEST_GOALS, type Goal, holds } from "../../src/harness/goals.js";
import { cellOf, judgeGoal, LADDER_GOALS, RETURN_GOALS } from "../../src/harness/goals.js";
import { SIGNAL_GOALS, wantedText } from "../../src/harness/goals.js";

const ALL = [...FASTEST_GOALS, ...LADDER_GOALS, ...RETURN_GOALS, ...SIGNAL_GOALS];

const goal = (name: string): Goal => {
  const found = ALL.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no goal ${name}`);
  return found;
};

/** Judges by rates a cell, one list of rounds each. */
function judged(name: string, rates: Record<string, number[]>, scaling?: number[]) {
  const one = goal(name);
  const cells = cellsOf([one]);
  const lists = cells.map((cell) => rates[cellName(cell)] ?? []);
  return judgeGoal(one, cells, lists, scaling ?? (lists[0] ?? []).map(() => 2));
}

test("lines and cells of goals are told apart by their names", () => {
  assert.is(new Set(ALL.map((one) => one.name)).size, ALL.length);
  for (const { cells } of ALL) assert.is(new Set(cells.map(cellName)).size, cells.length);
});

test("cells of other benches, presets, CPUs, architectures and distances have other names", () => {
  const arm64 = { arch: "arm64" } as const;
  const cells = [
    cellOf("uprobe-nop", 1, "fastest"),
    cellOf("uretprobe-nop", 1, "fastest"),
    cellOf("uprobe-push", 1, "fastest"),
    cellOf("uprobe-nop", 1, "siglock"),
    cellOf("uprobe-nop", 1, "siglock", arm64),
    cellOf("uprobe-nop", 2, "siglock", arm64),
    cellOf("uprobe-ret", 2, "siglock", arm64),
    cellOf("uprobe-nop", 1, "siglock", { siteBytes: 64 }),
    cellOf("count-atomic", 1),
  ].map(cellName);
  assert.is(new Set(cells).size, cells.length, cells.join("; "));
  assert.is(cells[0], "fastest x1");
  assert.is(cells[6], "uprobe-ret siglock x2, arm64");
});

test("returns are judged at a return's own rate, against hits of the same preset", () => {
  const name = "returns, 1 CPU: uretprobe-nop fastest / uprobe-nop fastest";
  const rates = { "uretprobe-nop fastest x1": [40, 39], "fastest x1": [100, 100] };
  assert.is(judged(name, rates)?.met, false);
  assert.is(judged(name, { ...rates, "uretprobe-nop fastest x1": [40, 40] })?.met, true);
});

test("the control of the signals must be as fast with the lock as with the flag", () => {
  const name = "arm64, 2 CPUs: uprobe-ret signal-flag / siglock";
  const of = (rate: number) => ({
    "uprobe-ret signal-flag x2, arm64": [rate],
    "uprobe-ret siglock x2, arm64": [100],
  });
  const met = [94, 95, 100, 105, 106].map((rate) => judged(name, of(rate))?.met);
  assert.equal(met, [false, true, true, true, false], "faster is a miss as well as slower");
  assert.is(wantedText(goal(name).wanted), "0.95..1.05 x");
});

test("a cell that several goals need is measured once", () => {
  const names = cellsOf(LADDER_GOALS).map(cellName);
  assert.is(names.length, new Set(names).size);
  assert.is(names.filter((name) => name === "fastest x2").length, 1);
});

test("every goal is a number for rates of all its cells, and none when one is missing", () => {
  for (const one of ALL) {
    const cells = cellsOf([one]);
    const full = cells.map(() => [2e6]);
    assert.ok(Number.isFinite(judgeGoal(one, cells, full, [2])?.median), one.name);
    const holes = judgeGoal(
      one,
      cells,
      cells.map(() => []),
      [2],
    );
    assert.ok(Number.isNaN(holes?.median), one.name);
    assert.is.not(holes?.met, true, `${one.name}: nothing measured is no goal met`);
  }
});

test("a goal is judged by the median of ratios inside rounds", () => {
  const found = judged("ladder, 2 CPUs: fastest / speculative", {
    "fastest x2": [100, 10, 300],
    "speculative x2": [50, 20, 100],
  });
  assert.equal(found, { median: 2, min: 0.5, max: 3, rounds: 3, met: true });
});

test("srcu must beat the better of the two locks, in each round", () => {
  const name = "ladder, 2 CPUs: srcu / max(spinlock, rwlock)";
  const rates = { "spinlock x2": [4, 2], "rwlock x2": [2, 4], "srcu x2": [4, 4] };
  assert.equal(judged(name, rates)?.met, false, "as fast as the better one is not faster");
  assert.equal(judged(name, { ...rates, "srcu x2": [5, 5] })?.median, 1.25);
});

test("scaling is relative to the control's in the same round", () => {
  const name = "fastest, scaling to 2 CPUs / that of count-percpu";
  const rates = { "fastest x1": [10, 10], "fastest x2": [18, 19] };
  assert.equal(judged(name, rates, [1.8, 1.9]), {
    median: 1,
    min: 1,
    max: 1,
    rounds: 2,
    met: true,
  });
  assert.is(judged(name, rates, [2, 2.2])?.met, false);
});

test("what is stated is not judged, and without a round nothing is", () => {
  assert.is(goal("rwlock / spinlock, 2 CPUs, raw").wanted, null);
  const rates = { "rwlock x2": [1], "spinlock x2": [2] };
  assert.is(judged("rwlock / spinlock, 2 CPUs, raw", rates)?.met, null);
  assert.is(judged("rwlock / spinlock, 2 CPUs, raw", {}), undefined);
});

test("each relation holds on its own side of the bound only", () => {
  const outcomes = (["<", "<=", ">", ">="] as const).map((sign) =>
    [0.9, 1, 1.1].map((figure) => holds({ sign, value: 1 }, figure)),
  );
  assert.equal(outcomes, [
    [true, false, false],
    [true, true, false],
    [false, false, true],
    [false, true, true],
  ]);
  const within = { sign: "within", least: 0.9, most: 1.1 } as const;
  assert.equal(
    [0.8, 0.9, 1, 1.1, 1.2, Number.NaN].map((figure) => holds(within, figure)),
    [false, true, true, true, false, false],
  );
  assert.equal([wantedText(null), wantedText({ sign: ">=", value: 1.2 })], ["-", ">= 1.2 x"]);
});

test.run();
