// The map of the engine's memory: every offset, stride and size that more than one file needs.
//
// An engine occupies one contiguous, 64-aligned region of a shared memory. All offsets below are
// relative to that region's base, so that several engines and a user's own heap share one memory.
//
//   offset        bytes                   owner          content
//   0             HEADER_BYTES            set at init    sizes, region offsets, run control, faults
//   HEADER_BYTES  RING_BYTES              orchestrator   command ring to the housekeeper
//   PERCPU        (cpus+1)*PERCPU_BYTES   each CPU       one area per CPU; the last: housekeeper
//   ARENA         the rest                arena          everything that is allocated
//
// Plain constants only, without types: the host imports this very file (src/engine/abi.ts), so the
// two halves cannot disagree.

/** Bytes of one cache line: what two CPUs cannot write to at the same time. */
export const LINE = 64;
/** Distance of private per-CPU data: two lines, since x86 prefetches lines in pairs. */
export const STRIDE = 128;

/** "WPRB", little endian: first word of a formatted engine. */
export const ENGINE_MAGIC = 0x42525057;
/** Raised whenever this map changes; the host refuses another one. */
export const ABI_VERSION = 1;
/** Most CPUs of one engine, the housekeeper not counted. Queue tails hold 16 bits, tables to 192. */
export const CPUS_MAX = 256;

// -- Header -------------------------------------------------------------------------------------
// Line 0, read-mostly: written once by engine_init, before any other CPU runs.
export const HDR_MAGIC = 0;
export const HDR_ABI = 4;
export const HDR_CPUS = 8;
export const HDR_BYTES = 12;
/** Absolute address of CPU 0's area. */
export const HDR_PERCPU = 16;
/** Absolute address of the arena (mm/arena.ts). */
export const HDR_ARENA = 20;
/** Absolute address of the probe table (uprobe/table.ts). */
export const HDR_TABLE = 24;
/** Iterations of cpu.delay per exception; 0 is "raw". */
export const HDR_TRAP_UNITS = 28;
// Line 1: run control, written by the orchestrator at the start and end of a run.
/** 1 asks every CPU to leave its run at the next batch. */
export const HDR_STOP = 64;
/** Start barrier: CPUs that arrived; then the generation that releases them. */
export const HDR_ARRIVED = 68;
export const HDR_GO = 72;
// Line 2..3: faults, one i32 each, raised atomically where an impossible thing was seen. All zero
// in a healthy engine; the host names them.
export const HDR_FAULTS = 128;
export const HEADER_BYTES = 256;

// Indices of the fault words.
/** refcount_inc of zero, or a decrement below zero. */
export const FAULT_REFCOUNT = 0;
/** Erase of a node that is not in the tree. */
export const FAULT_DOUBLE_ERASE = 1;
/** A handler ran on a consumer whose unregister had returned. */
export const FAULT_CONSUMER_FREED = 2;
/** A hit found a uprobe whose memory had been freed. */
export const FAULT_UPROBE_FREED = 3;
/** A lock section was entered while another CPU was inside, or lost an update. */
export const FAULT_EXCLUSION = 4;
/** A handler ran after unregister had returned, seen by the unregistering side. */
export const FAULT_LATE_HANDLER = 5;
/** A timed lock came back without the lock too early, or too late. */
export const FAULT_TIMEOUT = 6;
/** Two live uprobes for one (inode, offset). */
export const FAULT_DUPLICATE_KEY = 7;
/** The tree broke a red-black rule. */
export const FAULT_TREE = 8;
/** A hit was lost while its probe was registered throughout. */
export const FAULT_LOST_HIT = 9;
/** Number of fault words. */
export const FAULTS = 10;

// -- Command ring -------------------------------------------------------------------------------
// Single producer (the orchestrator), single consumer (the housekeeper). The producer fills a slot,
// then raises HEAD and notifies it; the housekeeper executes, stores RESULT, then raises TAIL.
/** Commands ever issued. The housekeeper parks on this word when HEAD == TAIL. */
export const RING_HEAD = 0;
/** Commands ever completed; on its own line, since the other side writes it. */
export const RING_TAIL = 64;
export const RING_SLOTS_AT = 128;
export const RING_SLOTS = 64;
/** Slot: op i32, result i32, then up to 14 i32 arguments. */
export const RING_SLOT_BYTES = 64;
export const SLOT_OP = 0;
export const SLOT_RESULT = 4;
export const SLOT_ARGS = 8;
export const RING_BYTES = 128 + 64 * 64;

// -- Per-CPU area -------------------------------------------------------------------------------
// Each block starts on its own STRIDE. "shared": other CPUs write to it while its owner waits.
/** shared: MCS node of the queued spinlock. One suffices: it is in use only while its CPU waits. */
export const PCPU_MCS = 0;
/** shared: node of the optimistic spin queue (mutex, rwsem). */
export const PCPU_OSQ = 128;
/** shared: entry of a sleeping lock's wait list. A CPU sleeps on one lock at a time. */
export const PCPU_WAITER = 256;
/** private: progress of the running workload, i64 operations, raised once per batch. */
export const PCPU_OPS = 384;
/** private: the line that the count-* controls write to. */
export const PCPU_COUNT = 512;
/** private: locktorture's counters of this CPU (workload/locktorture.ts). */
export const PCPU_TORTURE = 640;
/** shared: life cycle of the CPU's worker, a CPU_ constant; read by the orchestrator. */
export const PCPU_STATE = 896;
export const PERCPU_BYTES = 1024;

// What a CPU's worker is doing (PCPU_STATE).
export const CPU_NONE = 0;
export const CPU_READY = 1;
export const CPU_ARRIVED = 2;
export const CPU_RUNNING = 3;
export const CPU_DONE = 4;

// Negative results of commands and exported functions: the kernel's numbers.
export const ENOENT = -2;
export const EAGAIN = -11;
export const ENOMEM = -12;
export const EBUSY = -16;
export const EEXIST = -17;
export const EINVAL = -22;
export const ENOSPC = -28;
export const ETIMEDOUT = -110;
