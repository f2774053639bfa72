// A cell: one bench under one preset on so many CPUs, set up on a runner and ready to run.

import * as abi from "../engine/abi.js";
import { strategyOf } from "../engine/presets.js";
import type { Runner } from "../engine/runner.js";
import { hasProbes } from "./cases.js";
import { countCell, lockCell, rcuCell } from "./cells/counts.js";
import { SITE_STRIDE, uprobeCell } from "./cells/hits.js";
import type { Cell, CellSpec } from "./cells/types.js";
import { graceCell, registrationCell } from "./cells/writers.js";
import { delayUnits } from "./delay.js";

export { RCU_KINDS } from "./cells/counts.js";
export { SITE_STRIDE, SITE_VADDR, triggerEntry } from "./cells/hits.js";
export type { Cell, CellCounts, CellSpec } from "./cells/types.js";

/** Bytes of memory that cells with up to so many probes and CPUs need. */
export function cellMemoryBytes(probes: number, cpus: number): number {
  // A uprobe and a consumer of three lines each, a site's text, and the file's copy of it.
  return (16 << 20) + probes * (6 * abi.LINE + 2 * SITE_STRIDE) + cpus * 64 * 1024;
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
  });
  if (bench.family === "uprobe" || bench.name === "usermode-count") {
    return uprobeCell(runner, spec, probes);
  }
  if (bench.family === "rcu") return rcuCell(runner, spec);
  if (bench.family === "registration") return registrationCell(runner, spec);
  if (bench.family === "grace") return graceCell(runner, spec);
  return bench.family === "lock" ? lockCell(runner, spec) : countCell(runner, spec);
}
