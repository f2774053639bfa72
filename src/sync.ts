// `wasmprobe/sync`: the locks, in a shared memory of the user's own.

export { type ErrorCode, WasmprobeError } from "./base/errors.js";
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
