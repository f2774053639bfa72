// `wasmprobe torture NAME`: the invariants under load, until time is up; SUCCESS or FAILURE.

import { EXIT_OK, EXIT_RUNTIME } from "../../base/errors.js";
import { seedFrom } from "../../base/random.js";
import { hostLines } from "../../harness/format/header.js";
import { describeHost, usableCpus } from "../../harness/host.js";
import { oversubscription } from "../../harness/result.js";
import { tortureLocks } from "../../harness/torture/locks.js";
import { tortureLookup } from "../../harness/torture/lookup.js";
import { tortureProbes } from "../../harness/torture/probes.js";
import { tortureRcu } from "../../harness/torture/rcu.js";
import { closingLine } from "../../harness/torture/run.js";
import type { TortureOptions } from "../options.js";
import type { Session } from "../session.js";
import { withThreads } from "./start.js";

/** A CPU that has not left by then hangs, and torture is there to say so. */
const LEAVE_LIMIT_MS = 4_000;
/** Torture's tables are tiny: contention is what it is about. */
const PROBES = 1024;

export async function runTorture(session: Session, options: TortureOptions): Promise<number> {
  const usable = usableCpus(session.platform);
  const cpus = options.cpus ?? usable;
  const seed = options.seed ?? seedFrom(session.terminal.entropy());
  const { wasm } = options;
  const start = { cpus, probes: PROBES, affinity: false, wasm, leaveLimitMs: LEAVE_LIMIT_MS };
  return withThreads(session, start, async (runner) => {
    if (!options.quiet) {
      const lines = hostLines(describeHost(session.platform, runner.affinity));
      for (const line of lines) session.note(line);
    }
    const label = oversubscription(cpus, usable);
    const on = label === undefined ? `${cpus} CPUs` : `${cpus} CPUs, oversubscribed ${label}`;
    const what = options.lock === null ? options.name : `${options.name} ${options.lock}`;
    session.print(`${what}-torture:--- Start of test: ${on}, ${options.seconds} s, seed=${seed}`);
    const context = {
      runner,
      nowMs: session.platform.nowMs,
      cpus,
      seconds: options.seconds,
      seed,
      interrupt: session.interrupt,
      print: (line: string) => session.print(line),
      onStep: (step: string) => {
        if (!options.quiet) session.note(`${options.name}: ${step}`);
      },
    };
    const tests = {
      locks: () => tortureLocks(context, options.lock),
      probes: () => tortureProbes(context),
      lookup: () => tortureLookup(context),
      rcu: () => tortureRcu(context),
    };
    const report = await tests[options.name]();
    for (const failure of report.failures) session.print(`!!! ${failure}`);
    session.print(closingLine(what, report, seed));
    return report.failures.length === 0 ? EXIT_OK : EXIT_RUNTIME;
  });
}
