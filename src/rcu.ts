// `wasmprobe/rcu`: SRCU, Tasks Trace and QSBR, in a shared memory of the user's own.

export { type ErrorCode, WasmprobeError } from "./base/errors.js";
export type { GracePeriods } from "./engine/memory.js";
export {
  CPU_AREA_BYTES,
  openCpu,
  type OwnCpu,
  type OwnMemoryOptions,
} from "./engine/own-memory.js";
export { Rcu, type RcuCpu, type RcuExports, Srcu } from "./engine/rcu-handles.js";
