// C3: a uprobe whose last reference is gone stays dead, and its key gets another one.
// runs alone
// time limit: 60 s

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { strategyOf, type PresetName } from "../../src/engine/presets.js";
import type { Runner } from "../../src/engine/runner.js";
import { runFor, withThreads } from "../helpers/engine.js";
import { FILE_BYTES, Probes, VADDR } from "../helpers/probes.js";
import { leftovers } from "../helpers/solo.js";

/** Presets whose hits read in sections, one of each kind of readers. */
const IN_SECTIONS = ["srcu", "tasks-trace", "fastest"] as const;
const BY_REFERENCE = ["spinlock", "rwlock"] as const;

/** Offsets in a uprobe and in a consumer: assembly/uprobe/table.ts, consumer.ts. */
const REF = 24;
const CONSUMER_UPROBE = 12;

/** Set by the first fact that does not hold: what goes on from there may never end. */
let broken = false;
function fact(title: string, body: () => void | Promise<void>): void {
  test(title, async () => {
    assert.not(broken, "not tried");
    broken = true;
    await body();
    broken = false;
  });
}

function probesOf(preset: PresetName): Probes {
  const p = new Probes(abi.INSN_NOP, { strategy: strategyOf(preset) });
  assert.is(p.map(), 0);
  return p;
}
const uprobeOf = (p: Probes, consumer: number): number => p.memory.load(consumer + CONSUMER_UPROBE);
const refs = (p: Probes, consumer: number): number => p.memory.load(uprobeOf(p, consumer) + REF);

for (const preset of IN_SECTIONS) {
  fact(`C3: ${preset}: each registration keeps one reference, the tree none`, () => {
    const p = probesOf(preset);
    const sink = p.sink();
    const first = p.register(16, sink);
    assert.is(refs(p, first), 1);
    const second = p.register(16, sink);
    assert.is(uprobeOf(p, second), uprobeOf(p, first));
    assert.is(refs(p, first), 2);
    assert.is(p.unregister(second), 0);
    assert.is(refs(p, first), 1);
    assert.is(p.unregister(first), 0);
    p.ok(abi.OP_SYNCHRONIZE);
    assert.equal(p.memory.uprobes(), { alive: 0, inTree: 0 });
    p.checkFaults();
  });

  fact(
    `C3: ${preset}: a dead uprobe in the tree gives its key to the next, and is not used`,
    () => {
      const p = probesOf(preset);
      const sink = p.sink();
      const old = p.register(16, sink);
      const dead = uprobeOf(p, old);
      // As between the last put and the erase.
      p.memory.store(dead + REF, 0);
      const consumer = p.register(16, sink);
      assert.is.not(uprobeOf(p, consumer), dead);
      assert.is(refs(p, consumer), 1);
      assert.is(p.memory.load(dead + REF), 0, "zero is final");
      assert.is(p.memory.load(dead), dead, "in no tree any more");
      assert.is(p.op(abi.OP_CHECK_TREE), 1);
      assert.equal(p.memory.uprobes(), { alive: 2, inTree: 1 });
      // And the put goes on: nothing is erased again.
      p.memory.store(dead + REF, 1);
      assert.is(p.unregister(old), 0);
      assert.equal(p.memory.uprobes(), { alive: 1, inTree: 1 });
      assert.is(p.op(abi.OP_CHECK_TREE), 1);
      assert.is(p.unregister(consumer), 0);
      p.ok(abi.OP_SYNCHRONIZE);
      assert.equal(p.memory.uprobes(), { alive: 0, inTree: 0 });
      p.checkFaults();
    },
  );

  fact(`C3: ${preset}: a new mapping passes a dead uprobe by`, () => {
    const p = probesOf(preset);
    const consumer = p.register(16, p.sink());
    const dead = uprobeOf(p, consumer);
    p.memory.store(dead + REF, 0);
    assert.is(p.map(VADDR + FILE_BYTES), 0);
    assert.is(p.memory.load(dead + REF), 0);
    assert.not(p.isTrap(VADDR + FILE_BYTES + 16));
    p.checkFaults();
  });
}

for (const preset of BY_REFERENCE) {
  fact(`C3: ${preset}: the tree keeps a reference until the last consumer leaves`, () => {
    const p = probesOf(preset);
    const sink = p.sink();
    const first = p.register(16, sink);
    assert.is(refs(p, first), 1);
    const second = p.register(16, sink);
    assert.is(refs(p, first), 1);
    assert.is(p.unregister(first), 0);
    assert.is(refs(p, second), 1);
    assert.is(p.unregister(second), 0);
    assert.equal(p.memory.uprobes(), { alive: 0, inTree: 0 });
    p.checkFaults();
  });
}

for (const preset of [...BY_REFERENCE, ...IN_SECTIONS]) {
  fact(`${preset}: a consumer whose registration has ended is ENOENT, not another's uprobe`, () => {
    const p = probesOf(preset);
    const sink = p.sink();
    const consumer = p.register(16, sink);
    const other = p.register(16, sink);
    assert.is(p.unregister(consumer), 0);
    assert.is(p.unregister(consumer), abi.EINVAL);
    assert.is(p.unregister(other), 0);
    p.checkFaults();
  });
}

for (const preset of IN_SECTIONS) {
  fact(`C3: ${preset}: references come and go on two CPUs, and no uprobe comes back`, () => {
    const body = async (runner: Runner) => {
      const { memory } = runner;
      await runner.format({ cpus: 2, strategy: strategyOf(preset), uprobesMax: 32 });
      const inode = await runner.command(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_NOP);
      const before = leftovers(memory);
      const job = { entry: "torture_lifetimes", args: [inode] };
      const done = await runFor(runner, [job, job], 500, abi.PCPU_OPS);
      assert.ok(done.every((n) => n > 0));
      assert.equal(memory.faults(), {});
      await runner.command(abi.OP_SYNCHRONIZE);
      assert.is(await runner.command(abi.OP_CHECK_TREE), 0);
      assert.equal(leftovers(memory), before);
      assert.equal(memory.faults(), {});
    };
    return withThreads(2, body, { leaveLimitMs: 2000 });
  });
}

test.run();
