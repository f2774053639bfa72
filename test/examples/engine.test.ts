// The examples of the engine as a library, run and type-checked as a user's program is.
// runs alone
// time limit: 60 s

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ROOT } from "../helpers/root.js";
import { wat } from "../helpers/user-module.js";

const exec = promisify(execFile);
const example = (name: string): string => join(ROOT, "test", "examples", `${name}.example.mjs`);

async function outputOf(name: string): Promise<string> {
  const { stdout, stderr } = await exec(process.execPath, [example(name)], { cwd: ROOT });
  assert.is(stderr, "");
  return stdout;
}

test("the README's example counts every hit, and has an event for each", async () => {
  const lines = (await outputOf("engine")).split("\n");
  assert.is(lines[0], "[ 400, 400 ] { emitted: 800, lost: 0, read: 0, pending: 800 }");
  assert.match(lines.join(" "), /cpu: 0, +number: 0, +timeNs: 0, +cookie: 7, +pid: 1,/);
});

test("the README prints the example as it is run", async () => {
  const readme = await readFile(join(ROOT, "README.md"), "utf8");
  const text = await readFile(example("engine"), "utf8");
  assert.ok(readme.includes(text.slice(text.indexOf("\n") + 1)));
});

test("the example of a module of one's own sums up what its hits were called with", async () => {
  assert.is(await outputOf("own-wasm"), "true true 2\n");
});

test("the example of nested calls has a time for each of them, and none is lost", async () => {
  const [outer = "", inner = "", none] = (await outputOf("latency")).split("\n");
  assert.match(outer, /^outer: 1000 calls, half of them in less than \d+ ns$/);
  assert.match(inner, /^inner: 1000 calls, half of them in less than \d+ ns$/);
  assert.is(none, "entries 2000 returns 2000 pending 0");
});

for (const name of ["own-wasm", "latency"]) {
  test(`the bytes in the example ${name} are the module that its comment shows`, async () => {
    const text = await readFile(example(name), "utf8");
    const shown = [...text.matchAll(/^\/\/ ( *\(.*)$/gm)].map(([, line]) => line).join("\n");
    const parts = [...text.matchAll(/^ +"([A-Za-z0-9+/=]{40,})"/gm)].map(([, part]) => part);
    const fields = shown.replace(/^\(module/, "").replace(/\)$/, "");
    assert.is(Buffer.from(wat(fields)).toString("base64"), parts.join(""));
  });
}

const TYPED = `
import { Engine, WasmprobeError, type EngineRun, type PresetName, type Work } from "wasmprobe";

const preset: PresetName = "speculative";
const engine = await Engine.start({ cpus: 2, preset, memoryBytes: 1 << 20 });
const file = await engine.file({ bytes: 64, instruction: "push" });
const space = await engine.addressSpace({ mappingsMax: 1 });
await space.map(file, { address: 4096 });
const consumer = await engine.histogram();
const probe = await engine.register({ file, offset: 0, consumer, limit: 5 });
const task = await space.task({ address: 4096 });
const work: Work = { task, count: 10 };
const run: EngineRun = await engine.run([work]);
await run.done;
const numbers: number[] = [...consumer.buckets(), task.counts().missed["ring-full"]];
await probe.unregister();
try {
  await probe.unregister();
} catch (error) {
  if (error instanceof WasmprobeError && error.code === "E_STATE") console.log(numbers.length);
}
const times = await engine.latency();
const [both] = await engine.registerAll([{ file, offset: 8, consumer: times, on: "session" }]);
const child = await task.fork({ space: await space.fork(), pid: 2 });
numbers.push(child.returns().missed.longjmp, ...times.buckets(), (await child.signal(3)) ? 1 : 0);
await engine.unregisterAll(both === undefined ? [] : [both]);
await engine[Symbol.asyncDispose]();

// What must not pass:
// @ts-expect-error: no such preset
await Engine.start({ cpus: 2, preset: "fast" });
// @ts-expect-error: no such end of a call
await engine.register({ file, offset: 0, consumer, on: "exit" });
// @ts-expect-error: the file is missing
await engine.register({ offset: 0, consumer });
// @ts-expect-error: either a task or a module
await engine.run([{ count: 3 }]);
// @ts-expect-error: a counter has no events
(await engine.counter()).read();
`;

test("a strict TypeScript program of an empty project is checked against the types", async () => {
  const dir = mkdtempSync(join(tmpdir(), "user-"));
  try {
    mkdirSync(join(dir, "node_modules"));
    symlinkSync(ROOT, join(dir, "node_modules", "wasmprobe"));
    symlinkSync(join(ROOT, "node_modules", "@types"), join(dir, "node_modules", "@types"));
    writeFileSync(join(dir, "package.json"), `{ "type": "module" }`);
    writeFileSync(join(dir, "main.ts"), TYPED);
    const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022"];
    const types = ["--lib", "es2023,dom", "--types", "node", "--exactOptionalPropertyTypes"];
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const args = [tsc, ...options, ...types, "main.ts"];
    const { stdout } = await exec(process.execPath, args, { cwd: dir }).catch(
      (error: { stdout: string }) => error,
    );
    assert.is(stdout, "");
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test.run();
