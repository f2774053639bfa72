import { test } from "uvu";
import * as assert from "uvu/assert";
import { verdict } from "../../src/harness/verdict.js";
import { interrupted, measured, presetRuns } from "../helpers/results.js";

const SPINLOCK_WINS = { spinlock: [20e6, 9e6], rwlock: [19e6, 8e6] } as const;
const RWLOCK_WINS = { spinlock: [2e6, 3e6], rwlock: [2.1e6, 3.9e6] } as const;
const rates = (r: typeof SPINLOCK_WINS | typeof RWLOCK_WINS) => ({
  spinlock: [...r.spinlock] as [number, number],
  rwlock: [...r.rwlock] as [number, number],
});

test("each preset's way from one CPU to the most is told, beside the control's", () => {
  assert.match(
    verdict(presetRuns(rates(SPINLOCK_WINS))),
    "From 1 cpu to 2, uprobe-nop went from 20.0M/s to 9.00M/s under spinlock (0.45x) and " +
      "from 19.0M/s to 8.00M/s under rwlock (0.42x); private counters (count-percpu) scaled 1.98x.",
  );
});

test("a rwlock that wins with a trap's cost is said to win, without excuses", () => {
  const text = verdict(presetRuns(rates(RWLOCK_WINS), 2, 1.98, { trapNs: 250 }));
  assert.match(text, "At 2 cpus, with 250 ns per exception, rwlock was 30 % faster than spinlock");
  assert.match(text, "more than the noise (18 joint deviations)");
  assert.not.match(text, "need not win");
});

test("a rwlock that loses raw at two CPUs is said to lose, and why it may", () => {
  const text = verdict(presetRuns(rates(SPINLOCK_WINS)));
  assert.match(text, "At 2 cpus, raw, spinlock was 13 % faster than rwlock, more than the noise");
  assert.match(text, "Raw, at two CPUs, the reader-writer lock need not win");
  assert.match(text, "--trap-ns 250");
});

test("a rwlock that wins raw at two CPUs gets no excuse for losing", () => {
  const text = verdict(presetRuns(rates(RWLOCK_WINS)));
  assert.match(text, "rwlock was 30 % faster than spinlock");
  assert.not.match(text, "need not win");
});

test("a difference within two joint deviations is noise, and neither won", () => {
  const text = verdict(presetRuns({ spinlock: [20e6, 9e6], rwlock: [19e6, 9.1e6] }));
  assert.match(text, "spinlock and rwlock differ by 1.1 %, which is within the noise: neither won");
  assert.not.match(text, "faster");
});

test("single samples leave the noise unknown", () => {
  const text = verdict(presetRuns(rates(RWLOCK_WINS), 2, 1.98, { stddev: null }));
  assert.match(text, "from single samples: how much of it is noise is unknown");
});

test("the published rows of the same CPU count are told, and where their gain was largest", () => {
  assert.match(
    verdict(presetRuns(rates(RWLOCK_WINS))),
    "The published table (3-rwlock, another machine) saw at 2 cpus spinlock at 1.19x and rwlock " +
      "at 1.58x of 1 cpu, rwlock ahead by 38 %; its largest gain, 69 %, came at 4 cpus.",
  );
});

test("where the table has no row for both presets, the nearest smaller count is named", () => {
  const text = verdict(presetRuns(rates(RWLOCK_WINS), 16));
  assert.match(text, "which has no such rows for 16 cpus, saw at 15 cpus");
  assert.match(verdict(presetRuns(rates(RWLOCK_WINS), 64)), "saw at 20 cpus");
});

test("on a busy host nothing is judged", () => {
  const text = verdict(presetRuns(rates(RWLOCK_WINS), 2, 1.2));
  assert.match(text, "Nothing is judged, since the host is busy");
  assert.match(text, "scaled only 1.20x at 2 cpus");
  assert.not.match(text, "faster");
});

test("rows measured on a shared core are not judged either", () => {
  const text = verdict(presetRuns(rates(RWLOCK_WINS), 2, 1.98, { sharedCore: true }));
  assert.match(text, "Nothing is judged");
  assert.match(text, "workers shared a core");
});

test("one CPU is no curve, but a comparison", () => {
  const runs = presetRuns(rates(RWLOCK_WINS)).filter((run) => run.cpus === 1);
  const text = verdict(runs);
  assert.match(text, "At 1 cpu, uprobe-nop ran at spinlock 2.00M/s and rwlock 2.10M/s");
  assert.match(text, "how they scale takes a second CPU count");
  assert.match(text, "rwlock was 5.0 % faster than spinlock");
  assert.match(text, "saw at 1 cpu rwlock ahead by 3.4 %");
});

test("oversubscribed counts say nothing about scaling", () => {
  const runs = presetRuns(rates(RWLOCK_WINS));
  for (const preset of ["spinlock", "rwlock"]) {
    runs.push(measured("uprobe-nop", preset, 8, 1e6, { oversubscribed: "8:2" }));
  }
  assert.match(verdict(runs), "From 1 cpu to 2,");
});

test("an interrupted sweep is judged by what both presets were measured at", () => {
  const runs = [
    ...presetRuns(rates(RWLOCK_WINS)),
    measured("uprobe-nop", "spinlock", 4, 3e6),
    interrupted("uprobe-nop", "rwlock", 4),
  ];
  assert.match(verdict(runs), "From 1 cpu to 2,");
  const one = [measured("uprobe-nop", "spinlock", 1, 2e6), interrupted("uprobe-nop", "rwlock", 1)];
  assert.is(verdict(one), "Too little was measured to compare two presets.");
  const apart = [measured("uprobe-nop", "spinlock", 1, 1), measured("uprobe-nop", "rwlock", 2, 1)];
  assert.match(verdict(apart), "not measured at the same CPU count");
  assert.is(verdict([]), "Too little was measured to compare two presets.");
});

test.run();
