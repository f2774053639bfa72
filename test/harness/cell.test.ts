// Cells on an engine of this thread (test/helpers/solo.ts): what is set up, what is counted, and
// that a contradiction is an error and no figure.

import { test } from "uvu";
import * as assert from "uvu/assert";
import { WasmprobeError, type ErrorCode } from "../../src/base/errors.js";
import * as abi from "../../src/engine/abi.js";
import { strategyOf } from "../../src/engine/presets.js";
import { CASES, type Case, findCase, PRESET_NAMES } from "../../src/harness/cases.js";
import type { PresetName } from "../../src/harness/cases.js";
import { type Cell, cellMemoryBytes, type CellSpec, setUpCell } from "../../src/harness/cell.js";
import { identityHolds } from "../../src/harness/result.js";
import { messageOf } from "../helpers/throws.js";
import { leftovers, Solo } from "../helpers/solo.js";

const N = 100; // what Solo does of a job without a count

function specOf(name: string, more: Partial<CellSpec> = {}): CellSpec {
  const bench = findCase(name) as Case;
  const preset = bench.presets[0] ?? null;
  return { bench, preset, cpus: 1, probes: 1, trapNs: 0, seed: 1, ...more };
}

async function ran(spec: CellSpec, solo = new Solo()): Promise<{ cell: Cell; solo: Solo }> {
  const cell = await setUpCell(solo, spec, 1);
  await solo.run(cell.jobs);
  return { cell, solo };
}

for (const bench of CASES) {
  const presets: readonly (PresetName | null)[] = bench.presets.length > 0 ? bench.presets : [null];
  for (const preset of presets) {
    const name = preset === null ? bench.name : `${bench.name} ${preset}`;
    test(`${name}: every operation of every CPU is counted exactly`, async () => {
      for (const cpus of [1, 2, 5]) {
        const { cell } = await ran(specOf(bench.name, { preset, cpus }));
        assert.is(cell.jobs.length, cpus);
        // Where all but CPU 0 read, only CPU 0 does operations.
        const working = bench.readers === undefined ? cpus : 1;
        assert.equal(cell.progress(), Array(working).fill(N));
        if (working < cpus) assert.is(cell.reads?.(), N * (cpus - 1));
        assert.is(cell.drops(), 0);
        const counts = cell.counts();
        const unprobed = bench.name === "usermode-count";
        assert.is(counts.triggers, N * working);
        assert.is(counts.handled, unprobed ? 0 : N * working);
        assert.equal(counts.missed, unprobed ? { "no-probe": N * cpus } : {});
        assert.ok(identityHolds(counts));
      }
    });
  }
}

test("a grace period that is not counted, or a section, is an error", async () => {
  for (const cpu of [0, 1]) {
    const { cell, solo } = await ran(specOf("gp-tasks-trace", { cpus: 2 }));
    cell.counts();
    add64(solo, solo.memory.perCpu(abi.PCPU_COUNT, cpu), -1);
    const line = messageOf("E_FAULT", () => cell.counts());
    assert.match(line, `CPU ${cpu} did 100 operations, memory counted 99`);
  }
});

test("registrations that failed, and probes that stayed, are an error", async () => {
  for (const name of ["register", "unregister-batch"]) {
    const { cell, solo } = await ran(specOf(name, { cpus: 2, probes: 3 }));
    cell.counts();
    assert.is(solo.memory.uprobes().inTree, 3, "the permanent ones");
    const state = cell.jobs[0]?.args[0] as number;
    solo.memory.store(state + abi.REGISTRATION_ERRORS, 2);
    assert.match(
      messageOf("E_FAULT", () => cell.counts()),
      `${name} spinlock on 2 CPUs: 2 registrations failed, 0 probes were left behind`,
    );
    solo.memory.store(state + abi.REGISTRATION_ERRORS, 0);
    const table = solo.memory.header(abi.HDR_TABLE);
    solo.memory.store(table + abi.TABLE_IN_TREE, 4);
    assert.match(
      messageOf("E_FAULT", () => cell.counts()),
      "0 registrations failed, 1 probes were left behind",
    );
  }
});

test("a hit of the others that their consumer did not count is an error there, too", async () => {
  const { cell, solo } = await ran(specOf("register", { cpus: 2 }));
  const task = cell.jobs[1]?.args[0] as number;
  add64(solo, task + abi.TASK_TRIGGERS, 1);
  add64(solo, task + abi.TASK_HANDLED, 1);
  const line = messageOf("E_FAULT", () => cell.counts());
  assert.match(line, "101 hits were handled, the consumer counted 100");
});

test("registration leaves nothing behind, under any preset", async () => {
  for (const preset of findCase("register")?.presets ?? []) {
    const solo = new Solo({ strategy: strategyOf(preset) });
    const before = leftovers(solo.memory);
    const inode = solo.ok(abi.OP_INODE_CREATE, 4096, abi.INSN_NOP);
    const mm = solo.ok(abi.OP_MM_CREATE, 4);
    solo.ok(abi.OP_MMAP, mm, inode, 0x1000, 4096, 0);
    const state = solo.ok(abi.OP_REGISTRATION_CREATE, mm, inode, 0x1000, 0, 16);
    const histogram = solo.ok(abi.OP_ALLOC, abi.HIST_BYTES);
    for (const entry of ["register_probes", "unregister_batches"]) {
      assert.is(solo.call(0, entry, state, histogram, 70), 70);
    }
    solo.ok(abi.OP_FREE, histogram, abi.HIST_BYTES);
    solo.ok(abi.OP_REGISTRATION_DESTROY, state);
    solo.ok(abi.OP_MM_DESTROY, mm);
    solo.ok(abi.OP_INODE_DESTROY, inode);
    solo.ok(abi.OP_SYNCHRONIZE);
    assert.equal(leftovers(solo.memory), before, preset);
    solo.checkFaults();
  }
});

test("registration that finds no memory for its state says so, and keeps none", async () => {
  const solo = new Solo({ memoryBytes: 2 * 65_536 });
  const inode = solo.ok(abi.OP_INODE_CREATE, 4096, abi.INSN_NOP);
  const mm = solo.ok(abi.OP_MM_CREATE, 4);
  solo.ok(abi.OP_MMAP, mm, inode, 0x1000, 4096, 0);
  while (solo.op(abi.OP_ALLOC, 8192) !== abi.ENOMEM);
  const before = leftovers(solo.memory);
  assert.is(solo.op(abi.OP_REGISTRATION_CREATE, mm, inode, 0x1000, 0, 16), abi.ENOMEM);
  assert.equal(leftovers(solo.memory), before);
  solo.checkFaults();
});

test("every grace period is timed, once the recorder was started", async () => {
  for (const name of ["gp-srcu", "gp-tasks-trace", "gp-qsbr"]) {
    const { cell, solo } = await ran(specOf(name, { cpus: 3 }));
    assert.is(cell.recorder?.read().histogram.samples, 0);
    cell.recorder?.start();
    await solo.run(cell.jobs);
    assert.is(cell.recorder?.read().histogram.samples, N);
  }
});

test("with a sample of hits asked for, all are hits and one in a period is timed", async () => {
  for (const { name, presets } of CASES.filter((bench) => bench.family === "uprobe")) {
    for (const preset of presets) {
      for (const probes of [1, 5]) {
        const spec = specOf(name, { preset, probes, cpus: 2, latency: true });
        const solo = new Solo();
        const cell = await setUpCell(solo, spec, 1);
        cell.recorder?.start();
        // Batches shorter than a period, of any size: the rest of a period is carried on.
        const hits = 5 * abi.LATENCY_PERIOD;
        for (let left = hits; left > 0; left -= 237) {
          await solo.run(cell.jobs.map((job) => ({ ...job, count: Math.min(left, 237) })));
        }
        assert.equal(cell.progress(), [hits, hits]);
        assert.is(cell.counts().triggers, 2 * hits);
        assert.is(cell.recorder?.read().histogram.samples, 2 * 5, `${name} ${preset}`);
      }
    }
  }
});

test("without it nothing is timed, and the entry is the plain one", async () => {
  const { cell } = await ran(specOf("uprobe-nop"));
  assert.is(cell.recorder, undefined);
  assert.is(cell.jobs[0]?.entry, "trigger_spinlock");
});

test("a cell with many probes hits all of them, and every call is a hit", async () => {
  for (const preset of ["spinlock", "rwlock"] as const) {
    const { cell, solo } = await ran(specOf("uprobe-push", { preset, cpus: 2, probes: 8 }));
    assert.equal(cell.progress(), [N, N]);
    assert.is(cell.counts().handled, 2 * N);
    assert.equal(solo.memory.uprobes(), { alive: 8, inTree: 8 });
    assert.equal(new Set(cell.jobs.map((job) => job.entry)), new Set([`trigger_${preset}_many`]));
  }
});

test("the preset decides the table's lock and the entry that is specialised for it", async () => {
  for (const preset of ["spinlock", "rwlock"] as const) {
    let kind = -1;
    const solo = new Solo();
    const format = solo.format.bind(solo);
    Object.assign(solo, {
      format: (options: Parameters<Solo["format"]>[0]) => {
        kind = options.strategy ?? -1;
        return format(options);
      },
    });
    const cell = await setUpCell(solo, specOf("uprobe-nop", { preset }), 1);
    assert.is(kind, strategyOf(preset));
    assert.is(cell.jobs[0]?.entry, `trigger_${preset}`);
  }
});

test("the trap's cost goes to the engine in units, for uprobe benches only", async () => {
  const solo = new Solo();
  const units = async (name: string, trapNs: number, unitNs: number): Promise<number> => {
    await setUpCell(solo, specOf(name, { trapNs }), unitNs);
    return solo.memory.header(abi.HDR_TRAP_UNITS);
  };
  assert.is(await units("uprobe-nop", 250, 0.5), 500);
  assert.is(await units("uprobe-nop", 1, 50), 1, "never rounded to raw");
  assert.is(await units("uprobe-nop", 0, 0.5), 0);
  assert.is(await units("usermode-count", 250, 0.5), 0);
  assert.is(await units("lock-mutex", 250, 0.5), 0);
});

test("setting up a cell leaves nothing of the one before", async () => {
  const solo = new Solo();
  await ran(specOf("uprobe-nop", { probes: 50, cpus: 3 }), solo);
  const { cell } = await ran(specOf("count-shared", { cpus: 2 }), solo);
  assert.equal(solo.memory.uprobes(), { alive: 0, inTree: 0 });
  assert.is(solo.cpus, 2);
  assert.is(cell.counts().handled, 2 * N);
});

test("hits are progress, triggers without a handler are drops and have a cause", async () => {
  const { cell, solo } = await ran(specOf("uprobe-nop", { cpus: 2 }));
  const task = cell.jobs[1]?.args[0] as number;
  add64(solo, task + abi.TASK_TRIGGERS, 7);
  add64(solo, task + abi.TASK_MISSED_NO_PROBE, 5);
  add64(solo, task + abi.TASK_FILTERED, 2);
  assert.equal(cell.progress(), [N, N]);
  assert.is(cell.drops(), 7);
  assert.equal(cell.counts(), {
    triggers: 2 * N + 7,
    handled: 2 * N,
    filtered: 2,
    missed: { "no-probe": 5 },
    fallbacks: 0,
    retries: 0,
    steps: 0,
  });
});

function add64(solo: Solo, address: number, n: number): void {
  Atomics.add(solo.memory.i64, address >> 3, BigInt(n));
}

test("fallbacks and retries of lookups are counted, and are no terms of the identity", async () => {
  const { cell, solo } = await ran(specOf("uprobe-nop", { cpus: 2 }));
  const task = cell.jobs[1]?.args[0] as number;
  add64(solo, task + abi.TASK_FALLBACKS, 3);
  add64(solo, task + abi.TASK_RETRIES, 4);
  const { handled, fallbacks, retries } = cell.counts();
  assert.equal([handled, fallbacks, retries], [2 * N, 3, 4]);
});

for (const siteBytes of [1, 16, 64, 4096]) {
  test(`sites ${siteBytes} bytes apart: all are probed, all are hit, in every preset`, async () => {
    for (const preset of PRESET_NAMES) {
      const probes = 50;
      const memoryBytes = cellMemoryBytes(probes, 1, siteBytes);
      const spec = specOf("uprobe-nop", { preset, probes, siteBytes });
      const { cell, solo } = await ran(spec, new Solo({ memoryBytes }));
      const { triggers, handled } = cell.counts();
      assert.equal([triggers, handled, solo.memory.uprobes().inTree], [N, N, probes], preset);
    }
  });
}

for (const [what, offset, gap] of [
  ["a trigger without an outcome", abi.TASK_TRIGGERS, 1],
  ["a handled hit too many", abi.TASK_HANDLED, -1],
  ["a filtered hit too many", abi.TASK_FILTERED, -1],
  ["a miss too many", abi.TASK_MISSED_NO_PROBE, -1],
  ["a miss without consumer too many", abi.TASK_MISSED_NO_CONSUMER, -1],
  ["a SIGTRAP too many", abi.TASK_MISSED_SIGTRAP, -1],
] as const) {
  test(`${what} breaks the counting identity, and is an error`, async () => {
    const { cell, solo } = await ran(specOf("uprobe-ret", { cpus: 2 }));
    cell.counts();
    add64(solo, (cell.jobs[1]?.args[0] as number) + offset, 1);
    const line = messageOf("E_FAULT", () => cell.counts());
    assert.match(
      line,
      `uprobe-ret spinlock on 2 CPUs: triggers and outcomes differ by ${gap} of 20`,
    );
  });
}

test("a hit that its consumer did not count is an error", async () => {
  const { cell, solo } = await ran(specOf("uprobe-nop"));
  const task = cell.jobs[0]?.args[0] as number;
  add64(solo, task + abi.TASK_TRIGGERS, 1);
  add64(solo, task + abi.TASK_HANDLED, 1);
  const line = messageOf("E_FAULT", () => cell.counts());
  assert.match(line, "101 hits were handled, the consumer counted 100");
});

for (const [what, offset, gap] of [
  ["an entry too many", abi.TASK_RETURN_ENTRIES, 1],
  ["a filtered return too many", abi.TASK_RETURN_FILTERED, -1],
  ["a call too deep too many", abi.TASK_RETURN_DEPTH, -1],
  ["an abandoned call too many", abi.TASK_RETURN_LONGJMP, -1],
  ["a return without consumer too many", abi.TASK_RETURN_NO_CONSUMER, -1],
] as const) {
  test(`${what} breaks the identity of returns, and is an error`, async () => {
    const { cell, solo } = await ran(specOf("uretprobe-nop", { cpus: 2 }));
    assert.equal(cell.counts().returns?.entries, cell.counts().returns?.returns);
    add64(solo, (cell.jobs[1]?.args[0] as number) + offset, 1);
    const line = messageOf("E_FAULT", () => cell.counts());
    assert.match(line, `probed calls and their returns differ by ${gap} of`);
  });
}

test("a return that its consumer did not count is an error", async () => {
  const { cell, solo } = await ran(specOf("uretprobe-nop"));
  const task = cell.jobs[0]?.args[0] as number;
  add64(solo, task + abi.TASK_RETURN_ENTRIES, 1);
  add64(solo, task + abi.TASK_RETURNS, 1);
  const line = messageOf("E_FAULT", () => cell.counts());
  assert.match(line, "101 returns were seen, the consumer counted 100");
});

test("a hit that is under way at a snapshot is no drop", async () => {
  const { cell, solo } = await ran(specOf("uprobe-nop"));
  add64(solo, (cell.jobs[0]?.args[0] as number) + abi.TASK_TRIGGERS, 1);
  assert.is(cell.drops(), 0);
});

test("restarts are no term of the identity", async () => {
  const { cell, solo } = await ran(specOf("uprobe-nop"));
  add64(solo, (cell.jobs[0]?.args[0] as number) + abi.TASK_RESTARTS, 3);
  assert.is(cell.counts().handled, N);
});

test("a fault that the engine has raised is an error, whatever the figures", async () => {
  for (const name of ["uprobe-nop", "lock-mutex", "count-percpu"]) {
    const { cell, solo } = await ran(specOf(name));
    cell.counts();
    solo.memory.store(abi.HDR_FAULTS + 4 * abi.FAULT_EXCLUSION, 3);
    const line = messageOf("E_FAULT", () => cell.counts());
    assert.match(line, `${name}`);
    assert.match(line, "exclusion 3 times");
  }
});

test("operations that memory did not count, or counted twice, are an error", async () => {
  for (const [name, wordOf] of [
    ["count-percpu", (cell: Cell) => cell.jobs[0]?.args[0]],
    ["count-shared", (cell: Cell) => cell.jobs[0]?.args[0]],
    ["lock-spinlock", (cell: Cell) => (cell.jobs[0]?.args[0] as number) + abi.LOCK_DATA],
    ["lock-rwlock", (_: Cell, solo: Solo) => solo.memory.perCpu(abi.PCPU_COUNT, 0)],
  ] as const) {
    for (const n of [1, -1]) {
      const { cell, solo } = await ran(specOf(name, { cpus: 2 }));
      add64(solo, wordOf(cell, solo) as number, n);
      const line = messageOf("E_FAULT", () => cell.counts());
      assert.match(line, `200 operations were done, memory counted ${200 + n}`);
    }
  }
});

test("the memory planned for a cell holds its probes and CPUs", async () => {
  for (const [probes, cpus] of [
    [1, 1],
    [1000, 64],
    [30_000, 4],
    [1, 256],
  ] as const) {
    const solo = new Solo({ memoryBytes: cellMemoryBytes(probes, cpus) });
    const cell = await setUpCell(solo, specOf("uprobe-nop", { probes, cpus }), 1);
    assert.is(solo.memory.uprobes().inTree, probes);
    assert.is(cell.jobs.length, cpus);
  }
});

test("more probes than fit are an error that says how many did", async () => {
  const solo = new Solo({ memoryBytes: 3 * 65_536 });
  let error: unknown;
  await setUpCell(solo, specOf("uprobe-nop", { probes: 1000 }), 1).catch(
    (e: unknown) => (error = e),
  );
  assert.instance(error, WasmprobeError);
  const { code, message } = error as { code: ErrorCode; message: string };
  assert.is(code, "E_FULL");
  const made = solo.memory.uprobes().inTree;
  assert.ok(made > 100 && made < 1000);
  const { liveBytes } = solo.memory.arena();
  assert.is(
    message,
    `only ${made} of 1000 probes could be registered: ${liveBytes} bytes are in use`,
  );
});

test.run();
