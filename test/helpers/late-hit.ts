// A hit that takes its time: CPU 0 is in its handler until the test lets it go on.

import { pathToFileURL } from "node:url";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { EngineMemory, identityGap } from "../../src/engine/memory.js";
import { entryOf, findPreset, type PresetName } from "../../src/engine/presets.js";
import type { Runner } from "../../src/engine/runner.js";
import { startThreads } from "../../src/engine/threads.js";
import { nodePlatform } from "../../src/platform/node.js";
import { sleep, WASM } from "./engine.js";
import { FILE_BYTES, TASK_TEXT, VADDR } from "./probes.js";
import { HANDLER, MEMORY, wat } from "./user-module.js";

const HEAP = 2 << 20;
const PATIENCE_MS = 10_000;
/** Its first step registers a consumer that takes all hits. */
const SEED = 1;

/** Says that it is there, and stays until the word at the cookie is set. */
const STAYS = wat(
  MEMORY,
  `(func (export "handler") ${HANDLER}
    (i32.atomic.store offset=4 (local.get $cookie) (i32.const 1))
    (drop (memory.atomic.wait32 (local.get $cookie) (i32.const 0) (i64.const -1)))
    (i32.const 1))`,
);

export async function until(what: string, condition: () => boolean): Promise<void> {
  const limit = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > limit) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
    await sleep(1);
  }
}

/** A file whose probe takes one hit, which CPU 0 is in while the housekeeper unregisters it. */
export interface LateHit {
  runner: Runner;
  memory: EngineMemory;
  /** Of the file, and the address space that maps it. */
  inode: number;
  mm: number;
  /** A sink that calls a handler, which stays until it is released; and who is unregistered. */
  sink: number;
  consumer: number;
  /** Whether the unregistration has returned. */
  isGone(): boolean;
  /** Where the function's byte is. */
  text: number;
  /** CPU 1 registers a consumer at the same place: a churn state, of one step. */
  registers(): Promise<number>;
  /** The hit goes on; resolves when all have left. */
  release(): Promise<void>;
}

/** How the probe is taken away, and whether it leaves the tree while the hit is in its handler. */
export interface Farewell {
  unregister(runner: Runner, consumer: number): Promise<number>;
  erased: boolean;
}
const ONE: Farewell = {
  unregister: (runner, consumer) => runner.command(abi.OP_UNREGISTER, consumer),
  erased: true,
};

export async function withLateHit(
  preset: PresetName,
  uprobesMax: number,
  body: (late: LateHit) => Promise<void>,
  { unregister, erased }: Farewell = ONE,
): Promise<void> {
  const own = EngineMemory.create(HEAP + 65_536);
  const words = new Int32Array(own.buffer, HEAP);
  const wake = () => {
    Atomics.store(words, 0, 1);
    Atomics.notify(words, 0);
  };
  const runner = await startThreads({
    platform: nodePlatform,
    cpus: 2,
    strategy: findPreset(preset)?.strategy ?? -1,
    uprobesMax,
    memory: own,
    bytes: HEAP,
    leaveLimitMs: 2000,
    wasm: pathToFileURL(WASM),
  });
  const { memory } = runner;
  try {
    const module = await WebAssembly.compile(STAYS);
    const { firstPlace } = await runner.load({
      name: "stays",
      module,
      constants: {},
      handlers: ["handler"],
      calls: { call: entryOf(preset, "call") },
    });
    const inode = await runner.command(abi.OP_INODE_CREATE, FILE_BYTES, abi.INSN_NOP);
    const mm = await runner.command(abi.OP_MM_CREATE, 1);
    await runner.command(abi.OP_MMAP, mm, inode, VADDR, FILE_BYTES, 0);
    const task = await runner.command(abi.OP_TASK_CREATE, mm, 1, VADDR, 16, 1, 1);
    const sink = await runner.command(abi.OP_SINK_CREATE, abi.HANDLER_CALL, firstPlace);
    const churn = await runner.command(abi.OP_CHURN_CREATE, mm, inode, VADDR, 0, 16, 1, SEED);
    const consumer = await runner.command(abi.OP_REGISTER, inode, 0, sink, 0, 0, 1, HEAP);
    const entry = entryOf(preset, "trigger");
    const run = await runner.run([{ entry, args: [task], count: 1, batch: 1 }]);
    await until("the hit is in its handler", () => Atomics.load(words, 1) === 1);
    const gone = unregister(runner, consumer);
    let isGone = false;
    const over = () => {
      isGone = true;
    };
    gone.then(over, over); // also when the engine ends first
    if (erased) await until("the probe is out of the tree", () => memory.uprobes().inTree === 0);
    await body({
      runner,
      memory,
      inode,
      mm,
      sink,
      consumer,
      isGone: () => isGone,
      text: (memory.load(task + TASK_TEXT) + VADDR) >>> 0,
      registers: async () => {
        await run.join({ entry: "churn_probes", args: [churn], count: 1, batch: 1 });
        return churn;
      },
      release: async () => {
        wake();
        await run.done;
        assert.is(await gone, 0);
      },
    });
    assert.is(identityGap(memory.task(task)), 0);
    assert.is(memory.task(task).handled, 1);
    assert.equal(memory.faults(), {});
  } finally {
    wake();
    await runner.close();
  }
}
