// The runner on real threads: commands, formats and runs.
// runs alone
// time limit: 120 s

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { sleep } from "../helpers/engine.js";
import { LIMIT_MS, refusal, start, withRunner } from "../helpers/threads.js";

// -- Commands -------------------------------------------------------------------------------------

test("a thousand outstanding commands are all executed, in order", () =>
  withRunner({}, async (runner) => {
    const ended: number[] = [];
    // Blocks of one size lie one after the other: an address tells when it was allocated.
    const addresses = await Promise.all(
      Array.from({ length: 1000 }, (_, i) =>
        runner.command(abi.OP_ALLOC, 64).then((address) => (ended.push(i), address)),
      ),
    );
    assert.equal(ended, [...ended.keys()]);
    assert.is(new Set(addresses).size, 1000);
    assert.equal(
      addresses,
      [...addresses].sort((a, b) => a - b),
    );
    await Promise.all(addresses.map((address) => runner.command(abi.OP_FREE, address, 64)));
    const again = await runner.command(abi.OP_ALLOC, 64);
    assert.is(again, addresses.at(-1), "the last one freed is the first one reused");
  }));

test("arguments that are not given are 0, whatever the slot held before", () =>
  withRunner({}, async (runner) => {
    const inode = await runner.command(abi.OP_INODE_CREATE, 4096, abi.INSN_NOP);
    const sink = await runner.command(abi.OP_SINK_CREATE);
    // Every slot of the ring has been used, with all of its arguments.
    for (let i = 0; i < 70; i++) await runner.tryCommand(abi.OP_FREE, 0, -7, -7, -7, -7, -7, -7);
    const mm = await runner.command(abi.OP_MM_CREATE, 2);
    await runner.command(abi.OP_MMAP, mm, inode, 0x400000, 4096);
    await runner.command(abi.OP_REGISTER, inode, 0, sink);
    const task = await runner.command(abi.OP_TASK_CREATE, mm, 5, 0x400000, 16, 1, 1);
    const run = await runner.run([{ entry: "trigger_spinlock", args: [task], count: 10 }]);
    await run.done;
    assert.is(runner.memory.task(task).handled, 10);
  }));

test("a command that fails says what failed, with numbers", () =>
  withRunner({ uprobesMax: 3 }, async (runner) => {
    const inode = await runner.command(abi.OP_INODE_CREATE, 4096, abi.INSN_NOP);
    const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
    const made = await runner.command(abi.OP_REGISTER_MANY, inode, 0, 16, 10, sink);
    assert.is(made, 3, "as many as there was room for");
    const full = await refusal(
      "E_FULL",
      runner.command(abi.OP_REGISTER, inode, 1600, sink, 0, 0, 0),
    );
    assert.match(full, /table is full/);
    assert.match(full, /\b3 probes/);
    assert.is(await runner.tryCommand(abi.OP_REGISTER, inode, 1600, sink), abi.ENOSPC);

    const { liveBytes } = runner.memory.arena();
    const out = await refusal("E_FULL", runner.command(abi.OP_ALLOC, 1_234_567));
    assert.match(out, /1234567 bytes/);
    assert.match(out, new RegExp(`\\b${liveBytes}\\b`));
    const wrong = await refusal("E_FULL", runner.command(4711));
    assert.match(wrong, /4711/);
  }));

test("after close a command, a run and a format reject, and close again is nothing", async () => {
  const runner = await start();
  await runner.close();
  assert.match(await refusal("E_STATE", runner.command(abi.OP_NOP)), /closed/);
  assert.match(
    await refusal("E_STATE", runner.run([{ entry: "import_count", args: [] }])),
    /closed/,
  );
  assert.match(await refusal("E_STATE", runner.format({ cpus: 1 })), /closed/);
  await runner.close();
});

test("close completes or rejects every command that is outstanding", async () => {
  const runner = await start();
  const outstanding = Array.from({ length: 300 }, () => runner.command(abi.OP_ALLOC, 64));
  const settled = Promise.allSettled(outstanding);
  await runner.close();
  assert.is((await settled).length, 300);
});

test("a command that makes the housekeeper trap is an error that names it", async () => {
  const runner = await start({ leaveLimitMs: LIMIT_MS });
  const trapped = runner.command(abi.OP_SINK_DESTROY, 0x7fff_fff0);
  const waiting = runner.command(abi.OP_NOP);
  assert.match(await refusal("E_WORKER", trapped), /the housekeeper ended: .*out of bounds/);
  assert.match(await refusal("E_WORKER", waiting), /housekeeper/);
  assert.match(await refusal("E_WORKER", runner.command(abi.OP_NOP)), /housekeeper/);
  await runner.close();
});

// -- Formats --------------------------------------------------------------------------------------

test("CPUs other than 1 to 256 are refused before any thread is started", async () => {
  for (const cpus of [0, -1, 257, 1.5, Number.NaN]) {
    const line = await refusal("E_VALUE", start({ cpus }));
    assert.match(line, `${cpus}`);
    assert.match(line, /1 to 256/);
  }
});

test("too little memory is refused with the numbers", async () => {
  const line = await refusal("E_FULL", start({ cpus: 100, memoryBytes: 65_536 }));
  assert.match(line, /100 CPUs in 65536 bytes/);
  const much = await refusal("E_PLATFORM", start({ memoryBytes: 2 ** 42 }));
  assert.match(much, `${2 ** 42} bytes`);
});

test("a format that fails leaves an engine that says so, and the next one works", () =>
  withRunner({ memoryBytes: 65_536 }, async (runner) => {
    await refusal("E_FULL", runner.format({ cpus: 200 }));
    const line = await refusal("E_STATE", runner.command(abi.OP_NOP));
    assert.match(line, /format/);
    assert.match(
      await refusal("E_STATE", runner.run([{ entry: "import_count", args: [] }])),
      /format/,
    );
    await refusal("E_VALUE", runner.format({ cpus: 0 }));
    await runner.format({ cpus: 1 });
    assert.is(await runner.command(abi.OP_NOP), 0);
  }));

test("two engines formatted one after the other leave nothing behind", () =>
  withRunner({}, async (runner) => {
    const { memory } = runner;
    const state = () => ({ ...memory.arena(), ...memory.uprobes(), ...memory.faults() });
    const fresh = state();
    for (const [round, cpus] of [2, 1, 2, 3, 1].entries()) {
      const strategy = round % 2 === 0 ? abi.PRESET_RWLOCK : abi.PRESET_SPINLOCK;
      await runner.format({ cpus, strategy });
      assert.is(runner.cpus, cpus);
      assert.equal(state(), fresh, `round ${round}`);
      for (let cpu = 0; cpu < cpus; cpu++) {
        assert.is(memory.load64(memory.perCpu(abi.PCPU_OPS, cpu)), 0);
        assert.is(memory.load64(memory.perCpu(abi.PCPU_COUNT, cpu)), 0);
      }
      const inode = await runner.command(abi.OP_INODE_CREATE, 4096, abi.INSN_NOP);
      const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_COUNT);
      await runner.command(abi.OP_REGISTER_MANY, inode, 0, 16, 20, sink);
      const words = Array.from({ length: cpus }, (_, cpu) => memory.perCpu(abi.PCPU_COUNT, cpu));
      const jobs = words.map((p) => ({ entry: "count_percpu", args: [p], count: 1000 }));
      const run = await runner.run(jobs);
      await run.done;
      assert.equal(
        words.map((p) => memory.load64(p)),
        words.map(() => 1000),
      );
      assert.is(memory.uprobes().inTree, 20);
    }
  }));

test("an engine cannot be formatted under a run", () =>
  withRunner({}, async (runner) => {
    const { memory } = runner;
    const p = memory.perCpu(abi.PCPU_COUNT, 0);
    const run = await runner.run([{ entry: "count_percpu", args: [p] }]);
    assert.match(await refusal("E_STATE", runner.format({ cpus: 1 })), /a run is under way/);
    assert.is(await runner.command(abi.OP_NOP), 0, "the engine is as it was");
    await run.stop();
    assert.is(memory.load64(memory.perCpu(abi.PCPU_OPS, 0)), memory.load64(p));
  }));

// -- Runs -----------------------------------------------------------------------------------------

test("more jobs than CPUs, and none at all, are refused", () =>
  withRunner({}, async (runner) => {
    const job = { entry: "import_count", args: [] };
    assert.match(await refusal("E_VALUE", runner.run([job, job, job])), /3 jobs for 2 CPUs/);
    assert.match(await refusal("E_VALUE", runner.run([])), /0 jobs/);
    await (
      await runner.run([{ ...job, count: 5 }])
    ).done;
  }));

test("an entry that does not exist is one clear line, and the runner is as it was", () =>
  withRunner({}, async (runner) => {
    const jobs = ["import_count", "import_cuont"].map((entry) => ({ entry, args: [] }));
    assert.match(await refusal("E_ABI", runner.run(jobs)), /"import_cuont"/);
    await (
      await runner.run([{ entry: "import_count", args: [], count: 5 }])
    ).done;
  }));

test("a second run while one is under way is refused, and the first goes on", () =>
  withRunner({}, async (runner) => {
    const p = runner.memory.perCpu(abi.PCPU_COUNT, 0);
    const job = { entry: "count_percpu", args: [p] };
    const run = await runner.run([job]);
    assert.match(await refusal("E_STATE", runner.run([job])), /under way/);
    const before = runner.memory.load64(p);
    while (runner.memory.load64(p) === before) await sleep(1);
    await run.stop();
    await run.stop();
  }));

test("each CPU does exactly its count, and stops where it was asked to", () =>
  withRunner({}, async (runner) => {
    const { memory } = runner;
    const words = [0, 1].map((cpu) => memory.perCpu(abi.PCPU_COUNT, cpu));
    const job = (cpu: number, count: number) => ({
      entry: "count_percpu",
      args: [words[cpu] as number],
      count,
    });
    for (const [a, b] of [
      [1, 1_000_000],
      [16, 17],
      [12_345, 1],
    ] as const) {
      for (const p of words) memory.store(p, 0);
      const run = await runner.run([job(0, a), job(1, b)]);
      await run.done;
      assert.equal(
        words.map((p) => memory.load64(p)),
        [a, b],
      );
    }
  }));

test("a workload that traps is an error that names CPU and entry; the others leave", () =>
  withRunner({ leaveLimitMs: 5000 }, async (runner) => {
    const { memory } = runner;
    const p = memory.perCpu(abi.PCPU_COUNT, 0);
    const run = await runner.run([
      { entry: "count_percpu", args: [p] },
      { entry: "count_atomic", args: [0x7fff_fff0] },
    ]);
    const line = await refusal("E_WORKER", run.done);
    assert.match(line, /CPU 1 failed in count_atomic: .*out of bounds/);
    assert.match(await refusal("E_WORKER", run.stop()), /CPU 1 failed/);
    assert.is(memory.load64(memory.perCpu(abi.PCPU_OPS, 0)), memory.load64(p), "CPU 0 has left");
    const next = await runner.run([{ entry: "count_percpu", args: [p], count: 10 }]);
    await next.done;
  }));

test("a CPU that waits for a lock nobody will release is an error that names it", async () => {
  const runner = await start({ leaveLimitMs: LIMIT_MS });
  const area = await runner.command(abi.OP_ALLOC, abi.LOCK_AREA_BYTES);
  runner.memory.store(area, 1);
  const run = await runner.run([
    { entry: "import_count", args: [] },
    { entry: "bench_qspinlock", args: [area] },
  ]);
  await sleep(50);
  const line = await refusal("E_WORKER", run.stop());
  assert.match(line, /CPU 1 \(in bench_qspinlock\) did not leave the run within 2 s/);
  assert.not.match(line, /CPU 0/);
  assert.is(await refusal("E_WORKER", run.done), line);
  assert.is(await refusal("E_WORKER", runner.command(abi.OP_NOP)), line, "for good");
  await runner.close();
});

test("one CPU fails while another is stuck: the first is named, in bounded time", async () => {
  const runner = await start({ leaveLimitMs: LIMIT_MS });
  const area = await runner.command(abi.OP_ALLOC, abi.LOCK_AREA_BYTES);
  runner.memory.store(area, 1);
  const run = await runner.run([
    { entry: "bench_qspinlock", args: [area] },
    { entry: "count_atomic", args: [0x7fff_fff0] },
  ]);
  assert.match(await refusal("E_WORKER", run.done), /CPU 1 failed in count_atomic/);
  await runner.close();
});

test.run();
