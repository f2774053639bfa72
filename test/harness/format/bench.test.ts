import { test } from "uvu";
import * as assert from "uvu/assert";
import * as bench from "../../../src/harness/format/bench.js";

const second = (hits: number, drops = 0, elapsedNs = 1e9) => ({ hits, drops, elapsedNs });

test("setup and start lines are the kernel bench's", () => {
  assert.is(bench.setupLine("trig-uprobe-nop"), "Setting up benchmark 'trig-uprobe-nop'...");
  assert.is(bench.startedLine("trig-uprobe-nop"), "Benchmark 'trig-uprobe-nop' started.");
});

test("an Iter line is the kernel bench's to the letter", () => {
  assert.is(
    bench.iterLine(0, second(3_384_000), 2),
    "Iter   0 (  0.000us): hits    3.384M/s (  1.692M/prod), " +
      "drops    0.000M/s, total operations    3.384M/s",
  );
  assert.is(
    bench.iterLine(12, second(1_000_000, 500_000, 1_000_123_456), 1),
    "Iter  12 (123.456us): hits    1.000M/s (  1.000M/prod), " +
      "drops    0.500M/s, total operations    1.500M/s",
  );
  assert.match(bench.iterLine(1, second(1, 0, 999_990_000), 1), "Iter   1 (-10.000us): ");
});

test("a Summary line is the kernel bench's to the letter", () => {
  const samples = [second(1_390_000, 10_000), second(1_396_000), second(1_402_000)];
  assert.is(
    bench.summaryLine(samples, 1),
    "Summary: hits    1.396 ± 0.006M/s (  1.396M/prod), " +
      "drops    0.003 ± 0.006M/s, total operations    1.399 ± 0.003M/s",
  );
});

test("the Summary divides by the time that really passed, not by the number of samples", () => {
  const late = [second(2_000_000, 0, 2e9), second(1_000_000)];
  assert.match(bench.summaryLine(late, 1), "hits    1.000 ± 0.000M/s");
});

test("a Summary of one sample has no deviation", () => {
  assert.match(
    bench.summaryLine([second(2_000_000)], 2),
    "hits    2.000 ±   n/aM/s (  1.000M/prod)",
  );
});

test.run();
