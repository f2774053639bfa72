// Per-CPU counters of consumers (mm/slots.ts): packed, zeroed, reused, and given back.

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { Probes, VADDR } from "../helpers/probes.js";

const OPTIONS = { strategy: abi.PRESET_SPECULATIVE, uprobesMax: 2048, cpus: 2 };

/** Where CPU 0's count of a consumer is. */
const slotOf = (p: Probes, consumer: number): number =>
  p.memory.load(consumer + abi.CONSUMER_NHIT_SLOT);

test("slots: neighbours for one CPU, never on one line for two", () => {
  const p = new Probes(abi.INSN_NOP, OPTIONS);
  const sink = p.sink();
  const slots = Array.from({ length: 600 }, (_, i) => slotOf(p, p.register(i, sink)));
  const owner = new Map<number, number>();
  for (const slot of slots) {
    for (let cpu = 0; cpu < OPTIONS.cpus + 2; cpu++) {
      const line = Math.floor((slot + cpu * abi.NHIT_STRIDE) / abi.LINE);
      assert.is(owner.get(line) ?? cpu, cpu, "two CPUs on a line");
      owner.set(line, cpu);
    }
  }
  assert.is(new Set(slots).size, slots.length);
  assert.is((slots[1] ?? 0) - (slots[0] ?? 0), 8);
});

test("slots: a slot is reused, zeroed on every CPU", () => {
  const p = new Probes(abi.INSN_NOP, OPTIONS);
  assert.is(p.map(), 0);
  const sink = p.sink();
  const keep = p.register(16, sink);
  const first = p.register(0, sink);
  const slot = slotOf(p, first);
  const task = p.task(VADDR);
  for (const cpu of [0, 1]) {
    p.call(cpu, "trigger_speculative", task, 5);
    assert.is(p.memory.load64(slot + cpu * abi.NHIT_STRIDE), 5);
  }
  assert.is(p.unregister(first), 0);
  const second = p.register(0, sink);
  assert.is(slotOf(p, second), slot);
  for (const cpu of [0, 1]) assert.is(p.memory.load64(slot + cpu * abi.NHIT_STRIDE), 0);
  assert.is(p.unregister(keep), 0);
});

test("slots: what came with the probes has gone with the last of them", () => {
  const p = new Probes(abi.INSN_NOP, OPTIONS);
  const sink = p.sink();
  const before = p.memory.arena();
  for (let round = 0; round < 3; round++) {
    const consumers = Array.from({ length: 1100 }, (_, i) => p.register(i, sink));
    const order = round === 0 ? consumers : consumers.toReversed();
    for (const consumer of order) assert.is(p.unregister(consumer), 0);
    p.ok(abi.OP_SYNCHRONIZE);
    const after = p.memory.arena();
    assert.equal([after.liveBytes, after.liveObjects], [before.liveBytes, before.liveObjects]);
  }
});

test.run();
