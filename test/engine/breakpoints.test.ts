// The hash of breakpoints (preset fastest) against the maps: what is hit, what memory it takes.

import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { FILE_BYTES, Probes, VADDR } from "../helpers/probes.js";
import { all, leftovers } from "../helpers/solo.js";

const FASTEST = { strategy: abi.PRESET_FASTEST };

/** What comes of a call by the preset's own entry, and whether its lookup needed the lock. */
function hit(p: Probes, vaddr: number): { handled: boolean; locked: boolean } {
  const task = p.ok(abi.OP_TASK_CREATE, p.mm, 1, vaddr, 16, 1, 1);
  const counts = p.trigger(task, 1, "trigger_fastest");
  const locked = p.memory.load64(task + abi.TASK_FALLBACKS) > 0;
  p.ok(abi.OP_TASK_DESTROY, task);
  const handled = counts.handled === 1;
  assert.equal(counts, all(handled ? "handled" : "no-probe"));
  return { handled, locked };
}

test("breakpoints: whatever is mapped and registered in any order, what is there is hit", () => {
  const step = fc.record({
    at: fc.nat(3),
    site: fc.nat(7),
    what: fc.constantFrom("map", "register"),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const p = new Probes(abi.INSN_PUSH, FASTEST);
      const sink = p.sink();
      const mapped = new Set<number>();
      const consumers = new Map<number, number>();
      for (const { at, site, what } of steps) {
        const vaddr = VADDR + at * FILE_BYTES;
        const consumer = consumers.get(site);
        if (what === "map" && mapped.delete(vaddr)) p.ok(abi.OP_MUNMAP, p.mm, vaddr);
        else if (what === "map") {
          assert.is(p.map(vaddr), 0);
          mapped.add(vaddr);
        } else if (consumer !== undefined) {
          assert.is(p.unregister(consumer), 0);
          consumers.delete(site);
        } else consumers.set(site, p.register(site * 16, sink));
        for (const there of mapped) {
          for (let i = 0; i < 8; i++) {
            const { handled, locked } = hit(p, there + i * 16);
            assert.is(handled, consumers.has(i), `site ${i} at ${there.toString(16)}`);
            assert.not(locked, "a breakpoint that is there is in the hash");
          }
        }
      }
      p.checkFaults();
    }),
    { numRuns: 40, seed: Number(process.env["WASMPROBE_SEED"] ?? 1) },
  );
});

test("breakpoints: a thousand probes are all in the hash while it grows, and when they go", () => {
  const p = new Probes(abi.INSN_NOP, { ...FASTEST, uprobesMax: 2048 });
  const before = leftovers(p.memory);
  assert.is(p.map(), 0);
  const sink = p.sink();
  const consumers: number[] = [];
  for (let i = 0; i < 1000; i++) {
    consumers.push(p.register(i * 4, sink));
    assert.equal(hit(p, VADDR + i * 4), { handled: true, locked: false });
    const earlier = VADDR + ((i * 7) % (i + 1)) * 4;
    assert.equal(hit(p, earlier), { handled: true, locked: false });
  }
  for (const [i, consumer] of consumers.entries()) {
    assert.is(p.unregister(consumer), 0);
    assert.is(hit(p, VADDR + i * 4).handled, false);
  }
  p.ok(abi.OP_SINK_DESTROY, sink);
  p.ok(abi.OP_MUNMAP, p.mm, VADDR);
  p.ok(abi.OP_SYNCHRONIZE);
  p.ok(abi.OP_MM_DESTROY, p.mm);
  assert.is(leftovers(p.memory)["liveObjects"], (before["liveObjects"] ?? 0) - 2);
});

test("breakpoints: a program that maps at ever new addresses takes no more memory for it", () => {
  const p = new Probes(abi.INSN_NOP, FASTEST);
  const sink = p.sink();
  for (let site = 0; site < 16; site++) p.register(site * 16, sink);
  const bytes: number[] = [];
  for (let i = 0; i < 2000; i++) {
    const vaddr = VADDR + i * FILE_BYTES;
    assert.is(p.map(vaddr), 0);
    assert.equal(hit(p, vaddr + 240), { handled: true, locked: false });
    p.ok(abi.OP_MUNMAP, p.mm, vaddr);
    p.ok(abi.OP_SYNCHRONIZE);
    bytes.push(p.memory.arena().liveBytes);
  }
  assert.is(Math.max(...bytes.slice(100)), Math.max(...bytes.slice(0, 100)));
});

test("breakpoints: what is not unmapped stays: a mapping does not begin at every address", () => {
  const p = new Probes(abi.INSN_NOP, FASTEST);
  assert.is(p.map(), 0);
  p.register(64, p.sink());
  for (const into of [1, 64, FILE_BYTES - 1]) {
    assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR + into), abi.EINVAL);
    assert.equal(hit(p, VADDR + 64), { handled: true, locked: false });
  }
});

test("breakpoints: another uprobe at the same address counts for its own consumer", () => {
  const p = new Probes(abi.INSN_NOP, FASTEST);
  assert.is(p.map(), 0);
  const sinks = [p.sink(), p.sink(), p.sink()];
  for (const sink of sinks) {
    const consumer = p.register(64, sink);
    assert.equal(hit(p, VADDR + 64), { handled: true, locked: false });
    assert.is(p.unregister(consumer), 0);
    assert.is(hit(p, VADDR + 64).handled, false);
  }
  assert.equal(
    sinks.map((sink) => p.hits(sink)),
    [1, 1, 1],
  );
});

// Consumers beside the first one, each with what it sees of two hits.
for (const [what, wish, kind, seen] of [
  ["a second consumer", {}, abi.HANDLER_COUNT, 2],
  ["a histogram", {}, abi.HANDLER_HIST, 2],
  ["a consumer of another task", { task: 99 }, abi.HANDLER_COUNT, 0],
  ["a consumer of one hit", { limit: 1 }, abi.HANDLER_COUNT, 1],
] as const) {
  test(`sole counter: ${what} that comes and goes sees its hits, the first one all`, () => {
    const p = new Probes(abi.INSN_NOP, FASTEST);
    assert.is(p.map(), 0);
    const task = p.task();
    const first = p.sink();
    const other = p.sink(kind);
    const hits = () => assert.equal(p.trigger(task, 2, "trigger_fastest"), all("handled", 2));
    p.register(0, first);
    hits();
    const second = p.register(0, other, wish);
    hits();
    assert.equal([p.hits(first), p.hits(other)], [4, seen]);
    assert.is(p.unregister(second), 0);
    hits();
    assert.equal([p.hits(first), p.hits(other)], [6, seen]);
    // And alone: by the loop itself or not, it sees the same.
    const third = p.register(16, other, wish);
    p.trigger(p.task(VADDR + 16), 2, "trigger_fastest");
    assert.is(p.hits(other), 2 * seen);
    assert.is(p.unregister(third), 0);
    assert.is(hit(p, VADDR + 16).handled, false);
    p.checkFaults();
  });
}

test("registration waits for a grace period before it says that the table is full", () => {
  const p = new Probes(abi.INSN_NOP, { strategy: abi.PRESET_TASKS_TRACE, uprobesMax: 1 });
  const sink = p.sink();
  for (let i = 0; i < 20; i++) {
    const consumer = p.register(i * 16, sink);
    assert.ok(consumer > 0, `registration ${i}: ${consumer}`);
    assert.is(p.register(i * 16 + 1, sink), abi.ENOSPC);
    assert.is(p.unregister(consumer), 0);
  }
  p.ok(abi.OP_SYNCHRONIZE);
  assert.equal(p.memory.uprobes(), { alive: 0, inTree: 0 });
});

test.run();
