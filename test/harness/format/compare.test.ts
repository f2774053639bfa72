import { test } from "uvu";
import * as assert from "uvu/assert";
import { compareResults, formatComparison } from "../../../src/harness/format/compare.js";
import { HOST, interrupted, measured, resultOf, timed } from "../../helpers/results.js";

const old = resultOf([
  measured("lock-mutex", null, 1, 20e6),
  measured("lock-mutex", null, 2, 10e6),
  measured("lock-mutex", null, 4, 10e6, { stddev: null }),
  measured("count-percpu", null, 1, 400e6),
  interrupted("uprobe-nop", "spinlock", 1),
]);
const fresh = resultOf(
  [
    measured("lock-mutex", null, 1, 26e6),
    measured("lock-mutex", null, 2, 10.1e6),
    measured("lock-mutex", null, 4, 8e6),
    measured("uprobe-nop", "spinlock", 1, 20e6),
  ],
  { host: { ...HOST, runtime: "node 22.1.0" } },
);

test("runs are matched by what was measured, with the ratio of new by old", () => {
  const { runs } = compareResults(old, fresh);
  assert.equal(
    runs.map((run) => [run.new.cpus, run.ratio, run.differs]),
    [
      [1, 1.3, true],
      [2, 1.01, false],
      [4, 0.8, undefined],
    ],
  );
});

test("another delay, probe count or place is another run", () => {
  for (const other of [{ trapNs: 250 }, { probes: 7 }, { on: "elsewhere" }]) {
    const run = measured("uprobe-nop", "rwlock", 1, 1e6);
    const { runs, onlyOld, onlyNew } = compareResults(
      resultOf([run]),
      resultOf([{ ...run, ...other }]),
    );
    assert.equal([runs.length, onlyOld.length, onlyNew.length], [0, 1, 1]);
  }
});

test("where both were timed, a line says what became of the times", () => {
  const slower = timed("gp-srcu", 2);
  if (slower.latency !== undefined) slower.latency = { ...slower.latency, p99: 30_000, max: 1e6 };
  const before = resultOf([timed("gp-srcu", 2), measured("gp-qsbr", null, 2, 1e5)]);
  const after = resultOf([slower, timed("gp-qsbr", 2)]);
  const lines = formatComparison(compareResults(before, after), "old.json").split("\n");
  const times = "p50 4.00 us, was 4.00 us; p99 30.0 us, was 15.0 us; max 1.00 ms, was 2.00 ms";
  assert.equal(
    lines.filter((line) => line.startsWith("latency")),
    [`latency of gp-srcu, 2 cpus: ${times}`],
  );
});

test("the text names ratios, noise, unmatched runs and another host", () => {
  assert.is(
    formatComparison(compareResults(old, fresh), "old.json"),
    [
      "compared with old.json: rates in M/s, ratio is new by old",
      "another host, runtime: node 22.1.0, was node 20.20.2",
      "run                            old             new  ratio",
      "------------------  --------------  --------------  -----  -------------",
      "lock-mutex, 1 cpu   20.000 ± 0.200  26.000 ± 0.260  1.30x  faster",
      "lock-mutex, 2 cpus  10.000 ± 0.100  10.100 ± 0.101  1.01x  within noise",
      "lock-mutex, 4 cpus    10.000 ± n/a   8.000 ± 0.080  0.80x  noise unknown",
      "only in old.json: count-percpu, 1 cpu",
      "not in old.json: uprobe-nop spinlock, 1 cpu, 1 probe, raw",
    ].join("\n"),
  );
});

test("two results without a common run say so", () => {
  assert.match(
    formatComparison(compareResults(resultOf([]), fresh), "old.json"),
    "no run is in both",
  );
});

test.run();
