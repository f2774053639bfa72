// RCU Tasks Trace and QSBR: readers without a fence.
//
// The kernel's updater interrupts CPUs to force the fence that these readers lack. User space has
// no such interrupt, so readers announce themselves, at no cost to speak of (declared in
// README.md): a private line per CPU, and the outermost exit copies the global generation to it.
//
//   offset  bytes  struct at p, RCU_BYTES          offset  per CPU, at PCPU_RCU
//        0     16  see grace.ts                         0  nesting
//       16      4  CPUs                                 4  generation at its last quiet moment
//       32     32  gp_mutex: one at a time              8  online: 0 says "I read nothing"
//       64      4  generation: raised by each
//                  grace period; on its own line
//
// Reader (Tasks Trace): nesting + 1, section, nesting - 1; if that was the outermost: [A] the
// generation, [B] its copy. QSBR readers do nothing; their CPU does A, B where it reads nothing.
// Updater, after the unlink: fence, [C] generation + 1, then passes each CPU in one of three ways:
//   1  [D] it is offline. [E] rcu_offline is an atomic store after its last section; [F]
//      rcu_online is one with a fence before its next, which therefore sees the unlink.
//   2  [G] its copy has reached the new generation. B came after C: what it read before B it reads
//      no longer, and what it reads next it reads after A, so after the unlink.
//   3  Tasks Trace only, for a CPU that comes by no quiet moment: its nesting reads 0 twice, a
//      drain time apart. A section whose nesting was still in the store buffer the first time is
//      in memory by the second; one that began since sees the unlink, older than the pause.
// Forbidden: memory freed after the grace period while a section that began before can reach it.
//
// A is an atomic load: free on x86, and on arm64 what keeps the next section's reads behind it. B
// is plain: x86 does not move a store before earlier reads. arm64 may; there way 2 would need B to
// be an atomic store, which x86 would pay for with a locked operation per hit.
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
import { grace_done, grace_pause, grace_waits } from "./grace";

const CPUS = 16;
const GP_MUTEX = 32;
const GENERATION = 64;

// Offsets in a CPU's line.
const NESTING = 0;
const SEEN = 4;
const ONLINE = 8;

/** Far beyond what a store buffer needs to drain: some microseconds at the very worst. */
const DRAIN_NS: i64 = 1_000_000;
/** Patience with a CPU that is online and silent before way 3 is tried. */
const SILENT_NS: i64 = 5_000_000;

/** `cpus`: how many CPUs' lines there are. All of them offline: before the first reader. */
export function rcu_init(p: usize, cpus: i32): void {
  memory.fill(p, 0, 2 * LINE);
  store<i32>(p, cpus, CPUS);
  mutex_init(p + GP_MUTEX);
  for (let cpu = 0; cpu < cpus; cpu++) memory.fill(per_cpu_ptr(PCPU_RCU, cpu), 0, 16);
}

/** From here on this CPU may read. It must have come online before its first section. */
export function rcu_online(p: usize): void {
  const line = this_cpu_ptr(PCPU_RCU);
  store<i32>(line, load32(p + GENERATION), SEEN);
  store32(line + ONLINE, 1); // F
  fence();
}

/** This CPU reads nothing until it is online again: nobody waits for it. Not in a section. */
export function rcu_offline(): void {
  store32(this_cpu_ptr(PCPU_RCU) + ONLINE, 0); // E
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

// Ways 1 and 2.
function has_passed(p: usize, cpu: i32, target: i32): bool {
  const line = per_cpu_ptr(PCPU_RCU, cpu);
  if (load32(line + ONLINE) == 0) return true; // D
  return load32(line + SEEN) - target >= 0; // G
}

function wait_for_cpu(p: usize, cpu: i32, target: i32, nesting_counts: bool): void {
  if (has_passed(p, cpu, target)) return;
  const line = per_cpu_ptr(PCPU_RCU, cpu);
  const since = grace_waits(p, cpu);
  let reported = false;
  let idle_since: i64 = 0; // when its nesting first read 0, in a row; 0: not yet
  for (let i = 0; !has_passed(p, cpu, target); i++) {
    if (grace_pause(p, i, since, reported)) reported = true;
    if (!nesting_counts || (i & 15) != 0) continue;
    const now = cpu_now();
    if (now - since < SILENT_NS) continue;
    if (load32(line + NESTING) != 0) idle_since = 0;
    else if (idle_since == 0) idle_since = now;
    else if (now - idle_since >= DRAIN_NS) return; // way 3
  }
}

function synchronize(p: usize, nesting_counts: bool): void {
  // The caller reads nothing here. It says so, or two CPUs that synchronize at once would wait for
  // each other: one for a quiet moment of the other, that one for gp_mutex.
  const online = load<i32>(this_cpu_ptr(PCPU_RCU), ONLINE) != 0;
  if (online) rcu_offline();
  fence();
  mutex_lock(p + GP_MUTEX);
  const target = add32(p + GENERATION, 1) + 1; // C
  const cpus = load<i32>(p, CPUS);
  for (let cpu = 0; cpu < cpus; cpu++) wait_for_cpu(p, cpu, target, nesting_counts);
  fence();
  grace_done(p);
  mutex_unlock(p + GP_MUTEX);
  if (online) rcu_online(p);
}

/**
 * Returns when every Tasks Trace section that had begun before the call has ended. Blocks; not to
 * be called in a section. A CPU that never comes by a quiet moment is passed after some
 * milliseconds.
 */
export function synchronize_rcu_tasks_trace(p: usize): void {
  synchronize(p, true);
}

/** As that, for QSBR readers: waits for a quiet moment of every online CPU, however long. */
export function synchronize_rcu_qsbr(p: usize): void {
  synchronize(p, false);
}
