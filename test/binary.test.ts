// The rules of the shared module, read from the built binary: nothing that a further instance would
// run or write again, nothing shared outside the memory. What the source looks like does not
// matter here, only what was emitted.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import asc from "assemblyscript/asc";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { NO_INLINE, buildEngine } from "../scripts/engine.mjs";
import { instructions } from "../src/wasm/code.js";
import {
  SECTION,
  bodyOf,
  exportedFunction,
  readModule,
  type WasmModule,
} from "../src/wasm/reader.js";
import { I32, customSection, list, module, section, text } from "./helpers/module.js";
import { ROOT } from "./helpers/root.js";
import { scan } from "./style/scan.js";
import { projectTree } from "./style/tree.js";

const engine = readModule(readFileSync(join(ROOT, "dist", "engine.wasm")));

/** Imports the engine may have, as module.name and kind. */
const IMPORTS = ["env.memory memory", "cpu.now func", "host.empty func"];

/**
 * Mutable globals the engine may have, by name. Each instance has its own copy, so each must be
 * private to a CPU. Whoever adds one says here why no other CPU needs to see it.
 */
const PRIVATE_GLOBALS = new Map([
  ["cpu/cpu_id", "which CPU this instance is"],
  ["cpu/cpu_areas", "where the areas of its engine begin: the same value in every instance"],
  ["cpu/cpu_area", "its own area"],
  ["cpu/cpu_blocks", "whether this thread may sleep"],
  ["cpu/cpu_has_slept", "whether this CPU slept in its batch"],
  ["cpu/delay_sink", "keeps the delay loop from being dropped"],
  ["uprobe/sink/in_handler", "whether this CPU is in a user's handler"],
  ["uprobe/fault/engine", "where its engine lies: the same value in every instance"],
]);

/** Sections that would run, or write over live state, at every further instantiation. */
function wrongSections(read: WasmModule): string[] {
  const wrong: Record<number, string> = {
    [SECTION.data]: "data",
    [SECTION.start]: "start",
    [SECTION.dataCount]: "data count",
  };
  return read.sections.flatMap(({ id }) => (wrong[id] === undefined ? [] : [wrong[id]]));
}

function unknownImports(read: WasmModule): string[] {
  return read.imports
    .map(({ module: from, name, kind }) => `${from}.${name} ${kind}`)
    .filter((entry) => !IMPORTS.includes(entry));
}

function sharedGlobals(read: WasmModule): string[] {
  const imported = read.imports.filter((i) => i.kind === "global").length;
  const unknown = read.globals.flatMap(({ mutable }, i) => {
    const name = read.names.globals.get(imported + i) ?? `global ${imported + i}`;
    return mutable && !PRIVATE_GLOBALS.has(name) ? [`${name} is mutable`] : [];
  });
  const exported = read.exports.flatMap(({ name, kind, index }) =>
    kind === "global" && read.globals[index - imported]?.mutable ? [`${name} is exported`] : [],
  );
  return [...unknown, ...exported];
}

const namesOf = (read: WasmModule, index: number | undefined): string[] => {
  const body = index === undefined ? undefined : bodyOf(read, index);
  return body ? [...instructions(read, body)].map((i) => i.name) : [];
};

test("no section that would run or write at a later instantiation", () => {
  assert.equal(wrongSections(engine), []);
});

/** A module as it should not be. */
const broken = (...sections: number[][]): WasmModule => readModule(module(...sections));

test("sections: start, data and data count would be seen", () => {
  const found = wrongSections(broken(section(8, 0), section(12, 0), section(11, 0)));
  assert.equal(found, ["start", "data count", "data"]);
});

test("every import is known", () => {
  assert.equal(unknownImports(engine), []);
});

test("imports: an unknown one would be seen, and a known name of another kind", () => {
  const read = broken(
    section(SECTION.type, ...list([0x60, 0, 0])),
    section(
      SECTION.import,
      ...list(
        [...text("waist"), ...text("fence"), 0x00, 0x00],
        [...text("cpu"), ...text("now"), 0x03, I32, 0x00],
      ),
    ),
  );
  assert.equal(unknownImports(read), ["waist.fence func", "cpu.now global"]);
});

test("the one memory is imported, shared and bounded; it is not exported", () => {
  const memories = engine.imports.filter((i) => i.kind === "memory");
  assert.is(memories.length, 1);
  assert.equal(engine.memories, []);
  const [memory] = memories;
  assert.ok(memory?.kind === "memory" && memory.limits.shared && !memory.limits.wide);
  assert.is.not(memory.limits.max, undefined);
  assert.not(engine.exports.some((e) => e.kind === "memory"));
});

test("the one function table is exported: handlers of users' modules go there", () => {
  const tables = engine.exports.filter((e) => e.kind === "table");
  assert.equal(
    tables.map(({ name }) => name),
    ["table"],
  );
  // A table is an instance's own, as a global is: every instance is given the same functions.
  assert.not(engine.imports.some((i) => i.kind === "table"));
});

test("the engine never grows its memory", () => {
  const grows = engine.bodies.filter((b) => namesOf(engine, b.index).includes("memory.grow"));
  assert.equal(
    grows.map((b) => engine.names.functions.get(b.index)),
    [],
  );
});

test("mutable globals are the known ones, private to a CPU, and none is exported", () => {
  assert.equal(sharedGlobals(engine), []);
});

test("globals: an unknown mutable one would be seen, and an exported one", () => {
  const names = list([0, ...text("cpu/cpu_id")], [1, ...text("mm/live")]);
  const read = broken(
    section(SECTION.global, ...list([I32, 1, 0x41, 0, 0x0b], [I32, 1, 0x41, 0, 0x0b])),
    section(SECTION.export, ...list([...text("id"), 3, 0])),
    customSection("name", 7, names.length, ...names),
  );
  assert.equal(sharedGlobals(read), ["mm/live is mutable", "id is exported"]);
});

const sources = [...projectTree()].filter(([path]) => /^assembly\/.*\.ts$/.test(path));

test("slow paths are functions of their own, under their own names: profiles go by them", () => {
  const declared = sources.flatMap(([, source]) =>
    [...source.matchAll(/^(?:export )?function (\w+_slow|osq_lock)\b/gm)].map((m) => m[1] ?? ""),
  );
  assert.ok(declared.length > 0);
  const emitted = [...engine.names.functions.values()].map((name) => name.split("/").at(-1));
  assert.equal(
    declared.filter((name) => !emitted.includes(name)),
    [],
  );
});

test("every pattern of NO_INLINE names a function of the engine", () => {
  const emitted = [...engine.names.functions.values()];
  const idle = NO_INLINE.filter((pattern) => {
    const like = new RegExp(`^${pattern.replaceAll("*", ".*")}$`);
    return !emitted.some((name) => like.test(name));
  });
  assert.equal(idle, []);
});

test("count_atomic loops over exactly one atomic add and one branch", () => {
  const names = namesOf(engine, exportedFunction(engine, "count_atomic"));
  const loop = names.slice(names.indexOf("loop") + 1, names.indexOf("end"));
  assert.is(names.filter((name) => name === "loop").length, 1);
  // What else is in there works on locals and constants only.
  const free = /^(local\.|i32\.const|i64\.const|i32\.(add|sub|eqz|ne|gt_[su]|lt_[su])$|drop$)/;
  assert.equal(
    loop.filter((name) => !free.test(name)),
    ["i64.atomic.rmw.add", "br_if"],
  );
});

test("no entry that is measured reads the clock or knows of sampled latencies", () => {
  const imported = engine.imports.filter((i) => i.kind === "func");
  const nameOf = (index: number): string =>
    index < imported.length
      ? `${imported[index]?.module}.${imported[index]?.name}`
      : (engine.names.functions.get(index) ?? "");
  const calls = (name: string): string[] => {
    const body = bodyOf(engine, exportedFunction(engine, name) ?? -1);
    assert.ok(body, name);
    const all = [...instructions(engine, body)].filter((i) => i.name === "call");
    return all.map((i) => nameOf(i.immediates[0] ?? -1));
  };
  const wrong = /^cpu\.now$|cpu_now|histogram/;
  const entries = engine.exports.map((e) => e.name).filter((name) => name.startsWith("trigger_"));
  assert.ok(entries.length >= 14);
  const found = entries.flatMap((name) => calls(name).filter((to) => wrong.test(to)));
  assert.equal(found, []);
  assert.ok(
    calls("latency_rwlock").some((to) => wrong.test(to)),
    "it would be seen",
  );
});

/** Where functions call fence(), and how many `atomic.fence` the binary has. */
test("the fences of the source are in the binary", () => {
  const callers = sources.filter(
    ([path, source]) =>
      path !== "assembly/atomics.ts" && /(?<!function )\bfence\(\)/.test(scan(source).codeOnly),
  );
  const fences = engine.bodies
    .flatMap((b) => namesOf(engine, b.index))
    .filter((name) => name === "atomic.fence");
  assert.is(fences.length > 0, callers.length > 0);
});

/** Compiles one file, as engine.ts, with the project's waist beside it. */
async function build(source: string): Promise<WasmModule> {
  const dir = mkdtempSync(join(tmpdir(), "engine-"));
  try {
    await mkdir(join(dir, "assembly"));
    for (const file of ["asconfig.json", "assembly/atomics.ts"]) {
      writeFileSync(join(dir, file), readFileSync(join(ROOT, file)));
    }
    writeFileSync(join(dir, "assembly", "engine.ts"), source);
    return readModule(await buildEngine({ source: join(dir, "assembly") }));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

test("fence() becomes one atomic.fence, in its place between two plain accesses", async () => {
  const read = await build(`import { fence } from "./atomics";
export function publish(p: usize): i32 {
  store<i32>(p, 1);
  fence();
  return load<i32>(p, 64);
}`);
  const names = namesOf(read, exportedFunction(read, "publish"));
  assert.equal(
    names.filter((name) => !/^(local\.|i32\.const|block|end)/.test(name)),
    ["i32.store", "atomic.fence", "i32.load"],
  );
  assert.equal(unknownImports(read), []);
});

test("asc itself still refuses atomic.fence, which is why there is a post-pass", async () => {
  // Its validator's words go to the console: "Atomic fence cannot be unordered".
  const { error } = await asc.main(
    [
      "in.ts",
      "--enable",
      "threads",
      "--importMemory",
      "--sharedMemory",
      "--maximumMemory",
      "1",
    ].concat(["--initialMemory", "1", "--runtime", "stub", "--outFile", "out.wasm"]),
    {
      stderr: asc.createMemoryStream(),
      readFile: (name) =>
        name === "in.ts" ? "export function f(): void { atomic.fence(); }" : null,
      writeFile: () => {},
      listFiles: () => [],
    },
  );
  assert.ok(
    error !== null,
    "asc emits atomic.fence now: let fence() in assembly/atomics.ts call it, and take the marker " +
      "waist.fence out of scripts/engine.mjs",
  );
  assert.match(error.message, /validate error/);
});

test.run();
