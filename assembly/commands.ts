// The commands that the orchestrator asks the housekeeper for (workload/housekeeper.ts), by number.
// name(arguments) -> result; a negative result is an errno (layout.ts).
//
// As layout.ts: constants only, which the host imports too.

/** stop(): the housekeeper leaves its loop. */
export const OP_STOP = 0;
/** nop() -> 0. */
export const OP_NOP = 1;
/** alloc(bytes) -> address. free(address, bytes) -> 0. */
export const OP_ALLOC = 2;
export const OP_FREE = 3;
/** inode_create(bytes, opcode) -> inode. inode_destroy(inode) -> 0 or EBUSY. */
export const OP_INODE_CREATE = 4;
export const OP_INODE_DESTROY = 5;
/** mm_create(maps_max) -> mm. mm_destroy(mm) -> 0. */
export const OP_MM_CREATE = 6;
export const OP_MM_DESTROY = 7;
/** mmap(mm, inode, vaddr, bytes, pgoff) -> 0. munmap(mm, vaddr) -> 0. */
export const OP_MMAP = 8;
export const OP_MUNMAP = 9;
/** task_create(mm, pid, vaddr, stride, sites, seed, stack) -> task; stack: bytes, a multiple of 16,
 * 0
 *  for the task's own 256; EINVAL: not in one mapping.
 *  task_destroy(task) -> 0. */
export const OP_TASK_CREATE = 10;
export const OP_TASK_DESTROY = 11;
/** sink_create(kind, size, clock) -> sink. sink_destroy(sink) -> 0. */
export const OP_SINK_CREATE = 12;
export const OP_SINK_DESTROY = 13;
/** register(inode, offset, sink, filter_task, filter_mm, limit, cookie, kind, return_sink, ref_ctr)
 *  -> consumer; kind: CONSUMER_, 0 for ENTRY; return_sink: 0 for the same; ref_ctr: offset of the
 *  probe's 16-bit reference counter in the file, 0 for none. */
export const OP_REGISTER = 14;
/** register_many(inode, offset, stride, count, sink, kind) -> how many; stops at the first
 *  failure. */
export const OP_REGISTER_MANY = 15;
/** unregister(consumer) -> 0; the consumer's memory is free afterwards. */
export const OP_UNREGISTER = 16;
/** check_tree() -> number of nodes; raises FAULT_TREE where a rule is broken. */
export const OP_CHECK_TREE = 17;
/** churn_create(mm, inode, vaddr, offset, stride, sites, seed) -> state. churn_destroy(state). */
export const OP_CHURN_CREATE = 18;
export const OP_CHURN_DESTROY = 19;
/** churn(state, n) -> 0: n registrations or unregistrations by the housekeeper itself. */
export const OP_CHURN = 20;

/** synchronize() -> how many it freed: all that was deferred before, but for what other CPUs have
 *  taken and are about to free. */
export const OP_SYNCHRONIZE = 21;
/** task_fork(parent, mm, pid) -> child, at the parent's place of the program; EINVAL: mm has not
 *  what the parent executes. */
export const OP_TASK_FORK = 22;

/** mm_fork(parent) -> child: a copy of the address space, breakpoints included. */
export const OP_MM_FORK = 50;
/** register_batch(list, count) -> 0, all of them, or an errno, none. The list: entries of
 *  BATCH_BYTES in the engine's memory, each with the arguments of register; BATCH_RESULT of it gets
 *  the consumer, or the errno of the first that failed, else 0. */
export const OP_REGISTER_BATCH = 51;
export const BATCH_RESULT = 48;
export const BATCH_BYTES = 64;
/** unregister_many(list, count) -> 0, or the first errno: consumers, one word each, with one grace
 *  period; the words become 0, or the errno of one that was not registered. */
export const OP_UNREGISTER_MANY = 52;
/** text_at(mm, vaddr) -> where the mapped byte lies in the engine's memory; EINVAL: not mapped. */
export const OP_TEXT_AT = 53;
/** signal_send(task, sig) -> 1: it is pending now; 0: it was already; EINVAL: not in 0..31. */
export const OP_SIGNAL_SEND = 60;

/** registration_create(mm, inode, vaddr, offset, stride) -> state. registration_destroy(state). */
export const OP_REGISTRATION_CREATE = 40;
export const OP_REGISTRATION_DESTROY = 41;

// Stress of probes (workload/stress*.ts).
/** stress_create(sites, tasks, members, seed) -> area. stress_join(area, number, seed) -> member.
 *  stress(member, role, n) -> steps done. */
export const OP_STRESS_CREATE = 70;
export const OP_STRESS_JOIN = 71;
export const OP_STRESS = 72;
/** stress_leave(member) -> 0: all it has is taken back, and counted into its grave.
 *  stress_unwind(area, member) -> 0: every second task returns from all its calls.
 *  stress_destroy(area) -> 0; members: free(member, STRESS_MEMBER_BYTES), their graves alike. */
export const OP_STRESS_LEAVE = 73;
export const OP_STRESS_UNWIND = 74;
export const OP_STRESS_DESTROY = 75;
/** returns_left() -> leases that nobody has ended, plus return instances that are neither in use by
 *  a task nor free: 0 when no task has a pending return. */
export const OP_RETURNS_LEFT = 76;
