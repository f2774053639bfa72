// The pool of real threads between runs: formatting, closing, commands and runs that come at the
// wrong moment are refused or served, and none is left without an answer.
// runs alone

import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { WasmprobeError } from "../../src/base/errors.js";
import * as abi from "../../src/engine/abi.js";
import { startThreads } from "../../src/engine/threads.js";
import { loadPlatform } from "../../src/platform/index.js";
import type { Platform } from "../../src/platform/platform.js";
import { progress, sleep, WASM, withThreads } from "../helpers/engine.js";

/** How it ended: "resolved", the code of the error, or "never" after 5 s. */
async function fate(promise: Promise<unknown>): Promise<string> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const never = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve("never"), 5_000);
  });
  const settled = promise.then(
    () => "resolved",
    (error: unknown) => (error instanceof WasmprobeError ? error.code : String(error)),
  );
  const how = await Promise.race([settled, never]);
  clearTimeout(timer);
  return how;
}

const counter = (p: number, count?: number) => ({
  entry: "count_atomic",
  args: [p],
  ...(count === undefined ? {} : { count }),
});

test("a command after close is refused, one before it is served", async () => {
  await withThreads(1, async (runner) => {
    const before = fate(runner.command(abi.OP_NOP));
    const closing = runner.close();
    const after = fate(runner.command(abi.OP_NOP));
    assert.is(await before, "resolved");
    assert.is(await after, "E_STATE");
    await closing;
    assert.is(await fate(runner.command(abi.OP_NOP)), "E_STATE");
  });
});

test("a command during format is refused, and does not reach the next engine", async () => {
  await withThreads(1, async (runner) => {
    for (let i = 0; i < 5; i++) await runner.command(abi.OP_NOP);
    const before = fate(runner.command(abi.OP_NOP));
    const formatting = runner.format({ cpus: 2 });
    const during: Promise<string>[] = [];
    const ask = () => during.push(fate(runner.command(abi.OP_NOP)));
    ask();
    const more = setInterval(ask, 0);
    await formatting.finally(() => clearInterval(more));
    assert.is(await before, "resolved");
    assert.equal([...new Set(await Promise.all(during))], ["E_STATE"]);
    assert.is(await fate(runner.command(abi.OP_NOP)), "resolved");
  });
});

test("a format and a run during a format are refused", async () => {
  await withThreads(1, async (runner) => {
    const p = await runner.command(abi.OP_ALLOC, abi.STRIDE);
    const first = fate(runner.format({ cpus: 1 }));
    const second = fate(runner.format({ cpus: 1 }));
    const third = fate(runner.run([counter(p)]));
    assert.equal(await Promise.all([first, second, third]), ["resolved", "E_STATE", "E_STATE"]);
  });
});

test("stop of a run that has ended leaves the next run alone", async () => {
  await withThreads(1, async (runner) => {
    const p = await runner.command(abi.OP_ALLOC, abi.STRIDE);
    const ended = await runner.run([counter(p, 10)]);
    await ended.done;
    assert.equal(progress(runner, abi.PCPU_OPS), [10]);
    const next = await runner.run([counter(p)]);
    await ended.stop();
    assert.is(runner.memory.header(abi.HDR_STOP), 0);
    const left = await Promise.race([next.done.then(() => true), sleep(50).then(() => false)]);
    assert.is(left, false);
    await next.stop();
  });
});

test("a pool that lost a CPU ends by force what is stuck, and nothing else", async () => {
  const real = await loadPlatform();
  const forced: string[] = [];
  const platform: Platform = {
    ...real,
    spawnWorker: (url, data, name) => {
      const worker = real.spawnWorker(url, data, name);
      return {
        ...worker,
        terminate: () => {
          forced.push(name);
          return worker.terminate();
        },
      };
    },
  };
  const runner = await startThreads({
    platform,
    cpus: 2,
    memoryBytes: 4 << 20,
    wasm: pathToFileURL(WASM),
    leaveLimitMs: 200,
  });
  try {
    const p = await runner.command(abi.OP_ALLOC, abi.STRIDE);
    runner.memory.store(p, 0x10000); // a ticket lock that nobody will release
    const stuck = await runner.run([{ entry: "ticket_lock", args: [p] }, counter(p + abi.LINE)]);
    while (runner.memory.load(p) !== 0x20000) await sleep(1);
    assert.is(await fate(stuck.stop()), "E_WORKER");
    assert.is(await fate(stuck.done), "E_WORKER");
    assert.is(await fate(runner.command(abi.OP_NOP)), "E_WORKER");
  } finally {
    await runner.close();
  }
  assert.equal(forced, ["wasmprobe worker 0"]);
});

test.run();
