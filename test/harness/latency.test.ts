// Histograms as the engine records them, and percentiles against the naive way: sort, and take.

import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import {
  bucketEnd,
  bucketOf,
  createRecorder,
  createSampler,
  type Histogram,
  latencyOf,
  mergeHistograms,
  percentile,
  readHistogram,
} from "../../src/harness/latency.js";
import { Solo } from "../helpers/solo.js";

const LAST = abi.HIST_BUCKETS - 1;
const solo = new Solo();
const at = solo.ok(abi.OP_ALLOC, abi.HIST_BYTES);

/** What the engine makes of these values, recorded one after the other. */
function recorded(values: readonly number[]): Histogram {
  const { i64 } = solo.memory;
  i64.fill(0n, at >> 3, (at + abi.HIST_BYTES) >> 3);
  solo.memory.store(at + abi.HIST_ON, 1);
  const record = solo.host.workload("histogram_record") as unknown as (
    h: number,
    ns: bigint,
  ) => void;
  for (const value of values) record(at, BigInt(value));
  return readHistogram(solo.memory, at);
}

/** Nearest rank: at least p % of all are not above it. */
function naive(values: readonly number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(1, Math.ceil((p / 100) * sorted.length)) - 1] ?? Number.NaN;
}

// Nanoseconds of all sizes alike: as many of three digits as of nine.
const times = fc
  .tuple(fc.integer({ min: 0, max: 45 }), fc.double({ min: 1, max: 2, noNaN: true }))
  .map(([power, of]) => Math.floor(2 ** power * of) - 1);
const samples = fc.array(times, { minLength: 1, maxLength: 300 });

test("count, sum and largest are exact, and every sample is in one bucket", () => {
  fc.assert(
    fc.property(samples, (values) => {
      const histogram = recorded(values);
      assert.is(histogram.samples, values.length);
      assert.is(
        histogram.sum,
        values.reduce((a, b) => a + b, 0),
      );
      assert.is(histogram.max, Math.max(...values));
      assert.is(
        histogram.buckets.reduce((a, b) => a + b, 0),
        values.length,
      );
    }),
  );
});

test("the engine and the host put a value into the same bucket", () => {
  fc.assert(
    fc.property(times, (value) => {
      assert.is(recorded([value]).buckets.indexOf(1), bucketOf(value));
    }),
  );
});

test("percentiles are those of a sort, at most 1/64 too high and never too low", () => {
  const percents = fc.constantFrom(0, 1, 25, 50, 90, 99, 99.9, 100);
  fc.assert(
    fc.property(samples, percents, (values, p) => {
      const exact = naive(values, p);
      const found = percentile(recorded(values), p);
      assert.ok(found >= exact, `${p} %: ${found} is below ${exact}`);
      assert.ok(found <= Math.max(...values));
      // What is beyond the range is only known to be there.
      if (exact < 2 ** abi.HIST_BITS) {
        assert.ok(found <= exact * (1 + 1 / 64), `${p} %: ${found} for ${exact}`);
      }
    }),
    // Within the range, in what had been one bucket with all that is beyond it.
    { examples: [[[2199023255551, 1090921693184], 0]] },
  );
});

test("histograms of several CPUs merge into that of all their samples", () => {
  fc.assert(
    fc.property(fc.array(samples, { minLength: 1, maxLength: 4 }), (cpus) => {
      assert.equal(mergeHistograms(cpus.map(recorded)), recorded(cpus.flat()));
    }),
  );
});

test("buckets have no gaps, no overlaps, and are no wider than 1/64 of their values", () => {
  for (let bucket = 0; bucket < LAST; bucket++) {
    const end = bucketEnd(bucket);
    assert.is(bucketOf(end), bucket);
    assert.is(bucketOf(end + 1), bucket + 1);
    const begin = bucket === 0 ? 0 : bucketEnd(bucket - 1) + 1;
    assert.ok(end === begin || (end - begin + 1) * 64 <= begin, `bucket ${bucket}`);
  }
  assert.is(bucketEnd(LAST - 1), 2 ** abi.HIST_BITS - 1);
  assert.is(bucketOf(2 ** abi.HIST_BITS), LAST);
  assert.is(bucketOf(2 ** 52), LAST);
  assert.is(abi.HIST_BYTES % abi.STRIDE, 0);
  assert.ok(abi.HIST_BUCKETS_AT + 8 * abi.HIST_BUCKETS <= abi.HIST_BYTES);
});

test("a clock that goes backwards counts as no time", () => {
  const histogram = recorded([-5, 3]);
  assert.equal([histogram.samples, histogram.sum, histogram.max], [2, 3, 3]);
  assert.is(percentile(histogram, 50), 0);
});

test("only what comes between start and stop counts", async () => {
  const recorder = await createRecorder(solo, 1);
  const timeNothing = (n: number) =>
    solo.host.workload("time_nothing")(recorder.addresses[0] ?? 0, n);
  timeNothing(10);
  assert.is(recorder.read().histogram.samples, 0);
  recorder.start();
  timeNothing(20);
  recorder.stop();
  timeNothing(40);
  const { histogram, clockNs, overheadNs, period } = recorder.read();
  assert.is(histogram.samples, 20);
  assert.is(period, 1);
  assert.ok(clockNs > 0 && overheadNs === clockNs);
});

test("of a batch's time by its size, the clock is taken off by that size, too", async () => {
  const recorder = await createRecorder(solo, 1, 64);
  recorder.start();
  solo.host.workload("time_nothing")(recorder.addresses[0] ?? 0, 3);
  const read = recorder.read();
  assert.equal([read.overheadNs, read.batch, read.period], [read.clockNs / 64, 64, 1]);
  assert.is(latencyOf([read])?.batch, 64);
});

test("what a sample of hits has besides is the median of empty batches beside", async () => {
  const sampler = await createSampler(solo, 3);
  const record = solo.host.workload("histogram_record") as unknown as (
    h: number,
    n: bigint,
  ) => void;
  sampler.start();
  for (const [cpu, h] of sampler.addresses.entries()) {
    record(h, 1000n);
    record(h + abi.HIST_BYTES, BigInt(60 + cpu));
  }
  const { histogram, overheadNs, period } = sampler.read();
  assert.equal([histogram.samples, histogram.sum], [3, 3000]);
  assert.equal([overheadNs, period], [61, abi.LATENCY_PERIOD]);
});

test("figures are less the clock's own time, and never below nothing", () => {
  const histogram = recorded([10, 60, 60, 1060]);
  const found = latencyOf([{ histogram, clockNs: 49, overheadNs: 50, period: 3 }]);
  assert.equal(found, {
    mean: 247.5,
    p50: 10,
    p90: 1010,
    p99: 1010,
    max: 1010,
    samples: 4,
    clockNs: 49,
    overheadNs: 50,
    period: 3,
  });
  assert.is(
    latencyOf([{ histogram: recorded([10]), clockNs: 50, overheadNs: 50, period: 1 }])?.max,
    0,
  );
});

test("rounds add up, and the clock is the one that was least disturbed", () => {
  const rounds = [
    { histogram: recorded([100]), clockNs: 48, overheadNs: 48, period: 1 },
    { histogram: recorded([120, 110]), clockNs: 40, overheadNs: 40, period: 1 },
  ];
  const found = latencyOf(rounds);
  assert.equal([found?.samples, found?.max, found?.clockNs], [3, 80, 40]);
});

test("without a sample there are no figures", () => {
  assert.is(latencyOf([]), undefined);
  assert.is(
    latencyOf([{ histogram: recorded([]), clockNs: 50, overheadNs: 50, period: 1 }]),
    undefined,
  );
});

test.run();
