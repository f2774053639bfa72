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

test("a control that scales by more than there is was disturbed on one CPU", () => {
  const text = verdict(presetRuns(rates(RWLOCK_WINS), 2, 3.3));
  assert.match(text, "Nothing is judged, since the host is busy");
  assert.match(text, "seem to have scaled 3.30x at 2 cpus");
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

const LADDER = {
  spinlock: [31e6, 5e6],
  rwlock: [31e6, 4e6],
  srcu: [20e6, 8e6],
  "tasks-trace": [35e6, 8.1e6],
  "mmap-lock": [36e6, 12e6],
  speculative: [40e6, 79e6],
  fastest: [900e6, 1800e6],
} as const;

test("of three presets or more: under which further CPUs helped, and under which not", () => {
  assert.match(
    verdict(presetRuns(LADDER)),
    "From 1 cpu to 2, uprobe-nop gained under speculative (1.98x) and fastest (2.00x); it lost " +
      "under spinlock (0.16x), rwlock (0.13x), srcu (0.40x), tasks-trace (0.23x) and mmap-lock " +
      "(0.33x); private counters (count-percpu) scaled 1.98x.",
  );
  const level = { ...LADDER, speculative: [40e6, 40.1e6] } as const;
  assert.match(
    verdict(presetRuns(level)),
    "gained under fastest (2.00x); it lost under spinlock (0.16x), rwlock (0.13x), srcu (0.40x), " +
      "tasks-trace (0.23x) and mmap-lock (0.33x); it stayed within the noise under speculative",
  );
});

test("each step of the ladder is told against the one before, noise as noise", () => {
  const text = verdict(presetRuns(LADDER));
  assert.match(
    text,
    "At 2 cpus, raw, step by step: rwlock ran at 0.80x of spinlock, srcu ran at 2.00x of rwlock, " +
      "tasks-trace ran at 1.01x of srcu (within the noise), mmap-lock ran at 1.48x of " +
      "tasks-trace, speculative ran at 6.58x of mmap-lock, fastest ran at 22.78x of speculative.",
  );
  assert.match(text, "In the lead by more than the noise: fastest, with 1.80G/s.");
  assert.match(text, "Raw, at two CPUs, the reader-writer lock need not win");
});

test("a ladder whose top is within the noise has no leader", () => {
  const text = verdict(presetRuns({ ...LADDER, fastest: [40e6, 79.5e6] }));
  assert.match(text, "None leads: fastest and speculative differ by no more than the noise.");
  assert.not.match(text, "In the lead");
  const upside = verdict(presetRuns({ ...LADDER, fastest: [40e6, 60e6] }));
  assert.match(upside, "fastest ran at 0.76x of speculative");
  assert.match(upside, "In the lead by more than the noise: speculative");
});

test("a ladder in which the rwlock wins has no excuse for it", () => {
  const text = verdict(presetRuns({ ...LADDER, rwlock: [31e6, 7e6] }));
  assert.match(text, "rwlock ran at 1.40x of spinlock");
  assert.not.match(text, "need not win");
});

test("published steps are told where both sides were measured, each in its own table", () => {
  assert.match(
    verdict(presetRuns(LADDER)),
    "The published tables, of other machines and with real exceptions, saw at 2 cpus rwlock at " +
      "1.38x of spinlock (here 0.80x), tasks-trace at 1.04x of srcu (here 1.01x) and " +
      "speculative at 1.23x of mmap-lock (here 6.58x).",
  );
  const { srcu, fastest, speculative } = LADDER;
  assert.not.match(verdict(presetRuns({ srcu, fastest, speculative })), "published");
});

test("single samples leave the noise of a ladder unknown", () => {
  const text = verdict(presetRuns(LADDER, 2, 1.98, { stddev: null }));
  assert.match(text, "went, noise unknown, under spinlock (0.16x)");
  assert.match(text, "rwlock ran at 0.80x of spinlock (noise unknown)");
  assert.match(text, "The highest figure is fastest's; single samples do not tell");
});

test("a ladder on a busy host, or of one CPU count, is not judged beyond that", () => {
  assert.match(verdict(presetRuns(LADDER, 2, 1.2)), "Nothing is judged, since the host is busy");
  const one = presetRuns(LADDER).filter((run) => run.cpus === 1);
  const text = verdict(one);
  assert.match(text, "uprobe-nop was measured at 1 cpu only: how it scales takes a second CPU");
  assert.match(text, "At 1 cpu, raw, step by step: rwlock ran at 1.00x of spinlock (within");
});

test("two presets of two tables are not told a published gain: it would be of two machines", () => {
  const { srcu, speculative } = LADDER;
  const text = verdict(presetRuns({ srcu, speculative }));
  assert.match(text, "speculative was 9.9 times as fast as srcu");
  assert.not.match(text, "published");
});

test("of several tables in one result, the conditions say which is told", () => {
  const { speculative, fastest } = LADDER;
  const of = (more: object) => presetRuns({ speculative, fastest }, 2, 1.98, more).slice(0, 4);
  const runs = [...of({ probes: 1 }), ...of({ probes: 100, siteBytes: 64 })];
  assert.match(verdict(runs), "From 1 cpu to 2, uprobe-nop, 1 probe, went from 40.0M/s");
  const apart = [16, 64].flatMap((siteBytes) => of({ probes: 100, siteBytes }));
  assert.match(verdict(apart), "uprobe-nop, 16 bytes apart, went");
});

test.run();
