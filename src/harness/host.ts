// What results say about the machine they were measured on.

import { formatRanges } from "../base/ranges.js";
import { VERSION } from "../base/version.js";
import type { Platform } from "../platform/platform.js";
import type { Host } from "./result.js";

/** CPUs that the process may really use: the mask, or fewer where a quota says so; at least 1. */
export function usableCpus(platform: Platform): number {
  const { allowedCpus, quotaCpus } = platform.host();
  const quota = quotaCpus === undefined ? allowedCpus.length : Math.ceil(quotaCpus);
  return Math.max(1, Math.min(allowedCpus.length, quota));
}

/** Smallest step that the clock was seen to make, nanoseconds. */
export function timerStepNs(nowMs: () => number): number {
  let step = Number.POSITIVE_INFINITY;
  let before = nowMs();
  const until = before + 5;
  while (before < until) {
    const now = nowMs();
    if (now > before) step = Math.min(step, now - before);
    before = now;
  }
  return Math.round(step * 1e6);
}

/** The header of a result. `affinity` as the runner tells it. */
export function describeHost(platform: Platform, affinity: string): Host {
  const info = platform.host();
  return {
    cpuModel: info.cpuModel,
    allowedCpus: usableCpus(platform),
    affinityMask: formatRanges(info.allowedCpus),
    ...(info.quotaCpus === undefined ? {} : { cpuQuota: info.quotaCpus }),
    runtime: `${info.runtime}, ${info.engine}`,
    engine: VERSION,
    os: info.os,
    timerStepNs: timerStepNs(platform.nowMs),
    affinity,
    date: new Date().toISOString(),
  };
}
