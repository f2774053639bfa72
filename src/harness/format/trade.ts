// The trade of readers against writers, which the kernel's move from SRCU to RCU Tasks Trace names:
// what a hit saves, those who register and unregister pay. One row a preset.

import { mdTable } from "../../base/text.js";
import { formatNs } from "../../base/units.js";
import { LADDER_PRESETS, type PresetName } from "../cases.js";
import { measuredRuns, type MeasuredRun, type SweepResult } from "../result.js";

interface Flavour {
  /** What keeps a probe alive during a hit. */
  readers: string;
  /** The bench of its read section by itself. */
  section: string;
  /** The bench of its grace period; null where writers wait for a lock instead. */
  grace: string | null;
}

const SEMAPHORE = { readers: "`register_rwsem`, references", section: "lock-rwsem", grace: null };
const SRCU = { readers: "SRCU", section: "rcu-read-srcu", grace: "gp-srcu" };
const TRACE = {
  readers: "RCU Tasks Trace",
  section: "rcu-read-tasks-trace",
  grace: "gp-tasks-trace",
};
const QSBR = { readers: "QSBR", section: "rcu-read-qsbr", grace: "gp-qsbr" };

const FLAVOURS: Readonly<Record<PresetName, Flavour>> = {
  spinlock: SEMAPHORE,
  rwlock: SEMAPHORE,
  siglock: SEMAPHORE,
  "signal-flag": SEMAPHORE,
  srcu: SRCU,
  "tasks-trace": TRACE,
  "mmap-lock": TRACE,
  speculative: TRACE,
  "uret-alloc": TRACE,
  "uret-pool": TRACE,
  fastest: QSBR,
};

/** What is to be measured on one CPU, and on all of them, for the table to be complete. */
export const TRADE_BENCHES = {
  one: [...new Set(Object.values(FLAVOURS).map((f) => f.section)), "uprobe-nop"],
  all: [
    ...new Set(Object.values(FLAVOURS).flatMap((f) => (f.grace === null ? [] : [f.grace]))),
    "uprobe-nop",
    "register",
    "unregister-batch",
  ],
};

/** The table as markdown; what was not measured is "-", what a neighbour disturbed ends in "?". */
export function formatTrade(result: SweepResult, cpus: number): string {
  const runs = measuredRuns(result);
  const find = (bench: string | null, preset: string | null, n: number) =>
    runs.find((run) => run.bench === bench && run.preset === preset && run.cpus === n);
  const rows = LADDER_PRESETS.map((preset) => {
    const { readers, section, grace } = FLAVOURS[preset];
    const period = find(grace, null, cpus);
    const waits = grace === null ? "none" : tail(period);
    return [
      `\`${preset}\``,
      readers,
      each(find(section, null, 1)),
      each(find("uprobe-nop", preset, 1)),
      each(find("uprobe-nop", preset, cpus)),
      waits,
      tail(find("register", preset, cpus)),
      tail(find("unregister-batch", preset, cpus)),
    ];
  });
  const head = [
    "preset",
    "readers",
    "read section",
    "hit, 1 cpu",
    `hit, ${cpus} cpus`,
    "grace period",
    "register",
    "unregister, 64 at once",
  ];
  const align = head.map((_, i) => (i < 2 ? ("left" as const) : ("right" as const)));
  return mdTable(head, rows, align);
}

/** Time of an operation, as a CPU sees it. */
function each(run: MeasuredRun | undefined): string {
  return run === undefined ? "-" : formatNs(1e9 / run.perCpu) + doubt(run);
}

/** Median and 99th percentile. */
function tail(run: MeasuredRun | undefined): string {
  if (run?.latency === undefined) return "-";
  return `${formatNs(run.latency.p50)}, ${formatNs(run.latency.p99)}${doubt(run)}`;
}

function doubt(run: MeasuredRun): string {
  return run.sharedCore ? "?" : "";
}
