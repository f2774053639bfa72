// A cell: one bench under one preset on so many CPUs, set up on a runner and ready to run.

import * as abi from "../engine/abi.js";
import { archOf, strategyOf } from "../engine/presets.js";
import type { Runner } from "../engine/runner.js";
import { hasProbes, SITE_STRIDE } from "./cases.js";
import { countCell, lockCell, rcuCell } from "./cells/counts.js";
import { uprobeCell } from "./cells/hits.js";
import type { Cell, CellSpec } from "./cells/types.js";
import { graceCell, registrationCell } from "./cells/writers.js";
import { delayUnits } from "./delay.js";

export { RCU_KINDS } from "./cells/counts.js";
export { SITE_VADDR, siteBytesOf, triggerEntry } from "./cells/hits.js";
export { SITE_STRIDE } from "./cases.js";
export type { Cell, CellCounts, CellSpec } from "./cells/types.js";

/** Bytes of memory that cells with up to so many probes and CPUs, and sites so far apart, need. */
export function cellMemoryBytes(probes: number, cpus: number, siteBytes = SITE_STRIDE): number {
  // A uprobe and a consumer of three lines each, a site's text, and the file's copy of it; places
  // of 16 bytes in the hash, at most 16/7 a breakpoint, and as many in tables it has outgrown.
  const probe = 6 * abi.LINE + 2 * siteBytes + 80;
  // Return instances that wait for a grace period: at most 4 MiB a CPU, and a bulk more.
  return (16 << 20) + probes * probe + cpus * ((64 << 10) + (5 << 20));
}

/** Formats the runner's engine for the cell and registers its probes. */
export async function setUpCell(runner: Runner, spec: CellSpec, unitNs: number): Promise<Cell> {
  const { bench, cpus } = spec;
  const traps = hasProbes(bench) && spec.trapNs > 0;
  const probes = hasProbes(bench) ? spec.probes : 0;
  await runner.format({
    cpus,
    strategy: spec.preset === null ? abi.PRESET_SPINLOCK : strategyOf(spec.preset),
    // Of those that are taken away, some wait for a grace period until they are freed.
    uprobesMax: probes + 4 * abi.REGISTRATION_BATCH,
    trapUnits: traps ? delayUnits(spec.trapNs, unitNs) : 0,
    arch: archOf(spec.arch ?? "x86"),
  });
  const hits = bench.family === "uprobe" || bench.family === "uretprobe";
  if (hits || bench.name === "usermode-count") {
    return uprobeCell(runner, spec, probes);
  }
  if (bench.family === "rcu") return rcuCell(runner, spec);
  if (bench.family === "registration") return registrationCell(runner, spec);
  if (bench.family === "grace") return graceCell(runner, spec);
  return bench.family === "lock" ? lockCell(runner, spec) : countCell(runner, spec);
}
