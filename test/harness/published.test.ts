import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Arch, PRESET_NAMES } from "../../src/harness/cases.js";
import {
  TABLES,
  publishedBefore,
  publishedRow,
  publishedSeries,
  publishedTable,
  tableRecords,
} from "../../src/harness/published.js";
import { TABLE_TEXTS } from "../../src/harness/tables.js";
import { messageOf } from "../helpers/throws.js";

const ROWS: Record<string, number> = {
  "0-siglock": 42,
  "1-speculative": 40,
  "2-tasks-trace": 28,
  "3-rwlock": 39,
  "4-percpu-ops": 3,
  "4-percpu-profile192": 13,
  "4-percpu-stacks192": 2,
  "aux-uprobes-v5-baseline": 14,
  "aux-uretprobe-ripool": 40,
};

test("every table ships, with the number of rows that was published", () => {
  assert.equal(TABLES.map((t) => t.name).sort(), Object.keys(ROWS).sort());
  assert.equal(Object.keys(TABLE_TEXTS).sort(), Object.keys(ROWS).sort());
  for (const [name, rows] of Object.entries(ROWS)) {
    const [head, ...records] = tableRecords(name);
    assert.is(records.length, rows, name);
    for (const record of records) assert.is(record.length, head?.length, `${name}: ${record[0]}`);
  }
});

test("every per-CPU figure is its mean divided by its CPUs, as far as three digits tell", () => {
  for (const { name, rates } of TABLES) {
    if (!rates) continue;
    for (const row of publishedTable(name)) {
      const off = Math.abs(row.mean / row.cpus - row.perCpu);
      assert.ok(off <= 1000, `${name} ${row.variant} ${row.bench} ${row.cpus}: off by ${off}/s`);
      assert.ok(row.mean > 0 && row.cpus >= 1);
    }
  }
});

test("rates are read as operations per second", () => {
  assert.equal(publishedRow("rwlock", "uprobe-nop", 4), {
    table: "3-rwlock",
    source: "seed3",
    variant: "after",
    bench: "uprobe-nop",
    cpus: 4,
    mean: 3.565e6,
    stddev: 0.017e6,
    perCpu: 0.891e6,
    quality: "exact",
  });
});

test("each preset that re-implements a published step stands beside its own table", () => {
  const beside = (bench: string, arch: Arch): string[] =>
    PRESET_NAMES.map((preset) => {
      const row = publishedRow(preset, bench, 2, arch);
      return `${preset}: ${row === undefined ? "-" : `${row.table} ${row.variant} ${row.mean}`}`;
    });
  assert.equal(beside("uprobe-nop", "x86"), [
    "spinlock: 3-rwlock before 1656000",
    "rwlock: 3-rwlock after 2279000",
    "siglock: -",
    "signal-flag: -",
    "srcu: 2-tasks-trace before 4125000",
    "tasks-trace: 2-tasks-trace after 4271000",
    "mmap-lock: 1-speculative before 5456000",
    "speculative: 1-speculative after 6701000",
    "uret-alloc: -",
    "uret-pool: -",
    "fastest: -",
  ]);
  const some = (rows: string[]): string[] => rows.filter((row) => !row.endsWith("-"));
  assert.equal(some(beside("uretprobe-nop", "x86")), [
    "rwlock: aux-uprobes-v5-baseline baseline-rwlock-refcount 2361000",
    "srcu: 2-tasks-trace before 2677000",
    "tasks-trace: 2-tasks-trace after 2853000",
    "uret-alloc: aux-uretprobe-ripool before 3574000",
    "uret-pool: aux-uretprobe-ripool after 4281000",
  ]);
  assert.equal(some(beside("uprobe-push", "arm64")), [
    "siglock: 0-siglock before 1642000",
    "signal-flag: 0-siglock after 1766000",
  ]);
});

test("the before of a row is of its own table and CPU count, where there is one", () => {
  const before = (preset: string, cpus: number) => {
    const row = publishedRow(preset, "uprobe-nop", cpus);
    return row === undefined ? undefined : publishedBefore(row);
  };
  assert.is(before("speculative", 80), publishedRow("mmap-lock", "uprobe-nop", 80));
  assert.is(before("rwlock", 16), undefined, "the missing line");
  assert.is(before("srcu", 2), undefined, "it is the before");
});

test("the spinlock series has 19 rows and none at 16 CPUs, the rwlock series all 20", () => {
  const counts = (preset: string): number[] =>
    publishedSeries(preset, "uprobe-nop").map((row) => row.cpus);
  const all = Array.from({ length: 20 }, (_, i) => i + 1);
  assert.equal(counts("rwlock"), all);
  assert.equal(
    counts("spinlock"),
    all.filter((n) => n !== 16),
  );
  assert.is(publishedRow("spinlock", "uprobe-nop", 16), undefined);
});

test("the upper bound of the 192-way machine is not an exact figure", () => {
  const rows = publishedTable("4-percpu-ops");
  assert.equal(
    rows.map((row) => row.quality),
    ["exact", "exact", "upper-bound"],
  );
  assert.is(rows[0]?.stddev, null);
});

test("nothing stands beside a bench or preset that nobody published", () => {
  assert.equal(publishedSeries(null, "count-percpu"), []);
  assert.equal(publishedSeries("rwlock", "uprobe-push"), []);
  assert.equal(publishedSeries("elsewhere", "uprobe-nop"), []);
});

test("an unknown table is one line with the valid names", () => {
  assert.match(
    messageOf("E_NAME", () => publishedTable("3-rwlok")),
    "did you mean 3-rwlock?",
  );
});

test.run();
