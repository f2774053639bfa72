// The script behind `npm run mutants`, on made-up killers: what was not killed must not pass.
// time limit: 120 s

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ROOT } from "./helpers/root.js";
import type { Mutant } from "./mutants/types.js";

// The command that is run instead of the real one: its first word says how it behaves, and a change
// of the engine is one that makes the module another.
const CLI = `
import { readFileSync } from "node:fs";
const [how] = process.argv.slice(2);
const valueOf = (name) => process.argv[process.argv.indexOf(name) + 1];
const read = (file) => readFileSync(file).toString("base64");
const changed = read(valueOf("--wasm")) !== read(${JSON.stringify(join(ROOT, "dist/engine.wasm"))});
const seed = Number(valueOf("--seed"));
const fail = () => { console.log("seed " + seed + "\\nFAILURE: lost 3 updates"); process.exit(1); };
if (how === "notices" && changed) fail();
if (how === "broken") fail();
if (how === "sometimes" && changed && seed % 2 === 0) fail();
if (how === "hangs" && changed) setInterval(() => {}, 1000);
else if (how === "crashes" && changed) throw new Error("out of something");
else console.log("SUCCESS");
`;

const CHANGE = {
  file: "workload/count.ts",
  find: "store<i64>(p, load<i64>(p) + 1)",
  replace: "store<i64>(p, load<i64>(p) + 2)",
};

function runMutants(mutants: (Partial<Mutant> & { name: string })[], ...args: string[]) {
  const dir = mkdtempSync(join(tmpdir(), "mutants-test-"));
  try {
    mkdirSync(join(dir, "mutants"));
    writeFileSync(join(dir, "package.json"), `{"type":"module"}`);
    writeFileSync(join(dir, "cli.js"), CLI);
    const all = mutants.map((m) => ({ ...CHANGE, kills: "notices", ...m }));
    const text = `export const mutants = ${JSON.stringify(all)};`;
    writeFileSync(join(dir, "mutants", "all.js"), text);
    const script = join(ROOT, "scripts", "mutants.mjs");
    const { status, stdout } = spawnSync(
      process.execPath,
      [script, "--mutants", join(dir, "mutants"), "--cli", join(dir, "cli.js"), ...args],
      { encoding: "utf8" },
    );
    return { code: status, stdout, last: stdout.trimEnd().split("\n").at(-1) };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

// One call for all of these: the engine is compiled once a mutant.
const all = runMutants(
  [
    { name: "noticed" },
    { name: "half", kills: "sometimes" },
    { name: "hangs", kills: "hangs" },
    { name: "crashes", kills: "crashes" },
    { name: "unsound", kills: "broken" },
    { name: "gone", find: "no such text" },
    { name: "twice", find: "i64" },
    { name: "syntax", replace: "store<i64>(" },
    { name: "third", unkillable: "needs a third CPU" },
  ],
  "--seconds",
  "1",
  "--grace",
  "0",
);

test("a mutant that every run notices is killed, and the line that says so is printed", () => {
  assert.match(all.stdout, /ok {6}control: notices passes on the unchanged engine, 4 runs/);
  assert.match(all.stdout, /killed {2}noticed {2}20\/20 by notices.*\n {4}FAILURE: lost 3 upd/);
});

test("a mutant that half of the runs notice lives, and is given up early", () => {
  assert.match(all.stdout, /FAILED {2}half {2}1\/3, 2 passed by sometimes/);
});

test("a run that hangs, or crashes without a verdict, kills nothing", () => {
  assert.match(all.stdout, /FAILED {2}hangs {2}0\/2, 2 hung/);
  assert.match(all.stdout, /FAILED {2}crashes {2}0\/2, 2 crashed[\s\S]*out of something/);
});

test("a killer that fails on the unchanged engine kills nothing", () => {
  assert.match(all.stdout, /FAILED {2}control: broken killed on the unchanged engine, seed 1/);
  assert.match(all.stdout, /FAILED {2}unsound {2}not judged/);
});

test("a mutant whose text is gone, or is there twice, or does not compile, fails", () => {
  assert.match(all.stdout, /FAILED {2}gone {2}its text occurs 0 times in workload\/count\.ts/);
  assert.match(all.stdout, /FAILED {2}twice {2}its text occurs \d+ times/);
  assert.match(all.stdout, /FAILED {2}syntax {2}asc: /);
});

test("an unkillable mutant is compiled and listed with its reason, not run", () => {
  assert.match(all.stdout, /listed {2}third {2}.*needs a third CPU/);
});

test("the last line counts the killed; all others failed, but for the listed", () => {
  assert.is(all.last, "1 passed, 8 failed");
  assert.is(all.code, 1);
});

test("all killed: exit code 0", () => {
  const { code, last } = runMutants([{ name: "a" }], "--runs", "1");
  assert.is(last, "1 passed, 0 failed");
  assert.is(code, 0);
});

test("a sample is drawn by its seed, and leaves unkillable ones out", () => {
  const many = Array.from({ length: 12 }, (_, i) => ({ name: `m${i}` }));
  const mutants = [...many, { name: "never", unkillable: "why" }];
  const draw = (seed: string): string =>
    runMutants(mutants, "--sample", "4", "--seed", seed, "--list").stdout;
  assert.is(draw("7"), draw("7"));
  assert.is.not(draw("7"), draw("8"));
  assert.is(draw("7").trimEnd().split("\n").length, 4);
  assert.not.match(runMutants(mutants, "--sample", "99", "--list").stdout, /never/);
});

test("a word that no mutant has in its name is a failure", () => {
  assert.is(runMutants([{ name: "a" }], "--only", "b").last, "0 passed, 1 failed");
});

test.run();
