// What a sweep yields, as types and as a check for files: the JSON format `wasmprobe.sweep/1`.
//
// Rates are operations per second, times are nanoseconds. A run that was not measured has another
// `state` and no figures at all, so that no report can print a number nobody measured.

import * as v from "valibot";
import { WasmprobeError } from "../base/errors.js";
import { ARCH_NAMES, SITE_STRIDE } from "./cases.js";

export const SWEEP_SCHEMA = "wasmprobe.sweep/1";

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const cpus = v.pipe(v.number(), v.integer(), v.minValue(1));
const positive = v.pipe(v.number(), v.finite(), v.minValue(0));
const text = v.pipe(v.string(), v.minLength(1));

const HostSchema = v.object({
  cpuModel: text,
  /** CPUs this process may use: affinity mask and quota, not what the machine has. */
  allowedCpus: cpus,
  /** The affinity mask as a list of CPU numbers ("0-1"), where the platform tells. */
  affinityMask: v.optional(text),
  /** The container's quota in CPUs, where one is set; may have a fraction. */
  cpuQuota: v.optional(positive),
  /** "node 20.20.2" */
  runtime: text,
  /** Version of this package. */
  engine: text,
  /** "linux x64 6.8.0" */
  os: text,
  /** Smallest step of the clock that was used. */
  timerStepNs: positive,
  /** Private delay per exception of the whole result; absent when it differs by run. */
  trapNs: v.optional(positive),
  /** What that delay really took when it was tried: least and most of some trials. */
  trapMeasuredNs: v.optional(v.tuple([positive, positive])),
  /** Whether workers were pinned, in words: "pinned", "off", "not possible on darwin". */
  affinity: text,
  /** ISO 8601. */
  date: text,
});

const SettingsSchema = v.object({
  /** Shortest warm-up; a run that is not flat yet warms up to three times as long. */
  warmupNs: positive,
  durationNs: positive,
  repeat: cpus,
  seed: count,
});

/** What identifies a run; two results are compared by these. */
const keyFields = {
  bench: text,
  /** Null for benches without that axis. */
  preset: v.nullable(text),
  /** Where it ran: "threads". */
  on: text,
  cpus,
  /** Probes in the table; 0 where the bench has none. */
  probes: count,
  /** Distance of two probed sites; 0 where the bench has none. Older files do not say: 16. */
  siteBytes: v.optional(count, SITE_STRIDE),
  /** Which instructions are stepped, and so have a second exception. Older files do not say. */
  arch: v.optional(v.picklist(ARCH_NAMES), "x86"),
  /** Private delay of each exception, nanoseconds; 0 is "raw". */
  trapNs: positive,
};

/** What became of calls whose return is probed: entries = returns + filtered + missed + pending. */
const ReturnsSchema = v.object({
  entries: count,
  returns: count,
  filtered: count,
  missed: v.record(v.string(), count),
  pending: count,
});

const LatencySchema = v.object({
  /** Nanoseconds. Percentiles are nearest ranks, at most 1.6 % too high; the others exact. */
  mean: positive,
  p50: positive,
  p90: positive,
  p99: positive,
  max: positive,
  /** Operations that were timed. */
  samples: cpus,
  /** What the clock takes for a reading, as measured at start. */
  clockNs: positive,
  /** What else than the operation was timed, the clock included; taken off the figures above. */
  overheadNs: positive,
  /** One operation in so many was timed; 1: each. */
  period: cpus,
  /** Each operation is a batch of so many, and the figures are per one of them. */
  batch: v.optional(cpus),
});

const ReadersSchema = v.object({
  /** CPUs that read while another did the operations; 0 with one CPU. */
  cpus: count,
  /** Their rate, all together. */
  mean: positive,
  /** What one of their rounds is: "sections", "hits". */
  unit: text,
});

const MeasuredSchema = v.object({
  state: v.literal("measured"),
  ...keyFields,
  /** Of all CPUs together, over the real elapsed time of each sample. */
  mean: positive,
  /** Deviation of the samples (n - 1); null with one sample. */
  stddev: v.nullable(positive),
  perCpu: positive,
  /** The samples themselves, rates of all CPUs together. */
  samples: v.pipe(v.array(positive), v.minLength(1)),
  /** Rate of the slowest and of the fastest worker. */
  min: positive,
  max: positive,
  triggers: count,
  handled: count,
  filtered: count,
  missed: v.record(v.string(), count),
  /** Hits whose lookup ended under mmap_lock after all; benches of hits only. */
  fallbacks: v.optional(count),
  /** Searches of the tree that began again, since a writer came by; benches of hits only. */
  retries: v.optional(count),
  /** Hits whose instruction was executed out of line, with a second exception; benches of hits. */
  steps: v.optional(count),
  /** Benches of returns only. */
  returns: v.optional(ReturnsSchema),
  /** A neighbour made workers share a core while this was measured. */
  sharedCore: v.boolean(),
  /** More workers than CPUs: "4:1". */
  oversubscribed: v.optional(v.pipe(v.string(), v.regex(/^\d+:\d+$/))),
  /** False when the warm-up ended without a steady rate. */
  flat: v.optional(v.boolean()),
  /** What one operation is: "hits", "pairs". */
  unit: text,
  /** Of operations that were timed one by one. */
  latency: v.optional(LatencySchema),
  /** Where CPU 0 alone does the operations: what the others did meanwhile. */
  readers: v.optional(ReadersSchema),
});

const UnmeasuredSchema = v.object({
  state: v.picklist(["interrupted", "failed", "host-busy"]),
  ...keyFields,
  /** One line. */
  reason: text,
});

const ResultSchema = v.object({
  schema: v.literal(SWEEP_SCHEMA),
  host: HostSchema,
  settings: v.optional(SettingsSchema),
  /** Rounds kept and dropped by the busy-host rule. */
  rounds: v.optional(v.object({ kept: count, dropped: count })),
  runs: v.array(v.variant("state", [MeasuredSchema, UnmeasuredSchema])),
});

export type Host = v.InferOutput<typeof HostSchema>;
export type SweepSettings = v.InferOutput<typeof SettingsSchema>;
export type MeasuredRun = v.InferOutput<typeof MeasuredSchema>;
export type Latency = v.InferOutput<typeof LatencySchema>;
export type UnmeasuredRun = v.InferOutput<typeof UnmeasuredSchema>;
export type SweepRun = MeasuredRun | UnmeasuredRun;
export type SweepResult = v.InferOutput<typeof ResultSchema>;
export type RunKey = Pick<
  SweepRun,
  "bench" | "preset" | "on" | "cpus" | "probes" | "siteBytes" | "arch" | "trapNs"
>;

/** Reads a result from text; `source` names it in errors ("OLD.json"). */
export function parseResult(json: string, source: string): SweepResult {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new WasmprobeError(
      "E_FILE",
      `${source} is not JSON; valid is what --format json wrote (${SWEEP_SCHEMA})`,
    );
  }
  const schema = (value as { schema?: unknown } | null)?.schema;
  if (schema !== SWEEP_SCHEMA) {
    const found = typeof schema === "string" ? `schema "${schema}"` : "no schema name";
    throw new WasmprobeError(
      "E_FILE",
      `${source} is not a sweep result: it has ${found}; valid is "${SWEEP_SCHEMA}"`,
    );
  }
  const parsed = v.safeParse(ResultSchema, value);
  if (!parsed.success) {
    const issue = parsed.issues[0];
    const path = v.getDotPath(issue) ?? "the document";
    throw new WasmprobeError(
      "E_FILE",
      `${source} is not valid ${SWEEP_SCHEMA}: ${path}: ${issue.message.replace(/\s+/g, " ")}`,
    );
  }
  return parsed.output;
}

export function isMeasured(run: SweepRun): run is MeasuredRun {
  return run.state === "measured";
}

/**
 * Runs in which each operation was timed. There it is the time that counts: between two operations
 * lies work that belongs to neither, such as taking away what was registered.
 */
export function isTimed(run: SweepRun): run is MeasuredRun & { latency: Latency } {
  return isMeasured(run) && run.latency?.period === 1;
}

/** All runs with figures. */
export function measuredRuns(result: SweepResult): MeasuredRun[] {
  return result.runs.filter(isMeasured);
}

/** The same text for the same bench under the same conditions. */
export function runKey(run: RunKey): string {
  const { bench, preset, on, cpus: n, probes, arch, trapNs } = run;
  return JSON.stringify([bench, preset, on, n, probes, distanceOf(run), arch, trapNs]);
}

/** Distance of a run's sites, where there are two to be apart; else 0. */
export function distanceOf({ probes, siteBytes }: Pick<RunKey, "probes" | "siteBytes">): number {
  return probes > 1 ? siteBytes : 0;
}

export function distanceText(siteBytes: number): string {
  return siteBytes === 1 ? "1 byte apart" : `${siteBytes} bytes apart`;
}

/** A run in words: "uprobe-nop rwlock, 2 cpus, 1 probe, raw". */
export function runTitle(run: RunKey): string {
  const name = run.preset === null ? run.bench : `${run.bench} ${run.preset}`;
  const parts = [name, run.cpus === 1 ? "1 cpu" : `${run.cpus} cpus`];
  if (run.probes > 0) parts.push(run.probes === 1 ? "1 probe" : `${run.probes} probes`);
  const distance = distanceOf(run);
  if (distance > 0 && distance !== SITE_STRIDE) parts.push(distanceText(distance));
  if (run.on !== "threads") parts.push(`on ${run.on}`);
  if (run.arch !== "x86") parts.push(run.arch);
  if (run.trapNs > 0) parts.push(`trap ${run.trapNs} ns`);
  else if (run.probes > 0) parts.push("raw");
  return parts.join(", ");
}

/** "4:1" when there are more workers than CPUs to run them, else undefined. */
export function oversubscription(workers: number, allowedCpus: number): string | undefined {
  return workers > allowedCpus ? `${workers}:${allowedCpus}` : undefined;
}

/** Whether triggers = handled + filtered + everything missed. */
export function identityHolds(
  run: Pick<MeasuredRun, "triggers" | "handled" | "filtered" | "missed">,
): boolean {
  const missed = Object.values(run.missed).reduce((sum, n) => sum + n, 0);
  return run.triggers === run.handled + run.filtered + missed;
}
