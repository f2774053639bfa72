// CPUs on threads of their own that do one call at a time, when the test says so, over a memory in
// which the test reads and writes as well. Their clock is a word of it: time passes when the test
// says so, too.

import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import * as abi from "../../src/engine/abi.js";
import { EngineMemory } from "../../src/engine/memory.js";
import { WASM, sleep } from "./engine.js";

/** The object under test, the clock in microseconds, and where the CPUs' areas are. */
export const DOMAIN = 0;
const CLOCK = 4096;
const AREAS = 8192;

/** How long something may take that must happen, and how long is waited for what must not. */
const MUST_MS = 10_000;
export const NOT_MS = 40;

// As text, since a test file is one bundle: a worker of its own would run the tests again.
const WORKER = `
const { parentPort, workerData } = require("node:worker_threads");
const { module, memory, areas, clock, cpu } = workerData;
const words = new Int32Array(memory.buffer);
const imports = { env: { memory }, cpu: { now: () => Atomics.load(words, clock >> 2) / 1000 } };
for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
  if (kind !== "function" || from === "cpu") continue;
  (imports[from] ??= {})[name] = () => 0;
}
const { exports } = new WebAssembly.Instance(module, imports);
exports.cpu_init(areas, cpu);
const own = {
  // Sections without end, or nearly: counts in at one word and out at another.
  in_and_out(enter, leave, stop, delay) {
    while (Atomics.load(words, stop >> 2) === 0) {
      Atomics.add(words, enter >> 2, 1);
      Atomics.add(words, leave >> 2, 1);
      exports.cpu_delay(Math.random() * delay);
    }
  },
};
parentPort.on("message", ([name, ...args]) => {
  parentPort.postMessage((own[name] ?? exports[name])(...args));
});
`;

/** A call under way. */
export interface Call {
  result: Promise<number>;
  /** Whether it has returned. */
  over(): boolean;
}

export class Puppets {
  readonly memory: EngineMemory;
  readonly #module: WebAssembly.Module;
  readonly #cpus = new Map<number, Worker>();

  /** Puts nobody into a zeroed memory with areas for CPUs up to `cpuMax`. */
  constructor(cpuMax = 7) {
    this.#module = new WebAssembly.Module(readFileSync(WASM));
    const bytes = AREAS + (cpuMax + 1) * abi.PERCPU_BYTES;
    this.memory = new EngineMemory(EngineMemory.create(bytes));
    this.pass(1000); // as any clock, it began long ago
  }

  /** CPU `cpu` calls an exported function of the engine. */
  start(cpu: number, name: string, ...args: number[]): Call {
    const worker = this.#cpus.get(cpu) ?? this.#spawn(cpu);
    let over = false;
    const result = new Promise<number>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`CPU ${cpu} did not return from ${name}`));
      }, MUST_MS);
      worker.once("message", (value: number) => {
        over = true;
        clearTimeout(timer);
        resolve(value);
      });
    });
    result.catch(() => {}); // whoever waits for it hears of it
    worker.postMessage([name, ...args]);
    return { result, over: () => over };
  }

  call(cpu: number, name: string, ...args: number[]): Promise<number> {
    return this.start(cpu, name, ...args).result;
  }

  /** Address of a word in CPU `cpu`'s block at `offset`. */
  word(cpu: number, offset: number): number {
    return AREAS + cpu * abi.PERCPU_BYTES + offset;
  }

  /** Time goes on by `ms`. */
  pass(ms: number): void {
    this.memory.store(CLOCK, this.memory.load(CLOCK) + ms * 1000);
  }

  /** Resolves once `condition` holds, which it must. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const from = performance.now();
    while (!condition()) {
      if (performance.now() - from > MUST_MS) throw new Error(`never: ${what}`);
      await sleep(1);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#cpus.values()].map((worker) => worker.terminate()));
  }

  #spawn(cpu: number): Worker {
    const { memory } = this.memory;
    const workerData = { module: this.#module, memory, areas: AREAS, clock: CLOCK, cpu };
    const worker = new Worker(WORKER, { eval: true, workerData });
    this.#cpus.set(cpu, worker);
    return worker;
  }
}

/** A test over fresh puppets, which are gone afterwards. */
export function withPuppets(
  body: (puppets: Puppets) => Promise<void>,
  cpuMax?: number,
): () => Promise<void> {
  return async () => {
    const puppets = new Puppets(cpuMax);
    try {
      await body(puppets);
    } finally {
      await puppets.close();
    }
  };
}
