// The program with an engine that is broken on purpose: a CPU that traps, one that never comes
// back, and a breakpoint that stays.
// runs alone
// time limit: 120 s

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { parseResult } from "../../src/harness/result.js";
import { checkEnd, run, start } from "../helpers/cli.js";
import { sleep } from "../helpers/engine.js";
import { ROOT } from "../helpers/root.js";
import { mutants } from "../mutants/probes.js";

const dir = mkdtempSync(join(tmpdir(), "broken-"));

type Patch = readonly [file: string, find: string, replace: string];

/** The path of an engine with these changes, each of which must fit once. */
async function brokenEngine(name: string, patches: readonly Patch[]): Promise<string> {
  const { buildEngine } = await import("../../scripts/engine.mjs");
  const wasm = await buildEngine({
    source: join(ROOT, "assembly"),
    patch: (file, text) => {
      let patched = text;
      for (const [where, find, replace] of patches) {
        if (where !== file) continue;
        assert.is(text.split(find).length, 2, find);
        patched = patched.replace(find, () => replace);
      }
      return patched;
    },
  });
  const path = join(dir, `${name}.wasm`);
  writeFileSync(path, wasm);
  return path;
}

/** In place of a lock's bench: another body. */
function bench(lock: string, body: string): Patch {
  const find = `export function bench_${lock}(`;
  const other = `${find}p: usize, n: i32): i32 {\n  ${body}\n}\n`;
  return ["workload/lock.ts", find, `${other}function unused_${lock}(`];
}

let benches = "";
test.before(async () => {
  const patches = [bench("ticket", "return unreachable();"), bench("qspinlock", "while (true) {}")];
  benches = await brokenEngine("benches", patches);
});

test("bench: a CPU that traps is one line that names it, and exit code 1", async () => {
  const { code, stdout, stderr } = await run(`bench lock-ticket -p 2 -q --wasm ${benches}`);
  assert.equal([code, stdout], [1, ""]);
  assert.match(stderr, /^wasmprobe: CPU \d failed in bench_ticket: [^\n]*unreachable[^\n]*\n$/);
});

test("sweep: a cell that fails ends it with exit code 1, after what was measured", async () => {
  const names = "count-atomic lock-ticket lock-mutex";
  const args = `${names} --cpus 1 -w 0.02 -d 0.05 --format json -q --wasm ${benches}`;
  const { code, stdout, stderr } = await run(`sweep ${args}`);
  assert.is(code, 1);
  assert.match(stderr, /^wasmprobe: CPU 0 failed in bench_ticket: [^\n]*\n$/);
  const { runs } = parseResult(stdout, "stdout");
  assert.equal(
    runs.map((one) => `${one.bench} ${one.state}`),
    ["count-atomic measured", "lock-ticket failed", "lock-mutex failed"],
  );
});

test("a second Ctrl-C waits for nothing: a CPU that is stuck does not hold it", async () => {
  const running = start(`bench lock-qspinlock -w 0.05 -d 60 -q --wasm ${benches}`);
  await running.seen(/^Iter/m);
  running.child.kill("SIGINT");
  await sleep(500);
  assert.is(running.child.exitCode, null, "the first one waits for the CPU to leave");
  running.child.kill("SIGINT");
  const ended = await running.ended;
  checkEnd(ended);
  assert.not.match(ended.stderr, /did not leave/, "it did not wait until it gave up on the CPU");
});

test("torture of a broken engine ends with FAILURE, what failed, and exit code 1", async () => {
  const mutant = mutants.find((m) => m.name === "unregister-leaves-the-breakpoint");
  if (mutant === undefined) throw new Error("the mutant has another name now");
  const path = await brokenEngine("probes", [[mutant.file, mutant.find, mutant.replace]]);
  const { code, stdout } = await run(`torture probes --seconds 3 --seed 5 -p 2 -q --wasm ${path}`);
  assert.is(code, 1);
  assert.match(stdout, /^!!! /m);
  assert.match(stdout, /End of test: FAILURE: seed=5\n$/);
});

test("a return that torture probes loses among nested calls is a failure", async () => {
  const drop = "    if ((rc & RC_HANDLED) != 0) count(task, TASK_RETURNS);\n    else ";
  const path = await brokenEngine("returns", [["uprobe/uretprobe.ts", drop, "    if (rc == 0) "]]);
  const { code, stdout } = await run(`torture probes --seconds 3 --seed 5 -p 2 -q --wasm ${path}`);
  assert.is(code, 1);
  assert.match(stdout, /^!!! spinlock: task \d: returns wanted .* differ by [1-9]/m);
  assert.match(stdout, /End of test: FAILURE: seed=5\n$/);
});

test.after(() => rmSync(dir, { recursive: true, force: true }));
test.run();
