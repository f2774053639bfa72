// The text of every published table. The build bundles this file alone, so that the tables ship
// inside the package and nothing needs to find or read a file.

import siglock from "../../bench/tables/0-siglock.csv";
import speculative from "../../bench/tables/1-speculative.csv";
import tasksTrace from "../../bench/tables/2-tasks-trace.csv";
import rwlock from "../../bench/tables/3-rwlock.csv";
import percpuOps from "../../bench/tables/4-percpu-ops.csv";
import percpuProfile from "../../bench/tables/4-percpu-profile192.csv";
import percpuStacks from "../../bench/tables/4-percpu-stacks192.csv";
import uprobesV5 from "../../bench/tables/aux-uprobes-v5-baseline.csv";
import uretprobePool from "../../bench/tables/aux-uretprobe-ripool.csv";

export const TABLE_TEXTS: Readonly<Record<string, string>> = {
  "0-siglock": siglock,
  "1-speculative": speculative,
  "2-tasks-trace": tasksTrace,
  "3-rwlock": rwlock,
  "4-percpu-ops": percpuOps,
  "4-percpu-profile192": percpuProfile,
  "4-percpu-stacks192": percpuStacks,
  "aux-uprobes-v5-baseline": uprobesV5,
  "aux-uretprobe-ripool": uretprobePool,
};
