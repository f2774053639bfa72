import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { csvLine, parseCsv } from "../../src/base/csv.js";

test("records of any text are read back as they were written", () => {
  const field = fc.string({ unit: fc.constantFrom('"', ",", "\n", "\r", "a", " "), maxLength: 5 });
  const records = fc.array(fc.array(field, { minLength: 1, maxLength: 4 }));
  fc.assert(
    fc.property(records, fc.constantFrom("\n", "\r\n"), fc.boolean(), (list, end, closed) => {
      const written = list.map(csvLine).join(end) + (closed && list.length > 0 ? end : "");
      assert.equal(parseCsv(written), list);
    }),
  );
});

test("quotes are doubled inside a quoted field", () => {
  assert.equal(parseCsv('a,"""south of 140k"" execs/s"\n'), [["a", '"south of 140k" execs/s']]);
  assert.equal(parseCsv("a,\n,b"), [
    ["a", ""],
    ["", "b"],
  ]);
  assert.equal(parseCsv(""), []);
});

test.run();
