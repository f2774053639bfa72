// C9: whoever has unregistered a consumer may free it: no handler runs on it any more.
// runs alone
// time limit: 60 s

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { PRESET_NAMES, strategyOf } from "../../src/engine/presets.js";
import type { Runner } from "../../src/engine/runner.js";
import { sleep } from "../helpers/engine.js";
import { type LateHit, until, withLateHit } from "../helpers/late-hit.js";
import { NOT_MS } from "../helpers/puppets.js";

/** Offset in a consumer: assembly/uprobe/consumer.ts. */
const CONSUMER_STATE = 4;

const inSections = (preset: (typeof PRESET_NAMES)[number]): boolean =>
  (strategyOf(preset) & abi.READERS_MASK) !== abi.READERS_REFCOUNT;

const one = (runner: Runner, consumer: number) => runner.command(abi.OP_UNREGISTER, consumer);
async function many(runner: Runner, consumer: number): Promise<number> {
  const list = await runner.command(abi.OP_ALLOC, 64);
  runner.memory.store(list, consumer);
  return runner.command(abi.OP_UNREGISTER_MANY, list, 1);
}

for (const preset of PRESET_NAMES) {
  for (const [how, unregister] of [
    ["one", one],
    ["many", many],
  ] as const) {
    test(`C9: ${preset}: unregistering ${how} returns after the handler that had begun`, () => {
      const erased = inSections(preset);
      const body = async ({ memory, consumer, isGone, release }: LateHit) => {
        await sleep(NOT_MS);
        assert.not(isGone());
        const state = memory.load(consumer + CONSUMER_STATE);
        assert.is(state, abi.CONSUMER_MAGIC, "its memory is not given back before");
        await release();
        await until("unregister returns", isGone);
      };
      return withLateHit(preset, 64, body, { unregister, erased });
    });
  }
}

test.run();
