// `npm run bench` as a user runs it; what it finds on this machine is no test.
// runs alone
// time limit: 120 s

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ROOT } from "../helpers/root.js";

function bench(...words: string[]) {
  const script = join(ROOT, "build", "bench", "goals.js");
  return spawnSync(process.execPath, [script, ...words], { encoding: "utf8", timeout: 100_000 });
}

test("--list names every goal without measuring, --only those with a pattern", () => {
  const all = bench("--list").stdout.trim().split("\n");
  assert.ok(all.length > 20);
  const some = bench("--list", "--only", "LADDER").stdout.trim().split("\n");
  assert.equal(
    some,
    all.filter((line) => line.startsWith("ladder")),
  );
  assert.is(some.length, 5);
});

test("only what was asked for is measured, with its rates and a verdict", () => {
  const words = ["--only", "1 probe, 1 CPU|mmap-lock / spec", "--rounds", "1"];
  const { status, stdout, stderr } = bench(...words);
  assert.ok(status === 0 || status === 3, stderr);
  const lines = stdout.split("\n").filter((line) => / x .*\.\./.test(line));
  if (status === 3) return; // a neighbour disturbed it
  assert.is(lines.length, 2, stdout);
  for (const line of lines) assert.match(line, /\d \| \d.*(met|MISSED)$/);
  assert.not.match(stdout, /lock-mutex|NaN|undefined/);
});

test("what makes no sense is refused with exit code 2 and one line", () => {
  for (const [option, value, says] of [
    ["--rounds", "0", /--rounds 0: valid are whole numbers 1\.\.1000/],
    ["--only", "lader", /--only lader: no goal/],
    ["--only", "(", /[Ii]nvalid regular expression/],
    ["--frobnicate", "1", /--frobnicate/],
  ] as const) {
    const { status, stdout, stderr } = bench(option, value);
    assert.equal([status, stdout], [2, ""], stderr);
    assert.match(stderr, says);
    assert.match(stderr, /^bench: [^\n]+\n$/);
  }
});

test.run();
