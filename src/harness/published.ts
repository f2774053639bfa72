// The published tables as numbers, and which of their rows stands beside which run of ours.

import { parseCsv } from "../base/csv.js";
import { unknownName } from "../base/text.js";
import type { Arch } from "../engine/presets.js";
import { TABLE_TEXTS } from "./tables.js";

/** One figure from a mail or changelog. Rates are operations per second, as everywhere. */
export interface PublishedRow {
  table: string;
  source: string;
  variant: string;
  bench: string;
  cpus: number;
  mean: number;
  /** Null where none was published. */
  stddev: number | null;
  perCpu: number;
  /** "upper-bound" where the text only says "south of"; otherwise exact. */
  quality: "exact" | "upper-bound";
}

export interface TableInfo {
  /** The file's name in bench/tables/ without ".csv". */
  name: string;
  title: string;
  /** Where it was published, briefly; bench/tables/README.md has it in full. */
  source: string;
  /** False for a profile or a list of call stacks. */
  rates: boolean;
}

export const TABLES: readonly TableInfo[] = [
  {
    name: "0-siglock",
    title: "siglock removed from single-stepping (arm64)",
    source: "Liao Chang, 2024-10-22",
    rates: true,
  },
  {
    name: "1-speculative",
    title: "mmap_lock replaced by speculative lookup",
    source: "Linux commit e0925f2dc4de",
    rates: true,
  },
  {
    name: "2-tasks-trace",
    title: "SRCU replaced by RCU Tasks Trace",
    source: "Andrii Nakryiko, 2024-09-13",
    rates: true,
  },
  {
    name: "3-rwlock",
    title: "probe table: spinlock replaced by reader-writer lock",
    source: "Jonathan Haslam, 2024-04-22",
    rates: true,
  },
  {
    name: "4-percpu-ops",
    title: "grouped initialisation of per-CPU counters, execs per second",
    source: "Mateusz Guzik, 2023-08",
    rates: true,
  },
  {
    name: "4-percpu-profile192",
    title: "profile of the same at 192 CPUs",
    source: "Mateusz Guzik, 2023-08",
    rates: false,
  },
  {
    name: "4-percpu-stacks192",
    title: "call stacks of osq_lock of the same",
    source: "Mateusz Guzik, 2023-08",
    rates: false,
  },
  {
    name: "aux-uprobes-v5-baseline",
    title: "reader-writer lock and reference counts on the machine of 2-tasks-trace",
    source: "Andrii Nakryiko, 2024-09-03",
    rates: true,
  },
  {
    name: "aux-uretprobe-ripool",
    title: "reuse of return instances",
    source: "Andrii Nakryiko, uprobes ri_pool series 4/4",
    rates: true,
  },
];

interface Where {
  table: string;
  variant: string;
}

/** Which variant of which table a preset re-implements; the first that has the bench counts. */
const PRESET_ROWS: Readonly<Record<Arch, Readonly<Record<string, readonly Where[]>>>> = {
  x86: {
    spinlock: [{ table: "3-rwlock", variant: "before" }],
    rwlock: [
      { table: "3-rwlock", variant: "after" },
      { table: "aux-uprobes-v5-baseline", variant: "baseline-rwlock-refcount" },
    ],
    srcu: [{ table: "2-tasks-trace", variant: "before" }],
    "tasks-trace": [{ table: "2-tasks-trace", variant: "after" }],
    "mmap-lock": [{ table: "1-speculative", variant: "before" }],
    speculative: [{ table: "1-speculative", variant: "after" }],
    "uret-alloc": [{ table: "aux-uretprobe-ripool", variant: "before" }],
    "uret-pool": [{ table: "aux-uretprobe-ripool", variant: "after" }],
  },
  arm64: {
    siglock: [{ table: "0-siglock", variant: "before" }],
    "signal-flag": [{ table: "0-siglock", variant: "after" }],
  },
};

const parsed = new Map<string, readonly PublishedRow[]>();

/** All rows of a table of rates, in the order of the file. */
export function publishedTable(name: string): readonly PublishedRow[] {
  const known = parsed.get(name);
  if (known !== undefined) return known;
  const names = TABLES.filter((t) => t.rates).map((t) => t.name);
  if (!names.includes(name)) throw unknownName("table", name, names);
  const rows = parseRates(name, tableRecords(name));
  parsed.set(name, rows);
  return rows;
}

/** The records of any table as they are in the file, head first. */
export function tableRecords(name: string): string[][] {
  const text = TABLE_TEXTS[name];
  if (text === undefined) throw unknownName("table", name, Object.keys(TABLE_TEXTS));
  return parseCsv(text);
}

function parseRates(table: string, [head = [], ...records]: string[][]): PublishedRow[] {
  return records.map((record) => {
    const field = (name: string): string => record[head.indexOf(name)] ?? "";
    const stddev = field("stddev_mops");
    return {
      table,
      source: field("source"),
      variant: field("variant"),
      bench: field("bench"),
      cpus: Number(field("cpus")),
      mean: Number(field("mean_mops")) * 1e6,
      stddev: stddev === "" ? null : Number(stddev) * 1e6,
      perCpu: Number(field("per_cpu_mops")) * 1e6,
      quality: field("quality") === "upper-bound" ? "upper-bound" : "exact",
    };
  });
}

/** All published rows of a preset and bench; empty where nothing was published. */
export function publishedSeries(
  preset: string | null,
  bench: string,
  arch: Arch = "x86",
): readonly PublishedRow[] {
  if (preset === null) return [];
  for (const { table, variant } of PRESET_ROWS[arch][preset] ?? []) {
    const rows = publishedTable(table).filter(
      (row) => row.variant === variant && row.bench === bench,
    );
    if (rows.length > 0) return rows;
  }
  return [];
}

/** The published row of exactly this CPU count. The spinlock series has none at 16. */
export function publishedRow(
  preset: string | null,
  bench: string,
  cpus: number,
  arch: Arch = "x86",
): PublishedRow | undefined {
  return publishedSeries(preset, bench, arch).find((row) => row.cpus === cpus);
}

/**
 * What a published row is compared with: the table's own "before" at the same CPU count. Two tables
 * are of two machines, so that nothing follows from one against the other.
 */
export function publishedBefore(row: PublishedRow): PublishedRow | undefined {
  if (row.variant === "before") return undefined;
  return publishedTable(row.table).find(
    (other) => other.variant === "before" && other.bench === row.bench && other.cpus === row.cpus,
  );
}
