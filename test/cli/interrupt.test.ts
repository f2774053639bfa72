// Ctrl-C at any moment, and a reader that goes away: what was measured is there, one line says
// why it ended, the exit code is the signal's, and nothing stays behind (the test runner looks for
// processes that do).
// runs alone
// time limit: 240 s

import { test } from "uvu";
import * as assert from "uvu/assert";
import { identityHolds, measuredRuns, parseResult } from "../../src/harness/result.js";
import { checkEnd, type Ended, start } from "../helpers/cli.js";
import { sleep } from "../helpers/engine.js";

/** Sends `signal` once `when` was seen, or after so many milliseconds; how it ended. */
async function interrupt(
  line: string,
  when: RegExp | number,
  signal: NodeJS.Signals = "SIGINT",
): Promise<Ended> {
  const running = start(line);
  if (typeof when === "number") await sleep(when);
  else await running.seen(when);
  running.child.kill(signal);
  return running.ended;
}

for (const line of [
  "bench uprobe-nop -w 5 -d 60 -q",
  "sweep -q",
  "torture locks --seconds 60 -q",
]) {
  test(`${line}: Ctrl-C while it starts ends it, whenever it comes`, async () => {
    for (const ms of [0, 20, 40, 60, 80, 100, 130, 160, 200, 300]) {
      checkEnd(await interrupt(line, ms));
    }
  });
}

test("bench: Ctrl-C in the warm-up says that nothing was measured", async () => {
  const ended = await interrupt("bench uprobe-nop -p 2 -w 60 -d 60", /^Benchmark .* started/m);
  checkEnd(ended);
  assert.is(ended.code, 130);
  assert.not.match(ended.stdout, /Summary/);
  assert.match(ended.stderr, /^interrupted before the first sample: nothing was measured$/m);
});

test("bench: Ctrl-C while it measures prints the summary of what there is", async () => {
  const ended = await interrupt("bench uprobe-nop -p 2 -w 0.1 -d 60 -q", /^Iter +1 /m);
  checkEnd(ended);
  const lines = ended.stdout.trimEnd().split("\n");
  assert.match(lines.at(-1) ?? "", /^Summary: hits/);
  assert.ok(lines.length >= 3);
});

test("bench: Ctrl-C while grace periods or hits are timed prints what there is", async () => {
  for (const line of [
    "bench gp-srcu -p 2 -w 0.05 -d 60 -q",
    "bench uprobe-nop -L -w 0.05 -d 60 -q",
  ]) {
    const ended = await interrupt(line, /^Iter/m);
    checkEnd(ended);
    assert.match(ended.stdout, /^Summary: .*\nLatency: p50 .*\nClock: /m);
  }
});

test("bench: a second run of the same after Ctrl-C finds nothing in its way", async () => {
  for (let i = 0; i < 2; i++) {
    checkEnd(await interrupt("bench lock-mutex -p 2 -w 0.05 -d 60 -q", /^Iter/m));
  }
});

test("sweep: Ctrl-C keeps the runs that were measured, as a valid result", async () => {
  const line =
    "sweep count-atomic lock-mutex uprobe-nop --preset spinlock,rwlock --cpus 1 -w 0.05 -d 1 " +
    "--format json";
  const ended = await interrupt(line, /^\[3\/4\] /m);
  checkEnd(ended);
  const result = parseResult(ended.stdout, "stdout");
  assert.equal(
    result.runs.map((run) => run.bench),
    ["count-atomic", "lock-mutex", "uprobe-nop", "uprobe-nop"],
  );
  const [first, second, , last] = result.runs;
  assert.equal([first?.state, second?.state, last?.state], ["measured", "measured", "interrupted"]);
  for (const run of measuredRuns(result)) assert.ok(identityHolds(run));
  assert.is(result.rounds?.kept, 0);
});

test("sweep: Ctrl-C before anything was measured is a table without figures", async () => {
  const line = "sweep uprobe-nop --preset spinlock,rwlock --cpus 1 -w 60 -d 60";
  const ended = await interrupt(line, /^\[1\/2\] /m);
  checkEnd(ended);
  assert.match(ended.stdout, /interrupted/);
});

for (const [name, started] of [
  ["locks", /^locks-torture:--- Start/m],
  ["probes", /^probes-torture:--- Start/m],
] as const) {
  test(`torture ${name}: Ctrl-C checks what has run, and says so`, async () => {
    for (const ms of [0, 400]) {
      const running = start(`torture ${name} --seconds 120 --seed 3 -p 2 -q`);
      await running.seen(started);
      await sleep(ms);
      running.child.kill("SIGINT");
      const ended = await running.ended;
      checkEnd(ended);
      assert.match(ended.stdout, /End of test: SUCCESS \(interrupted\): seed=3\n$/);
    }
  });
}

test("a request to end (SIGTERM) is 143, a lost terminal 129", async () => {
  const line = "bench count-percpu -w 0.05 -d 60 -q";
  checkEnd(await interrupt(line, /^Iter/m, "SIGTERM"), 143, "SIGTERM");
  checkEnd(await interrupt(line, /^Iter/m, "SIGHUP"), 129, "SIGHUP");
});

// -- The reader of stdout goes away ------------------------------------------------------------

const CLOSED = "wasmprobe: stdout was closed before all results were written\n";

test("a reader that leaves while it is measured ends it with 141 and one line", async () => {
  for (const line of [
    "bench uprobe-nop -p 2 -w 0.05 -d 60 -q",
    "torture locks --seconds 6 -p 2 -q",
    "torture probes --seconds 2 -p 2 -q",
  ]) {
    const running = start(line);
    await running.seen(/./);
    running.child.stdout?.destroy();
    const ended = await running.ended;
    assert.equal([ended.code, ended.signal, ended.stderr], [141, null, CLOSED], line);
  }
});

test("a reader that was never there is 141 and one line, for whatever is printed", async () => {
  for (const line of [
    "--help",
    "list",
    "sweep count-atomic --cpus 1 -w 0.02 -d 0.05 -q",
    "sweep count-atomic --cpus 1 -w 0.02 -d 0.05 -q --format json",
  ]) {
    const running = start(line);
    running.child.stdout?.destroy();
    const ended = await running.ended;
    assert.equal([ended.code, ended.signal, ended.stderr], [141, null, CLOSED], line);
  }
});

test("a reader that leaves, and then Ctrl-C: still one line and a quick end", async () => {
  const running = start("bench count-percpu -w 0.05 -d 60 -q");
  await running.seen(/^Iter/m);
  running.child.stdout?.destroy();
  running.child.kill("SIGINT");
  const ended = await running.ended;
  assert.ok(ended.code === 130 || ended.code === 141, JSON.stringify(ended));
  assert.ok(ended.stderr === "" || ended.stderr === CLOSED, ended.stderr);
});

test.run();
