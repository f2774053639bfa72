import { test } from "uvu";
import * as assert from "uvu/assert";
import { parseCsv } from "../../../src/base/csv.js";
import { chart } from "../../../src/harness/format/chart.js";
import { CSV_COLUMNS, formatCsv, LATENCY_COLUMNS } from "../../../src/harness/format/csv.js";
import { headerLines } from "../../../src/harness/format/header.js";
import { FORMATS } from "../../../src/harness/format/index.js";
import { FORMAT_NAMES } from "../../../src/harness/format/names.js";
import { seriesOf } from "../../../src/harness/format/series.js";
import { formatTable } from "../../../src/harness/format/table.js";
import { PRESET_NAMES } from "../../../src/harness/cases.js";
import { publishedSeries } from "../../../src/harness/published.js";
import { interrupted, measured, presetRuns, resultOf, timed } from "../../helpers/results.js";

const RUNS = presetRuns({ spinlock: [20e6, 9e6], rwlock: [19e6, 8e6] });

test("every format takes an empty result and a result without figures", () => {
  for (const name of FORMAT_NAMES) {
    for (const runs of [[], [interrupted("uprobe-nop", "rwlock", 2)]]) {
      const text = FORMATS[name](resultOf(runs));
      assert.ok(text.length > 0, name);
      assert.not.match(text, /undefined|NaN|Infinity/);
      assert.not.match(text, /\n$/);
    }
  }
});

test("the table has the published rows beside ours, and the ratios of both", () => {
  const table = formatTable(resultOf(RUNS), { columns: 88 }).split("\n\n")[1];
  assert.is(
    table,
    [
      "bench         preset    cpus      M/s      ±  vs 1 cpu  vs spinlock  published",
      "------------  --------  ----  -------  -----  --------  -----------  ---------",
      "uprobe-nop    spinlock     1   20.000  0.200                             1.396",
      "uprobe-nop    spinlock     2    9.000  0.090     0.45x                   1.656",
      "uprobe-nop    rwlock       1   19.000  0.190                  0.95x      1.444",
      "uprobe-nop    rwlock       2    8.000  0.080     0.42x        0.89x      2.279",
      "count-percpu               1  400.000  4.000",
      "count-percpu               2  792.000  7.920     1.98x",
    ].join("\n"),
  );
});

test("a table that is too wide for its terminal leaves out what is least missed", () => {
  const wide = formatTable(resultOf(RUNS));
  const narrow = formatTable(resultOf(RUNS), { columns: 90 });
  assert.match(wide, "published  pub. vs 1 cpu  pub. vs before\n");
  assert.match(wide, / 2\.279 +1\.58x +1\.38x\n/);
  assert.not.match(narrow, "pub. vs 1 cpu");
  assert.match(narrow, "published");
  for (const line of (narrow.split("\n\n")[1] ?? "").split("\n")) assert.ok(line.length <= 90);
  assert.match(formatTable(resultOf(RUNS), { columns: 10 }), "M/s");
});

test("published rows are compared within their own table only: others are other machines", () => {
  const presets = { spinlock: [20e6, 9e6], rwlock: [19e6, 8e6], srcu: [18e6, 9e6] } as const;
  const more = { "tasks-trace": [30e6, 9e6], speculative: [30e6, 60e6] } as const;
  const table = formatTable(resultOf(presetRuns({ ...presets, ...more, fastest: [9e8, 18e8] })));
  const last = (preset: string) =>
    new RegExp(`^uprobe-nop +${preset} +2 .*?(\\S+)$`, "m").exec(table)?.[1];
  // 2-tasks-trace: 4.125 before, 4.271 after; 1-speculative: 5.456 before, 6.701 after.
  assert.is(last("tasks-trace"), "1.04x");
  assert.is(last("speculative"), "1.23x");
  assert.is(last("srcu"), "1.26x", "a before has its own scaling, and nothing after it");
  assert.is(last("fastest"), "200.00x", "its ratio to spinlock here: nothing was published of it");
});

test("all presets fit a terminal of 80 columns, chart, legend and header too", () => {
  const runs = presetRuns(Object.fromEntries(PRESET_NAMES.map((p, i) => [p, [3e7, 2e7 * 3 ** i]])));
  for (const columns of [80, 100, 120]) {
    const text = formatTable(resultOf(runs), { columns });
    for (const line of text.split("\n")) assert.ok(line.length <= columns, line);
    assert.match(text, "published");
    assert.match(text, "$ fastest");
  }
});

test("the table names the source of published rows, and says they are from elsewhere", () => {
  const table = formatTable(resultOf(RUNS));
  assert.match(table.replaceAll("\n", " "), /published: 3-rwlock, .*Haslam.*on another machine/);
  const source = table.split("\n\n").find((part) => part.startsWith("published:"));
  for (const line of (source ?? "").split("\n")) assert.ok(line.length <= 100, line);
  const controls = RUNS.filter((run) => run.preset === null);
  assert.not.match(formatTable(resultOf(controls)), "published");
});

test("rows that are not to be trusted carry remarks, and the header names them", () => {
  const runs = [
    measured("uprobe-nop", "rwlock", 1, 1e6, { sharedCore: true }),
    measured("uprobe-nop", "rwlock", 2, 1e6, { flat: false }),
    measured("uprobe-nop", "rwlock", 8, 1e6, { oversubscribed: "8:2" }),
    interrupted("uprobe-nop", "rwlock", 16),
  ];
  const [head, table] = formatTable(resultOf(runs)).split("\n\n");
  for (const mark of ["shared core", "not flat", "oversubscribed 8:2", "interrupted"]) {
    assert.match(head ?? "", mark);
    assert.match(table ?? "", mark);
  }
});

test("the header names CPU, allowed CPUs, runtime, timer step, exceptions and affinity", () => {
  assert.equal(headerLines(resultOf(RUNS)), [
    "cpu: Example CPU @ 2.0 GHz, 2 allowed cpus (mask 0-1), linux x64 6.8.0",
    "runtime: node 20.20.2, wasmprobe 0.1.0, timer step 41.0 ns",
    "exceptions: raw, affinity: off, 2026-01-02T03:04:05.000Z",
    "warm-up 300 ms, measured 1.00 s, 3 rounds, seed 1",
  ]);
  const dropped = headerLines(resultOf(RUNS, { rounds: { kept: 2, dropped: 1 } }));
  assert.match(dropped.join("\n"), "2 rounds, 1 dropped");
  const trapped = headerLines(resultOf([measured("uprobe-nop", "rwlock", 1, 1, { trapNs: 250 })]));
  assert.match(trapped.join("\n"), "exceptions: trap 250 ns");
});

test("the header counts what it does not name", () => {
  const runs = [1, 2, 3, 4, 5].map((n) => measured("a-b", null, n, 1, { flat: false }));
  const note = headerLines(resultOf(runs)).at(-1);
  assert.is(note, "not flat: a-b, 1 cpu; a-b, 2 cpus; a-b, 3 cpus; and 2 more");
});

test("the chart draws a mark per series and a legend, without colours", () => {
  const runs = ["spinlock", "rwlock"].flatMap((preset) =>
    publishedSeries(preset, "uprobe-nop")
      .filter((row) => [1, 2, 4, 8].includes(row.cpus))
      .map((row) => measured("uprobe-nop", preset, row.cpus, row.mean)),
  );
  const text = chart(seriesOf(runs), 50);
  assert.is(
    text,
    [
      "M/s against cpus",
      " ▲",
      "4┤",
      " │                         ·x·",
      " │                      ···   ···",
      "3┤                  ····         ····",
      " │               ···                 ···",
      " │           ··x·                       ·x",
      "2┤       ····         ······o············o",
      " │   ··········o······",
      " │*······",
      "1┤",
      " │",
      " │",
      "0┤",
      " └┬────────────┬────────────┬────────────┬▶",
      "  1            2            4            8",
      "o spinlock   x rwlock   * several",
    ].join("\n"),
  );
  for (const line of text.split("\n")) assert.ok(line.length <= 50);
});

test("curves of very different heights are drawn on a logarithmic axis, and it says so", () => {
  const runs = presetRuns({ spinlock: [30e6, 5e6], fastest: [900e6, 1800e6] }).slice(0, 4);
  assert.is(
    chart(seriesOf(runs), 40),
    [
      "M/s against cpus, logarithmic",
      "     ▲",
      "10000┤",
      "     │",
      "     │               ··············x",
      " 1000┤x··············",
      "     │",
      "     │",
      "  100┤",
      "     │",
      "     │o·······",
      "   10┤        ··············",
      "     │                      ·······o",
      "     │",
      "    1┤",
      "     └┬────────────────────────────┬▶",
      "      1                            2",
      "o spinlock   x fastest",
    ].join("\n"),
  );
});

test("the chart of one CPU count is bars", () => {
  const runs = RUNS.filter((run) => run.cpus === 2 && run.preset !== null);
  assert.is(
    chart(seriesOf(runs), 50),
    [
      "M/s, 2 cpus",
      "spinlock │████████████████████████████████ 9.000",
      "rwlock   │████████████████████████████ 8.000",
    ].join("\n"),
  );
});

test("there is no chart without runs, and none of more series than marks", () => {
  assert.is(chart([]), "");
  const many = Array.from({ length: 13 }, (_, i) => measured(`bench-${i}`, null, 1, 1e6));
  assert.is(chart(seriesOf(many)), "");
});

test("charts take rates of any size and odd CPU counts", () => {
  for (const rate of [0, 1, 1e3, 1e9, 3e11]) {
    const runs = [1, 3, 7, 192].map((n) => measured("count-percpu", null, n, rate * n));
    const text = chart(seriesOf(runs));
    assert.match(text, "count-percpu");
    assert.not.match(text, /NaN|Infinity|undefined/);
  }
});

test("series are labelled by what tells them apart", () => {
  const label = (runs: Parameters<typeof seriesOf>[0]) => seriesOf(runs).map((s) => s.label);
  assert.equal(label(RUNS.slice(0, 4)), ["spinlock", "rwlock"]);
  assert.equal(label(RUNS), ["uprobe-nop spinlock", "uprobe-nop rwlock", "count-percpu"]);
  const probes = [1, 1000].map((n) => measured("uprobe-nop", "rwlock", 1, 1, { probes: n }));
  assert.equal(label(probes), ["rwlock 1 probe", "rwlock 1000 probes"]);
});

test("distances of sites are told where there are two to be apart, and vary", () => {
  const of = (probes: number, siteBytes: number) =>
    measured("uprobe-nop", "fastest", 1, 1e6, { probes, siteBytes });
  const both = [of(1000, 16), of(1000, 64)];
  const label = (runs: Parameters<typeof seriesOf>[0]) => seriesOf(runs).map((s) => s.label);
  assert.equal(label(both), ["fastest 16 bytes apart", "fastest 64 bytes apart"]);
  assert.match(FORMATS.kernel(resultOf(both)), "fastest, 64 bytes apart\n");
  assert.match(formatTable(resultOf(both)), /cpus|bytes apart/);
  assert.match(headerLines(resultOf(both)).join("\n"), "sites 16 and 64 bytes apart");
  const one = [of(1, 64), of(1000, 64)];
  assert.equal(label(one), ["fastest 1 probe", "fastest 1000 probes"]);
  assert.not.match(headerLines(resultOf([of(1, 64)])).join("\n"), "apart");
});

test("csv has a record per run, raw figures, and one for what was not measured", () => {
  const runs = [
    measured("uprobe-nop", "rwlock", 2, 9.5e6, {
      triggers: 12,
      handled: 7,
      missed: { "no-probe": 3, depth: 2, other: 0 },
    }),
    interrupted("uprobe-nop", "rwlock", 4),
  ];
  const [head, first, second] = parseCsv(formatCsv(resultOf(runs)));
  assert.equal(head, [...CSV_COLUMNS]);
  const field = (record: string[] | undefined, name: (typeof CSV_COLUMNS)[number]) =>
    record?.[CSV_COLUMNS.indexOf(name)];
  assert.is(field(first, "mean"), "9500000");
  assert.is(field(first, "missed"), "5");
  assert.is(field(first, "missed_causes"), "no-probe=3;depth=2");
  assert.is(field(second, "state"), "interrupted");
  assert.is(field(second, "mean"), "");
  assert.is(second?.length, CSV_COLUMNS.length);
});

test("latencies and readers are columns once some run has them, in table and markdown", () => {
  const runs = [timed("gp-srcu", 1), timed("gp-srcu", 2), measured("count-percpu", null, 2, 1e6)];
  const heads = ["p50", "p90", "p99", "max", "readers M/s"];
  for (const name of ["table", "markdown"] as const) {
    const text = FORMATS[name](resultOf(runs));
    const lines = text.split("\n").map((line) => line.replaceAll("|", " ").trim().split(/ {2,}/));
    const head = lines.find((cells) => cells[0] === "bench") ?? [];
    for (const column of heads) assert.ok(head.includes(column), `${name}: ${column}`);
    const row = lines.filter((cells) => cells[0] === "gp-srcu")[1] ?? [];
    for (const cell of ["4.00 us", "8.00 us", "15.0 us", "2.00 ms", "30.000"]) {
      assert.ok(row.includes(cell), `${name}: ${cell} in ${row.join(" ")}`);
    }
    assert.match(text, /^gp-srcu +1 .*nobody reads$|^\| gp-srcu .*nobody reads/m);
    const without = FORMATS[name](resultOf(RUNS));
    assert.not.match(without, /p50|p99|readers/);
  }
});

test("where each operation was timed, runs are compared by their times, and not drawn", () => {
  const { latency } = timed("x", 2);
  if (latency === undefined) throw new Error("not timed");
  const run = (preset: string, mean: number, ns: number) =>
    measured("register", preset, 2, mean, { latency: { ...latency, mean: ns } });
  // The slower rate has the faster registrations.
  const runs = [run("spinlock", 2e6, 400), run("rwlock", 1e6, 200)];
  const text = formatTable(resultOf(runs));
  assert.match(text, /^register +rwlock +2 .* 2\.00x$/m);
  assert.not.match(text, "M/s, 2 cpus");
  const sampled = runs.map((one) => ({ ...one, latency: { ...latency, period: 4093 } }));
  assert.match(formatTable(resultOf(sampled)), /^register +rwlock +2 .* 0\.50x$/m);
});

test("a run with readers has one worker: its fairness says nothing", () => {
  assert.not.match(formatTable(resultOf([timed("gp-srcu", 2)])), "min/max");
});

test("the header says what was done about the clock, where something was timed", () => {
  assert.not.match(headerLines(resultOf(RUNS)).join("\n"), "latencies");
  const one = headerLines(resultOf([timed("gp-srcu", 2)])).join("\n");
  assert.match(
    one,
    "latencies: less what the clock itself takes, 50.0 ns; percentiles up to 1.6 %",
  );
  const other = timed("gp-srcu", 4);
  if (other.latency !== undefined) other.latency.overheadNs = 44;
  const two = headerLines(resultOf([timed("gp-srcu", 2), other])).join("\n");
  assert.match(two, "takes, 44.0 ns to 50.0 ns;");
});

test("csv has columns of latencies and readers once some run has them, empty for others", () => {
  const runs = [timed("gp-srcu", 2), measured("a", null, 1, 1), interrupted("gp-srcu", null, 4)];
  const records = parseCsv(formatCsv(resultOf(runs)));
  const columns = [...CSV_COLUMNS, ...LATENCY_COLUMNS];
  assert.equal(records[0], columns);
  for (const record of records) assert.is(record.length, columns.length);
  const more = records.map((record) => record.slice(CSV_COLUMNS.length).join(" "));
  assert.is(more[1], "4300 4000 8000 15000 2000000 12345 1 50 50 1 30000000 sections");
  assert.equal([more[2]?.trim(), more[3]?.trim()], ["", ""]);
});

test("markdown is a list, one table and the source", () => {
  const [list, table, source] = FORMATS.markdown(resultOf(RUNS)).split("\n\n");
  assert.match(list ?? "", /^- cpu: /);
  const lines = (table ?? "").split("\n");
  assert.is(lines.length, 2 + RUNS.length);
  assert.is(new Set(lines.map((line) => line.split("|").length)).size, 1);
  assert.match(source ?? "", /^published: /);
});

test.run();
