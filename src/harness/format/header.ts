// The lines above a result: on what it was measured, how, and what to be careful about.

import { formatNs } from "../../base/units.js";
import { distanceOf, measuredRuns, runTitle, type Host, type SweepResult } from "../result.js";
import { clockText } from "./latency.js";
import { remarks, trapText } from "./series.js";

/** One line each; formats add their own comment sign. */
export function headerLines(result: SweepResult): string[] {
  return [
    ...hostLines(result.host, trapsOf(result), archsOf(result)),
    ...settingLines(result),
    ...[clockText(measuredRuns(result))].filter((line) => line !== ""),
    ...noteLines(result),
  ];
}

/** What the machine is; `traps` as in "raw" or "trap 250 ns", `arch` as in "arm64". */
export function hostLines(host: Host, traps?: string, arch = "x86"): string[] {
  const plain = traps ?? (host.trapNs === undefined ? undefined : trapText(host.trapNs));
  const tried = host.trapMeasuredNs;
  const trap = plain === undefined || tried === undefined ? plain : `${plain} ${triedText(tried)}`;
  const steps = arch === "x86" ? "" : `, steps as on ${arch}`;
  const exceptions = trap === undefined ? "" : `exceptions: ${trap}${steps}, `;
  return [
    `cpu: ${host.cpuModel}, ${allowedText(host)}, ${host.os}`,
    `runtime: ${host.runtime}, wasmprobe ${host.engine}, timer step ${formatNs(host.timerStepNs)}`,
    `${exceptions}affinity: ${host.affinity}, ${host.date}`,
  ];
}

/** "(measured 478 .. 483 ns)" */
export function triedText([least, most]: readonly [number, number]): string {
  return `(measured ${least.toFixed(0)} .. ${most.toFixed(0)} ns)`;
}

function allowedText(host: Host): string {
  const limits: string[] = [];
  if (host.affinityMask !== undefined) limits.push(`mask ${host.affinityMask}`);
  if (host.cpuQuota !== undefined) limits.push(`quota ${host.cpuQuota}`);
  const cpus = host.allowedCpus === 1 ? "1 allowed cpu" : `${host.allowedCpus} allowed cpus`;
  return limits.length === 0 ? cpus : `${cpus} (${limits.join(", ")})`;
}

function trapsOf(result: SweepResult): string | undefined {
  const hits = result.runs.filter((run) => run.probes > 0);
  const traps = new Set((hits.length > 0 ? hits : result.runs).map((run) => run.trapNs));
  return traps.size === 0 ? undefined : [...traps].map(trapText).join(" and ");
}

function archsOf(result: SweepResult): string {
  const archs = new Set(result.runs.filter((run) => run.probes > 0).map((run) => run.arch));
  return archs.size === 0 ? "x86" : [...archs].join(" and ");
}

function settingLines(result: SweepResult): string[] {
  const { settings, rounds } = result;
  if (settings === undefined) return [];
  const times = `warm-up ${formatNs(settings.warmupNs)}, measured ${formatNs(settings.durationNs)}`;
  const kept = rounds === undefined ? settings.repeat : rounds.kept;
  const dropped = rounds === undefined || rounds.dropped === 0 ? "" : `, ${rounds.dropped} dropped`;
  const round = kept === 1 ? "round" : "rounds";
  const head = `${times}, ${kept} ${round}${dropped}`;
  return [`${head}, seed ${settings.seed}${sitesOf(result)}`];
}

/** How far apart sites are, where there are several: figures depend on it. */
function sitesOf({ runs }: SweepResult): string {
  const distances = new Set(runs.map(distanceOf).filter((distance) => distance > 0));
  return distances.size === 0 ? "" : `, sites ${[...distances].join(" and ")} bytes apart`;
}

/** At most this many runs are named by a note; the rest is counted. */
const NAMED_MAX = 3;

function noteLines(result: SweepResult): string[] {
  const notes = new Map<string, string[]>();
  for (const run of result.runs) {
    if (run.state !== "measured") continue;
    for (const mark of remarks(run)) {
      const title = mark.startsWith("oversubscribed") ? `${run.cpus} workers` : runTitle(run);
      const titles = notes.get(mark) ?? [];
      if (!titles.includes(title)) titles.push(title);
      notes.set(mark, titles);
    }
  }
  const lines = [...notes].map(([mark, titles]) => `${mark}: ${named(titles)}`);
  const missing = result.runs.filter((run) => run.state !== "measured");
  if (missing.length > 0) {
    const reasons = [...new Set(missing.map((run) => run.reason))].join("; ");
    lines.push(`not measured (${reasons}): ${named(missing.map(runTitle))}`);
  }
  return lines;
}

function named(titles: readonly string[]): string {
  const rest = titles.length - NAMED_MAX;
  const shown = titles.slice(0, NAMED_MAX).join("; ");
  return rest > 0 ? `${shown}; and ${rest} more` : shown;
}
