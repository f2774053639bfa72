// The examples of wasmprobe/sync and wasmprobe/rcu, run and type-checked as a user's programs, also
// from the package as it is published.
// runs alone
// time limit: 90 s

import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { openCpu } from "../../src/engine/own-memory.js";
import { Rcu, Srcu } from "../../src/engine/rcu-handles.js";
import { ROOT } from "../helpers/root.js";
import { messageOf } from "../helpers/throws.js";

const exec = promisify(execFile);
const EXAMPLES = join(ROOT, "test", "examples");
const RCU_OUTPUT = "CPU 2: 0 torn pairs\ntrue 10000 0\n";

for (const name of ["rcu", "srcu"]) {
  test(`the example of ${name} reads no pair that is torn or freed`, async () => {
    const { stdout } = await exec(process.execPath, [join(EXAMPLES, `${name}.example.mjs`)]);
    assert.is(stdout, RCU_OUTPUT);
  });
}

test("the README prints the example of rcu as it is run", () => {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const text = readFileSync(join(EXAMPLES, "rcu.example.mjs"), "utf8");
  assert.ok(readme.includes(text.slice(text.indexOf("\n") + 1)));
});

test("handles name what is wrong with an address, a number of CPUs, or a thread", async () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const cpu = await openCpu({ memory, areas: 256, cpu: 0 });
  const range = (call: () => void): string => messageOf("E_VALUE", call);
  assert.match(
    range(() => new Srcu(cpu, 8)),
    "RCU address 8 is not a multiple of 64",
  );
  const rcu = new Rcu(cpu, 0);
  for (const cpus of [0, 1.5, 1000]) {
    assert.match(
      range(() => rcu.init(cpus)),
      `cpus is ${cpus}; there are areas for 1..`,
    );
  }
  rcu.init(2);
  const srcu = new Srcu(cpu, 128);
  for (const wait of [
    () => rcu.synchronize(),
    () => rcu.synchronizeQsbr(),
    () => srcu.synchronize(),
  ]) {
    assert.match(messageOf("E_STATE", wait), "waits for readers, which a main thread must not");
  }
});

const TYPED = `
import { CPU_AREA_BYTES, Mutex, openCpu, type OwnCpu } from "wasmprobe/sync";
import { type GracePeriods, Rcu, Srcu, WasmprobeError } from "wasmprobe/rcu";

const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
const cpu: OwnCpu = await openCpu({ memory, areas: 1024, cpu: 0 });
const mutex = new Mutex(cpu.exports, 0, cpu.thread);
await mutex.lockAsync();
mutex.unlock();
const srcu = new Srcu(cpu, 128);
srcu.init(1);
const index: number = srcu.readLock();
srcu.readUnlock(index);
const rcu = new Rcu(cpu, 128 + Srcu.BYTES);
rcu.init(1);
const periods: GracePeriods = rcu.gracePeriods();
const by: number | undefined = periods.stalledBy;
console.log(CPU_AREA_BYTES, by, WasmprobeError);

// What must not pass:
// @ts-expect-error: the index is missing
srcu.readUnlock();
// @ts-expect-error: a handle is made with a CPU
new Rcu(memory, 0);
`;

test("from an empty project with the packed tarball the examples run, and types hold", async () => {
  const dir = mkdtempSync(join(tmpdir(), "packed-"));
  try {
    // The build is there already; npm's own would take it away under other tests.
    const pack = ["pack", "--ignore-scripts", "--silent", "--pack-destination", dir];
    await exec("npm", pack, { cwd: ROOT, shell: process.platform === "win32" });
    const tarball = readdirSync(dir).find((name) => name.endsWith(".tgz")) ?? "";
    const modules = join(dir, "node_modules");
    mkdirSync(modules);
    await exec("tar", ["-xzf", join(dir, tarball), "-C", modules]);
    // npm would install the dependencies beside; they are at hand.
    const unpacked = join(modules, "package");
    const { dependencies } = JSON.parse(readFileSync(join(unpacked, "package.json"), "utf8")) as {
      dependencies: Record<string, string>;
    };
    symlinkSync(unpacked, join(modules, "wasmprobe"));
    for (const name of [...Object.keys(dependencies), "@types"]) {
      mkdirSync(join(modules, name, ".."), { recursive: true });
      symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
    }
    writeFileSync(join(dir, "package.json"), `{ "type": "module" }`);
    const outputs: Record<string, string> = {};
    for (const file of readdirSync(EXAMPLES).filter((name) => name.endsWith(".mjs"))) {
      copyFileSync(join(EXAMPLES, file), join(dir, file));
      const { stdout } = await exec(process.execPath, [file], { cwd: dir });
      outputs[basename(file, ".example.mjs")] = stdout;
    }
    assert.is(outputs["rcu"], RCU_OUTPUT);
    assert.is(outputs["srcu"], RCU_OUTPUT);
    assert.is(outputs["own-memory"], "true 20001\n");
    writeFileSync(join(dir, "main.ts"), TYPED);
    const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022"];
    const types = ["--lib", "es2023,dom", "--types", "node"];
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const { stdout } = await exec(process.execPath, [tsc, ...options, ...types, "main.ts"], {
      cwd: dir,
    }).catch((error: { stdout: string }) => error);
    assert.is(stdout, "");
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test.run();
