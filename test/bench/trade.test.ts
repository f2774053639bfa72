// The script behind README's table of readers against writers, as a user runs it.
// runs alone
// time limit: 120 s

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { LADDER_PRESETS } from "../../src/harness/cases.js";
import { identityHolds, measuredRuns, parseResult } from "../../src/harness/result.js";
import { ROOT } from "../helpers/root.js";

const dir = mkdtempSync(join(tmpdir(), "trade-"));

function trade(...words: string[]) {
  const script = join(ROOT, "build", "bench", "trade.js");
  return spawnSync(process.execPath, [script, ...words], { encoding: "utf8", timeout: 100_000 });
}

test("a table with a row a preset and no gaps, and the runs behind it as a result", () => {
  const path = join(dir, "trade.json");
  const { status, stdout, stderr } = trade("--rounds", "1", "--seconds", "0.1", "--json", path);
  assert.is(status, 0, stderr);
  const rows = stdout.split("\n").filter((line) => line.startsWith("| `"));
  assert.equal(
    rows.map((row) => /^\| `([a-z-]+)`/.exec(row)?.[1]),
    [...LADDER_PRESETS],
  );
  for (const row of rows) assert.not.match(row, /\| +-\?? +\||undefined|NaN/);
  const runs = measuredRuns(parseResult(readFileSync(path, "utf8"), path));
  for (const run of runs) assert.ok(identityHolds(run), JSON.stringify(run));
});

test("what makes no sense is refused with exit code 2 and one line", () => {
  for (const [option, value, says] of [
    ["--rounds", "0", /--rounds 0: valid are whole numbers 1\.\.100/],
    ["--cpus", "1", /--cpus 1: valid are whole numbers 2\.\.256/],
    ["--seconds", "x", /--seconds x: valid are numbers/],
    ["--frobnicate", "1", /--frobnicate/],
  ] as const) {
    const { status, stdout, stderr } = trade(option, value);
    assert.equal([status, stdout], [2, ""], stderr);
    assert.match(stderr, says);
    assert.match(stderr, /^trade: [^\n]+\n$/);
  }
});

test.after(() => rmSync(dir, { recursive: true, force: true }));
test.run();
