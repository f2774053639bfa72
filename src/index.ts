// The library: what a program needs to run the engine's workloads on threads of its own.

export { type ErrorCode, WasmprobeError } from "./base/errors.js";
export { VERSION } from "./base/version.js";
export type { EngineOptions, Job, Run, Runner } from "./engine/runner.js";
export { startThreads, type ThreadsOptions } from "./engine/threads.js";
export { loadPlatform } from "./platform/index.js";
export type { Platform } from "./platform/platform.js";
export {
  type LockExports,
  type LockThread,
  Mutex,
  QueuedSpinlock,
  RefCount,
  Rwsem,
  RwLock,
  SequenceCount,
  Spinlock,
  TicketLock,
} from "./engine/locks.js";
export {
  CPU_AREA_BYTES,
  openCpu,
  type OwnCpu,
  type OwnMemoryOptions,
} from "./engine/own-memory.js";
