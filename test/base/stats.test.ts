import { test } from "uvu";
import * as assert from "uvu/assert";
import * as stats from "../../src/base/stats.js";

test("the deviation divides by n - 1 and needs two values", () => {
  assert.is(stats.sampleDeviation([2, 4, 4, 4, 5, 5, 7, 9])?.toFixed(6), "2.138090");
  assert.is(stats.sampleDeviation([3, 3]), 0);
  assert.is(stats.sampleDeviation([3]), undefined);
  assert.is(stats.sampleDeviation([]), undefined);
});

test("a summary holds count, mean, deviation, median, minimum and maximum", () => {
  assert.equal(stats.summarize([4, 1, 2, 1]), {
    count: 4,
    mean: 2,
    stddev: Math.sqrt(2),
    median: 1.5,
    min: 1,
    max: 4,
  });
  assert.is(stats.summarize([5]).stddev, undefined);
});

test("an empty list has no mean, median, minimum or quantile", () => {
  for (const of of [stats.mean, stats.median, stats.min, stats.max]) assert.throws(() => of([]));
  assert.throws(() => stats.quantile([], 0.5));
});

test("quantiles run from the minimum to the maximum", () => {
  const values = [5, 1, 4, 2, 3];
  assert.is(stats.quantile(values, 0), 1);
  assert.is(stats.quantile(values, 0.5), 3);
  assert.is(stats.quantile(values, 1), 5);
});

test("two means differ when they are more than two joint deviations apart", () => {
  const at = (mean: number, stddev: number | null) => ({ mean, stddev });
  assert.is(stats.jointDeviation(at(1, 3), at(1, 4)), 5);
  assert.is(stats.differs(at(100, 3), at(111, 4)), true);
  assert.is(stats.differs(at(100, 3), at(110, 4)), false);
  assert.is(stats.differs(at(100, null), at(200, 4)), undefined);
});

test.run();
