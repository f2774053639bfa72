import { test } from "uvu";
import * as assert from "uvu/assert";
import { formatJson } from "../../src/harness/format/json.js";
import {
  identityHolds,
  measuredRuns,
  oversubscription,
  parseResult,
  runKey,
  runTitle,
} from "../../src/harness/result.js";
import { interrupted, measured, presetRuns, resultOf, timed } from "../helpers/results.js";
import { messageOf } from "../helpers/throws.js";

const RUNS = [
  ...presetRuns({ spinlock: [20e6, 9e6], rwlock: [19e6, 8e6] }),
  measured("uprobe-nop", "rwlock", 4, 8e6, { oversubscribed: "4:2", stddev: null, samples: [8e6] }),
  interrupted("uprobe-nop", "spinlock", 4),
];

test("a result written as JSON is read back as it was", () => {
  const result = resultOf(RUNS);
  assert.equal(parseResult(formatJson(result), "new.json"), result);
});

test("a file that is not JSON is one line that says so", () => {
  const message = messageOf("E_FILE", () => parseResult("bench,preset\n", "old.csv"));
  assert.match(message, "old.csv is not JSON");
  assert.match(message, "wasmprobe.sweep/1");
});

test("JSON of another schema is one line that names both", () => {
  for (const json of ["{}", "[]", "null", "1", '"x"']) {
    assert.match(
      messageOf("E_FILE", () => parseResult(json, "old.json")),
      'old.json is not a sweep result: it has no schema name; valid is "wasmprobe.sweep/1"',
    );
  }
  const other = JSON.stringify({ schema: "wasmprobe.sweep/2" });
  assert.match(
    messageOf("E_FILE", () => parseResult(other, "old.json")),
    'schema "wasmprobe.sweep/2"',
  );
});

test("a file from before distances were told is of sites 16 bytes apart", () => {
  const more = { probes: 1000, siteBytes: 16, fallbacks: 3, retries: 4 };
  const result = resultOf([measured("uprobe-nop", "fastest", 2, 8e6, more)]);
  const old = JSON.parse(formatJson(result));
  assert.equal(old.runs[0].siteBytes, 16);
  for (const field of ["siteBytes", "fallbacks", "retries"]) delete old.runs[0][field];
  const [run] = measuredRuns(parseResult(JSON.stringify(old), "old.json"));
  const [now] = measuredRuns(result);
  if (run === undefined || now === undefined) throw new Error("no run");
  assert.is(runKey(run), runKey(now));
  assert.is.not(runKey(run), runKey({ ...now, siteBytes: 64 }));
  assert.is(run.fallbacks, undefined, "what was not counted is not 0");
  assert.is(
    runTitle({ ...now, siteBytes: 64 }),
    "uprobe-nop fastest, 2 cpus, 1000 probes, 64 bytes apart, raw",
  );
  assert.is(runTitle(now), "uprobe-nop fastest, 2 cpus, 1000 probes, raw");
});

test("with one probe there is no distance: runs are the same whatever was asked for", () => {
  const run = measured("uprobe-nop", "fastest", 2, 8e6);
  assert.is(runKey(run), runKey({ ...run, siteBytes: 64 }));
});

test("a damaged result is one line with the path of the damage", () => {
  const damaged = JSON.parse(formatJson(resultOf(RUNS)));
  damaged.runs[1].mean = "fast";
  assert.match(
    messageOf("E_FILE", () => parseResult(JSON.stringify(damaged), "old.json")),
    /old\.json is not valid wasmprobe\.sweep\/1: runs\.1\.mean: /,
  );
  delete damaged.host;
  messageOf("E_FILE", () => parseResult(JSON.stringify(damaged), "old.json"));
});

test("latencies and readers are read back, and checked", () => {
  const result = resultOf([timed("gp-srcu", 1), timed("gp-srcu", 2)]);
  assert.equal(parseResult(formatJson(result), "new.json"), result);
  for (const [field, value] of [
    ["p99", "slow"],
    ["p50", -1],
    ["samples", 0],
    ["clockNs", null],
    ["period", 1.5],
  ]) {
    const damaged = JSON.parse(formatJson(result));
    damaged.runs[1].latency[field as string] = value;
    assert.match(
      messageOf("E_FILE", () => parseResult(JSON.stringify(damaged), "old.json")),
      `runs.1.latency.${field}: `,
    );
  }
  const damaged = JSON.parse(formatJson(result));
  delete damaged.runs[0].readers.unit;
  assert.match(
    messageOf("E_FILE", () => parseResult(JSON.stringify(damaged), "old.json")),
    "runs.0.readers.unit: ",
  );
});

test("a run that was not measured carries no figures", () => {
  const result = parseResult(formatJson(resultOf(RUNS)), "x");
  const missing = result.runs.filter((run) => run.state !== "measured");
  assert.is(missing.length, 1);
  assert.not("mean" in (missing[0] ?? {}));
  assert.is(measuredRuns(result).length, RUNS.length - 1);
});

test("runs are the same when bench, preset, place, CPUs, probes and delay are", () => {
  const run = measured("uprobe-nop", "rwlock", 2, 1e6);
  assert.is(runKey(run), runKey(measured("uprobe-nop", "rwlock", 2, 2e6, { sharedCore: true })));
  const others = [
    { bench: "uprobe-ret" },
    { preset: null },
    { on: "elsewhere" },
    { cpus: 3 },
    { probes: 7 },
    { trapNs: 250 },
  ];
  const keys = new Set(others.map((other) => runKey({ ...run, ...other })));
  assert.is(keys.size, others.length);
  assert.not(keys.has(runKey(run)));
});

test("a run's title names what was measured and how", () => {
  const run = measured("uprobe-nop", "rwlock", 2, 1e6);
  assert.is(runTitle(run), "uprobe-nop rwlock, 2 cpus, 1 probe, raw");
  assert.is(
    runTitle({ ...run, cpus: 1, probes: 1000, trapNs: 250 }),
    "uprobe-nop rwlock, 1 cpu, 1000 probes, trap 250 ns",
  );
  assert.is(runTitle(measured("count-percpu", null, 1, 1e6)), "count-percpu, 1 cpu");
});

test("more workers than CPUs are labelled, as many are not", () => {
  assert.is(oversubscription(4, 1), "4:1");
  assert.is(oversubscription(2, 2), undefined);
});

test("the counting identity is triggers = handled + filtered + everything missed", () => {
  const missed = { "no-probe": 2, depth: 1 };
  assert.ok(identityHolds({ triggers: 10, handled: 5, filtered: 2, missed }));
  assert.not(identityHolds({ triggers: 10, handled: 5, filtered: 1, missed }));
});

test.run();
