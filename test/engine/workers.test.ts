// Every way a worker can be lost: it is named, in bounded time, and close leaves no thread behind.
// runs alone
// time limit: 120 s

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { sleep } from "../helpers/engine.js";
import { ROOT } from "../helpers/root.js";
import { testIf } from "../helpers/skip.js";
import { LIMIT_MS, refusal, start } from "../helpers/threads.js";

const dir = mkdtempSync(join(tmpdir(), "workers-"));
const real = JSON.stringify(pathToFileURL(join(ROOT, "dist", "engine", "worker.js")).href);

/** Workers' script: what some seats do, by their names; all others are real workers. */
function workersOf(name: string, seats: Record<string, string>): URL {
  const path = join(dir, `${name}.mjs`);
  const cases = Object.entries(seats).map(
    ([seat, text]) => `case ${JSON.stringify(seat)}: { ${text}; break; }`,
  );
  const script = `
import { parentPort as port, workerData } from "node:worker_threads";
const post = (message) => port.postMessage(message);
const on = (handlers) => port.on("message", (message) => handlers[message.type]?.(message));
switch (String(workerData.seat)) {
${cases.join("\n")}
default: await import(${real});
}
`;
  writeFileSync(path, script);
  return pathToFileURL(path);
}

const WAIT = "setInterval(() => {}, 1000)";
const SPIN = "for (;;)";
const SLEEP = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)";
const BORN = `post({ type: "born" })`;
const ATTACHES = `attach() { post({ type: "attached" }); }`;
const ARRIVES = `run({ generation }) { post({ type: "arrived", generation });`;

const threads = (): number => readdirSync("/proc/self/task").length;

/** Threads of this process when no more of them end: ended ones are listed for a while. */
async function settledThreads(): Promise<number> {
  let least = threads();
  for (let quiet = 0; quiet < 10; quiet++) {
    await sleep(10);
    const now = threads();
    if (now < least) quiet = 0;
    least = Math.min(least, now);
  }
  return least;
}

const hasProc = process.platform === "linux";

/** The runner must close, and all of its threads must be gone. */
function lost(title: string, body: () => Promise<void>): void {
  testIf(hasProc, "there is no /proc here", test, title, async () => {
    await (await start()).close(); // threads that Node itself starts and keeps
    const before = await settledThreads();
    await body();
    for (let i = 0; threads() > before && i < 500; i++) await sleep(10);
    assert.ok(threads() <= before, `${threads() - before} threads are left`);
  });
}

lost("a worker that does not come up, attach or arrive is named", async () => {
  const startLimitMs = LIMIT_MS;
  const late = async (name: string, seats: Record<string, string>, cpus = 2): Promise<string> =>
    refusal("E_WORKER", start({ cpus, workerUrl: workersOf(name, seats), startLimitMs }));
  const notArriving = async (): Promise<void> => {
    const workerUrl = workersOf("no-arrival", { 1: `${BORN}; on({ ${ATTACHES} })` });
    const runner = await start({ workerUrl, startLimitMs });
    const p = runner.memory.perCpu(abi.PCPU_COUNT, 0);
    const job = { entry: "count_percpu", args: [p] };
    const line = await refusal("E_WORKER", runner.run([job, job]));
    assert.is(line, "worker 1 did not arrive at the start barrier of count_percpu within 2 s");
    assert.is(runner.memory.load64(p), 0, "nobody has started");
    assert.is(await refusal("E_WORKER", runner.run([job])), line);
    await runner.close();
  };
  const [never, noHousekeeper, noAttach] = await Promise.all([
    late("never", { 1: WAIT, 2: SLEEP }, 3),
    late("no-housekeeper", { housekeeper: WAIT }),
    late("no-attach", { 1: `${BORN}; on({})` }),
    notArriving(),
  ]);
  assert.is(never, "worker 1 did not come up within 2 s");
  assert.is(noHousekeeper, "the housekeeper did not come up within 2 s");
  assert.is(noAttach, "worker 1 did not attach to the engine within 2 s");
});

lost("a worker that spins before it comes up is ended by force", async () => {
  const workerUrl = workersOf("spins", { 1: SPIN });
  const line = await refusal("E_WORKER", start({ workerUrl, startLimitMs: LIMIT_MS }));
  assert.is(line, "worker 1 did not come up within 2 s");
});

lost("a worker that dies at birth is named with its reason", async () => {
  const thrown = workersOf("throws", { 1: `throw new Error("no\\nluck")` });
  assert.is(await refusal("E_WORKER", start({ workerUrl: thrown })), "worker 1 ended: no luck");
  const exit = workersOf("exits", { 1: "process.exit(7)" });
  assert.is(await refusal("E_WORKER", start({ workerUrl: exit })), "worker 1 ended: exit code 7");
  const quiet = workersOf("returns", { 1: "" });
  assert.match(await refusal("E_WORKER", start({ workerUrl: quiet })), /worker 1 ended/);
  const missing = pathToFileURL(join(dir, "missing.mjs"));
  assert.match(await refusal("E_WORKER", start({ workerUrl: missing })), /missing\.mjs/);
});

lost("a worker that dies in the run ends it at once, with its reason", async () => {
  const text = `${BORN}; on({ ${ATTACHES}, ${ARRIVES} setTimeout(() => process.exit(9), 100); } })`;
  const runner = await start({ workerUrl: workersOf("dies", { 1: text }) });
  const job = { entry: "import_count", args: [] };
  const run = await runner.run([job, job]);
  assert.is(await refusal("E_WORKER", run.done), "worker 1 ended: exit code 9");
  assert.match(await refusal("E_WORKER", run.stop()), /worker 1 ended/);
  assert.match(await refusal("E_WORKER", runner.command(abi.OP_NOP)), /worker 1 ended/);
  await runner.close();
});

lost("a worker that dies between two runs is known before the next", async () => {
  const tired = `setTimeout(() => { throw new Error("tired"); }, 50)`;
  const text = `${BORN}; on({ attach() { post({ type: "attached" }); ${tired}; } })`;
  const runner = await start({ workerUrl: workersOf("tired", { 1: text }) });
  while ((await runner.tryCommand(abi.OP_NOP).catch(() => -1)) === 0) await sleep(10);
  const job = { entry: "import_count", args: [] };
  assert.is(await refusal("E_WORKER", runner.run([job])), "worker 1 ended: tired");
  await runner.close();
});

lost("workers that do not leave their run are named, and ended by force", async () => {
  const arrives = (then: string) => `${BORN}; on({ ${ATTACHES}, ${ARRIVES} ${then}; } })`;
  const seats = { 1: arrives(WAIT), 2: arrives(SPIN), 3: arrives(SLEEP) };
  const workerUrl = workersOf("stays", seats);
  const runner = await start({ cpus: 4, workerUrl, leaveLimitMs: LIMIT_MS });
  const job = { entry: "import_count", args: [] };
  const run = await runner.run([job, job, job, job]);
  const line = await refusal("E_WORKER", run.stop());
  const who = [1, 2, 3].map((cpu) => `CPU ${cpu} (in import_count)`).join(", ");
  assert.is(line, `${who} did not leave the run within 2 s of being asked`);
  await runner.close();
});

lost("commands that the housekeeper never executes are rejected by close", async () => {
  const workerUrl = workersOf("no-service", { housekeeper: `${BORN}; on({ ${ATTACHES} })` });
  const runner = await start({ workerUrl, leaveLimitMs: LIMIT_MS });
  const outstanding = Array.from({ length: 100 }, () => runner.command(abi.OP_NOP));
  const settled = Promise.allSettled(outstanding);
  await runner.close();
  for (const { status } of await settled) assert.is(status, "rejected");
});

lost("close ends a run that is under way", async () => {
  const runner = await start();
  const run = await runner.run([{ entry: "import_count", args: [] }]);
  await runner.close();
  await run.done;
});

test.after(() => rmSync(dir, { recursive: true, force: true }));
test.run();
