import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { formatKernel, kernelLine, parseKernelLine } from "../../../src/harness/format/kernel.js";
import { publishedTable } from "../../../src/harness/published.js";
import { interrupted, measured, presetRuns, resultOf, timed } from "../../helpers/results.js";

const row = (bench: string, cpus: number, mean: number, stddev: number | null) =>
  kernelLine({ bench, cpus, mean, stddev });

test("a row is the kernel's to the letter", () => {
  assert.is(
    row("uprobe-nop", 8, 24.534e6, 0.01e6),
    "uprobe-nop      ( 8 cpus):   24.534 ± 0.010M/s  (  3.067M/s/cpu)",
  );
  assert.is(
    row("uprobe-nop", 8, 8.097e6, 0.006e6),
    "uprobe-nop      ( 8 cpus):    8.097 ± 0.006M/s  (  1.012M/s/cpu)",
  );
  assert.is(
    row("uretprobe-nop", 64, 79.317e6, 0.029e6),
    "uretprobe-nop   (64 cpus):   79.317 ± 0.029M/s  (  1.239M/s/cpu)",
  );
});

test("with one sample the deviation is n/a, in the place of a number", () => {
  assert.is(
    row("uprobe-nop", 1, 20e6, null),
    "uprobe-nop      ( 1 cpus):   20.000 ±   n/aM/s  ( 20.000M/s/cpu)",
  );
});

test("a row of any figures is read back within its three digits", () => {
  const rate = fc.double({ min: 0, max: 9e9, noNaN: true });
  const names = fc.constantFrom("uprobe-nop", "lock-rwlock-write");
  fc.assert(
    fc.property(names, fc.integer({ min: 1, max: 256 }), rate, fc.option(rate), (...cells) => {
      const [bench, cpus, mean, stddev] = cells;
      const read = parseKernelLine(row(bench, cpus, mean, stddev));
      assert.ok(read);
      assert.is(read.bench, bench);
      assert.is(read.cpus, cpus);
      assert.ok(Math.abs(read.mean - mean) <= 501);
      assert.is(read.stddev === null, stddev === null);
      assert.ok(Math.abs((read.stddev ?? 0) - (stddev ?? 0)) <= 501);
      assert.ok(Math.abs(read.perCpu - mean / cpus) <= 501);
    }),
  );
});

test("every published row of the kernel's script is written and read without a change", () => {
  for (const name of ["0-siglock", "1-speculative", "2-tasks-trace", "3-rwlock"]) {
    for (const { bench, cpus, mean, stddev } of publishedTable(name)) {
      const read = parseKernelLine(row(bench, cpus, mean, stddev));
      assert.is(read?.mean, mean);
      assert.is(read?.stddev, stddev);
    }
  }
});

test("a row whose blanks a mail archive squeezed is read too, other text is not", () => {
  const squeezed = "uprobe-nop ( 8 cpus): 24.534 ± 0.010M/s ( 3.067M/s/cpu)";
  assert.is(parseKernelLine(squeezed)?.mean, 24.534e6);
  assert.is(parseKernelLine("Summary: hits 1.396 ± 0.007M/s"), undefined);
  assert.is(parseKernelLine(""), undefined);
});

test("rows are grouped by preset under a title, controls after them without one", () => {
  const runs = presetRuns({ spinlock: [20e6, 9e6], rwlock: [19e6, 8e6] });
  assert.is(
    formatKernel(resultOf(runs)),
    [
      "# cpu: Example CPU @ 2.0 GHz, 2 allowed cpus (mask 0-1), linux x64 6.8.0",
      "# runtime: node 20.20.2, wasmprobe 0.1.0, timer step 41.0 ns",
      "# exceptions: raw, affinity: off, 2026-01-02T03:04:05.000Z",
      "# warm-up 300 ms, measured 1.00 s, 3 rounds, seed 1",
      "",
      "spinlock",
      "========",
      "uprobe-nop      ( 1 cpus):   20.000 ± 0.200M/s  ( 20.000M/s/cpu)",
      "uprobe-nop      ( 2 cpus):    9.000 ± 0.090M/s  (  4.500M/s/cpu)",
      "",
      "rwlock",
      "======",
      "uprobe-nop      ( 1 cpus):   19.000 ± 0.190M/s  ( 19.000M/s/cpu)",
      "uprobe-nop      ( 2 cpus):    8.000 ± 0.080M/s  (  4.000M/s/cpu)",
      "",
      "count-percpu    ( 1 cpus):  400.000 ± 4.000M/s  (400.000M/s/cpu)",
      "count-percpu    ( 2 cpus):  792.000 ± 7.920M/s  (396.000M/s/cpu)",
    ].join("\n"),
  );
});

test("probes and delays appear in the title once they vary", () => {
  const more = [1, 1000].map((probes) => measured("uprobe-nop", "rwlock", 1, 1e6, { probes }));
  assert.match(formatKernel(resultOf(more)), "\nrwlock, 1000 probes\n===================\n");
  const traps = [0, 250].map((trapNs) => measured("uprobe-nop", "rwlock", 1, 1e6, { trapNs }));
  const text = formatKernel(resultOf(traps));
  assert.match(text, "\nrwlock, raw\n");
  assert.match(text, "\nrwlock, trap 250 ns\n");
  assert.match(text, "# exceptions: raw and trap 250 ns");
});

test("names longer than the kernel's widen the column of all rows", () => {
  const lines = formatKernel(
    resultOf(["lock-rwlock-write", "lock-mutex"].map((bench) => measured(bench, null, 2, 5e6))),
  ).split("\n");
  const rows = lines.filter((line) => line.startsWith("lock-"));
  assert.is(rows.length, 2);
  assert.is(new Set(rows.map((line) => line.indexOf("("))).size, 1);
});

test("a run whose operations were timed has a second, indented line, and stays readable", () => {
  const runs = [timed("gp-srcu", 1), timed("gp-srcu", 2), measured("count-atomic", null, 1, 1e6)];
  const lines = formatKernel(resultOf(runs)).split("\n");
  const at = lines.findIndex((line) => line.startsWith("gp-srcu "));
  const figures = "p50 4.00 us, p90 8.00 us, p99 15.0 us, max 2.00 ms, mean 4.30 us";
  assert.equal(lines.slice(at), [
    "gp-srcu         ( 1 cpus):    0.200 ± 0.002M/s  (  0.200M/s/cpu)",
    `    ${figures} (12 345 grace periods); readers: nobody`,
    "gp-srcu         ( 2 cpus):    0.200 ± 0.002M/s  (  0.100M/s/cpu)",
    `    ${figures} (12 345 grace periods); readers: 30.000M/s sections on 1 cpu`,
    "count-atomic    ( 1 cpus):    1.000 ± 0.010M/s  (  1.000M/s/cpu)",
  ]);
  assert.is(lines.filter((line) => parseKernelLine(line) !== undefined).length, 3);
});

test("the second line says which share of the operations was timed", () => {
  const { latency } = timed("x", 1);
  if (latency === undefined) throw new Error("not timed");
  const run = measured("uprobe-nop", "rwlock", 1, 1e6, { latency: { ...latency, period: 4093 } });
  assert.match(formatKernel(resultOf([run])), "\n    p50 4.00 us, p90");
  assert.match(formatKernel(resultOf([run])), "(12 345 hits, one in 4093)");
  const batches = { unit: "batches", latency: { ...latency, batch: 64 } };
  const batch = measured("unregister-batch", "rwlock", 1, 1e6, batches);
  assert.match(formatKernel(resultOf([batch])), "(12 345 batches of 64, per one)");
});

test("a run without figures has no row; the header names it", () => {
  const text = formatKernel(resultOf([interrupted("uprobe-nop", "rwlock", 4)]));
  assert.not.match(text, "cpus):");
  assert.match(text, "# not measured (interrupted): uprobe-nop rwlock, 4 cpus, 1 probe, raw");
});

test.run();
