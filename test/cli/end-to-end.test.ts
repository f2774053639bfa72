// The built program as a user runs it: every bench, every format, torture, fewer CPUs than workers.
// runs alone
// time limit: 240 s

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { csvLine } from "../../src/base/csv.js";
import { VERSION } from "../../src/base/version.js";
import { CASES, HOST_CONTROL, LADDER_PRESETS } from "../../src/harness/cases.js";
import { CSV_COLUMNS, LATENCY_COLUMNS } from "../../src/harness/format/csv.js";
import { parseKernelLine } from "../../src/harness/format/kernel.js";
import { identityHolds, measuredRuns, parseResult } from "../../src/harness/result.js";
import { LOCK_TEST_NAMES } from "../../src/harness/torture/names.js";
import { nodePlatform } from "../../src/platform/node.js";
import { good, run as runLine } from "../helpers/cli.js";
import { testIf } from "../helpers/skip.js";

const dir = mkdtempSync(join(tmpdir(), "cli-"));
const QUICK = "-w 0.05 -d 0.2";
const allowed = nodePlatform.host().allowedCpus;
const hasTaskset = spawnSync("taskset", ["-V"]).status === 0;

test("--version, --help and list say what there is, and touch no thread", async () => {
  const [version, help, nothing, list, benches] = await Promise.all(
    ["--version", "--help", "", "list", "bench -l"].map((line) => good(line)),
  );
  assert.is(version?.stdout, `${VERSION}\n`);
  for (const command of ["bench", "sweep", "torture", "list"]) {
    assert.match(help?.stdout ?? "", new RegExp(`^ +${command}\\b`, "m"));
  }
  assert.is(nothing?.stdout, help?.stdout);
  for (const { name } of CASES) {
    assert.match(list?.stdout ?? "", new RegExp(`^ *${name} `, "m"));
    assert.match(benches?.stdout ?? "", new RegExp(`^ *${name} `, "m"));
  }
  for (const ended of [version, help, list, benches]) assert.is(ended?.stderr, "");
});

const RATE = String.raw` *\d+\.\d{3}`;
const SPREAD = `${RATE} ± *(?:\\d+\\.\\d{3}|n/a)M/s`;
const ITER = new RegExp(
  `^Iter +\\d+ \\( *-?\\d+\\.\\d{3}us\\): hits ${RATE}M/s \\(${RATE}M/prod\\), ` +
    `drops ${RATE}M/s, total operations ${RATE}M/s$`,
);
const SUMMARY = new RegExp(
  `^Summary: hits ${SPREAD} \\(${RATE}M/prod\\), drops ${SPREAD}, total operations ${SPREAD}$`,
);

const TIME = String.raw`[\d.]+ (?:ns|us|ms|s)`;
const TIMES = new RegExp(
  `^Latency: p50 ${TIME}, p90 ${TIME}, p99 ${TIME}, max ${TIME}, mean ${TIME} \\([\\d ]+ `,
);
const CLOCK = new RegExp(
  `^Clock: ${TIME} a reading, step ${TIME}; ${TIME} (\\([a-z ]+\\) )?taken off each figure above$`,
);

/** One bench: the kernel's lines, among them ours that begin with "# ", and what was counted. */
async function checkBench(name: string, preset: string | undefined): Promise<void> {
  const more = preset === undefined ? "" : `--preset ${preset}`;
  const { stdout } = await good(`bench ${name} -v -w 0.1 -d 0.3 ${more}`);
  const lines = stdout.trimEnd().split("\n");
  const [setup, started, ...rest] = lines.filter((line) => !line.startsWith("# "));
  assert.is(setup, `Setting up benchmark '${name}'...`);
  assert.is(started, `Benchmark '${name}' started.`);
  const at = rest.findIndex((line) => line.startsWith("Summary"));
  for (const line of rest.slice(0, at)) assert.match(line, ITER, line);
  assert.match(rest[at] ?? "", SUMMARY, rest[at]);
  assert.match(lines[0] ?? "", /^# cpu: /);
  assert.match(stdout, /^# triggers [1-9]/m);
}

test("bench: every case runs and counts, with the lines of the kernel's bench", async () => {
  const left = CASES.flatMap(({ name, presets }) =>
    presets.length === 0 ? [[name]] : presets.map((preset) => [name, preset]),
  );
  // Two at a time, one worker each.
  const take = async (): Promise<void> => {
    for (let next = left.shift(); next; next = left.shift()) {
      await checkBench(next[0] ?? "", next[1]);
    }
  };
  await Promise.all([take(), take()]);
});

test("bench -L: latencies after the Summary, and what the clock had of them", async () => {
  for (const cpus of [1, 2]) {
    const { stdout } = await good(`bench uprobe-nop -L -q -w 0.1 -d 0.4 -p ${cpus}`);
    const [summary, latency, clock, end] = stdout.trimEnd().split("\n").slice(-3);
    assert.match(summary ?? "", SUMMARY);
    assert.match(latency ?? "", TIMES);
    assert.match(latency ?? "", / hits, one in 4093\)$/);
    assert.match(clock ?? "", CLOCK);
    assert.is(end, undefined);
  }
});

test("bench gp-NAME: every grace period is timed, while the other CPU reads", async () => {
  for (const name of ["gp-srcu", "gp-tasks-trace", "gp-qsbr"]) {
    const one = (await good(`bench ${name} -q -w 0.05 -d 0.2`)).stdout.trimEnd().split("\n");
    assert.match(one.at(-1) ?? "", /^Readers: nobody$/);
    const two = (await good(`bench ${name} -q -w 0.05 -d 0.2 -p 2`)).stdout.trimEnd().split("\n");
    assert.match(two.at(-4) ?? "", SUMMARY);
    assert.match(two.at(-3) ?? "", TIMES);
    assert.match(two.at(-3) ?? "", / grace periods\)$/);
    assert.match(two.at(-2) ?? "", CLOCK);
    const read = /^Readers: ([\d.]+)M\/s sections on 1 cpu$/.exec(two.at(-1) ?? "")?.[1];
    assert.ok(Number(read) > 0, two.at(-1));
  }
});

test("bench -q prints results only; -v the counters, whose terms add up", async () => {
  const quiet = await good("bench trig-uprobe-push -q -w 0.05 -d 0.1");
  assert.match(quiet.stdout, /^Iter[^\n]*\nSummary[^\n]*\n$/);
  assert.not.match(quiet.stderr, /^cpu:/m);
  const { stdout, stderr } = await good(`bench uprobe-nop -v ${QUICK} --probes 10 --trap-ns 250`);
  assert.not.match(stderr, /^cpu:/m);
  assert.match(stdout, /^# .*exceptions: trap 250 ns/m);
  const terms = /^# triggers ([\d ]+) = handled ([\d ]+) \+ filtered ([\d ]+) \+ missed 0$/m.exec(
    stdout,
  );
  const [triggers = 0, handled = 0, filtered = 0] = (terms ?? [])
    .slice(1)
    .map((text) => Number(text.replaceAll(" ", "")));
  assert.ok(triggers > 0);
  assert.is(triggers, handled + filtered);
});

test("sweep as json: valid, every planned run, and the identity in each", async () => {
  const benches = "uprobe-push usermode-count lock-rwlock-write";
  const args = `${benches} --cpus 1,2 --probes 1,20 --repeat 2 --seed 9 -w 0.02 -d 0.05`;
  const { stdout, stderr } = await good(`sweep ${args} --format json -q`);
  const result = parseResult(stdout, "stdout");
  const runs = measuredRuns(result);
  assert.is(runs.length, 2 * (2 * LADDER_PRESETS.length + 2));
  assert.is(result.runs.length, runs.length);
  for (const one of runs) {
    assert.ok(identityHolds(one), JSON.stringify(one));
    assert.is(one.samples.length, 10);
    assert.ok(one.mean > 0 && one.min > 0 && one.min <= one.max, JSON.stringify(one));
    if (one.bench.startsWith("uprobe")) assert.equal([one.handled, one.missed], [one.triggers, {}]);
  }
  assert.equal([result.settings?.seed, result.settings?.repeat, result.rounds?.kept], [9, 2, 2]);
  assert.is(stderr, "");
});

test("sweep of many probes at several distances: each a run, all of them hit", async () => {
  const args = "sweep uprobe-nop --preset speculative,fastest --cpus 2 --probes 1,20000";
  const { stdout } = await good(`${args} --site-bytes 16,64 -w 0.02 -d 0.05 -q --format json`);
  const runs = measuredRuns(parseResult(stdout, "stdout"));
  assert.equal(
    runs.map((run) => `${run.preset} ${run.probes} ${run.siteBytes}`),
    [1, 20_000].flatMap((probes) =>
      (probes === 1 ? [16] : [16, 64]).flatMap((siteBytes) =>
        ["speculative", "fastest"].map((preset) => `${preset} ${probes} ${siteBytes}`),
      ),
    ),
  );
  for (const run of runs) {
    assert.ok(identityHolds(run), JSON.stringify(run));
    assert.equal([run.missed, typeof run.fallbacks, typeof run.retries], [{}, "number", "number"]);
  }
});

test("more probes and distance than an engine can hold are one line with the numbers", async () => {
  const { code, stdout, stderr } = await runLine(
    "bench uprobe-nop --probes 1000000 --site-bytes 4096 -q",
  );
  assert.is.not(code, 0);
  assert.is(stdout, "");
  assert.match(stderr, /^wasmprobe: .*1000000.*8\.\d GiB.*at most 2\.0 GiB\n$/);
});

test("sweep of grace periods: latencies and readers in json, csv and kernel format", async () => {
  const args = `sweep gp-srcu gp-qsbr count-atomic --cpus 1,2 --repeat 2 -w 0.02 -d 0.05 -q`;
  const { stdout } = await good(`${args} --format json`);
  for (const one of measuredRuns(parseResult(stdout, "stdout"))) {
    assert.ok(identityHolds(one), JSON.stringify(one));
    if (one.bench === "count-atomic") {
      assert.equal([one.latency, one.readers], [undefined, undefined]);
      continue;
    }
    const { p50 = 0, p90 = 0, p99 = 0, max = 0, samples = 0 } = one.latency ?? {};
    assert.ok(samples > 0 && samples <= one.triggers, JSON.stringify(one));
    assert.ok(p50 <= p90 && p90 <= p99 && p99 <= max, JSON.stringify(one));
    assert.is(one.readers?.cpus, one.cpus - 1);
    assert.is((one.readers?.mean ?? 0) > 0, one.cpus > 1);
  }
  const csv = (await good(`${args} --format csv`)).stdout.trimEnd().split("\n");
  const columns = CSV_COLUMNS.length + LATENCY_COLUMNS.length;
  for (const line of csv) assert.is(line.split(",").length, columns);
  const kernel = (await good(`${args} --format kernel`)).stdout;
  assert.is(kernel.match(/^ {4}p50 .*; readers: /gm)?.length, 4);
});

test("sweep of registrations: timed under every preset, while the other CPU hits", async () => {
  const args = "sweep register unregister-batch --cpus 2 -w 0.02 -d 0.2 -q --format json";
  const runs = measuredRuns(parseResult((await good(args)).stdout, "stdout"));
  assert.is(runs.length, 2 * LADDER_PRESETS.length);
  for (const one of runs) {
    assert.ok(identityHolds(one), JSON.stringify(one));
    assert.ok((one.latency?.samples ?? 0) > 0, JSON.stringify(one));
    assert.is(one.latency?.batch, one.bench === "register" ? undefined : 64);
    assert.equal([one.readers?.cpus, one.readers?.unit], [1, "hits"]);
    assert.ok((one.readers?.mean ?? 0) > 0, JSON.stringify(one));
  }
});

test("sweep as kernel, csv, markdown and table: the same rows", async () => {
  const args = `sweep uprobe-nop count-percpu --cpus 1 ${QUICK}`;
  const kernel = await good(`${args} --format kernel -q`);
  const rows = kernel.stdout.split("\n").filter((line) => line.includes(" cpus):"));
  assert.equal(
    rows.map((line) => parseKernelLine(line)?.bench),
    [...LADDER_PRESETS.map(() => "uprobe-nop"), "count-percpu"],
  );
  for (const row of rows) {
    assert.match(
      row,
      /^\S+ +\( 1 cpus\): {1,4}\d+\.\d{3} ± *\d+\.\d{3}M\/s {2}\( *\d+\.\d{3}M\/s\/cpu\)$/,
    );
  }
  assert.match(kernel.stdout, /^spinlock\n=+\n/m);

  const csv = (await good(`${args} --format csv -q`)).stdout.trimEnd().split("\n");
  assert.is(csv[0], csvLine(CSV_COLUMNS));
  assert.equal(
    csv.slice(1).map((line) => line.split(",").slice(0, 4).join(" ")),
    [
      ...LADDER_PRESETS.map((preset) => `uprobe-nop ${preset} threads 1`),
      "count-percpu  threads 1",
    ],
  );
  for (const line of csv) assert.is(line.split(",").length, CSV_COLUMNS.length);

  const markdown = (await good(`${args} --format markdown -q`)).stdout;
  assert.match(markdown, /^- cpu: /);
  assert.match(markdown, /^\|.*uprobe-nop.*\|$/m);

  const table = await good(args);
  assert.match(table.stdout, /uprobe-nop/);
  assert.match(table.stdout, /rwlock/);
  assert.match(table.stdout, /At 1 cpu/, "a closing sentence says what was seen");
  assert.match(table.stderr, /^\[1\/\d\] uprobe-nop spinlock, 1 cpu/m, "progress is no result");
});

test("sweep without a name: all presets beside the published tables, and a sentence", async () => {
  const { stdout } = await good("sweep --cpus 1,2 -w 0.02 -d 0.05 -q");
  const tables = ["1-speculative", "2-tasks-trace", "3-rwlock"];
  for (const word of [...LADDER_PRESETS, HOST_CONTROL, ...tables]) assert.match(stdout, word);
  assert.match(stdout, /From 1 cpu to 2|Nothing is judged/);
});

test("--out writes the file and nothing to stdout; --compare tells what changed", async () => {
  const path = join(dir, "old.json");
  const args = `sweep count-atomic --cpus 1 ${QUICK} -q`;
  const { stdout } = await good(`${args} --format json --out ${path}`);
  assert.is(stdout, "");
  const old = parseResult(readFileSync(path, "utf8"), path);
  assert.is(old.runs.length, 1);
  // A result of a machine that was a hundred times slower.
  const slow = {
    ...old,
    runs: measuredRuns(old).map((one) => ({
      ...one,
      mean: one.mean / 100,
      stddev: (one.stddev ?? 0) / 100,
    })),
  };
  const slowPath = join(dir, "slow.json");
  writeFileSync(slowPath, JSON.stringify(slow));
  const table = await good(`${args} --compare ${slowPath}`);
  assert.match(table.stdout, /slow\.json/);
  assert.match(table.stdout, /count-atomic/);
  const json = await good(`${args} --format json --compare ${slowPath}`);
  parseResult(json.stdout, "stdout");
  assert.match(json.stderr, /count-atomic/, "beside a machine's format it is for people");
});

test("torture locks ends with SUCCESS, all locks and the seed", async () => {
  const { stdout } = await good("torture locks --seconds 3 --seed 77 -p 2 -q");
  const lines = stdout.trimEnd().split("\n");
  assert.match(lines[0] ?? "", /^locks-torture:--- Start of test: 2 CPUs, .*3 s, seed=77$/);
  assert.is(lines.at(-1), "locks-torture:--- End of test: SUCCESS: seed=77");
  for (const name of LOCK_TEST_NAMES) {
    assert.match(stdout, new RegExp(`^${name}-torture: .*Total: [1-9]`, "m"));
  }
  assert.not.match(stdout, /!!!/);
});

test("torture of no time at all is no failure: every CPU gets its turn", async () => {
  for (const name of ["locks", "probes", "locks --lock mutex_timed"]) {
    const { stdout } = await good(`torture ${name} --seconds 0.02 -p 3 -q`);
    assert.match(stdout, /SUCCESS/);
  }
});

test("torture probes ends with SUCCESS and counts; a seed it drew is said", async () => {
  const { stdout } = await good("torture probes --seconds 3 -p 2 -q");
  const seed = /seed=(\d+)$/m.exec(stdout)?.[1];
  assert.match(stdout, new RegExp(`End of test: SUCCESS: seed=${seed}\\n$`));
  assert.match(stdout, /^FUNC CALLS: [1-9]/m);
  assert.match(stdout, /^UPROBE HITS: [1-9]/m);
  assert.match(stdout, /^ATTACHED: [1-9]\d* +DETACHED: [1-9]/m);
});

test("torture probes has done all of it within five seconds, and said so", async () => {
  const { stdout } = await good("torture probes --seconds 5 --seed 4 -p 2 -q");
  assert.match(stdout, /^URETPROBE HITS: [1-9]/m);
  assert.match(stdout, /^RETURN MISSED: depth [1-9]\d*  memory \d+  longjmp [1-9]/m);
  assert.match(stdout, /^ATTACHED LINKS: [1-9]\d*  UPROBES: [1-9]\d*  URETPROBES: [1-9]/m);
  assert.match(stdout, /^MMAP CALLS: [1-9]/m);
  assert.match(stdout, /^FORKS CALLS: [1-9]/m);
  assert.match(stdout, /^UPROBE HITS: .* STEPS: [1-9]/m);
  assert.match(stdout, /^SIGNALS: [1-9]\d*  DELIVERED: [1-9]/m);
});

testIf(
  hasTaskset && allowed[0] !== undefined,
  "taskset is not there",
  test,
  "four workers on one CPU all get on, and the result says that they were four to one",
  async () => {
    const one = ["taskset", "-c", String(allowed[0])];
    const { stdout, stderr } = await good("bench lock-qspinlock -p 4 -w 0.2 -d 1.5 -v", one);
    assert.match(stdout, /^# oversubscribed 4:1$/m);
    assert.match(stdout, /1 allowed cpu/);
    const least = /per worker: min (\S+),/.exec(stdout)?.[1] ?? "0";
    assert.ok(Number.parseFloat(least) > 0, `${stdout}${stderr}`);
    const json = await good("sweep count-atomic --cpus 4 -w 0.1 -d 0.3 --format json -q", one);
    const [row] = measuredRuns(parseResult(json.stdout, "stdout"));
    assert.is(row?.oversubscribed, "4:1");
    const torture = await good("torture probes -p 4 --seconds 3 -q", one);
    assert.match(torture.stdout, /oversubscribed 4:1/);
    assert.match(torture.stdout, /SUCCESS/);
  },
);

testIf(
  hasTaskset && process.platform === "linux",
  "taskset is not there",
  test,
  "-a pins each worker, and the header says so",
  async () => {
    const { stderr } = await good("bench count-percpu -a -p 2 -w 0.05 -d 0.1");
    assert.match(stderr, /affinity: each worker pinned to one CPU/);
    const without = await good("bench count-percpu -p 2 -w 0.05 -d 0.1");
    assert.match(without.stderr, /affinity: not pinned/);
  },
);

test.after(() => rmSync(dir, { recursive: true, force: true }));
test.run();
