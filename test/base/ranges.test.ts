import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { CPUS_LIMIT, doublingCounts, formatRanges, parseCpuList } from "../../src/base/ranges.js";
import { CPUS_MAX } from "../../src/engine/abi.js";
import { messageOf } from "../helpers/throws.js";

test("the limit of a CPU list is the engine's", () => {
  assert.is(CPUS_LIMIT, CPUS_MAX);
});

test("1-8,10 is 1 to 8 and 10", () => {
  assert.equal(parseCpuList("1-8,10"), [1, 2, 3, 4, 5, 6, 7, 8, 10]);
  assert.equal(parseCpuList("4"), [4]);
  assert.equal(parseCpuList(" 2 , 1 - 3 "), [1, 2, 3]);
  assert.equal(parseCpuList("256"), [256]);
});

test("numbers come sorted, each once", () => {
  assert.equal(parseCpuList("3,1,2-3,1"), [1, 2, 3]);
});

test("a list that was printed is read back", () => {
  const numbers = fc.uniqueArray(fc.integer({ min: 1, max: CPUS_LIMIT }), { minLength: 1 });
  fc.assert(
    fc.property(numbers, (list) => {
      const sorted = [...list].sort((a, b) => a - b);
      assert.equal(parseCpuList(formatRanges(list)), sorted);
    }),
  );
});

test("what is no list is refused with the valid form, in one line", () => {
  const wrong = {
    "": "neither N nor FROM-TO",
    "1-": "neither N nor FROM-TO",
    "-1": "neither N nor FROM-TO",
    a: "neither N nor FROM-TO",
    "1,,2": "neither N nor FROM-TO",
    "1.5": "neither N nor FROM-TO",
    "0": "starts below 1",
    "0-3": "starts below 1",
    "8-1": "runs backwards",
    "257": "goes beyond 256",
    "1-1000": "goes beyond 256",
    "99999999999": "neither N nor FROM-TO",
  };
  for (const [text, why] of Object.entries(wrong)) {
    const message = messageOf("E_VALUE", () => parseCpuList(text));
    assert.match(message, why);
    assert.match(message, "valid are numbers and ranges within 1..256, as in 1-8,10");
    assert.match(message, text === "" ? '--cpus ""' : `--cpus ${text}`);
  }
});

test("any text is either a list within the limit or one of our errors", () => {
  const characters = fc.constantFrom(..."0123456789-, a");
  fc.assert(
    fc.property(fc.string({ unit: characters, maxLength: 12 }), (text) => {
      let list: number[];
      try {
        list = parseCpuList(text);
      } catch (error) {
        assert.is((error as { code?: string }).code, "E_VALUE");
        return;
      }
      assert.ok(list.length > 0 && list.every((n) => n >= 1 && n <= CPUS_LIMIT));
    }),
  );
});

test("a sweep without a list doubles up to the maximum", () => {
  assert.equal(doublingCounts(1), [1]);
  assert.equal(doublingCounts(2), [1, 2]);
  assert.equal(doublingCounts(6), [1, 2, 4, 6]);
  assert.equal(doublingCounts(8), [1, 2, 4, 8]);
});

test.run();
