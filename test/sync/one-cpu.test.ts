// More workers than cores: every lock lets all of them on.
// runs alone
// time limit: 120 s

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { loadPlatform } from "../../src/platform/index.js";
import { testIf } from "../helpers/skip.js";

const LOCKS = ["spinlock", "ticket", "qspinlock", "rwlock_write", "rwsem_write", "mutex"];

const [cpu] = (await loadPlatform()).host().allowedCpus;
const taskset = spawnSync("taskset", ["-c", String(cpu), "true"]).status === 0;

testIf(
  taskset,
  "taskset is not there to bind a program to one CPU",
  test,
  "four workers on one CPU all progress in every second, whatever the lock",
  () => {
    const script = fileURLToPath(new URL("../helpers/per-second.js", import.meta.url));
    const command = ["-c", String(cpu), process.execPath, script, ...LOCKS];
    const { stdout, stderr } = spawnSync("taskset", command, { encoding: "utf8" });
    const lines = stdout.trim().split("\n");
    assert.is(lines.length, LOCKS.length, stderr);
    for (const line of lines) {
      const { lock, seconds, exact } = JSON.parse(line) as {
        lock: string;
        seconds: number[][];
        exact: boolean;
      };
      assert.ok(exact, `${lock}: lost an update`);
      for (const second of seconds) {
        assert.ok(Math.min(...second) > 0, `${lock}: ${JSON.stringify(seconds)}`);
      }
    }
  },
);

test.run();
