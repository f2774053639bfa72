// The test runner behind `npm test`.  node test/run.mjs [--dir DIR] [WORD...]
//
// Runs every build/test/**/*.test.js whose path contains one of the words, each in a process of its
// own. A file passes when all of this holds, and each point is there because uvu alone lets it by:
//
//   exit code 0, no signal         a crash after the last test
//   closing lines present          a file without test.run(), a test that never ends
//   passed = total > 0             uvu exits 0 when a test rejects with undefined or a string
//   skipped <= reasons printed     a skipped test prints `# skip: REASON` (test/helpers/skip.ts)
//   it ends within its limit       uvu has no time limit; the whole process tree is killed
//   no process is left behind      a worker or child that outlives its test disturbs the next one
//
// Two lines in the header of a test's source (the comment lines before the first other line):
//
//   // time limit: 120 s           instead of 60
//   // runs alone                  no other file runs meanwhile. For every file that starts threads
//                                  or measures: with two files on a two-core machine, a thread that
//                                  spins on a lock takes the core of the one that holds it, so that
//                                  watchdogs and ratios would judge the neighbour, not the code.
//
// What a test wants said although it passes: a line `# note: TEXT`.
//
// All other files are pure: they run first, two at a time. The last line is `N passed, N failed`,
// counted in tests; a file that fails without a failing test of its own counts as one failed.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const LIMIT_S = 60;
const TOGETHER_MAX = 2;
/** Every process below a test file inherits this variable, whoever its parent becomes. */
const MARK = "WASMPROBE_TEST_MARK";

const running = new Set();

/** @returns {{ limitS: number, alone: boolean }} what the header of a test's source asks for */
function readHeader(source) {
  const asked = { limitS: LIMIT_S, alone: false };
  for (const line of source.split("\n")) {
    if (line.trim() !== "" && !line.startsWith("//")) break;
    const limit = /^\/\/ time limit: (\d+(?:\.\d+)?) s\b/.exec(line);
    if (limit) asked.limitS = Number(limit[1]);
    if (/^\/\/ runs alone\b/.test(line)) asked.alone = true;
  }
  return asked;
}

/** The counts of uvu's closing lines, the last ones of the output; undefined without them. */
function readSummary(output) {
  const lines = /^ {2}Total: +(\d+)\n {2}Passed: +(\d+)\n {2}Skipped: +(\d+)\n/gm;
  const last = [...output.matchAll(lines)].at(-1);
  if (!last) return undefined;
  const [total, passed, skipped] = last.slice(1).map(Number);
  return { total, passed, skipped };
}

/** Processes that carry the mark, as [pid, command line]. Linux only: elsewhere none is found. */
function marked(mark) {
  const found = [];
  if (process.platform !== "linux") return found;
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    try {
      if (!readFileSync(`/proc/${pid}/environ`, "latin1").includes(mark)) continue;
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").join(" ").trim();
      if (command) found.push([Number(pid), command]); // a zombie has no command line
    } catch {
      // gone meanwhile, or not ours to read
    }
  }
  return found;
}

function quietly(action) {
  try {
    action();
  } catch {
    // ESRCH: already gone
  }
}

/** Ends the file's process, its group and every marked descendant, at once. */
function killTree(file) {
  const { child, mark } = file;
  if (process.platform === "win32") {
    quietly(() => spawn("taskkill", ["/pid", String(child.pid), "/T", "/F"]));
    return;
  }
  if (child.pid !== undefined) quietly(() => process.kill(-child.pid, "SIGKILL"));
  // Twice: a process may be born between the listing and the kill of its parent.
  for (let round = 0; round < 2; round++) {
    for (const [pid] of marked(mark)) quietly(() => process.kill(pid, "SIGKILL"));
  }
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Marked processes that are still there shortly after their file has ended. */
async function leftBehind(mark) {
  for (let waitedMs = 0; ; waitedMs += 50) {
    const found = marked(mark);
    if (found.length === 0 || waitedMs >= 500) return found;
    await sleep(50);
  }
}

/** Runs one file to its end. Never rejects: whatever happens becomes a reason to fail. */
async function runFile({ path, limitS }) {
  const started = performance.now();
  const mark = randomUUID();
  const env = { ...process.env, NO_COLOR: "1" };
  delete env.FORCE_COLOR;
  env[MARK] = env[MARK] ? `${env[MARK]},${mark}` : mark; // a runner inside a test keeps both
  const child = spawn(process.execPath, ["--enable-source-maps", path], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: process.platform !== "win32", // a process group of its own
  });
  const file = { child, mark };
  running.add(file);

  const chunks = [];
  const stdout = [];
  child.stdout.on("data", (chunk) => (chunks.push(chunk), stdout.push(chunk)));
  child.stderr.on("data", (chunk) => chunks.push(chunk));
  const closed = new Promise((done) => child.once("close", done));
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    killTree(file);
  }, limitS * 1000);
  const [code, signal] = await new Promise((done) => {
    child.once("error", (error) => {
      chunks.push(Buffer.from(`${error.message}\n`));
      done([1, null]);
    });
    child.once("exit", (...end) => done(end));
  });
  clearTimeout(timer);
  const left = await leftBehind(mark);
  killTree(file);
  // A process that escaped may still hold the pipes: what it has to say is not waited for.
  const patience = setTimeout(() => {
    child.stdout.destroy();
    child.stderr.destroy();
  }, 200);
  await closed;
  clearTimeout(patience);
  running.delete(file);

  const output = Buffer.concat(chunks).toString("utf8");
  const summary = readSummary(Buffer.concat(stdout).toString("utf8").replaceAll("\r\n", "\n"));
  const notes = [...output.matchAll(/^# note: (\S.*)$/gm)].map((m) => m[1]);
  const reasons = [...output.matchAll(/# skip: (\S.*)$/gm)].map((m) => m[1]);
  const { total, passed, skipped } = summary ?? { total: 0, passed: 0, skipped: 0 };

  const failures = [];
  if (timedOut) failures.push(`not finished after ${limitS} s, killed`);
  else if (signal) failures.push(`killed by ${signal}`);
  else if (code !== 0) failures.push(`exit code ${code}`);
  if (!summary && !timedOut) failures.push("no closing lines of uvu: is test.run() missing?");
  if (summary && total === 0) failures.push("no test ran");
  if (passed !== total) failures.push(`${passed} of ${total} tests passed`);
  if (skipped > reasons.length) {
    failures.push(`${skipped} skipped, ${reasons.length} reasons printed (# skip: REASON)`);
  }
  for (const [pid, command] of timedOut ? [] : left) {
    failures.push(`left a process behind: ${pid} ${command}`);
  }
  return {
    passed,
    failed: failures.length === 0 ? 0 : Math.max(1, total - passed),
    failures,
    notes,
    reasons,
    output,
    seconds: (performance.now() - started) / 1000,
  };
}

function report(name, result) {
  const seconds = `${result.seconds.toFixed(1)} s`;
  if (result.failures.length === 0) {
    console.log(`ok    ${name}  ${result.passed} tests, ${seconds}`);
  } else {
    console.log(`FAIL  ${name}  ${result.failures.join("; ")} (${seconds})`);
    console.log(`---- output of ${name}`);
    console.log(result.output.trimEnd());
    console.log(`---- end of ${name}`);
  }
  for (const reason of result.reasons) console.log(`      skipped: ${reason}`);
  for (const note of result.notes) console.log(`      ${note}`);
}

function stopOn(signal, code) {
  process.once(signal, () => {
    for (const file of running) killTree(file);
    process.exit(code);
  });
}

const args = process.argv.slice(2);
const dirAt = args.indexOf("--dir");
const dir = resolve(dirAt < 0 ? join(ROOT, "build", "test") : args.splice(dirAt, 2)[1]);
const sourceOf = (name) =>
  dirAt < 0 ? join(ROOT, "test", name.replace(/\.js$/, ".ts")) : join(dir, name);

let names = [];
try {
  names = readdirSync(dir, { recursive: true });
} catch {
  console.error(`no folder ${relative(process.cwd(), dir)}: run \`npm run build\` first`);
}
const chosen = names
  .map((name) => name.split(sep).join("/"))
  .filter((name) => name.endsWith(".test.js"))
  .filter((name) => args.length === 0 || args.some((word) => name.includes(word)))
  .sort()
  .map((name) => ({
    name,
    path: join(dir, name),
    ...readHeader(readFileSync(sourceOf(name), "utf8")),
  }));

stopOn("SIGINT", 130);
stopOn("SIGTERM", 143);
stopOn("SIGHUP", 129);

const sum = { passed: 0, failed: 0 };
const failedFiles = [];
async function take(queue) {
  for (let file = queue.shift(); file; file = queue.shift()) {
    const result = await runFile(file);
    report(file.name, result);
    sum.passed += result.passed;
    sum.failed += result.failed;
    if (result.failed > 0) failedFiles.push(file.name);
  }
}
const pure = chosen.filter((file) => !file.alone);
await Promise.all(Array.from({ length: TOGETHER_MAX }, () => take(pure)));
await take(chosen.filter((file) => file.alone));

if (chosen.length === 0) {
  console.log(`no test file ${args.length > 0 ? `matches ${args.join(" ")}` : "found"}`);
  sum.failed = 1;
}
if (failedFiles.length > 0) console.log(`\nfailed: ${failedFiles.join(" ")}`);
process.exitCode = sum.failed === 0 ? 0 : 1;
console.log(`\n${sum.passed} passed, ${sum.failed} failed`);
