// A command line that cannot work ends at once: one line on stderr that names what is valid,
// nothing on stdout, and the exit code of its kind.
// runs alone
// time limit: 120 s

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { customSection, module } from "../helpers/module.js";
import { refused, run } from "../helpers/cli.js";
import { testIf } from "../helpers/skip.js";

const dir = mkdtempSync(join(tmpdir(), "cli-"));
const file = (name: string, content: string | Uint8Array): string => {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
};

/** What must be refused, and what its line must say. */
const WRONG: readonly [line: string, ...says: RegExp[]][] = [
  ["benhc uprobe-nop", /"benhc"/, /did you mean bench\?/],
  ["bench uprobe-npo", /"uprobe-npo"/, /did you mean .*uprobe-nop/],
  ["bench", /bench needs a name/, /uprobe-nop/],
  ["bench uprobe-nop uprobe-ret", /one too many/],
  ["bench uprobe-nop --preset spinlok", /"spinlok"/, /did you mean spinlock/],
  ["bench count-atomic --preset rwlock", /count-atomic has no presets/],
  ["bench uprobe-nop --frobnicate", /--frobnicate/],
  ["bench lock-mutex -L", /-L: nothing of lock-mutex/, /uprobe-nop/, /gp-srcu/],
  ["bench gp-scru", /did you mean gp-srcu/],
  ["bench uprobe-nop -d 0", /-d 0: .*0\.01\.\.3600/],
  ["bench uprobe-nop -d -1", /-d/],
  ["bench uprobe-nop -d", /-d needs a value/],
  ["bench uprobe-nop -w 0", /-w 0: .*0\.01\.\.600/],
  ["bench uprobe-nop -p 0", /-p 0: .*1\.\.256/],
  ["bench uprobe-nop -p 1000", /-p 1000: .*1\.\.256/],
  ["bench uprobe-nop -p two", /-p two/],
  ["bench uprobe-nop --trap-ns x", /--trap-ns x: .*0\.\.1000000/],
  ["bench uprobe-nop --trap-ns -5", /--trap-ns/],
  ["bench uprobe-nop --probes 0", /--probes 0: .*1\.\.1000000/],
  ["bench uprobe-nop --probes 1000001", /--probes 1000001: .*1\.\.1000000/],
  ["bench uprobe-nop --seed x", /--seed x/],
  ["sweep uprobe-nop --cpus 0", /--cpus 0: .*1\.\.256/],
  ["sweep uprobe-nop --cpus 1-", /--cpus 1-: .*1-8,10/],
  ["sweep uprobe-nop --cpus 1000", /--cpus 1000: .*256/],
  ["sweep uprobe-nop --cpus 2-1", /--cpus 2-1: .*backwards/],
  ["sweep uprobe-nop --repeat 0", /--repeat 0/],
  ["sweep uprobe-nop --format xml", /"xml"/, /table, kernel, json, csv, markdown/],
  ["sweep uprobe-nop --on moon", /"moon"/, /threads/],
  ["sweep uprobe-nop nope", /"nope"/],
  ["torture lock", /"lock"/, /did you mean locks/],
  ["torture", /locks, probes/],
  ["torture locks --seconds 0", /--seconds 0/],
  ["torture locks --lock mutx", /"mutx"/, /did you mean mutex/],
  ["torture probes --lock mutex", /--lock/],
  ["list stuff", /"stuff"/, /benches/],
];

test("what makes no sense is refused with exit code 2 and what is valid", async () => {
  for (let i = 0; i < WRONG.length; i += 2) {
    await Promise.all(
      WRONG.slice(i, i + 2).map(async ([line, ...says]) => {
        const said = await refused(2, line);
        for (const pattern of says) assert.match(said, pattern);
      }),
    );
  }
});

test("--wasm: a missing file, garbage and another module are one clear line each", async () => {
  const files: [path: string, says: RegExp][] = [
    [join(dir, "missing.wasm"), /cannot read .*ENOENT/],
    [dir, /cannot read .*EISDIR/],
    [file("empty.wasm", ""), /does not compile/],
    [file("garbage.wasm", "not a module\nat all\n"), /does not compile/],
    [file("other.wasm", module(customSection("x"))), /no engine: .*"engine_init"/],
  ];
  for (const [path, says] of files) {
    for (const command of ["bench uprobe-nop", "sweep", "torture probes"]) {
      assert.match(await refused(1, `${command} --wasm ${path}`), says);
    }
  }
});

test("--compare with nonsense is refused before anything is measured", async () => {
  const files: [path: string, says: RegExp][] = [
    [join(dir, "missing.json"), /cannot read .*missing\.json: ENOENT/],
    [file("garbage.json", "{ not json"), /garbage\.json is not JSON/],
    [file("other.json", `{"schema": "wasmprobe.sweep/9", "runs": []}`), /wasmprobe\.sweep\/9/],
    [file("null.json", "null"), /not a sweep result/],
    [file("broken.json", `{"schema": "wasmprobe.sweep/1", "runs": 7}`), /not valid/],
  ];
  for (const [path, says] of files) {
    // Would take minutes if it began to measure.
    assert.match(await refused(1, `sweep uprobe-nop -d 600 --compare ${path}`), says);
  }
});

const LIMIT_KB = 2_000_000;
const limited = ["sh", "-c", `ulimit -v ${LIMIT_KB} && exec "$@"`, "sh"];
const canLimit =
  process.platform === "linux" &&
  spawnSync(limited[0] ?? "", [...limited.slice(1), process.execPath, "-e", "0"]).status === 0;

testIf(
  canLimit,
  "no ulimit that Node starts under",
  test,
  "more probes than the machine has memory for are one line with the number of bytes",
  async () => {
    const line = await refused(1, "bench uprobe-nop -q --probes 1000000", limited);
    assert.match(line, /cannot reserve \d{9} bytes/);
  },
);

test("--out into a folder that is not there fails, but prints the result", async () => {
  const path = join(dir, "nowhere", "x.json");
  const args = `sweep count-atomic --cpus 1 -w 0.01 -d 0.02 -q --format json --out ${path}`;
  const { code, stdout, stderr } = await run(args);
  assert.is(code, 1);
  assert.is((JSON.parse(stdout) as { runs: unknown[] }).runs.length, 1);
  assert.match(stderr, /^wasmprobe: cannot write [^\n]*nowhere[^\n]*\n$/);
});

test.after(() => rmSync(dir, { recursive: true, force: true }));
test.run();
