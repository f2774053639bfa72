import { test } from "uvu";
import * as assert from "uvu/assert";
import { findCase, LADDER_PRESETS } from "../../../src/harness/cases.js";
import { formatTrade, TRADE_BENCHES } from "../../../src/harness/format/trade.js";
import { measured, resultOf, timed } from "../../helpers/results.js";

const rowsOf = (text: string): string[][] =>
  text
    .split("\n")
    .slice(2)
    .map((line) => line.split("|").map((cell) => cell.trim()));

test("all that the table needs can be measured", () => {
  for (const name of [...TRADE_BENCHES.one, ...TRADE_BENCHES.all]) assert.ok(findCase(name), name);
});

test("a row a preset: its read section, hits, grace period and registrations", () => {
  const { latency } = timed("x", 2);
  if (latency === undefined) throw new Error("not timed");
  const runs = [
    measured("rcu-read-srcu", null, 1, 50e6),
    measured("uprobe-nop", "srcu", 1, 20e6),
    measured("uprobe-nop", "srcu", 2, 20e6, { sharedCore: true }),
    timed("gp-srcu", 2),
    measured("register", "srcu", 2, 1e6, { latency: { ...latency, p50: 210, p99: 450 } }),
  ];
  const rows = rowsOf(formatTrade(resultOf(runs), 2));
  assert.equal(
    rows.map((cells) => cells[1]),
    LADDER_PRESETS.map((name) => `\`${name}\``),
  );
  const srcu = rows.find((cells) => cells[1] === "`srcu`");
  assert.equal(srcu?.slice(2, -1), [
    "SRCU",
    "20.0 ns",
    "50.0 ns",
    "100 ns?",
    "4.00 us, 15.0 us",
    "210 ns, 450 ns",
    "-",
  ]);
});

test("where writers wait for a lock there is no grace period", () => {
  const rows = rowsOf(formatTrade(resultOf([]), 4));
  assert.equal(
    rows.map((cells) => cells[6]),
    LADDER_PRESETS.map((name) => (name === "spinlock" || name === "rwlock" ? "none" : "-")),
  );
});

test.run();
