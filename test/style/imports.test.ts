import { test } from "uvu";
import * as assert from "uvu/assert";
import { cycles, direction, importsOf, undeclared, unreached } from "./imports.js";
import { projectTree, tree } from "./tree.js";

const project = projectTree();

test("imports point only to folders printed above", () => {
  assert.equal(direction(project), []);
});

test("no import cycles", () => {
  assert.equal(cycles(project), []);
});

test("something reaches every file", () => {
  assert.equal(unreached(project), []);
});

test("every imported package is declared, and src/ imports none that only development has", () => {
  assert.equal(undeclared(project), []);
});

test("every form of import is seen, comments and strings are not", () => {
  const files = tree({
    "src/base/a.ts": `
import { a } from "./b.js";
import type {
  B,
} from "./b.js";
export * from "./b.js";
import "./b.js";
const lazy = await import("./b.js");
const url = new URL("./b.js", import.meta.url);
// import { x } from "./c.js";
/* import "./c.js" */
const text = \`import "./c.js\${1}"\`;
const pattern = /import "\\.\\/c.js"/;
`,
    "src/base/b.ts": "",
    "src/base/c.ts": "",
  });
  const found = importsOf(files, "src/base/a.ts").filter((i) => i.to === "src/base/b.ts");
  assert.equal(
    found.map((i) => i.line).sort((a, b) => a - b),
    [2, 3, 6, 7, 8, 9],
  );
});

test("direction: an import upwards is a complaint with its line", () => {
  const files = tree({
    "src/base/a.ts": `\nimport { f } from "../cli/args.js";\n`,
    "src/cli/args.ts": `import { g } from "../base/a.js";\n`,
    "assembly/sync/a.ts": `import { f } from "../uprobe/b";\nimport { LINE } from "../layout";`,
    "assembly/uprobe/b.ts": `import { x } from "../sync/a";`,
    "assembly/atomics.ts": `import { y } from "./cpu";`,
    "assembly/cpu.ts": `import { z } from "./atomics";`,
    "assembly/layout.ts": "",
  });
  assert.equal(direction(files), [
    "src/base/a.ts:2 imports src/cli/args.ts: base comes before cli",
    "assembly/sync/a.ts:1 imports assembly/uprobe/b.ts: sync comes before uprobe",
    "assembly/atomics.ts:1 imports assembly/cpu.ts: atomics comes before cpu",
  ]);
});

test("direction: only src/engine/abi.ts reads assembly/, and only the memory map", () => {
  const files = tree({
    "src/engine/abi.ts": `export * from "../../assembly/layout.js";`,
    "src/engine/engine.ts": `import { LINE } from "../../assembly/layout.js";`,
    "src/harness/t.ts": `import csv from "../../bench/tables/3.csv";
import x from "../../bench/a.js";`,
    "assembly/layout.ts": "",
    "assembly/cpu.ts": `import { x } from "../src/engine/abi";`,
    "bench/tables/3.csv": "",
    "bench/a.ts": "",
  });
  assert.equal(direction(files), [
    "src/engine/engine.ts:1 imports assembly/layout.ts: outside of src/",
    "src/harness/t.ts:2 imports bench/a.ts: outside of src/",
    "assembly/cpu.ts:1 imports src/engine/abi.ts: outside of assembly/",
  ]);
});

test("direction: the command line and the page do not know each other, nor the index them", () => {
  const files = tree({
    "src/cli/main.ts": `import "../web/page.js";`,
    "src/web/page.ts": `import "../cli/main.js";`,
    "src/index.ts": `export * from "./cli/main.js";`,
    "src/base/x.ts": `export * from "../index.js";`,
  });
  assert.equal(direction(files).length, 4);
});

test("direction: a folder that is not in the order is a complaint", () => {
  assert.match(direction(tree({ "src/misc/a.ts": "" })).join(), /in no folder of the order/);
});

test("cycles: named by the path that closes them, type imports included", () => {
  const files = tree({
    "src/base/a.ts": `import { b } from "./b.js";`,
    "src/base/b.ts": `import type { C } from "./c.js";`,
    "src/base/c.ts": `export { a } from "./a.js";`,
    "src/base/d.ts": `import "./a.js";`,
  });
  assert.equal(cycles(files), ["src/base/a.ts -> src/base/b.ts -> src/base/c.ts -> src/base/a.ts"]);
});

test("reach: what only unreached files import is unreached too", () => {
  const files = tree({
    "assembly/engine.ts": `export { f } from "./sync/a";`,
    "assembly/sync/a.ts": "",
    "assembly/sync/forgotten.ts": `import "./below";`,
    "assembly/sync/below.ts": "",
    "src/index.ts": "",
    "src/wasm/x.ts": "",
    "test/wasm/x.test.ts": `import "../../src/wasm/x.js"; import "../helpers/h.js";`,
    "test/helpers/h.ts": "",
    "test/helpers/old.ts": "",
  });
  assert.equal(unreached(files), [
    "assembly/sync/forgotten.ts:1 nothing imports it",
    "assembly/sync/below.ts:1 nothing imports it",
    "test/helpers/old.ts:1 nothing imports it",
  ]);
});

test("packages: undeclared ones, and development ones in src/, are complaints", () => {
  const files = tree({
    "package.json": `{"dependencies":{"@a/b":"1"},"devDependencies":{"uvu":"1"}}`,
    "src/base/a.ts": `import "@a/b/deep"; import "uvu/assert"; import "node:fs";`,
    "test/a.test.ts": `import "uvu"; import "left-pad";`,
  });
  assert.equal(undeclared(files), [
    "src/base/a.ts:1 imports uvu: not declared",
    "test/a.test.ts:1 imports left-pad: not declared",
  ]);
});

test.run();
