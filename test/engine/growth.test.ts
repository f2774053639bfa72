// The hash of breakpoints grows while a hit stands in the old one: that stays until the hit has
// ended, and says nothing any more.
// runs alone
// time limit: 60 s

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { sleep } from "../helpers/engine.js";
import { type Farewell, type LateHit, until, withLateHit } from "../helpers/late-hit.js";
import { NOT_MS } from "../helpers/puppets.js";

/** Offsets: assembly/mm/mm.ts, and assembly/uprobe/breakpoints.ts. */
const MM_BREAKPOINTS = 88;
const COUNT_PLACES = 12;
const PLACES = 64;
const PLACE_BYTES = 16;
const TAIL = 16;
/** More than seven eighths of the first table. */
const PROBES = 60;

/** The hit's consumer stays; nobody is unregistered. */
const STAYS: Farewell = { unregister: async () => 0, erased: false };

/** What a table names: addresses with a uprobe, and with a count. */
function named({ memory }: LateHit, block: number): { uprobes: number[]; counts: number[] } {
  const uprobes: number[] = [];
  const counts: number[] = [];
  const places = memory.load(block + COUNT_PLACES) + TAIL;
  for (let i = 0; i < places; i++) {
    const place = block + PLACES + i * PLACE_BYTES;
    const vaddr = memory.load(place);
    if (memory.load(place + 4) !== 0) uprobes.push(vaddr);
    if (memory.load(place + 8) !== 0) counts.push(vaddr);
  }
  return { uprobes: uprobes.sort(), counts: counts.sort() };
}

async function registerMany(late: LateHit, from: number, count: number): Promise<void> {
  const { runner, inode } = late;
  const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
  for (let i = from; i < from + count; i++) {
    await runner.command(abi.OP_REGISTER, inode, i * 16, sink);
  }
}

test("fastest: an outgrown table is empty, and stays as long as a hit may stand in it", () => {
  const body = async (late: LateHit) => {
    const { memory, mm, release } = late;
    await registerMany(late, 1, 50);
    const old = memory.load(mm + MM_BREAKPOINTS);
    const before = named(late, old);
    assert.is(before.uprobes.length, 51);
    assert.is(before.counts.length, 50, "all but the one whose handler is not a count");
    // The command that outgrows it is answered only when the old one has been freed.
    const { runner, inode } = late;
    const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
    let last: Promise<number> | undefined;
    for (let i = 51; memory.load(mm + MM_BREAKPOINTS) === old; i++) {
      assert.ok(i < PROBES, "it is outgrown");
      let over = false;
      last = runner.command(abi.OP_REGISTER, inode, i * 16, sink).finally(() => {
        over = true;
      });
      await until("registered, or outgrown", () => {
        return over || memory.load(mm + MM_BREAKPOINTS) !== old;
      });
    }
    const block = memory.load(mm + MM_BREAKPOINTS);
    await sleep(NOT_MS);
    assert.is(memory.load(old + COUNT_PLACES), 64, "it is still a table");
    assert.equal(named(late, old), { uprobes: [], counts: [] });
    const after = named(late, block);
    for (const vaddr of before.uprobes) assert.ok(after.uprobes.includes(vaddr));
    const { liveObjects } = memory.arena();
    await release();
    await last;
    assert.is(memory.arena().liveObjects, liveObjects - 1, "it is given back");
    assert.equal(memory.faults(), {});
  };
  return withLateHit("fastest", 128, body, STAYS);
});

test.run();
