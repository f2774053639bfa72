// runs alone

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { CPU_AREA_BYTES, openCpu } from "../../src/engine/own-memory.js";
import { ROOT } from "../helpers/root.js";
import { rejectionOf } from "../helpers/throws.js";

const EXAMPLE = join(ROOT, "test", "examples", "own-memory.example.mjs");

test("the README's example counts every increment of two workers and the main thread", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [EXAMPLE], { cwd: ROOT });
  assert.is(stdout, "true 20001\n");
});

test("the README prints the example as it is run", async () => {
  const readme = await readFile(join(ROOT, "README.md"), "utf8");
  const example = await readFile(EXAMPLE, "utf8");
  assert.ok(readme.includes(example.slice(example.indexOf("\n") + 1)));
});

test("openCpu names what is wrong with a memory, an address or a number", async () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const unshared = new WebAssembly.Memory({ initial: 1, maximum: 1 });
  const open = (change: object) =>
    rejectionOf("E_VALUE", openCpu({ memory, areas: 256, cpu: 0, ...change }));
  assert.match(await open({ memory: unshared }), "memory is not shared");
  assert.match(await open({ cpu: 256 }), "cpu is 256; valid are 0..255");
  assert.match(await open({ cpu: -1 }), "cpu is -1");
  assert.match(await open({ areas: 100 }), "areas is 100 in 65536 bytes");
  assert.match(await open({ cpu: 64 }), `${CPU_AREA_BYTES} bytes for each CPU behind it`);
});

test.run();
