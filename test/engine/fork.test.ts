// fork of an address space: what the child has of its parent's probes, and that a probe which comes
// or goes meanwhile is in both or in none (C12).
// runs alone
// time limit: 60 s

import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { instantiateEngine, isErrno } from "../../src/engine/instance.js";
import { entryOf, PRESET_NAMES, strategyOf, type PresetName } from "../../src/engine/presets.js";
import { sleep, WASM, withThreads } from "../helpers/engine.js";
import { FILE_BYTES, Probes, VADDR } from "../helpers/probes.js";
import { NOT_MS } from "../helpers/puppets.js";
import { all, leftovers } from "../helpers/solo.js";

const SECOND = VADDR + 2 * FILE_BYTES;
const LATER = VADDR + 4 * FILE_BYTES;
/** Offset in the probe table: assembly/uprobe/table.ts. */
const DUP_MMAP_SEM = 128;

class Forks extends Probes {
  readonly preset: PresetName;

  constructor(preset: PresetName, options = {}) {
    super(abi.INSN_PUSH, { strategy: strategyOf(preset), ...options });
    this.preset = preset;
  }

  fork(mm = this.mm): number {
    return this.op(abi.OP_MM_FORK, mm);
  }

  /** What comes of a call, and whether its lookup fell back to mmap_lock (new tasks' own do). */
  hit(vaddr: number, mm: number): { handled: boolean; locked: boolean } {
    const task = this.ok(abi.OP_TASK_CREATE, mm, 1, vaddr, 16, 1, 1);
    const counts = this.trigger(task, 1, entryOf(this.preset, "trigger"));
    const own = (strategyOf(this.preset) & abi.LOOKUP_PER_THREAD) !== 0;
    const locked = !own && this.memory.load64(task + abi.TASK_FALLBACKS) > 0;
    this.ok(abi.OP_TASK_DESTROY, task);
    assert.equal(counts, all(counts.handled === 1 ? "handled" : "no-probe"));
    return { handled: counts.handled === 1, locked };
  }
}

for (const preset of PRESET_NAMES) {
  test(`fork: ${preset}: the child has its parent's mappings, with the breakpoints`, () => {
    const p = new Forks(preset);
    assert.is(p.map(), 0);
    assert.is(p.map(SECOND, p.mm, 256, 1024), 0);
    const sink = p.sink();
    const consumer = p.register(1040, sink);
    const child = p.fork();
    assert.not(isErrno(child));
    for (const mm of [p.mm, child]) {
      for (const vaddr of [VADDR + 1040, SECOND + 16]) {
        assert.ok(p.isTrap(vaddr, mm));
        assert.equal(p.hit(vaddr, mm), { handled: true, locked: false });
      }
      assert.not(p.isTrap(VADDR, mm));
    }
    assert.is(p.hits(sink), 4);
    assert.is(p.op(abi.OP_MMAP, child, p.inode, SECOND, 16, 0), abi.EEXIST);

    assert.is(p.unregister(consumer), 0);
    for (const mm of [p.mm, child]) assert.not(p.isTrap(VADDR + 1040, mm));
    assert.is(p.hit(VADDR + 1040, child).handled, false);
    p.checkFaults();
  });

  test(`fork: ${preset}: later probes are in both, a later mapping is in one`, () => {
    const p = new Forks(preset);
    assert.is(p.map(), 0);
    const child = p.fork();
    const grandchild = p.fork(child);
    const sink = p.sink();
    const consumers = [p.register(16, sink), p.register(32, sink)];
    for (const mm of [p.mm, child, grandchild]) {
      assert.ok(p.isTrap(VADDR + 16, mm) && p.isTrap(VADDR + 32, mm));
    }
    assert.is(p.map(LATER, child), 0);
    assert.ok(p.isTrap(LATER + 16, child));
    assert.is(p.task(LATER, p.mm), abi.EINVAL, "not in the parent");
    assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR), 0);
    assert.ok(p.isTrap(VADDR + 16, child));
    assert.equal(p.hit(VADDR + 16, child), { handled: true, locked: false });
    for (const consumer of consumers) assert.is(p.unregister(consumer), 0);
    assert.not(p.isTrap(VADDR + 16, child) || p.isTrap(LATER + 16, child));
    p.checkFaults();
  });

  test(`C11: ${preset}: a probe of the parent only is filtered once in the child, and gone`, () => {
    const p = new Forks(preset);
    assert.is(p.map(), 0);
    const [mine, theirs] = [p.sink(), p.sink()];
    const consumer = p.register(16, mine, { mm: p.mm });
    const child = p.fork();
    assert.ok(p.isTrap(VADDR + 16, child), "copied");
    const task = p.task(VADDR + 16, child);
    const trigger = entryOf(preset, "trigger");
    assert.equal(p.trigger(task, 1, trigger), all("filtered"));
    assert.not(p.isTrap(VADDR + 16, child));
    assert.equal(p.trigger(task, 3, trigger), all("no-probe", 3));
    assert.ok(p.isTrap(VADDR + 16), "the parent's stays");
    assert.is(p.hit(VADDR + 16, p.mm).handled, true);
    // One for all: it stays in the child, whatever the other says.
    const second = p.fork();
    const everywhere = p.register(16, theirs);
    assert.equal(p.trigger(task, 2, trigger), all("handled", 2));
    assert.is(p.hit(VADDR + 16, second).handled, true);
    assert.is(p.unregister(everywhere), 0);
    assert.not(p.isTrap(VADDR + 16, child) || p.isTrap(VADDR + 16, second));
    assert.is(p.unregister(consumer), 0);
    assert.equal([p.hits(mine), p.hits(theirs)], [1, 3]);
    p.checkFaults();
  });

  test(`fork: ${preset}: a child goes with all it has, also one that found no room`, () => {
    const p = new Forks(preset, { memoryBytes: 2 * 65_536 });
    assert.is(p.map(VADDR, p.mm, 1024), 0);
    assert.is(p.map(SECOND, p.mm, 1024), 0);
    const sink = p.sink();
    const consumers = Array.from({ length: 10 }, (_, i) => p.register(i * 16, sink));
    const before = leftovers(p.memory);
    const child = p.fork();
    assert.not(isErrno(child));
    p.ok(abi.OP_MM_DESTROY, child);
    assert.equal(leftovers(p.memory), before);
    // For the tasks below, one at a time.
    const spare = p.ok(abi.OP_ALLOC, abi.TASK_BYTES);
    const children: number[] = [];
    for (;;) {
      const at = leftovers(p.memory);
      const next = p.fork();
      if (isErrno(next)) {
        assert.is(next, abi.ENOMEM);
        assert.equal(leftovers(p.memory), at);
        break;
      }
      children.push(next);
    }
    assert.ok(children.length > 1);
    p.ok(abi.OP_FREE, spare, abi.TASK_BYTES);
    for (const one of children) assert.ok(p.isTrap(VADDR + 16, one) && p.isTrap(SECOND, one));
    for (const consumer of consumers) assert.is(p.unregister(consumer), 0);
    for (const one of children) {
      assert.not(p.isTrap(VADDR + 16, one));
      p.ok(abi.OP_MM_DESTROY, one);
    }
    p.checkFaults();
  });
}

for (const preset of ["rwlock", "speculative", "fastest"] as const) {
  test(`C12: ${preset}: fork waits for a registration that is looking for its places`, () =>
    withThreads(2, async (runner) => {
      await runner.format({ cpus: 2, strategy: strategyOf(preset) });
      const { memory } = runner;
      const parent = await runner.command(abi.OP_MM_CREATE, 1);
      const module = new WebAssembly.Module(readFileSync(WASM));
      const host = instantiateEngine(module, memory.memory, () => performance.now());
      assert.is(host.exports.engine_attach(memory.base, 1), 0);
      const sem = memory.load(memory.base + abi.HDR_TABLE) + DUP_MMAP_SEM;
      host.workload("down_write")(sem);
      let over = false;
      const child = runner.command(abi.OP_MM_FORK, parent).finally(() => {
        over = true;
      });
      await sleep(NOT_MS);
      assert.not(over);
      host.workload("up_write")(sem);
      assert.not(isErrno(await child));
    }));
}

test.run();
