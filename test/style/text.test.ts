import { test } from "uvu";
import * as assert from "uvu/assert";
import { atomics, leftOvers, long, platformWords, thisMachine, tooLong, tooWide } from "./text.js";
import { projectTree, tree } from "./tree.js";

const project = projectTree();

test("no file has more than 600 lines; those above 350 are listed", () => {
  assert.equal(tooLong(project), []);
  for (const file of long(project)) {
    console.log(`# note: ${file}, more than 350: think of splitting it`);
  }
});

test("no line is wider than 100", () => {
  assert.equal(tooWide(project), []);
});

test("only assembly/atomics.ts names atomic operations", () => {
  assert.equal(atomics(project), []);
});

test("only src/platform/ names a platform", () => {
  assert.equal(platformWords(project), []);
});

test("what is left to do has an issue number", () => {
  assert.equal(leftOvers(project), []);
});

test("no file names a folder of one machine, or a registry", () => {
  assert.equal(thisMachine(project), []);
});

test("size: 600 lines pass, 601 do not, 351 are listed", () => {
  const files = tree({
    "src/base/a.ts": "x\n".repeat(600),
    "src/base/b.ts": "x\n".repeat(601),
    "src/base/c.ts": "x\n".repeat(350),
    "bench/tables/t.csv": "x\n".repeat(2000),
  });
  assert.equal(tooLong(files), ["src/base/b.ts:601 lines, 600 allowed"]);
  assert.equal(long(files), ["src/base/a.ts: 600 lines"]);
});

test("width: counted in characters, in code and scripts, not in prose", () => {
  const files = tree({
    "src/a.ts": `\n${"x".repeat(101)}\n${"±".repeat(100)}\n`,
    ".ci/run": "x".repeat(101),
    "README.md": "x".repeat(500),
  });
  assert.equal(tooWide(files), ["src/a.ts:2 is 101 wide", ".ci/run:1 is 101 wide"]);
});

test("waist: both spellings bite, comments and the waist itself do not", () => {
  const files = tree({
    "assembly/atomics.ts": "atomic.load<i32>(p);",
    "assembly/sync/a.ts": "// atomic.load\natomic.load<i32>(p);\nmemory.atomic.wait32(p, 0, 0);",
  });
  assert.equal(atomics(files), [
    "assembly/sync/a.ts:2 atomic. outside the waist",
    "assembly/sync/a.ts:3 atomic. outside the waist",
  ]);
});

test("platform words bite outside src/platform/, and only as words", () => {
  const files = tree({
    "src/platform/node.ts": `import "node:fs"; process.exit(1); Deno.exit(); self.close();`,
    "src/web/page.ts": "document.title; window.x; navigator.y;",
    "src/base/fine.ts": `// process.exit\nprocessed.x; a.process.b; const s = "process.exit";
worker.self.close(); preprocess.run();`,
    "src/cli/main.ts": `import "node:fs";
process.exit(1);
Deno.exit();
self.close();
window.close();
navigator.locks;
globalThis.x = Buffer.from("");`,
    "test/a.test.ts": "process.exit(1);",
  });
  const found = platformWords(files);
  assert.equal(
    found.filter((line) => !line.startsWith("src/cli/main.ts")),
    [],
  );
  assert.equal([...new Set(found.map((line) => /:(\d+) /.exec(line)?.[1]))].sort(), [
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
  ]);
  assert.is(found.length, 8);
});

test("left-overs bite without an issue number", () => {
  const todo = ["TO", "DO"].join("");
  const files = tree({ "src/a.ts": `// ${todo}: later\n// ${todo} #12: later\n// mastodons\n` });
  assert.equal(leftOvers(files), [`src/a.ts:1 ${todo}: later`]);
});

test("machine paths and private hosts bite, public ones do not", () => {
  const files = tree({
    "a.md": `see ${"/wo"}rk/x and ${"/ho"}me/me/y\nsrc/work/z, https://github.com/a/b`,
    "b.ts": `"http://${"nexus"}:8081/x"
"http://localhost:3000/"
"https://${"registry"}.npmjs.org/"`,
    ".npmrc": "save-exact=true\nregistry=x",
    "package-lock.json": `{\n"resolved": "https://a.org/b.tgz"}`,
  });
  const found = thisMachine(files);
  assert.equal(
    found.map((line) => line.split(" ")[0]),
    ["a.md:1", "a.md:1", "b.ts:1", "b.ts:3", ".npmrc:2", "package-lock.json:2"],
  );
});

test.run();
