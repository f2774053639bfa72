import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { SEED_MAX, createRandom, parseSeed, seedFrom } from "../../src/base/random.js";
import { messageOf } from "../helpers/throws.js";

const seeds = fc.integer({ min: 0, max: SEED_MAX });

test("a seed gives this sequence, on every engine", () => {
  const random = createRandom(1);
  assert.equal([random.u32(), random.u32(), random.u32()], [393288148, 2174103013, 3814759091]);
});

test("the same seed gives the same sequence, another seed another", () => {
  fc.assert(
    fc.property(seeds, seeds, (a, b) => {
      const draw = (seed: number): number[] => Array.from({ length: 4 }, createRandom(seed).u32);
      assert.equal(draw(a), draw(a));
      if (a !== b) assert.not.equal(draw(a), draw(b));
    }),
  );
});

test("below stays under its bound and reaches every value of a small one", () => {
  fc.assert(
    fc.property(seeds, fc.integer({ min: 1, max: 2 ** 32 }), (seed, bound) => {
      const value = createRandom(seed).below(bound);
      assert.ok(Number.isInteger(value) && value >= 0 && value < bound);
    }),
  );
  const random = createRandom(7);
  // 200 draws miss one of 5 values with a probability of 5 * 0.8^200 < 1e-18.
  const seen = new Set(Array.from({ length: 200 }, () => random.below(5)));
  assert.equal([...seen].sort(), [0, 1, 2, 3, 4]);
});

test("below refuses bounds that have no numbers under them", () => {
  for (const bound of [0, -1, 1.5, NaN, 2 ** 33]) {
    assert.throws(() => createRandom(1).below(bound), /bound/);
  }
});

test("unit lies in 0 <= x < 1; chance 0 never comes, chance 1 always", () => {
  const random = createRandom(3);
  for (let i = 0; i < 1000; i++) {
    const x = random.unit();
    assert.ok(x >= 0 && x < 1);
    assert.not(random.chance(0));
    assert.ok(random.chance(1));
  }
});

test("a shuffled list is a permutation, and the original stays", () => {
  fc.assert(
    fc.property(seeds, fc.array(fc.integer()), (seed, list) => {
      const before = [...list];
      const shuffled = createRandom(seed).shuffle(list);
      assert.equal(list, before);
      assert.equal([...shuffled].sort(), [...list].sort());
    }),
  );
});

test("pick takes from the list and throws on an empty one", () => {
  assert.ok(["a", "b"].includes(createRandom(5).pick(["a", "b"])));
  assert.throws(() => createRandom(5).pick([]), /bound/);
});

test("a fork goes its own way without disturbing repeatability", () => {
  const [a, b] = [createRandom(9), createRandom(9)];
  assert.is(a.fork().u32(), b.fork().u32());
  assert.is(a.u32(), b.u32());
});

test("seeds are read as decimal or hexadecimal, 32 bits", () => {
  assert.is(parseSeed("0"), 0);
  assert.is(parseSeed("0xff"), 255);
  assert.is(parseSeed("4294967295"), SEED_MAX);
  for (const text of ["", "-1", "1.5", "1e3", "x", "4294967296", "0x100000000", "0x"]) {
    assert.match(
      messageOf("E_VALUE", () => parseSeed(text)),
      "valid are whole numbers 0..4294967295",
    );
  }
});

test("a drawn seed is one that --seed accepts", () => {
  for (const entropy of [0, 1, 1e12, 1e15 + 1, 0.5]) {
    const seed = seedFrom(entropy);
    assert.is(parseSeed(String(seed)), seed);
  }
  assert.is.not(seedFrom(1), seedFrom(2));
});

test.run();
