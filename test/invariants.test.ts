// The table of invariants (test/README.md) names what there is: tests, torture and twins.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { TORTURE_NAMES } from "../src/cli/options.js";
import { ROOT } from "./helpers/root.js";
import type { Mutant } from "./mutants/types.js";

interface Row {
  number: string;
  tests: string[];
  twins: { name: string; unkillable: boolean }[];
}

const rows: Row[] = readFileSync(join(ROOT, "test", "README.md"), "utf8")
  .split("\n")
  .filter((line) => /^\| C\d+ /.test(line))
  .map((line) => {
    const [, number = "", , tests = "", twins = ""] = line.split("|").map((cell) => cell.trim());
    return {
      number,
      tests: [...tests.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ""),
      twins: [...twins.matchAll(/(\[?)`([^`]+)`/g)].map((match) => ({
        name: match[2] ?? "",
        unkillable: match[1] === "[",
      })),
    };
  });

async function allMutants(): Promise<Map<string, Mutant>> {
  const dir = join(ROOT, "build", "test", "mutants");
  const all = new Map<string, Mutant>();
  for (const file of readdirSync(dir)) {
    if (!file.endsWith(".js")) continue;
    const module = (await import(pathToFileURL(join(dir, file)).href)) as { mutants?: Mutant[] };
    for (const mutant of module.mutants ?? []) all.set(mutant.name, mutant);
  }
  return all;
}

test("every invariant that is claimed has a row with a test and a twin", () => {
  const numbers = rows.map((row) => row.number);
  const claimed = Array.from({ length: 21 }, (_, i) => `C${i + 1}`);
  assert.equal(numbers, claimed);
  for (const row of rows) assert.ok(row.tests.length > 0 && row.twins.length > 0, row.number);
});

test("every test of a row exists", () => {
  for (const { number, tests } of rows) {
    for (const name of tests) {
      const torture = name.replace("torture ", "");
      const there = name.startsWith("torture ")
        ? (TORTURE_NAMES as readonly string[]).includes(torture)
        : existsSync(join(ROOT, "test", `${name}.test.ts`));
      assert.ok(there, `${number}: ${name}`);
    }
  }
});

test("every twin of a row exists, and is run unless it is in brackets", async () => {
  const mutants = await allMutants();
  for (const { number, twins } of rows) {
    for (const { name, unkillable } of twins) {
      const mutant = mutants.get(name);
      assert.ok(mutant, `${number}: ${name}`);
      assert.is(mutant.unkillable !== undefined, unkillable, `${number}: ${name}`);
    }
  }
});

test.run();
