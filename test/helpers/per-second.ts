// A program of its own, so that a test can bind it to one CPU: runs bench_LOCK for each LOCK named
// on its command line on four workers, and prints one JSON line each: operations of each worker in
// each of `SECONDS` seconds.

import * as abi from "../../src/engine/abi.js";
import { progress, sleep, withThreads } from "./engine.js";

const CPUS = 4;
const SECONDS = 3;

await withThreads(CPUS, async (runner) => {
  for (const lock of process.argv.slice(2)) {
    await runner.format({ cpus: CPUS });
    const p = await runner.command(abi.OP_ALLOC, abi.LOCK_AREA_BYTES);
    const jobs = Array.from({ length: CPUS }, () => ({ entry: `bench_${lock}`, args: [p] }));
    const run = await runner.run(jobs);
    const seconds: number[][] = [];
    let before = progress(runner, abi.PCPU_OPS);
    for (let second = 0; second < SECONDS; second++) {
      await sleep(1000);
      const now = progress(runner, abi.PCPU_OPS);
      seconds.push(now.map((ops, cpu) => ops - (before[cpu] ?? 0)));
      before = now;
    }
    await run.stop();
    const total = progress(runner, abi.PCPU_OPS).reduce((a, b) => a + b, 0);
    const exact = runner.memory.load64(p + abi.LOCK_DATA) === total;
    console.log(JSON.stringify({ lock, seconds, exact }));
  }
});
