import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as text from "../../src/base/text.js";

test("a table aligns numbers right, names left, and holds no escape codes", () => {
  const table = text.textTable(
    ["name", "M/s"],
    [
      ["a", "1.000"],
      ["longer", "10.000"],
    ],
    { align: ["left"] },
  );
  assert.is(
    table,
    ["name       M/s", "------  ------", "a        1.000", "longer  10.000"].join("\n"),
  );
});

test("a coloured table differs by escape codes only in its head", () => {
  const plain = text.textTable(["a"], [["1"]]);
  const coloured = text.textTable(["a"], [["1"]], { colour: true });
  // oxlint-disable-next-line no-control-regex
  assert.is(coloured.replace(/\x1b\[\d+m/g, ""), plain);
});

test("a markdown table escapes its separator", () => {
  assert.is(
    text.mdTable(["a", "b"], [["x|y", "1"]], ["left", "right"]),
    "| a | b |\n| --- | ---: |\n| x\\|y | 1 |",
  );
});

test("edit distance is a metric that counts a swap of neighbours once", () => {
  assert.is(text.editDistance("uprobe-npo", "uprobe-nop"), 1);
  assert.is(text.editDistance("kitten", "sitting"), 3);
  const words = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 6 });
  fc.assert(
    fc.property(words, words, (a, b) => {
      const distance = text.editDistance(a, b);
      assert.is(distance, text.editDistance(b, a));
      assert.is(distance === 0, a === b);
      assert.ok(distance >= Math.abs(a.length - b.length));
      assert.ok(distance <= Math.max(a.length, b.length));
    }),
  );
});

test("the nearest names come first, and far ones not at all", () => {
  const names = ["uprobe-nop", "uprobe-push", "lock-mutex", "count-atomic"];
  assert.is(text.nearest("uprobe-npo", names)[0], "uprobe-nop");
  assert.equal(text.nearest("mutex", names), ["lock-mutex"]);
  assert.equal(text.nearest("LOCK-MUTX", names), ["lock-mutex"]);
  assert.equal(text.nearest("xyz", names), []);
  assert.equal(text.nearest("-L", ["-a", "-w"]), []);
});

test("an unknown name is answered in one line, with near names or all of a few", () => {
  const few = text.unknownName("command", "swep", ["bench", "sweep"]);
  assert.is(few.message, 'unknown command "swep": did you mean sweep? valid: bench, sweep');
  assert.is(few.exitCode, 2);
  const many = Array.from({ length: 30 }, (_, i) => `name-${i}-of-many`);
  assert.match(text.unknownName("bench", "zzz", many).message, /valid: name-0.*name-19.*, \.\.\.$/);
});

test("alternatives are listed with or", () => {
  assert.is(text.oneOf(["a"]), "a");
  assert.is(text.oneOf(["a", "b", "c"]), "a, b or c");
});

test("wrapped text keeps every word and no line is too long", () => {
  fc.assert(
    fc.property(fc.lorem({ maxCount: 40 }), fc.integer({ min: 20, max: 100 }), (long, columns) => {
      const wrapped = text.wrapText(long, columns);
      assert.equal(wrapped.split(/\s+/), long.split(/\s+/));
      for (const line of wrapped.split("\n")) assert.ok(line.length <= columns);
    }),
  );
});

test.run();
