// A task's own breakpoints: found without the table, and forgotten in time.
// runs alone
// time limit: 60 s

import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { identityGap } from "../../src/engine/memory.js";
import { entryOf } from "../../src/engine/presets.js";
import { startThreads } from "../../src/engine/threads.js";
import { nodePlatform } from "../../src/platform/node.js";
import { sleep, WASM } from "../helpers/engine.js";
import { FILE_BYTES, Probes, TASK_TEXT, VADDR } from "../helpers/probes.js";
import { all, leftovers } from "../helpers/solo.js";
import { XolArea } from "../helpers/xol.js";

const PRESETS = [
  ["siglock", abi.PRESET_SIGLOCK],
  ["signal-flag", abi.PRESET_SIGNAL_FLAG],
] as const;
const OTHER = 0x500000;

for (const [preset, strategy] of PRESETS) {
  const entry = `trigger_${preset.replace("-", "_")}`;
  const many = `${entry}_many`;
  const mapped = (options = {}): Probes => {
    const p = new Probes(abi.INSN_PUSH, { strategy, arch: abi.ARCH_ARM64, ...options });
    assert.is(p.map(), 0);
    return p;
  };
  /** Hits of a task whose uprobe was looked for in the table. */
  const lookups = (p: Probes, task: number): number => p.memory.load64(task + abi.TASK_FALLBACKS);

  test(`${preset}: only a task's first hit of an address is looked for in the table`, () => {
    const p = mapped();
    const before = leftovers(p.memory);
    const sink = p.sink();
    for (let site = 0; site < 50; site++) p.register(site * 16, sink);
    const tasks = [p.task(VADDR, p.mm, 1, 50), p.task(VADDR, p.mm, 2, 50)];
    for (const task of tasks) {
      assert.equal(p.trigger(task, 2000, many), all("handled", 2000));
      assert.is(lookups(p, task), 50);
      assert.equal(p.trigger(task, 2000, many), all("handled", 2000));
      assert.is(lookups(p, task), 50);
    }
    assert.is(p.hits(sink), 8000);
    for (const task of tasks) p.ok(abi.OP_TASK_DESTROY, task);
    assert.is(p.memory.uprobes().alive, 50, "the table has them still");
    p.checkFaults();
    assert.not.equal(leftovers(p.memory), before);
  });

  test(`C9: ${preset}: no task keeps an unregistered uprobe, nor hits it`, () => {
    const p = mapped();
    const sink = p.sink();
    const tasks = [p.task(), p.task(VADDR + 16), p.task()];
    const area = p.register(32, sink);
    p.call1(VADDR + 32); // from its first step on the address space has an XOL area
    p.unregister(area);
    const before = leftovers(p.memory);
    for (let round = 1; round <= 3; round++) {
      const consumers = [0, 16].map((offset) => p.register(offset, sink));
      for (const task of tasks) assert.equal(p.trigger(task, 5, entry), all("handled", 5));
      for (const consumer of consumers) assert.is(p.unregister(consumer), 0);
      assert.equal(p.memory.uprobes(), { alive: 0, inTree: 0 });
      for (const task of tasks) {
        assert.equal(p.trigger(task, 5, entry), all("no-probe", 5));
        assert.is(lookups(p, task), round, "each time it is found anew");
      }
      assert.equal(leftovers(p.memory), before);
    }
    p.checkFaults();
  });

  test(`C12: ${preset}: what is mapped in the place of another file has its own probes`, () => {
    const p = mapped();
    const [old, fresh] = [p.sink(), p.sink()];
    const next = p.ok(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_PUSH);
    const consumers = [p.register(0, old), p.register(0, fresh, {}, next)];
    const task = p.task();
    const elsewhere = p.task();
    for (const one of [task, elsewhere]) {
      assert.equal(p.trigger(one, 3, entry), all("handled", 3));
    }
    assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR), 0);
    assert.is(p.map(VADDR, p.mm, FILE_BYTES, 0, next), 0);
    assert.is(p.fetch(task, VADDR), abi.INSN_TRAP, "the text lies where the old one lay");
    for (const one of [task, elsewhere]) {
      assert.equal(p.trigger(one, 3, entry), all("handled", 3));
    }
    assert.equal([p.hits(old), p.hits(fresh)], [6, 6]);
    for (const consumer of consumers) assert.is(p.unregister(consumer), 0);
    assert.equal(p.memory.uprobes(), { alive: 0, inTree: 0 });
    p.checkFaults();
  });

  test(`${preset}: munmap forgets what lies in the mapping, first and last byte included`, () => {
    const p = mapped();
    assert.is(p.map(VADDR + FILE_BYTES), 0);
    const sink = p.sink();
    const offsets = [0, FILE_BYTES - 1];
    const consumers = offsets.map((offset) => p.register(offset, sink));
    const vaddrs = [VADDR - 0, VADDR + FILE_BYTES].flatMap((at) => offsets.map((o) => at + o));
    const tasks = vaddrs.map((vaddr) => p.task(vaddr));
    // One task that has entries of both mappings.
    const both = p.task(VADDR, p.mm, 1, 2, FILE_BYTES - 1);
    assert.is(p.trigger(both, 100, many).handled, 100);
    for (const task of tasks) assert.is(p.trigger(task, 1, entry).handled, 1);
    assert.is(p.op(abi.OP_MUNMAP, p.mm, VADDR), 0);
    assert.is(p.trigger(tasks[2] ?? 0, 1, entry).handled, 1);
    assert.equal(
      [2, 3].map((i) => lookups(p, tasks[i] ?? 0)),
      [1, 1],
      "the neighbour stays",
    );
    for (const consumer of consumers) assert.is(p.unregister(consumer), 0);
    assert.equal(p.memory.uprobes(), { alive: 0, inTree: 0 });
    p.checkFaults();
  });

  test(`C11: ${preset}: a consumer that has enough takes its breakpoint, the next one hits`, () => {
    const p = mapped();
    const sink = p.sink();
    const limited = p.register(0, sink, { limit: 2 });
    const task = p.task();
    assert.equal(p.trigger(task, 3, entry), {
      ...all("handled", 2),
      triggers: 3,
      missed: { ...all("handled").missed, "no-probe": 1 },
    });
    const next = p.register(0, sink);
    assert.equal(p.trigger(task, 3, entry), all("handled", 3));
    assert.is(p.unregister(limited), 0);
    assert.equal(p.trigger(task, 3, entry), all("handled", 3));
    assert.is(p.unregister(next), 0);
    assert.equal(p.trigger(task, 3, entry), all("no-probe", 3));
    assert.equal(p.memory.uprobes(), { alive: 0, inTree: 0 });
    p.checkFaults();
  });

  test(`${preset}: entries of one address space are not another's`, () => {
    const p = mapped();
    const second = p.ok(abi.OP_MM_CREATE, 4);
    assert.is(p.map(VADDR, second), 0);
    assert.is(p.map(OTHER), 0);
    const sink = p.sink();
    const mine = p.register(0, sink, { mm: p.mm });
    const theirs = p.register(0, sink, { mm: second });
    const tasks = [p.task(VADDR), p.task(OTHER), p.task(VADDR, second)];
    const handled = () => tasks.map((task) => p.trigger(task, 2, entry).handled);
    assert.equal(handled(), [2, 2, 2]);
    assert.is(p.unregister(mine), 0);
    assert.equal(handled(), [0, 0, 2]);
    assert.equal(
      tasks.map((task) => lookups(p, task)),
      [1, 1, 1],
    );
    const again = p.register(0, sink);
    assert.equal(handled(), [2, 2, 2]);
    assert.equal(
      tasks.map((task) => lookups(p, task)),
      [2, 2, 1],
    );
    for (const consumer of [theirs, again]) assert.is(p.unregister(consumer), 0);
    assert.equal(handled(), [0, 0, 0]);
    assert.equal(p.memory.uprobes(), { alive: 0, inTree: 0 });
    p.checkFaults();
  });

  test(`${preset}: a task that ends gives its entries back, also after the probe is gone`, () => {
    const p = mapped();
    const sink = p.sink();
    const [first, last] = [p.register(0, sink), p.register(16, sink)];
    p.call1(VADDR);
    const before = leftovers(p.memory);
    const task = p.task(VADDR, p.mm, 1, 2);
    assert.is(p.trigger(task, 100, many).handled, 100);
    assert.is(p.unregister(first), 0);
    p.ok(abi.OP_TASK_DESTROY, task);
    assert.equal(p.register(0, sink) > 0, true);
    assert.equal(leftovers(p.memory), before);
    assert.is(p.unregister(last), 0);
    p.checkFaults();
  });

  test(`${preset}: without memory for an entry all hits are looked for, and handled`, () => {
    const p = mapped({ memoryBytes: 1 << 20 });
    p.register(0, p.sink());
    p.call1(VADDR);
    const task = p.task();
    for (let bytes = 1 << 19; bytes >= 64; bytes >>= 1) {
      while (p.op(abi.OP_ALLOC, bytes) !== abi.ENOMEM);
    }
    assert.equal(p.trigger(task, 10, entry), all("handled", 10));
    assert.is(lookups(p, task), 10);
    p.checkFaults();
  });

  test(`${preset}: a step goes back to its last slot, and writes it only if it must`, () => {
    const p = mapped();
    p.register(0, p.sink());
    const task = p.task();
    const area = () => new XolArea(p.memory, p.mm);
    const hit = () => assert.equal(p.trigger(task, 1, entry), all("handled"));
    const slots = () => [1, 2].map((nr) => area().opcode(nr, abi.XOL_SLOT_BYTES_ARM64));
    hit(); // without an entry yet
    area().hold(1);
    hit();
    area().release(1);
    assert.equal(slots(), [abi.INSN_PUSH, abi.INSN_PUSH]);
    const page = area().at + abi.XOL_PAGE;
    p.memory.store(page + 4, 0);
    hit();
    assert.equal(slots(), [0, abi.INSN_PUSH], "the first free slot was not used");
    p.memory.store(page + 8, abi.INSN_RET);
    hit();
    assert.equal(slots(), [0, abi.INSN_PUSH], "another instruction was there");
    // Its upper bytes are no instruction: they stay what they were, unless the slot is written.
    p.memory.store(page + 8, 0x100 | abi.INSN_PUSH);
    hit();
    assert.is(p.memory.load(page + 8), abi.INSN_PUSH);
    area().hold(2);
    hit();
    assert.equal(slots(), [abi.INSN_PUSH, abi.INSN_PUSH], "somebody else has the slot");
    p.checkFaults();
  });
}

/** Some 50 ms. */
const LONG_UNITS = 20_000_000;

for (const [preset, strategy] of PRESETS) {
  test(`C12: ${preset}: a late hit keeps nothing of a probe that is going`, async () => {
    const runner = await startThreads({
      platform: nodePlatform,
      cpus: 1,
      strategy,
      uprobesMax: 4,
      trapUnits: LONG_UNITS,
      memoryBytes: 4 << 20,
      leaveLimitMs: 2000,
      wasm: pathToFileURL(WASM),
    });
    try {
      const { memory, host } = runner;
      const inode = await runner.command(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_NOP);
      const mms = [0, 0];
      for (const i of [0, 1]) {
        mms[i] = await runner.command(abi.OP_MM_CREATE, 1);
        await runner.command(abi.OP_MMAP, mms[i], inode, VADDR, FILE_BYTES, 0);
      }
      // Breakpoints are removed from the last mapping first; from the other one they cannot be.
      const [locked = 0, last = 0] = mms;
      const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
      const consumer = await runner.command(abi.OP_REGISTER, inode, 0, sink);
      const task = await runner.command(abi.OP_TASK_CREATE, last, 1, VADDR, 16, 1, 1);
      const text = (memory.load(task + TASK_TEXT) + VADDR) >>> 0;
      const bytes = new Uint8Array(memory.memory.buffer);
      host.workload("down_write")(locked);
      const entry = entryOf(preset, "trigger");
      const run = await runner.run([{ entry, args: [task], count: 1 }]);
      while (memory.task(task).triggers === 0) await sleep(1);
      await sleep(2); // it has trapped, and takes its time
      const gone = runner.command(abi.OP_UNREGISTER, consumer);
      while (bytes[text] === abi.INSN_TRAP) await sleep(1);
      await sleep(150); // it goes on, and has to wait for the unregistration
      host.workload("up_write")(locked);
      assert.is(await gone, 0);
      await run.done;
      assert.equal(memory.uprobes(), { alive: 0, inTree: 0 });
      assert.is(identityGap(memory.task(task)), 0);
      assert.equal(memory.faults(), {});
    } finally {
      await runner.close();
    }
  });
}

test.run();
