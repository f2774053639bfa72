// Entry of a real worker: one thread, one instance, one CPU.
//
// Between runs it sits in its event loop and costs nothing. A run is a loop of batches that return
// here, because a running Wasm loop is never replaced by its optimised code.

import { loadPlatform } from "../platform/index.js";
import * as abi from "./abi.js";
import { instantiateEngine, type EngineInstance, type Workload } from "./instance.js";
import { EngineMemory } from "./memory.js";
import type { FromWorker, ToWorker, WorkerBirth } from "./protocol.js";
import type { Job } from "./runner.js";
import { instantiateUserModule } from "./user-module.js";

/** A batch should take between these, milliseconds: short enough to stop, long enough to count. */
const BATCH_MS_MIN = 0.1;
const BATCH_MS_MAX = 1;
/** First batch of a workload whose speed is not known yet. */
const BATCH_FIRST = 16;
const BATCH_MOST = 1 << 24;
/** How long a worker waits at the barrier before it gives up on the orchestrator. */
const BARRIER_MS = 30_000;
/** How long the housekeeper sleeps at a time; a command wakes it at once. */
const SERVE_NS = 1_000_000_000n;

const platform = await loadPlatform();
const port = platform.workerPort();
const birth = port.data as WorkerBirth;
const instance: EngineInstance = instantiateEngine(birth.module, birth.memory, platform.nowMs);
let memory = new EngineMemory(birth.memory);
let cpu = 0;
/** The user's modules, by number. */
const loaded: WebAssembly.Exports[] = [];

function post(message: FromWorker): void {
  port.post(message);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function setState(state: number): void {
  memory.store(memory.perCpu(abi.PCPU_STATE, cpu), state);
}

/** True when the barrier opened; false when the run was called off. Throws if neither comes. */
function waitAtBarrier(generation: number): boolean {
  const go = (memory.base + abi.HDR_GO) >> 2;
  const until = platform.nowMs() + BARRIER_MS;
  for (;;) {
    const seen = Atomics.load(memory.i32, go);
    if (seen === generation) return true;
    if (memory.header(abi.HDR_STOP) !== 0) return false;
    if (platform.nowMs() > until) {
      throw new Error(`the start barrier did not open within ${BARRIER_MS / 1000} s`);
    }
    Atomics.wait(memory.i32, go, seen, 100);
  }
}

function workloadOf(job: Job): Workload {
  if (job.module === undefined) return instance.workload(job.entry);
  return loaded[job.module]?.[job.entry] as Workload;
}

function runJob(job: Job): number {
  const workload = workloadOf(job);
  const stop = (memory.base + abi.HDR_STOP) >> 2;
  const ops = memory.perCpu(abi.PCPU_OPS, cpu) >> 3;
  const count = job.count ?? Number.POSITIVE_INFINITY;
  let batch = job.batch ?? BATCH_FIRST;
  let done = 0;
  let before = platform.nowMs();
  while (done < count && Atomics.load(memory.i32, stop) === 0) {
    const n = Math.min(batch, count - done);
    const result = workload(...job.args, n);
    // A workload may end a batch early, and then says what it has done.
    const did = typeof result === "number" ? result : n;
    done += did;
    Atomics.store(memory.i64, ops, BigInt(done));
    const now = platform.nowMs();
    if (job.batch === undefined) {
      // A batch that ended early is short for another reason: growing for it would never end.
      if (now - before < BATCH_MS_MIN && did === batch) batch = Math.min(batch * 2, BATCH_MOST);
      else if (now - before > BATCH_MS_MAX) batch = Math.max(batch >> 1, 1);
    }
    before = now;
  }
  return done;
}

function onRun(generation: number, job: Job): void {
  const ops = memory.perCpu(abi.PCPU_OPS, cpu) >> 3;
  Atomics.store(memory.i64, ops, 0n);
  setState(abi.CPU_ARRIVED);
  post({ type: "arrived", generation });
  let iterations = 0;
  let error: string | undefined;
  try {
    if (waitAtBarrier(generation)) {
      setState(abi.CPU_RUNNING);
      iterations = runJob(job);
    }
  } catch (thrown) {
    error = messageOf(thrown);
  }
  setState(abi.CPU_DONE);
  post({ type: "left", generation, iterations, ...(error === undefined ? {} : { error }) });
}

function onServe(): void {
  const tail = memory.base + abi.HEADER_BYTES + abi.RING_TAIL;
  for (;;) {
    const done = instance.exports.housekeeper_run(SERVE_NS);
    if (done !== 0) post({ type: "served", tail: memory.load(tail) });
    if (done < 0) break;
  }
  post({ type: "stopped-serving" });
}

port.onMessage((raw) => {
  const message = raw as ToWorker;
  switch (message.type) {
    case "attach": {
      memory = new EngineMemory(birth.memory, message.base);
      cpu = message.cpu;
      const rc = instance.exports.engine_attach(message.base, message.cpu);
      if (rc !== 0) throw new Error(`engine_attach of CPU ${cpu} failed: ${rc}`);
      setState(abi.CPU_READY);
      post({ type: "attached" });
      break;
    }
    case "load": {
      const { name } = message.what;
      try {
        loaded.push(instantiateUserModule(message.what, birth.memory, cpu, instance));
        post({ type: "loaded", name });
      } catch (error) {
        loaded.push({}); // numbers are the same in every worker
        post({ type: "loaded", name, error: messageOf(error) });
      }
      break;
    }
    case "run":
      onRun(message.generation, message.job);
      break;
    case "serve":
      onServe();
      break;
    case "close":
      port.close();
      break;
  }
});
post({ type: "born", threadId: platform.threadId() });
