// Seeded random numbers: the same seed gives the same sequence on every engine and platform, so a
// seed in a report is enough to repeat a run. 32-bit integers only (Math.imul), no floating state.

import { WasmprobeError } from "./errors.js";
import { at } from "./list.js";

export const SEED_MAX = 0xffff_ffff;

export interface Random {
  /** The seed this generator was made from. */
  readonly seed: number;
  /** The next 32 bits, 0..2^32-1. */
  u32(): number;
  /** Uniform over 0..bound-1, without the bias of a modulo. */
  below(bound: number): number;
  /** Uniform over 0 <= x < 1, with 32 bits of resolution. */
  unit(): number;
  /** True with probability `p`. */
  chance(p: number): boolean;
  /** One element; throws on an empty list. */
  pick<T>(list: readonly T[]): T;
  /** A shuffled copy. */
  shuffle<T>(list: readonly T[]): T[];
  /** An independent generator, e.g. one per worker. */
  fork(): Random;
}

/** splitmix32: spreads a seed over the state of the actual generator, so that 0 is a good seed. */
function splitmix32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = state ^ (state >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z ^= z >>> 15;
    z = Math.imul(z, 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
}

/** xoshiro128** by Blackman and Vigna. */
export function createRandom(seed: number): Random {
  const spread = splitmix32(seed);
  let [a, b, c, d] = [spread(), spread(), spread(), spread()];

  function u32(): number {
    const times5 = Math.imul(b, 5);
    const result = Math.imul((times5 << 7) | (times5 >>> 25), 9) >>> 0;
    const t = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = (d << 11) | (d >>> 21);
    return result;
  }

  function below(bound: number): number {
    if (!Number.isInteger(bound) || bound < 1 || bound > 2 ** 32) {
      throw new RangeError(`random below ${bound}: the bound must be 1..2^32`);
    }
    // Refuse the last, incomplete block of 2^32, or small results would be more likely.
    const limit = 2 ** 32 - (2 ** 32 % bound);
    let value = u32();
    while (value >= limit) value = u32();
    return value % bound;
  }

  const random: Random = {
    seed: seed >>> 0,
    u32,
    below,
    unit: () => u32() / 2 ** 32,
    chance: (p) => u32() / 2 ** 32 < p,
    pick(list) {
      return at(list, below(list.length));
    },
    shuffle(list) {
      const copy = [...list];
      for (let i = copy.length - 1; i > 0; i--) {
        const j = below(i + 1);
        [copy[i], copy[j]] = [at(copy, j), at(copy, i)];
      }
      return copy;
    },
    fork: () => createRandom(u32()),
  };
  return random;
}

/** A seed from the user: decimal or 0x..., 32 bits. */
export function parseSeed(text: string, option = "--seed"): number {
  const valid = /^(\d+|0x[0-9a-f]+)$/i.test(text.trim());
  const value = valid ? Number(text) : NaN;
  if (!(value <= SEED_MAX)) {
    throw new WasmprobeError(
      "E_VALUE",
      `${option} ${text || '""'}: valid are whole numbers 0..${SEED_MAX}, also as 0x...`,
    );
  }
  return value;
}

/** A seed for a run that named none; `entropy` is anything that differs between runs. */
export function seedFrom(entropy: number): number {
  return splitmix32(Math.floor(entropy) ^ Math.floor(entropy / 2 ** 32))();
}
