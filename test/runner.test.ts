// The test runner must fail whatever did not pass: each way to slip through is tried on it here,
// with small files in a temporary folder.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ROOT } from "./helpers/root.js";
import { testIf } from "./helpers/skip.js";

const RUNNER = join(ROOT, "test", "run.mjs");
const UVU = `import { test } from ${JSON.stringify(import.meta.resolve("uvu"))};\n`;
const fixture = (...tests: string[]): string => [UVU, ...tests, "test.run();\n"].join("\n");
const PASSING = fixture(`test("a", () => {});`, `test("b", () => {});`);
const SPINNING = fixture(`test("t", () => { for (;;); });`);

interface Ended {
  code: number | null;
  stdout: string;
  lines: string[];
}

/** Runs the runner on a folder with these files; names without ".test.js". */
function runOn(files: Record<string, string>, ...args: string[]): Ended {
  return inFolder((dir) => {
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(dir, `${name}.test.js`), text.replaceAll("$DIR", dir));
    }
    const { status, stdout } = spawnSync(process.execPath, [RUNNER, "--dir", dir, ...args], {
      encoding: "utf8",
    });
    return { code: status, stdout, lines: stdout.trimEnd().split("\n") };
  });
}

function inFolder<T>(use: (dir: string) => T): T {
  const dir = mkdtempSync(join(tmpdir(), "runner-"));
  writeFileSync(join(dir, "package.json"), `{"type":"module"}`);
  try {
    return use(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function fails(ended: Ended, why: RegExp, counts: string): void {
  assert.is(ended.code, 1);
  assert.match(ended.stdout, why);
  assert.is(ended.lines.at(-1), counts);
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A killed process whose new parent has not collected it yet is a zombie, and does no harm.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

const LINUX = process.platform === "linux";
const NO_PROC = "the runner finds detached processes through /proc";

/** A process of its own group that sleeps for a minute; its id goes to the file $DIR/pid. */
const DETACH = `import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60000)"],
  { detached: true, stdio: "ignore" });
child.unref();
writeFileSync("$DIR/../" + process.env.PID_FILE, String(child.pid));
`;

/** As runOn with one file, with a name for the file that DETACH leaves its process id in. */
function runDetaching(text: string): { ended: Ended; pid: number } {
  const name = `runner-pid-${process.pid}`;
  process.env["PID_FILE"] = name;
  try {
    const ended = runOn({ leaves: text });
    return { ended, pid: Number(readFileSync(join(tmpdir(), name), "utf8")) };
  } finally {
    rmSync(join(tmpdir(), name), { force: true });
  }
}

test("passing files give exit code 0, and the last line counts their tests", () => {
  const ended = runOn({ one: PASSING, two: PASSING });
  assert.is(ended.code, 0);
  assert.is(ended.lines.at(-1), "4 passed, 0 failed");
  assert.match(ended.stdout, /ok {4}one\.test\.js {2}2 tests/);
});

test("a failed assertion fails, and the output of its file is printed whole", () => {
  const noise = "for (let i = 0; i < 20000; i++) console.log('line ' + i);\n";
  const ended = runOn({
    bad: `${UVU}${noise}test("wrong", () => { throw new Error("seven"); });\ntest.run();\n`,
    good: PASSING,
  });
  fails(ended, /FAIL {2}bad\.test\.js {2}exit code 1; 0 of 1 tests passed/, "2 passed, 1 failed");
  assert.match(ended.stdout, /\nline 0\n/);
  assert.match(ended.stdout, /\nline 19999\n/);
  assert.match(ended.stdout, /seven/);
});

for (const value of ["undefined", `"a string"`, "null"]) {
  test(`a test that rejects with ${value} fails`, () => {
    const body = fixture(`test("t", () => Promise.reject(${value}));`, `test("u", () => {});`);
    fails(runOn({ swallowed: body }), /of 2 tests passed/, "0 passed, 2 failed");
  });
}

test("a hook that throws fails: uvu says nothing and exits 0", () => {
  const body = fixture(`test.before(() => { throw new Error("x"); });`, `test("t", () => {});`);
  fails(runOn({ hook: body }), /0 of 1 tests passed/, "0 passed, 1 failed");
});

test("a file without test.run() fails", () => {
  fails(runOn({ forgot: `${UVU}test("t", () => {});\n` }), /test\.run\(\)/, "0 passed, 1 failed");
});

test("a file without a test fails", () => {
  fails(runOn({ empty: fixture() }), /no test ran/, "0 passed, 1 failed");
});

test("a test that waits for what never comes fails", () => {
  const body = fixture(`test("t", () => new Promise(() => {}));`);
  fails(runOn({ waits: body }), /exit code 1; no closing lines/, "0 passed, 1 failed");
});

test("a file that exits with 0 in the middle of its tests fails", () => {
  const body = fixture(`test("t", () => process.reallyExit(0));`);
  fails(runOn({ leaves: body }), /no closing lines/, "0 passed, 1 failed");
});

test("a crash after the last test fails", () => {
  const late = `${PASSING}process.on("exit", () => { process.exitCode = 3; });\n`;
  fails(runOn({ late }), /exit code 3/, "2 passed, 1 failed");
});

test("a file killed by a signal fails, and the signal is named", () => {
  const body = fixture(`test("t", () => process.kill(process.pid, "SIGKILL"));`);
  fails(runOn({ killed: body }), /killed by SIGKILL/, "0 passed, 1 failed");
});

test("a skipped test fails without a reason, and passes with one, which is printed", () => {
  const skipping = fixture(`test("a", () => {});`, `test.skip("b", () => {});`);
  fails(runOn({ silent: skipping }), /1 skipped, 0 reasons/, "1 passed, 1 failed");
  const said = runOn({ said: `console.log("# skip: no taskset here");\n${skipping}` });
  assert.is(said.code, 0);
  assert.match(said.stdout, /\n {6}skipped: no taskset here\n/);
});

test("a note is printed although its test passes", () => {
  assert.match(
    runOn({ notes: `console.log("# note: six");\n${PASSING}` }).stdout,
    /ok {4}notes.*\n {6}six\n/,
  );
});

test("a forgotten test.only fails, since it silences the others", () => {
  const body = fixture(`test.only("a", () => {});`, `test("b", () => {});`);
  fails(runOn({ only: body }), /1 skipped, 0 reasons/, "1 passed, 1 failed");
});

test("a file that spins is killed at the limit its header states", () => {
  const body = `// Header.\n// time limit: 0.5 s\n\n${SPINNING}`;
  fails(runOn({ spins: body }), /not finished after 0\.5 s, killed/, "0 passed, 1 failed");
});

test("a time limit below the header is not one", () => {
  const ended = runOn({
    late: fixture(`// time limit: 0.001 s`, `test("t", () => {});`),
  });
  assert.is(ended.code, 0);
});

testIf(
  LINUX,
  NO_PROC,
  test,
  "at the time limit the whole process tree goes, detached processes too",
  () => {
    const body = `// time limit: 1 s\n${DETACH}${SPINNING}`;
    const { ended, pid } = runDetaching(body);
    fails(ended, /not finished after 1 s/, "0 passed, 1 failed");
    assert.not(alive(pid), `process ${pid} is still there`);
  },
);

testIf(
  LINUX,
  NO_PROC,
  test,
  "a file that passes but leaves a process behind fails, and the process goes",
  () => {
    const { ended, pid } = runDetaching(`${DETACH}${PASSING}`);
    fails(ended, /left a process behind: \d+ .*setTimeout/, "2 passed, 1 failed");
    assert.not(alive(pid), `process ${pid} is still there`);
  },
);

test("words choose files by their path, and no match is a failure", () => {
  const files = { mutex: PASSING, rwsem: PASSING, ticket: PASSING };
  const some = runOn(files, "mutex", "tick");
  assert.is(some.lines.at(-1), "4 passed, 0 failed");
  assert.not.match(some.stdout, /rwsem/);
  fails(runOn(files, "spinach"), /no test file matches spinach/, "0 passed, 1 failed");
});

test("pure files run two at once; a file that says so runs alone, after them", () => {
  // Each pure file waits for the other; the one that runs alone must find no trace of either.
  const meets = (me: string, other: string): string => `${UVU}
import { existsSync, rmSync, writeFileSync } from "node:fs";
test("t", async () => {
  writeFileSync("$DIR/${me}-was-here", "");
  while (!existsSync("$DIR/${other}-was-here")) await new Promise((go) => setTimeout(go, 5));
  writeFileSync("$DIR/running-${me}", "");
  await new Promise((go) => setTimeout(go, 50));
  rmSync("$DIR/running-${me}");
});
test.run();\n`;
  const alone = `// runs alone\n${UVU}
import { readdirSync } from "node:fs";
test("t", () => {
  const names = readdirSync("$DIR");
  if (!names.includes("a-was-here") || names.some((n) => n.startsWith("running"))) throw 1;
});
test.run();\n`;
  const ended = runOn({ a: meets("a", "b"), b: meets("b", "a"), "0": alone });
  assert.is(ended.lines.at(-1), "3 passed, 0 failed", ended.stdout);
});

test("Ctrl-C on the runner leaves no process", async () => {
  const dir = mkdtempSync(join(tmpdir(), "runner-"));
  try {
    writeFileSync(join(dir, "package.json"), `{"type":"module"}`);
    const sleeps = `import { writeFileSync } from "node:fs";\n${UVU}
test("t", () => { writeFileSync("$DIR/pid", String(process.pid)); for (;;); });
test.run();\n`;
    writeFileSync(join(dir, "sleeps.test.js"), sleeps.replaceAll("$DIR", dir));
    const runner = spawn(process.execPath, [RUNNER, "--dir", dir], { stdio: "ignore" });
    const ended = new Promise((done) => runner.once("exit", done));
    while (!existsSync(join(dir, "pid")) || readFileSync(join(dir, "pid"), "utf8") === "") {
      await new Promise((go) => setTimeout(go, 10));
    }
    const pid = Number(readFileSync(join(dir, "pid"), "utf8"));
    runner.kill("SIGINT");
    assert.is(await ended, 130);
    for (let i = 0; i < 100 && alive(pid); i++) await new Promise((go) => setTimeout(go, 10));
    assert.not(alive(pid));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test.run();
