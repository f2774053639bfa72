// Runs the mutants of test/mutants/: engines with one step of an algorithm taken out, each of which
// the torture or test that it names must notice.
//
//   npm run mutants [-- --only WORD] [--sample N] [--seed S] [--runs 20] [--seconds 3] [--list]
//
// A run kills the mutant when it ends by itself with a failure it states: the word FAILURE and an
// exit code for a command, failing tests for a test. A run that hangs or crashes without a word
// does not: who waits for an answer has not been told. A run takes 3 s, or what the mutant's own
// command says, at most 10. Killed is a mutant when at least 19 of 20
// runs kill it. First, as a control, the unchanged engine must pass every killer that is used: one
// that fails without a defect kills nothing.
//
// `--sample N` takes N mutants, drawn by the seed; this is what .ci/run does. Runs use the seeds S,
// S+1, ... The last line is `N passed, N failed`, in mutants (and failed controls).

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { buildEngine } from "./engine.mjs";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCE = join(ROOT, "assembly");
const KILLED_SHARE = 19 / 20;
/** Beyond its own seconds a run gets this long to start, to notice a hang (10 s) and to end. */
const GRACE_S = 30;
/** No killer may take longer: a defect that needs more is not noticed. */
const SECONDS_MAX = 10;

const number = (text, name, min) => {
  const value = Number(text);
  if (Number.isInteger(value) && value >= min) return value;
  console.error(`--${name} ${text}: a whole number from ${min} on`);
  process.exit(2);
};

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    sample: { type: "string" },
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "20" },
    seconds: { type: "string", default: "3" },
    list: { type: "boolean", default: false },
    // For the test of this script: other mutants, another command, another grace.
    mutants: { type: "string" },
    cli: { type: "string", default: join(ROOT, "dist", "cli", "main.js") },
    grace: { type: "string", default: String(GRACE_S) },
  },
});
const seed = number(values.seed, "seed", 0);
const runs = number(values.runs, "runs", 1);
const seconds = number(values.seconds, "seconds", 1);
const grace = number(values.grace, "grace", 0);
const wanted = Math.ceil(runs * KILLED_SHARE);
const controlRuns = Math.max(1, Math.round(runs / 5));

/** @typedef {import("../test/mutants/types.ts").Mutant} Mutant */

/** @returns {Promise<Mutant[]>} */
async function loadMutants() {
  const dir = values.mutants ? resolve(values.mutants) : join(ROOT, "build", "test", "mutants");
  const all = [];
  for (const file of readdirSync(dir).sort()) {
    if (!/\.m?js$/.test(file)) continue;
    const { mutants = [] } = await import(pathToFileURL(join(dir, file)).href);
    all.push(...mutants);
  }
  const names = all.map((m) => m.name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice) throw new Error(`two mutants are called ${twice}`);
  return all;
}

/** N of the list in its order, the same ones for the same seed. */
async function sampleOf(list, count) {
  const { createRandom } = await import(join(ROOT, "dist", "base", "random.js"));
  const chosen = new Set(createRandom(seed).shuffle(list).slice(0, count));
  return list.filter((item) => chosen.has(item));
}

/** Compiles the engine with the mutant's change, or unchanged; returns the module's path. */
async function compile(dir, mutant) {
  let found = 0;
  const patch = (file, text) => {
    if (file !== mutant?.file) return text;
    found = text.split(mutant.find).length - 1;
    return text.replace(mutant.find, () => mutant.replace);
  };
  if (mutant) {
    // Before asc: a file that is not there, or text that is gone, is a mutant gone stale.
    patch(mutant.file, readFileSync(join(SOURCE, mutant.file), "utf8"));
    if (found !== 1) throw new Error(`its text occurs ${found} times in ${mutant.file}`);
  }
  const wasm = await buildEngine({ source: SOURCE, patch });
  const path = join(dir, `${mutant ? mutant.name : "unchanged"}.wasm`);
  writeFileSync(path, wasm);
  return path;
}

const current = { child: undefined };

function killTree(child) {
  try {
    process.kill(process.platform === "win32" ? child.pid : -child.pid, "SIGKILL");
  } catch {
    // already gone
  }
}

/** Seconds of a killer: its own, "torture probes --seconds 10", or those of --seconds. */
function secondsOf(kills) {
  const own = / --seconds (\d+)/.exec(kills)?.[1];
  return Math.min(SECONDS_MAX, own === undefined ? seconds : Number(own));
}

/**
 * One run of a killer on a module.
 * @returns {Promise<{ state: "passed"|"killed"|"hung"|"crashed", line: string, output: string }>}
 */
async function run(kills, wasm, runSeed) {
  const words = kills.replace(/ --seconds \d+/, "").split(" ");
  const isTest = words[0] === "test";
  const limit = secondsOf(kills);
  const command = isTest
    ? [join(ROOT, "build", "test", `${words[1]}.test.js`)]
    : [values.cli, ...words, "--seconds", `${limit}`, "--seed", `${runSeed}`, "--wasm", wasm];
  const child = spawn(process.execPath, command, {
    env: { ...process.env, NO_COLOR: "1", WASMPROBE_WASM: wasm, WASMPROBE_SEED: `${runSeed}` },
    stdio: ["ignore", "pipe", "pipe"],
    detached: process.platform !== "win32",
  });
  current.child = child;
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  let hung = false;
  const timer = setTimeout(
    () => {
      hung = true;
      killTree(child);
    },
    (limit + grace) * 1000,
  );
  const code = await new Promise((done) => child.once("close", done));
  clearTimeout(timer);
  current.child = undefined;

  const verdict = isTest ? /^.* FAIL .*$/m : /^.*\bFAILURE\b.*$/m;
  const line = verdict.exec(output)?.[0].trim() ?? "";
  if (hung) return { state: "hung", line: "", output };
  if (code === 0) return { state: "passed", line: "", output };
  return { state: line === "" ? "crashed" : "killed", line, output };
}

const indent = (text) => text.trimEnd().replace(/^/gm, "    ");

/** The unchanged engine must pass. @returns whether it did */
async function control(kills, wasm) {
  for (let i = 0; i < controlRuns; i++) {
    const { state, output } = await run(kills, wasm, seed + i);
    if (state === "passed") continue;
    console.log(`FAILED  control: ${kills} ${state} on the unchanged engine, seed ${seed + i}`);
    console.log(indent(output));
    return false;
  }
  console.log(`ok      control: ${kills} passes on the unchanged engine, ${controlRuns} runs`);
  return true;
}

/** @returns whether at least 19 of 20 runs killed it */
async function judge(mutant, wasm) {
  const started = performance.now();
  const counts = { passed: 0, killed: 0, hung: 0, crashed: 0 };
  let first = "";
  let last = "";
  let done = 0;
  // It is decided as soon as too many runs let it live.
  while (done < runs && done - counts.killed <= runs - wanted) {
    const { state, line, output } = await run(mutant.kills, wasm, seed + done);
    counts[state]++;
    done++;
    if (first === "") first = line;
    if (state === "hung" || state === "crashed") last = output;
  }
  const killed = counts.killed >= wanted;
  const each = ((performance.now() - started) / 1000 / done).toFixed(1);
  const others = ["passed", "hung", "crashed"]
    .filter((state) => counts[state] > 0)
    .map((state) => `, ${counts[state]} ${state}`);
  console.log(
    `${killed ? "killed " : "FAILED "} ${mutant.name}  ${counts.killed}/${done}` +
      `${others.join("")} by ${mutant.kills}, ${each} s a run`,
  );
  if (first !== "") console.log(indent(first));
  if (!killed && last !== "") console.log(indent(last));
  return killed;
}

let chosen = await loadMutants();
if (values.only !== undefined) chosen = chosen.filter((m) => m.name.includes(values.only));
if (values.sample !== undefined) {
  const killable = chosen.filter((m) => m.unkillable === undefined);
  chosen = await sampleOf(killable, number(values.sample, "sample", 1));
}
if (values.list) {
  for (const m of chosen) console.log(`${m.name}  ${m.file}  ${m.unkillable ?? m.kills}`);
  process.exit(0);
}

const dir = mkdtempSync(join(tmpdir(), "mutants-"));
const stop = (signal, code) =>
  process.once(signal, () => {
    if (current.child) killTree(current.child);
    rmSync(dir, { recursive: true, force: true });
    process.exit(code);
  });
stop("SIGINT", 130);
stop("SIGTERM", 143);

let passed = 0;
let failed = 0;
console.log(
  `${chosen.length} mutants, seed ${seed}, ${runs} runs of ${seconds} s each, or as it says`,
);
if (chosen.length === 0) {
  console.log(`FAILED  no mutant matches`);
  failed++;
}
try {
  const killable = chosen.filter((m) => m.unkillable === undefined);
  const sound = new Map();
  if (killable.length > 0) {
    const unchanged = await compile(dir);
    for (const kills of new Set(killable.map((m) => m.kills))) {
      sound.set(kills, await control(kills, unchanged));
      if (!sound.get(kills)) failed++;
    }
  }
  for (const mutant of chosen) {
    let wasm;
    try {
      wasm = await compile(dir, mutant);
    } catch (error) {
      console.log(`FAILED  ${mutant.name}  ${error.message}`);
      failed++;
      continue;
    }
    if (mutant.unkillable !== undefined) {
      console.log(`listed  ${mutant.name}  not killed by two threads: ${mutant.unkillable}`);
    } else if (!sound.get(mutant.kills)) {
      console.log(`FAILED  ${mutant.name}  not judged: its control fails`);
      failed++;
    } else if (await judge(mutant, wasm)) passed++;
    else failed++;
    rmSync(wasm);
  }
} finally {
  rmSync(dir, { recursive: true, force: true });
}
process.exitCode = failed === 0 ? 0 : 1;
console.log(`\n${passed} passed, ${failed} failed`);
