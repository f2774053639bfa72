import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ErrorCode } from "../../src/base/errors.js";
import { parseArgs } from "../../src/cli/args.js";
import * as help from "../../src/cli/help.js";
import { CASE_NAMES, PRESET_NAMES } from "../../src/harness/cases.js";
import { messageOf } from "../helpers/throws.js";

const parse = (line: string) => parseArgs(line.split(" ").filter(Boolean), "1.2.3");
const refused = (code: ErrorCode, line: string): string => messageOf(code, () => parse(line));

const BENCH = {
  command: "bench",
  name: "uprobe-nop",
  preset: "rwlock",
  cpus: 1,
  warmupSec: 1,
  durationSec: 5,
  affinity: false,
  quiet: false,
  verbose: false,
  latency: false,
  probes: 1,
  siteBytes: 16,
  arch: "x86",
  trapNs: 0,
  seed: 1,
  wasm: null,
};

const SWEEP = {
  command: "sweep",
  names: [],
  presets: null,
  cpus: null,
  on: "threads",
  probes: [1],
  siteBytes: [16],
  arch: "x86",
  trapNs: 0,
  warmupSec: null,
  durationSec: null,
  repeat: null,
  seed: 1,
  format: "table",
  out: null,
  compare: null,
  affinity: false,
  quiet: false,
  wasm: null,
};

test("bench has the kernel bench's defaults: one producer, 1 s warm-up, 5 s", () => {
  assert.equal(parse("bench uprobe-nop"), BENCH);
});

test("bench takes the kernel bench's command lines as they are", () => {
  assert.equal(parse("bench -w3 -d5 -p8 -a trig-uprobe-nop"), {
    ...BENCH,
    cpus: 8,
    warmupSec: 3,
    affinity: true,
  });
  assert.equal(parse("bench --producers 2 --duration=0.5 --quiet --verbose uprobe-ret"), {
    ...BENCH,
    name: "uprobe-ret",
    cpus: 2,
    durationSec: 0.5,
    quiet: true,
    verbose: true,
  });
});

test("-L goes with what is timed one by one, and an error names those", () => {
  assert.equal(parse("bench uprobe-nop -L"), { ...BENCH, latency: true });
  assert.is(parse("bench gp-srcu --latency").command, "bench");
  for (const name of ["lock-mutex", "usermode-count", "count-percpu", "rcu-read-srcu"]) {
    const message = refused("E_USAGE", `bench ${name} -L`);
    assert.match(message, `-L: nothing of ${name} is timed one by one; valid with uprobe-nop, `);
  }
});

test("bench takes preset, probes, delay, seed and another binary", () => {
  const options = "--preset spinlock --probes 1000 --trap-ns 250 --seed 0x10 --wasm other.wasm";
  assert.equal(parse(`bench uprobe-push ${options}`), {
    ...BENCH,
    name: "uprobe-push",
    preset: "spinlock",
    probes: 1000,
    trapNs: 250,
    seed: 16,
    wasm: "other.wasm",
  });
});

test("a bench without presets has none, and refuses one", () => {
  assert.equal(parse("bench lock-mutex"), { ...BENCH, name: "lock-mutex", preset: null });
  assert.match(
    refused("E_USAGE", "bench lock-mutex --preset rwlock"),
    "lock-mutex has no presets; valid with uprobe-nop, uprobe-push, uprobe-ret",
  );
});

test("every bench of the catalogue is accepted, also with the kernel's prefix", () => {
  for (const name of CASE_NAMES) {
    for (const typed of [name, `trig-${name}`]) {
      const options = parse(`bench ${typed}`);
      assert.ok(options.command === "bench" && options.name === name);
    }
  }
});

test("bench -l lists the benches", () => {
  assert.equal(parse("bench -l"), { command: "list", topic: "benches" });
});

test("sweep leaves open what was not asked for", () => {
  assert.equal(parse("sweep"), SWEEP);
});

test("sweep takes lists of benches, presets, CPU counts and probes", () => {
  const line =
    "sweep uprobe-nop trig-uprobe-ret uprobe-nop --preset rwlock,spinlock,rwlock --cpus 1-3,8 " +
    "--probes 1,1000 --site-bytes 16,64,16 --trap-ns 250 -w 0.2 -d 1 --repeat 5 --seed 7 " +
    "--format kernel --out new.json --compare old.json -a -q --on threads";
  assert.equal(parse(line), {
    ...SWEEP,
    names: ["uprobe-nop", "uprobe-ret"],
    presets: ["rwlock", "spinlock"],
    cpus: [1, 2, 3, 8],
    probes: [1, 1000],
    siteBytes: [16, 64],
    trapNs: 250,
    warmupSec: 0.2,
    durationSec: 1,
    repeat: 5,
    seed: 7,
    format: "kernel",
    out: "new.json",
    compare: "old.json",
    affinity: true,
    quiet: true,
  });
});

test("sweep takes a preset as soon as one of its benches has presets", () => {
  assert.is(parse("sweep lock-mutex uprobe-nop --preset rwlock").command, "sweep");
  assert.match(refused("E_USAGE", "sweep lock-mutex --preset rwlock"), "lock-mutex has no presets");
});

test("torture takes a test, a time, a seed and workers", () => {
  const torture = { command: "torture", name: "locks", lock: null, quiet: false, wasm: null };
  assert.equal(parse("torture locks"), { ...torture, seconds: 10, seed: null, cpus: null });
  assert.equal(parse("torture probes --seconds 30 --seed 7 -p 4"), {
    ...torture,
    name: "probes",
    seconds: 30,
    seed: 7,
    cpus: 4,
  });
  const only = { ...torture, lock: "mutex", seconds: 10, seed: null, cpus: null };
  assert.equal(parse("torture locks --lock mutex"), only);
  assert.match(refused("E_USAGE", "torture probes --lock mutex"), "--lock goes with torture locks");
  assert.match(refused("E_NAME", "torture locks --lock mutx"), "did you mean mutex?");
});

test("list takes one topic or none", () => {
  assert.equal(parse("list"), { command: "list", topic: null });
  assert.equal(parse("list tables"), { command: "list", topic: "tables" });
});

test("--version and --help are text to print", () => {
  assert.equal(parse("--version"), { command: "text", text: "1.2.3" });
  assert.equal(parse("-V"), { command: "text", text: "1.2.3" });
  const whole = parse("--help");
  assert.equal(parse("-h"), whole);
  assert.equal(parse("help"), whole);
  assert.equal(parse(""), whole);
  assert.match(whole.command === "text" ? whole.text : "", "Usage: wasmprobe");
  assert.equal(parse("help sweep"), parse("sweep --help"));
});

test("every option but the hidden one is in the help, within 100 columns", () => {
  const shown = (line: string): string => {
    const options = parse(line);
    return options.command === "text" ? options.text : "";
  };
  const bench = shown("bench --help");
  for (const option of ["-p", "-w", "-d", "-a", "-q", "-v", "-l", "--preset", "--probes"]) {
    assert.match(bench, `${option}`);
  }
  assert.match(bench, "--trap-ns");
  assert.not.match(bench, "--wasm");
  const sweep = shown("sweep --help");
  for (const option of ["--preset", "--cpus", "--on", "--repeat", "--format", "--compare"]) {
    assert.match(sweep, option);
  }
  for (const line of ["", "bench -h", "sweep -h", "torture -h", "list -h"]) {
    for (const row of shown(line).split("\n")) assert.ok(row.length <= 100, row);
  }
});

test("every example of the help is a valid command line", () => {
  let examples = 0;
  for (const text of Object.values(help)) {
    for (const line of text.split("\n")) {
      const example = /^ {2}wasmprobe (.*?)(?: {2,}.*)?$/.exec(line)?.[1];
      if (example === undefined) continue;
      assert.is.not(parse(example).command, "text", example);
      examples++;
    }
  }
  assert.ok(examples >= 12);
});

test("a wrong value is one line that names the valid ones", () => {
  const wrong = {
    "bench uprobe-nop -d 0": "-d 0: valid are numbers 0.01..3600 (seconds)",
    "bench uprobe-nop -d -1": "-d -1: valid are numbers 0.01..3600 (seconds)",
    "bench uprobe-nop -w x": "-w x: valid are numbers 0.01..600 (seconds)",
    "bench uprobe-nop -p 0": "-p 0: valid are whole numbers 1..256",
    "bench uprobe-nop -p 1000": "-p 1000: valid are whole numbers 1..256",
    "bench uprobe-nop -p 1.5": "-p 1.5: valid are whole numbers 1..256",
    "bench uprobe-nop --probes 0": "--probes 0: valid are whole numbers 1..1000000",
    "bench uprobe-nop --trap-ns -5": "--trap-ns -5: valid are whole numbers 0..1000000 (ns)",
    "bench uprobe-nop --seed -1": "--seed -1: valid are whole numbers 0..4294967295",
    "bench uprobe-nop -d": "-d needs a value",
    "sweep --cpus 1-": "--cpus 1-: it is neither N nor FROM-TO; valid are numbers and ranges",
    "sweep --cpus 0": "--cpus 0: it starts below 1; valid are numbers and ranges within 1..256",
    "sweep --cpus 1000": "--cpus 1000: it goes beyond 256",
    "sweep --repeat 0": "--repeat 0: valid are whole numbers 1..1000",
    "sweep --site-bytes 16,0": "--site-bytes 0: valid are whole numbers 1..4096",
    "bench uprobe-nop --site-bytes 5000": "--site-bytes 5000",
    "sweep --probes 1,0": "--probes 0: valid are whole numbers 1..1000000",
    "sweep --out=": '--out "": valid is the path of a file',
    "torture locks --seconds 0": "--seconds 0: valid are numbers 0.01..3600 (seconds)",
  };
  for (const [line, expected] of Object.entries(wrong)) {
    assert.ok(refused("E_VALUE", line).startsWith(expected), refused("E_VALUE", line));
  }
});

test("an unknown name is one line with the nearest valid ones", () => {
  const wrong = {
    "bench uprobe-npo": 'unknown bench "uprobe-npo": did you mean uprobe-nop',
    "bench trig-uretprobe-multi-nop": 'unknown bench "trig-uretprobe-multi-nop": ',
    "sweep uprobe-nop --arch arm": 'unknown architecture "arm": did you mean arm64?',
    "sweep uprobe-nop mutex": 'unknown bench "mutex": did you mean lock-mutex?',
    "bench uprobe-nop --preset rwlok": 'unknown preset "rwlok": did you mean rwlock?',
    "sweep --preset spinlock,": `unknown preset "": valid: ${PRESET_NAMES.join(", ")}`,
    "sweep --format tabel": 'unknown format "tabel": did you mean table?',
    "sweep --on epyc": 'unknown runner "epyc": valid: threads',
    swep: 'unknown command "swep": did you mean sweep?',
    "help swep": 'unknown command "swep": did you mean sweep?',
    "torture lock": 'unknown torture test "lock": did you mean locks?',
    "list bench": 'unknown list topic "bench": did you mean benches?',
    "sweep --fromat csv": 'unknown option of sweep "--fromat": did you mean --format?',
    "-p 2": 'unknown option of wasmprobe "-p": valid: --version',
  };
  for (const [line, expected] of Object.entries(wrong)) {
    const message = refused("E_NAME", line);
    assert.ok(message.startsWith(expected), message);
  }
});

test("what a later version brings is not silently accepted now", () => {
  for (const name of ["reproduce", "trace -e x", "calibrate", "serve"]) {
    assert.match(refused("E_NAME", name), "unknown command");
  }
  for (const option of ["--exec-ns 5", "--base x", "-L"]) {
    assert.match(refused("E_NAME", `sweep ${option}`), "unknown option of sweep");
  }
  assert.match(refused("E_NAME", "torture locks --replay x"), "unknown option of torture");
});

test("too many or too few names are one line", () => {
  assert.is(
    refused("E_USAGE", "bench uprobe-nop uprobe-ret"),
    'bench takes one name; "uprobe-ret" is one too many',
  );
  assert.match(refused("E_USAGE", "list benches presets"), "list takes one name");
  assert.match(refused("E_USAGE", "bench"), "bench needs a name, such as uprobe-nop");
  assert.match(refused("E_USAGE", "torture"), "torture needs a name; valid: locks, probes");
});

test.run();
