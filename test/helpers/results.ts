// Results made up for tests of what is done with results.

import type { Host, MeasuredRun, SweepResult, SweepRun } from "../../src/harness/result.js";

export const HOST: Host = {
  cpuModel: "Example CPU @ 2.0 GHz",
  allowedCpus: 2,
  affinityMask: "0-1",
  runtime: "node 20.20.2",
  engine: "0.1.0",
  os: "linux x64 6.8.0",
  timerStepNs: 41,
  trapNs: 0,
  affinity: "off",
  date: "2026-01-02T03:04:05.000Z",
};

/** A measured run at `mean` operations per second, with a deviation of 1 %. */
export function measured(
  bench: string,
  preset: string | null,
  cpus: number,
  mean: number,
  more: Partial<MeasuredRun> = {},
): MeasuredRun {
  return {
    state: "measured",
    bench,
    preset,
    on: "threads",
    cpus,
    probes: preset === null ? 0 : 1,
    siteBytes: preset === null ? 0 : 16,
    arch: "x86",
    trapNs: 0,
    mean,
    stddev: mean * 0.01,
    perCpu: mean / cpus,
    samples: [mean * 0.99, mean * 1.01],
    min: (mean / cpus) * 0.97,
    max: mean / cpus,
    triggers: 1000,
    handled: 1000,
    filtered: 0,
    missed: {},
    sharedCore: false,
    flat: true,
    unit: preset === null ? "increments" : "hits",
    ...more,
  };
}

/** A run whose operations were timed, with 30 M/s of `readers` on the other CPUs. */
export function timed(bench: string, cpus: number, more: Partial<MeasuredRun> = {}): MeasuredRun {
  const clock = { clockNs: 50, overheadNs: 50, period: 1 };
  return measured(bench, null, cpus, 2e5, {
    unit: "grace periods",
    latency: { mean: 4300, p50: 4000, p90: 8000, p99: 15_000, max: 2e6, samples: 12_345, ...clock },
    readers: { cpus: cpus - 1, mean: (cpus - 1) * 30e6, unit: "sections" },
    ...more,
  });
}

export function interrupted(bench: string, preset: string | null, cpus: number): SweepRun {
  const probes = preset === null ? 0 : 1;
  const siteBytes = 16 * probes;
  const key = { bench, preset, on: "threads", cpus, probes, siteBytes, trapNs: 0 };
  const arch = "x86" as const;
  return { arch, state: "interrupted", ...key, reason: "interrupted" };
}

export function resultOf(runs: SweepRun[], more: Partial<SweepResult> = {}): SweepResult {
  return {
    schema: "wasmprobe.sweep/1",
    host: HOST,
    settings: { warmupNs: 3e8, durationNs: 1e9, repeat: 3, seed: 1 },
    rounds: { kept: 3, dropped: 0 },
    runs,
    ...more,
  };
}

/** Each preset at 1 and `most` CPUs, and the control scaling by `control`. */
export function presetRuns(
  rates: Readonly<Record<string, readonly [number, number]>>,
  most = 2,
  control = most * 0.99,
  more: Partial<MeasuredRun> = {},
): MeasuredRun[] {
  const presets = Object.entries(rates);
  return [
    ...presets.map(([preset, [one]]) => measured("uprobe-nop", preset, 1, one, more)),
    ...presets.map(([preset, [, many]]) => measured("uprobe-nop", preset, most, many, more)),
    measured("count-percpu", null, 1, 400e6),
    measured("count-percpu", null, most, 400e6 * control),
  ];
}
