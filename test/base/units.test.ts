import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as units from "../../src/base/units.js";
import { messageOf } from "../helpers/throws.js";

test("fixed is printf's width and precision", () => {
  assert.is(units.fixed(1.5, 8, 3), "   1.500");
  assert.is(units.fixed(123456.5, 5, 1), "123456.5");
});

test("rates keep three digits in the unit that fits", () => {
  assert.is(units.formatRate(24_534_000), "24.5M/s");
  assert.is(units.formatRate(999_960), "1.00M/s");
  assert.is(units.formatRate(310_000), "310k/s");
  assert.is(units.formatRate(12), "12.0/s");
  assert.is(units.formatRate(2.5e9), "2.50G/s");
  assert.is(units.formatRate(0), "0.00/s");
});

test("times keep three digits in the unit that fits", () => {
  assert.is(units.formatNs(8.1), "8.10 ns");
  assert.is(units.formatNs(999.6), "1.00 us");
  assert.is(units.formatNs(1.5e6), "1.50 ms");
  assert.is(units.formatNs(2e9), "2.00 s");
});

test("counts are grouped in threes, sizes are powers of 1024", () => {
  assert.is(units.formatCount(12345678), "12 345 678");
  assert.is(units.formatCount(999), "999");
  assert.is(units.formatBytes(512), "512 bytes");
  assert.is(units.formatBytes(1536), "1.50 KiB");
  assert.is(units.formatBytes(64 * 1024 ** 2), "64.0 MiB");
});

test("a ratio by nothing is n/a", () => {
  assert.is(units.formatRatio(1.469), "1.47x");
  assert.is(units.formatRatio(Infinity), "n/a");
});

test("whole numbers within the rule are read back, others name what is valid", () => {
  const rule = { option: "-p", min: 1, max: 256 };
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 256 }), (n) => units.parseWhole(`${n}`, rule) === n),
  );
  for (const text of ["0", "257", "1.5", "-1", "1e2", "0x10", "x", "", "NaN", "Infinity", "1 2"]) {
    const message = messageOf("E_VALUE", () => units.parseWhole(text, rule));
    assert.is(message, `-p ${text === "" ? '""' : text}: valid are whole numbers 1..256`);
  }
});

test("numbers may have a fraction, and name their unit when they are wrong", () => {
  const rule = { option: "-d", min: 0.01, max: 3600, unit: "seconds" };
  assert.is(units.parseNumber("0.5", rule), 0.5);
  assert.is(units.parseNumber(".5", rule), 0.5);
  assert.is(units.parseNumber("3", rule), 3);
  for (const text of ["0", "-1", "3601", "1e1", "", "1s", "."]) {
    const message = messageOf("E_VALUE", () => units.parseNumber(text, rule));
    assert.match(message, "valid are numbers 0.01..3600 (seconds)");
  }
});

test.run();
