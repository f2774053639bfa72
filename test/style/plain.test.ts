import { test } from "uvu";
import * as assert from "uvu/assert";
import { loneLabels, plainAccesses, promisedTests } from "./plain.js";
import { projectTree, tree } from "./tree.js";

const project = projectTree();

test("every plain access to shared memory says why it may be plain", () => {
  assert.equal(plainAccesses(project), []);
});

test("every label of an ordering argument is mentioned on both sides", () => {
  assert.equal(loneLabels(project), []);
});

test("every test that a comment promises exists", () => {
  assert.equal(promisedTests(project), []);
});

/** The lines of which the rule complains. */
function linesOf(path: string, text: string): number[] {
  return plainAccesses(tree({ [path]: text })).map((found) => Number(/:(\d+) /.exec(found)?.[1]));
}

test("an access without a word is a complaint, wherever it stands in a statement", () => {
  const text = `function f(p: usize): void {
  store<i32>(p, 1);
  if (load<i32>(p) == 0 && g(load<u8>(p, 4))) return;
  memory.copy(p, q, 8);
}`;
  assert.equal(linesOf("assembly/sync/a.ts", text), [2, 3, 3, 4]);
  assert.equal(linesOf("assembly/cpu.ts", text), []); // not a folder of the rule
});

test("a reason or a label behind the statement covers it, and nothing below", () => {
  const text = `function f(p: usize): void {
  store<i32>(p, 1); // plain: mine
  store<i32>(p, 2);
  const x = load<i32>(p); // [D]
  const y = load<i32>(p); // D
  const z =
    load<i32>(p) +
    1; // plain: mine
  const w = load<i32>(p); // explained elsewhere
  return; // plain: not of that one
}`;
  assert.equal(linesOf("assembly/sync/a.ts", text), [3, 9]);
});

test("a comment line covers what follows it without an empty line", () => {
  const text = `function f(p: usize): void {
  // plain: all under the lock
  store<i32>(p, 1);
  if (p) {
    store<i32>(p, 2);
  }

  store<i32>(p, 3);
}
// plain: this comment is not inside
function g(p: usize): void {
  store<i32>(p, 1);
  a();
  b();
  c();
  d();
}`;
  assert.equal(linesOf("assembly/sync/a.ts", text), [8, 12]);
});

test("above a function, a reason covers the function; in sync/ only a short one", () => {
  const text = `/** Adds. plain: under the lock. */
// @ts-ignore: decorator
@inline
export function f(p: usize): void {
  store<i32>(p, 1);

  store<i32>(p, 1);
}

function g(p: usize): void {
  store<i32>(p, 1);
}`;
  assert.equal(linesOf("assembly/mm/a.ts", text), [11]);
  assert.equal(linesOf("assembly/sync/a.ts", text), [11]);
  const longer = text.replace("\n\n", "\n\n  x();\n  y();\n");
  assert.equal(linesOf("assembly/mm/a.ts", longer), [13]);
  assert.equal(linesOf("assembly/sync/a.ts", longer), [5, 9, 13]);
});

const HEADER = `// What it is. plain words here.
//
// plain: \`task\` by its CPU only; \`MM_*\`, \`at\`
// under mmap_lock.
//
// \`other\` is not in the paragraph.

import { x } from "./x";
`;

test("a header's class covers accesses whose address uses its names", () => {
  const text = `${HEADER}
function f(): void {
  load<i32>(task, 4) + load<i32>(<usize>load<i32>(mm, MM_NEXT));
  store<i32>(at + 8, 0);
  store<i32>(other, 0);
}`;
  // The outer load of line 11 has no name of its own.
  assert.equal(linesOf("assembly/mm/a.ts", text), [11, 13]);
  assert.equal(linesOf("assembly/sync/a.ts", text), [11, 11, 11, 12, 13]);
});

test("a stored value is not an address", () => {
  const text = `${HEADER}
function f(): void {
  store<i32>(p, task);
  load<i32>(task); load<i32>(at); load<i32>(p, MM_A);
}`;
  assert.equal(linesOf("assembly/mm/a.ts", text), [11]);
});

test("a class that no access uses, and an empty reason, are complaints", () => {
  const text = `${HEADER}
function f(): void {
  load<i32>(task); load<i32>(at);
  // plain:
  load<i32>(task);
}`;
  const found = plainAccesses(tree({ "assembly/mm/a.ts": text }));
  assert.is(found.length, 2);
  assert.match(found.join(), /explains `MM_\*`, no access uses it/);
  assert.match(found.join(), /a\.ts:12 "plain:" without a reason/);
});

test("labels: one that nothing else mentions, in a comment without others, is a complaint", () => {
  const text = `// [A] before [B]: in one comment.

x(); // [C]

y(); // [D]
// pairs
// with [D]

z[E]; // [F] alone
`;
  assert.equal(loneLabels(tree({ "assembly/sync/a.ts": text })), [
    "assembly/sync/a.ts:3 [C] has no other side",
    "assembly/sync/a.ts:9 [F] has no other side",
  ]);
});

test("promises: a test's file may go on after the promised name", () => {
  const text = `// Checked: SB+mutex. Checked: MP+rwsem\n`;
  const files = tree({ "assembly/sync/a.ts": text, "test/litmus/SB+mutex.test.ts": "" });
  assert.equal(promisedTests(files), [`assembly/sync/a.ts:1 "Checked: MP+rwsem": no such test`]);
});

test.run();
