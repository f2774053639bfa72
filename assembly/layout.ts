// The map of the engine's memory: every offset, stride and size that more than one file needs.
//
// An engine occupies one contiguous, 64-aligned region of a shared memory. All offsets below are
// relative to that region's base, so that several engines and a user's own heap share one memory.
//
//   offset        bytes                   owner          content
//   0             HEADER_BYTES            set at init    sizes, region offsets, run control, faults
//   HEADER_BYTES  RING_BYTES              orchestrator   command ring to the housekeeper
//   PERCPU        (cpus+2)*PERCPU_BYTES   each CPU       one area per CPU; the last two: the
//                                                        housekeeper, the orchestrator
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
/** Most CPUs of one engine, the housekeeper not counted; published tables go to 192. */
export const CPUS_MAX = 256;

// -- Header --------------------------------------------------------------------------------------
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
/** Strategy of the hit path: a PRESET_ constant. */
export const HDR_STRATEGY = 32;
/** Which instructions are emulated and which stepped: an ARCH_ constant. */
export const HDR_ARCH = 36;
/** Slots of an address space's XOL area. */
export const HDR_XOL_SLOTS = 40;
/** How long a return probe may keep its lease, microseconds. */
export const HDR_LEASE_US = 44;
// Line 1: run control, written by the orchestrator at the start and end of a run.
/** 1 asks every CPU to leave its run at the next batch. */
export const HDR_STOP = 64;
/** Start barrier: CPUs that arrived; then the generation that releases them. */
export const HDR_ARRIVED = 68;
export const HDR_GO = 72;
/** The housekeeper's bell: raised, then notified, by whoever has work for it. It parks here. */
export const HDR_BELL = 76;
// Line 2..3: faults, one i32 each, raised atomically where an impossible thing was seen. All zero
// in a healthy engine; the host names them.
export const HDR_FAULTS = 128;
// Lines 4..5 and 6..7: the engine's read-copy-update domains (rcu/srcu.ts, rcu/tasks_trace.ts).
// At places known at compile time: a hit needs no pointer to them.
export const HDR_SRCU = 256;
export const HDR_RCU = 384;
/** The SRCU domain of return probes' leases. */
export const HDR_URET_SRCU = 512;
export const HEADER_BYTES = 640;

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
/** A CPU that queued on a lock was overtaken by one that came later. */
export const FAULT_ORDER = 10;
/** A reader held what a grace period had passed over. */
export const FAULT_GRACE = 11;
/** A lookup missed what was there throughout, found what never was, or something unfinished. */
export const FAULT_LOOKUP = 12;
/** A lookup without the lock answered from two moments at once. */
export const FAULT_MIXED = 13;
/** A slot of an XOL area was held twice, or let go by one who did not hold it. */
export const FAULT_SLOT = 14;
/** A signal was delivered during a step, or twice, or never. */
export const FAULT_SIGNAL = 15;
/** A return met the trampoline without an instance, or went elsewhere than its call came from. */
export const FAULT_RETURN = 16;
/** A lease was ended twice, or its instance was reused while it was being expired. */
export const FAULT_LEASE = 17;
/** A reference counter in a target's memory went below zero, or was not what it must be. */
export const FAULT_REF_CTR = 18;
/** Number of fault words. */
export const FAULTS = 19;

// -- Strategies ----------------------------------------------------------------------------------
// One bit field an axis (design: the hit path and its strategies). On the hit path a strategy is a
// compile-time constant; each preset has entries of its own.
/** How hits find a uprobe: tree under a spinlock, a rwlock, or lockless; hash of breakpoints. */
export const TABLE_SPINLOCK = 0;
export const TABLE_RWLOCK = 1;
export const TABLE_RCU = 2;
export const TABLE_HASH = 3;
export const TABLE_MASK = 3;
/** What keeps a uprobe and its consumers alive during a hit. */
export const READERS_REFCOUNT = 0;
export const READERS_SRCU = 4;
export const READERS_TRACE = 8;
export const READERS_QSBR = 12;
export const READERS_MASK = 12;
/** How a hit finds its mapping: under mmap_lock, or speculatively first. */
export const LOOKUP_SPECULATIVE = 16;
/** A consumer's own count: one shared word, or one a CPU. */
export const NHIT_PERCPU = 32;
/** A consumer's task filter: under its rwlock, or read without a lock. */
export const FILTER_LOCKLESS = 64;
/** A hit looks at its task's own tree of breakpoints first (uprobe/thread_breakpoints.ts). */
export const LOOKUP_PER_THREAD = 128;
/** How the displaced instruction is executed: as before Linux 6.13, as since then (arm64 simulates
 *  nop too, XOL areas have no slot_count), or never out of line. */
export const STEP_OLD = 0;
export const STEP_613 = 256;
export const STEP_NEVER = 512;
export const STEP_MASK = 768;
/** What a step does about signals: siglock and recalc_sigpending, or a flag of the task. */
export const SIGNAL_FLAG = 1024;
/** What keeps the uprobe of a pending return alive: a reference; a lease, the instance freed after
 *  a grace period; a lease, the instance reused; the CPU's read section (fastest). */
export const RETURN_REFCOUNT = 0;
export const RETURN_ALLOC = 2048;
export const RETURN_POOL = 4096;
export const RETURN_SECTION = 6144;
export const RETURN_MASK = 6144;

export const PRESET_SPINLOCK = TABLE_SPINLOCK | READERS_REFCOUNT;
export const PRESET_RWLOCK = TABLE_RWLOCK | READERS_REFCOUNT;
export const PRESET_SIGLOCK = PRESET_RWLOCK | LOOKUP_PER_THREAD;
export const PRESET_SIGNAL_FLAG = PRESET_SIGLOCK | SIGNAL_FLAG;
export const PRESET_SRCU = TABLE_RCU | READERS_SRCU | FILTER_LOCKLESS;
export const PRESET_TASKS_TRACE = TABLE_RCU | READERS_TRACE | FILTER_LOCKLESS | STEP_613;
export const PRESET_MMAP_LOCK = PRESET_TASKS_TRACE | NHIT_PERCPU | RETURN_ALLOC;
export const PRESET_SPECULATIVE = PRESET_MMAP_LOCK | LOOKUP_SPECULATIVE;
/** The same strategy by the name of what its successor changed. */
export const PRESET_URET_ALLOC = PRESET_SPECULATIVE;
export const PRESET_URET_POOL =
  (PRESET_MMAP_LOCK ^ RETURN_ALLOC) | RETURN_POOL | LOOKUP_SPECULATIVE;
export const PRESET_FASTEST =
  TABLE_HASH |
  READERS_QSBR |
  LOOKUP_SPECULATIVE |
  NHIT_PERCPU |
  FILTER_LOCKLESS |
  STEP_NEVER |
  SIGNAL_FLAG |
  RETURN_SECTION;

// HDR_ARCH: which of the three instructions leave the kernel and come back (uprobe/step.ts).
export const ARCH_X86 = 0;
export const ARCH_ARM64 = 1;
/** Bytes of an XOL area's page, and of one slot of it. */
export const XOL_AREA_BYTES = 4096;
export const XOL_SLOT_BYTES_X86 = 128;
export const XOL_SLOT_BYTES_ARM64 = 4;
/** Offset in an address space: its XOL area (uprobe/xol.ts), or 0; offsets in that: CPUs that wait
 *  for a slot, what they sleep on, slots in use (STEP_OLD), which; the page. */
export const MM_XOL_AREA = 96;
export const XOL_WAITERS = 0;
export const XOL_WOKEN = 4;
export const XOL_SLOT_COUNT = 8;
export const XOL_BITMAP = 64;
export const XOL_PAGE = 256;
/** RI_TIMER_PERIOD: how long a lease lasts if nothing else is said, microseconds. */
export const LEASE_US_DEFAULT = 100_000;

// -- Command ring --------------------------------------------------------------------------------
// Single producer (the orchestrator), single consumer (the housekeeper). The producer fills a slot,
// then raises HEAD and rings HDR_BELL; the housekeeper executes, stores RESULT, then raises TAIL.
/** Commands ever issued. */
export const RING_HEAD = 0;
/** Commands ever completed; on its own line, since the other side writes it. */
export const RING_TAIL = 64;
export const RING_SLOTS_AT = 128;
export const RING_SLOTS = 64;
/** Slot: op i32, result i32, then up to 13 i32 arguments; the last word is the housekeeper's. */
export const RING_SLOT_BYTES = 64;
export const SLOT_OP = 0;
export const SLOT_RESULT = 4;
export const SLOT_ARGS = 8;
export const RING_BYTES = 128 + 64 * 64;

// -- Per-CPU area --------------------------------------------------------------------------------
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
/** private: counts of SRCU readers (rcu/srcu.ts). */
export const PCPU_SRCU = 1024;
/** private: nesting, generation and online of RCU readers (rcu/tasks_trace.ts). */
export const PCPU_RCU = 1152;
/** private: the word that an updater sleeps on, for limited times; never changes. */
export const PCPU_GP_SLEEP = 1280;
/** private: counts of the leases of return probes (rcu/srcu.ts). */
export const PCPU_URET_SRCU = 1408;
/** private: free return instances (uprobe/return_cache.ts). */
export const PCPU_RETURNS = 1536;
export const PERCPU_BYTES = 1664;

// What a CPU's worker is doing (PCPU_STATE).
export const CPU_NONE = 0;
export const CPU_READY = 1;
export const CPU_ARRIVED = 2;
export const CPU_RUNNING = 3;
export const CPU_DONE = 4;

// -- Locks ---------------------------------------------------------------------------------------
// Bytes one of each occupies, 8-aligned. Which words are where: in the file of each lock.
export const SPINLOCK_BYTES = 4;
export const TICKET_BYTES = 4;
export const QSPINLOCK_BYTES = 4;
export const RWLOCK_BYTES = 8;
export const RWSEM_BYTES = 40;
export const MUTEX_BYTES = 32;
export const OSQ_BYTES = 4;
export const SEQCOUNT_BYTES = 4;
export const REFCOUNT_BYTES = 4;

// Benches and torture of locks: the lock at 0, then, each on a stride of its own:
/** i64, the word that the lock protects; raised once per exclusive section. */
export const LOCK_DATA = 128;
/** What torture checks inside the sections (workload/locktorture.ts). */
export const LOCK_CHECK = 256;
/** Bytes of the whole, zeroed and STRIDE-aligned. */
export const LOCK_AREA_BYTES = 512;
/** At LOCK_CHECK: writers inside, readers inside, exclusive sections ever entered, i32 each. */
export const CHECK_WRITER = 0;
export const CHECK_READERS = 4;
export const CHECK_SECTIONS = 8;
/** Two i32 that are equal outside exclusive sections, each on a line of its own. */
export const CHECK_A = 64;
export const CHECK_B = 128;
/** Offsets in PCPU_TORTURE: random state i32, 0: not set up; then counters, i64 each. */
export const TORTURE_RANDOM = 0;
/** Exclusive and shared sections. */
export const TORTURE_WRITES = 8;
export const TORTURE_READS = 16;
/** Sections in which exclusion was violated. 0 in a correct lock. */
export const TORTURE_FAILS = 24;
/** Times this CPU overtook one that was seen waiting in order. 0 in a correct lock. */
export const TORTURE_BARGES = 32;
/** Timed locks that failed too early or absurdly late. 0 in a correct lock. */
export const TORTURE_LATE = 40;
/** Trylocks and retried sections, timed locks and spin queues, that failed as they may. */
export const TORTURE_TRYFAILS = 48;
export const TORTURE_TIMEOUTS = 56;
/** RCU read sections by the pipe stage that they saw: 0, 1, later. 0 in the last, or a fault. */
export const TORTURE_PIPE = 64;

// Negative results of commands and exported functions: the kernel's numbers.
export const ENOENT = -2;
export const EAGAIN = -11;
export const ENOMEM = -12;
export const EBUSY = -16;
export const EEXIST = -17;
export const EINVAL = -22;
export const ENOSPC = -28;
export const ETIMEDOUT = -110;

// -- RCU (rcu/) ----------------------------------------------------------------------------------
// Bytes of a domain, STRIDE-aligned and zeroed.
export const SRCU_BYTES = 128;
export const RCU_BYTES = 128;
/** Offsets in both: CPU that the updater waits for plus 1, or 0; grace periods that stalled; CPU of
 *  the last that did plus 1, or 0; grace periods completed; what a stall is, ms, 0 for 1000. */
export const GP_WAITS_FOR = 0;
export const GP_STALLS = 4;
export const GP_STALL_CPU = 8;
export const GP_COMPLETED = 12;
export const GP_STALL_MS = 20;
/** Bytes of a list of callbacks, and of a head, 4-aligned; offsets in a head. */
export const CALLBACKS_BYTES = 4;
export const RCU_HEAD_BYTES = 8;
export const RCU_HEAD_NEXT = 0;
export const RCU_HEAD_KIND = 4;
// Benches and torture of RCU (workload/rcu.ts): the domain at 0, then
export const RCU_CURRENT = 128;
export const RCU_UPDATES = 192;
export const RCU_OBJECTS_AT = 256;
/** Bytes of the whole, zeroed and STRIDE-aligned. */
export const RCU_AREA_BYTES = 256 + 16 * 64;

// -- Arena (mm/arena.ts), offsets of its accounting ----------------------------------------------
export const ARENA_LIVE_BYTES = 16;
export const ARENA_LIVE_OBJECTS = 20;
export const ARENA_PEAK_BYTES = 24;
/** Size of the last allocation that could not be met, bytes. */
export const ARENA_FAILED = 28;

// -- Probe table (uprobe/table.ts) ---------------------------------------------------------------
/** Offsets in the table: uprobes allocated and not yet freed; uprobes in the tree. */
export const TABLE_ALIVE = 72;
export const TABLE_IN_TREE = 80;
/** Marks of a live and of a freed uprobe, and of a live and of an unregistered consumer. */
export const UPROBE_MAGIC = 0x75707262;
export const UPROBE_FREED_MAGIC = 0x6b6b6b6b;
export const CONSUMER_MAGIC = 0x636f6e73;
export const CONSUMER_DEAD_MAGIC = 0x64656164;

// -- Instructions of the traced text (x86-64, one byte each) -------------------------------------
export const INSN_NOP = 0x90;
export const INSN_PUSH = 0x55;
export const INSN_RET = 0xc3;
export const INSN_TRAP = 0xcc;

// -- Consumers (uprobe/consumer.ts) --------------------------------------------------------------
/** Handlers (uprobe/sink.ts): count per CPU; count and a log2 histogram of the first argument;
 *  write a record to the CPU's ring; call a function of the user's. */
export const HANDLER_COUNT = 0;
export const HANDLER_HIST = 1;
export const HANDLER_EMIT = 2;
export const HANDLER_CALL = 3;
/** Of sessions: count, and a log2 histogram of the nanoseconds from entry to return. */
export const HANDLER_LATENCY = 4;
/** Offsets in a sink: handler kind, bytes between CPUs, address of CPU 0's block; records a ring,
 *  or place of the function; whether records get a time. */
export const SINK_KIND = 0;
export const SINK_STRIDE = 4;
export const SINK_AREA = 8;
export const SINK_SIZE = 20;
export const SINK_CLOCK = 24;
/** Offsets in a CPU's block of a sink: hits i64; from 64 on, 65 buckets i64 by bit length. */
export const SINK_HITS = 0;
export const SINK_BUCKETS = 64;
export const SINK_BUCKET_COUNT = 65;
/** Offsets in a CPU's block of a sink that emits: records lost i64; records ever written and ever
 *  read, i32 each; the records. */
export const EMIT_LOST = 8;
export const EMIT_HEAD = 64;
export const EMIT_TAIL = 128;
export const EMIT_RECORDS = 192;
/** Offsets in a record: time in nanoseconds i64, or 0; first argument i64; cookie, process, address
 *  and running number (lost ones counted), i32 each. */
export const RECORD_TIME = 0;
export const RECORD_ARGUMENT = 8;
export const RECORD_COOKIE = 16;
export const RECORD_PID = 20;
export const RECORD_VADDR = 24;
export const RECORD_NUMBER = 28;
export const RECORD_BYTES = 32;
/** Most records of a ring. */
export const EMIT_RECORDS_MAX = 1048576;
/** Hits seen by a consumer's own counter (the kernel's tu->nhit). Shared: races lose some. */
export const CONSUMER_NHIT = 64;
/** With one a CPU: where CPU 0's is, i64, or 0; the next CPU's is NHIT_STRIDE further. */
export const CONSUMER_NHIT_SLOT = 28;
export const NHIT_STRIDE = 4096;

/** Which handlers a consumer has: at the entry, at the return, or both (a session, with a cookie
 *  from the one to the other). */
export const CONSUMER_ENTRY = 1;
export const CONSUMER_RETURN = 2;
export const CONSUMER_SESSION = 3;

// -- Tasks (uprobe/task.ts) ----------------------------------------------------------------------
/** Private counters of a task, i64 each: every term of the counting identity, and restarts. */
export const TASK_TRIGGERS = 64;
export const TASK_HANDLED = 72;
export const TASK_FILTERED = 80;
export const TASK_MISSED_NO_PROBE = 88;
export const TASK_MISSED_NO_CONSUMER = 96;
export const TASK_MISSED_SIGTRAP = 104;
/** Traps that ended by executing the instruction again; not a term of the identity. */
export const TASK_RESTARTS = 112;
/** Lookups that went to mmap_lock after all: speculation had no answer yet, or a writer came by;
 *  the task had no entry of its own (LOOKUP_PER_THREAD). */
export const TASK_FALLBACKS = 120;
/** Searches of the tree begun again, since a writer was there and nothing was found. */
export const TASK_RETRIES = 152;
/** Hits that a consumer wanted, but no room was left in its ring; and nobody else took. */
export const TASK_MISSED_RING_FULL = 160;
/** Instruction pointer, stack pointer and registers, i64, as far as the three instructions go. */
export const TASK_IP = 0;
export const TASK_SP = 8;
export const TASK_BP = 16;
export const TASK_DI = 24;
/** Return probes: entries = returns + missed (depth, memory, longjmp, gone, no consumer) + those
 *  under way, i64 each; the last an i32. */
export const TASK_RETURN_ENTRIES = 256;
export const TASK_RETURNS = 264;
/** More than 64 pending returns; no memory for another. */
export const TASK_RETURN_DEPTH = 272;
export const TASK_RETURN_MEMORY = 280;
/** The frame was left without a return. */
export const TASK_RETURN_LONGJMP = 288;
/** Its uprobe was gone before a reference could be taken; its consumers were. */
export const TASK_RETURN_GONE = 296;
export const TASK_RETURN_NO_CONSUMER = 304;
/** A consumer wanted the return, but its ring was full; and nobody else took it. */
export const TASK_RETURN_RING_FULL = 312;
/** All consumers filtered the return. */
export const TASK_RETURN_FILTERED = 320;
/** Instructions executed out of line; signals delivered. */
export const TASK_STEPS = 328;
export const TASK_SIGNALS = 336;
/** Value that a function returns. */
export const TASK_AX = 344;
/** Instructions that should have been, but there was no memory for an XOL area. */
export const TASK_STEPS_COPY = 360;
/** Returns under way. */
export const TASK_RETURN_PENDING = 388;
/** Thread flags; signals that are pending, a bit each; signals ever sent, i64: those delivered and
 *  those pending. */
export const TASK_FLAGS = 448;
export const TASK_PENDING = 452;
export const TASK_SENT = 456;
/** Top of the task's stack area; the stack grows down from here. */
export const TASK_STACK_TOP = 1024;
export const TASK_BYTES = 1024;
/** Address of the breakpoint that every hijacked return meets: outside of every mapping. */
export const TRAMPOLINE = 0x7fff0000;
/** MAX_URETPROBE_DEPTH. */
export const RETURNS_MAX = 64;

// -- Registration churn (workload/churn.ts), offsets in its state, i32 each ----------------------
export const CHURN_REGISTERED = 64;
export const CHURN_UNREGISTERED = 68;
/** Registrations refused because the arena or the table was full. */
export const CHURN_ERRORS = 72;
export const CHURN_CHECKS = 76;
/** Offset of the task a churn state calls its probes with. */
export const CHURN_TASK = 28;

// -- Stress of probes (workload/stress*.ts) ------------------------------------------------------
/** What a CPU does in a stress. */
export const STRESS_CALLS = 0;
export const STRESS_ATTACHES = 1;
export const STRESS_MAPS = 2;
export const STRESS_FORKS = 3;
/** Instances made by a CPU (uprobe/return_instance.ts), at PCPU_RETURNS, and bytes of each. They
 *  stay with the CPU. */
export const RETURNS_MADE = 24;
export const RETURN_INSTANCE_BYTES = 64;
export const RETURNS_SLAB = 64;
/** Offsets in an area: how many tasks; the first of them, whose every call is watched; sink of the
 *  consumers that watch it, and their kind; address space; then a slot for each task, which begins
 *  with its address. */
export const STRESS_TASKS = 0;
export const STRESS_WATCH_SINK = 4;
export const STRESS_WATCH_KIND = 8;
export const STRESS_MM = 12;
export const STRESS_SLOTS_AT = 128;
export const STRESS_SLOT_BYTES = 32;
/** Offsets in a member: its task, and where the counters of those that ended are, both with a
 *  task's counters; then i32 each: links attached and detached, probes of them at entries and at
 *  returns, checks, what was refused although there was room, maps made, forks. */
export const STRESS_TASK = 0;
export const STRESS_GRAVE = 4;
export const STRESS_LINKS = 8;
export const STRESS_DETACHED = 12;
export const STRESS_UPROBES = 16;
export const STRESS_URETPROBES = 20;
export const STRESS_CHECKS = 24;
export const STRESS_ERRORS = 28;
export const STRESS_MMAPS = 32;
export const STRESS_FORKED = 36;
export const STRESS_MEMBER_BYTES = 1280;

// -- Torture of lookups (workload/lookuptorture.ts), offsets in its area -------------------------
/** The host's words: inodes A and B; offset of the mapping in A, in B; address space; address and
 *  bytes of the region; offset of the probe in the region; offset of the fixed key in A. */
export const LOOKUP_INODES = 0;
export const LOOKUP_PGOFFS = 8;
export const LOOKUP_MM = 16;
export const LOOKUP_VADDR = 20;
export const LOOKUP_BYTES = 24;
export const LOOKUP_INTO = 28;
export const LOOKUP_KEY = 32;
/** The engine's: see there. */
export const LOOKUP_PHASE = 64;
export const LOOKUP_LATEST = 128;
export const LOOKUP_BELOW = 192;
export const LOOKUP_SLOTS = 256;
/** Keys that come and go, a power of two: offsets 0, 16, 32, ... */
export const LOOKUP_KEYS = 64;
export const LOOKUP_AREA_BYTES = 512;

// -- Latency (workload/histogram.ts, workload/latency.ts) ----------------------------------------
/** Offsets in a histogram: samples, their sum, the largest, i64 each; then i32: whether it records,
 *  hits to go until the next one is timed. */
export const HIST_COUNT = 0;
export const HIST_SUM = 8;
export const HIST_MAX = 16;
export const HIST_ON = 24;
export const HIST_LEFT = 28;
export const HIST_BUCKETS_AT = 64;
/** Leading bits that a bucket tells apart beyond the first, and bits of the largest value. */
export const HIST_SUB_BITS = 6;
export const HIST_BITS = 40;
export const HIST_BUCKETS = 35 * 64 + 1;
/** Bytes of one, zeroed; a multiple of STRIDE. */
export const HIST_BYTES = 141 * 128;
/** Probes of a batch that is taken away with one grace period (workload/registration.ts). */
export const REGISTRATION_BATCH = 64;
/** Offset of a count i32 in its state: calls that failed. */
export const REGISTRATION_ERRORS = 24;
/** One hit in so many is timed; a prime, so that it marches in step with nothing. */
export const LATENCY_PERIOD = 4093;
