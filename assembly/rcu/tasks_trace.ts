// RCU Tasks Trace and QSBR: readers without a fence.
//
// The kernel's updater interrupts CPUs to force the fence that these readers lack (C14). User space
// has no such interrupt, so readers announce themselves, at no cost to speak of (declared in
// README.md): a private line per CPU, and the outermost exit copies the global generation to it.
//
//   offset  bytes  struct at p, RCU_BYTES          offset  per CPU, at PCPU_RCU
//        0     16  see grace.ts                         0  nesting
//       16      4  CPUs                                 4  generation at its last quiet moment
//       20      4  see grace.ts                         8  what it reads: OFFLINE, ONLINE, SILENT
//       32     32  gp_mutex: one at a time
//       64      4  generation: raised by each
//                  grace period; on its own line
// One domain for a set of CPUs: the lines are the CPUs', not the domain's. Flavours do not mix in
// it: the end of a Tasks Trace section is a quiet moment for QSBR as well.
//
// Reader (Tasks Trace): nesting + 1, section, nesting - 1; if that was the outermost: [A] the
// generation, [B] its copy. QSBR readers do nothing; their CPU does A, B where it reads nothing.
// Updater, after the unlink: fence, [C] generation + 1, then passes each CPU in one of three ways:
//   1  [D] it is offline, and in no section. [E] rcu_offline is an atomic store after its nesting
//      and after its last section; [F] rcu_online is one with a fence before its next section,
//      which therefore sees the unlink if D missed F (store buffering).
//   2  [G] its copy has reached the new generation. B came after C: what it read before B it reads
//      no longer, and what it reads next it reads after A, so after the unlink.
//   3  Tasks Trace only, for a CPU that comes by no quiet moment: [H] its nesting reads 0 twice, a
//      drain time apart, the first a drain time after the wait began. A section entered before the
//      first look is out of its store buffer by the second: 0 then says that it has ended. One
//      entered since the first look reads what was unlinked a drain time before.
// Forbidden: memory freed after the grace period while a section that began before can reach it.
//
// Which CPUs read: an OFFLINE one must not begin a section; nothing would order it (D looks at the
// nesting all the same, for a CPU that goes offline inside a section because it must sleep there:
// its nesting is in memory before E is). An ONLINE one announces. A SILENT one is a thread that the
// engine does not own: it never says that it is quiet, it may stop anywhere, and between its
// sections only way 3 passes it, without the patience that an ONLINE one gets first.
// The generation may wrap: an online CPU is never further behind than the grace period that waits
// for it, and an offline one copies it anew when it comes.
//
// A is an atomic load: free on x86, and on arm64 what keeps the next section's reads behind it. B
// is plain: x86 does not move a store before earlier reads. arm64 may; there way 2 would need B to
// be an atomic store, which x86 would pay for with a locked operation per hit. That a plain store
// drains at all, way 3's assumption, is what every CPU does and WebAssembly's model leaves open.
//
// plain: `line`, `PCPU_RCU`: a CPU's line is written by its owner; what the updater reads there
// may be stale, which only prolongs its wait
//
// plain: `CPUS`: set by rcu_init, before there are readers; never changes
//
// plain: `p`: in rcu_init, before there are readers

import { LINE, PCPU_RCU } from "../layout";
import { add32, fence, load32, store32 } from "../atomics";
import { cpu_now, per_cpu_ptr, this_cpu_ptr } from "../cpu";
import { mutex_init, mutex_lock, mutex_unlock } from "../sync/mutex";
import { GRACE_LOOKS, grace_done, grace_is_late, grace_pause } from "./grace";
import { grace_stalled, grace_waits } from "./grace";

const CPUS = 16;
const GP_MUTEX = 32;
const GENERATION = 64;

// Offsets in a CPU's line.
const NESTING = 0;
const SEEN = 4;
const MODE = 8;

// What a CPU reads.
const OFFLINE: i32 = 0;
const ONLINE: i32 = 1;
const SILENT: i32 = 2;

/** Far beyond what a store buffer needs to drain: some microseconds at the very worst. */
const DRAIN_NS: i64 = 1_000_000;
/** Patience with a CPU that is online and quiet nowhere: from a grace period's first wait on. */
const PATIENCE_NS: i64 = 5_000_000;

/** `cpus`: how many CPUs' lines there are. All of them offline: before the first reader. */
export function rcu_init(p: usize, cpus: i32): void {
  memory.fill(p, 0, 2 * LINE);
  store<i32>(p, cpus, CPUS);
  mutex_init(p + GP_MUTEX);
  for (let cpu = 0; cpu < cpus; cpu++) memory.fill(per_cpu_ptr(PCPU_RCU, cpu), 0, 16);
}

// Back in the section that it slept in, a CPU has not been quiet: one generation behind, so that
// every grace period that waits, or will, waits for the section's end.
function come_back(p: usize, mode: i32): void {
  const line = this_cpu_ptr(PCPU_RCU);
  const behind = load<i32>(line, NESTING) == 0 ? 0 : 1;
  store<i32>(line, load32(p + GENERATION) - behind, SEEN);
  store32(line + MODE, mode); // F
  fence();
}

/** From here on this CPU may read. It must have come online before its first section. */
export function rcu_online(p: usize): void {
  come_back(p, ONLINE);
}

/**
 * As rcu_online, for a thread that only enters and leaves Tasks Trace sections, and says nothing
 * between them. Not for QSBR, whose grace periods would not end.
 */
export function rcu_online_silent(p: usize): void {
  come_back(p, SILENT);
}

/**
 * This CPU begins no section until it is online again: nobody waits for it. In a section, where it
 * must sleep, the grace periods go on waiting for the section's end.
 */
export function rcu_offline(): void {
  store32(this_cpu_ptr(PCPU_RCU) + MODE, OFFLINE); // E
}

/** Whether this CPU may read now. */
export function rcu_is_online(): bool {
  return load32(this_cpu_ptr(PCPU_RCU) + MODE) != OFFLINE;
}

/** Whether this CPU is in a section of Tasks Trace. */
export function rcu_is_reading(): bool {
  return load<i32>(this_cpu_ptr(PCPU_RCU), NESTING) != 0;
}

/** A quiet moment: this CPU holds nothing that it read. QSBR lives on these. */
// @ts-ignore: decorator
@inline
export function rcu_quiescent(p: usize): void {
  const generation = load32(p + GENERATION); // A
  store<i32>(this_cpu_ptr(PCPU_RCU), generation, SEEN); // B
}

/** Enters a read section. Nests. */
// @ts-ignore: decorator
@inline
export function rcu_read_lock_trace(): void {
  const line = this_cpu_ptr(PCPU_RCU);
  store<i32>(line, load<i32>(line, NESTING) + 1, NESTING);
}

// @ts-ignore: decorator
@inline
export function rcu_read_unlock_trace(p: usize): void {
  const line = this_cpu_ptr(PCPU_RCU);
  const nesting = load<i32>(line, NESTING) - 1;
  store<i32>(line, nesting, NESTING);
  if (nesting == 0) rcu_quiescent(p);
}

// Ways 1 and 2. The mode before the copy: whoever is seen online made its copy before that.
function has_passed(p: usize, cpu: i32, target: i32): bool {
  const line = per_cpu_ptr(PCPU_RCU, cpu);
  if (load32(line + MODE) == OFFLINE && load32(line + NESTING) == 0) return true; // D
  return load32(line + SEEN) - target >= 0; // G
}

// `began`: when this grace period first had to wait, 0 if it has not. Returns it for the next CPU:
// one that need not wait need not ask for the time.
function wait_for_cpu(p: usize, cpu: i32, target: i32, trace: bool, began: i64): i64 {
  if (has_passed(p, cpu, target)) return began;
  const line = per_cpu_ptr(PCPU_RCU, cpu);
  const patience = load32(line + MODE) == SILENT ? DRAIN_NS : PATIENCE_NS;
  const since = grace_waits(p, cpu);
  if (began == 0) began = since;
  let late = false;
  let idle_since: i64 = 0; // when its nesting first read 0, in a row; 0: not yet
  for (let i = 0; !has_passed(p, cpu, target); i++) {
    grace_pause(i);
    if (!late && grace_is_late(p, i, since)) {
      late = true;
      grace_stalled(p, cpu);
    }
    if (!trace || i < GRACE_LOOKS) continue;
    const now = cpu_now();
    if (now - began < patience) continue;
    if (load32(line + NESTING) != 0)
      idle_since = 0; // H
    else if (idle_since == 0) idle_since = now;
    else if (now - idle_since >= DRAIN_NS) break; // H
  }
  return began;
}

function synchronize(p: usize, trace: bool): void {
  // The caller reads nothing here. It says so, or two CPUs that synchronize at once would wait for
  // each other: one for a quiet moment of the other, that one for gp_mutex.
  const mode = load<i32>(this_cpu_ptr(PCPU_RCU), MODE);
  if (mode != OFFLINE) rcu_offline();
  fence();
  mutex_lock(p + GP_MUTEX);
  const target = add32(p + GENERATION, 1) + 1; // C
  const cpus = load<i32>(p, CPUS);
  let began: i64 = 0;
  for (let cpu = 0; cpu < cpus; cpu++) began = wait_for_cpu(p, cpu, target, trace, began);
  fence();
  grace_done(p);
  mutex_unlock(p + GP_MUTEX);
  if (mode != OFFLINE) come_back(p, mode);
}

/**
 * start_poll_synchronize_rcu: begins a grace period that nobody waits for, and returns what
 * poll_state_synchronize_rcu wants. Never blocks; the unlink must be behind a locked operation or a
 * fence.
 */
export function start_poll_synchronize_rcu(p: usize): i32 {
  return add32(p + GENERATION, 1) + 1; // C
}

/**
 * Whether every section that had begun before start_poll_synchronize_rcu returned `target` has
 * ended: true, or "ask again". A CPU passes in way 1 or 2 only. Never blocks; any CPU may ask, also
 * in a section.
 */
export function poll_state_synchronize_rcu(p: usize, target: i32): bool {
  const cpus = load<i32>(p, CPUS);
  for (let cpu = 0; cpu < cpus; cpu++) {
    if (!has_passed(p, cpu, target)) return false;
  }
  return true;
}

/**
 * Returns when every Tasks Trace section that had begun before the call has ended. Blocks; not to
 * be called in a section: it would wait for itself. A CPU that never comes by a quiet moment is
 * passed after some milliseconds.
 */
export function synchronize_rcu_tasks_trace(p: usize): void {
  synchronize(p, true);
}

/** As that, for QSBR readers: waits for a quiet moment of every online CPU, however long. */
export function synchronize_rcu_qsbr(p: usize): void {
  synchronize(p, false);
}
