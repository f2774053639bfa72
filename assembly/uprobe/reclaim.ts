// Freeing what hits may still read: in batches, one grace period each.
//
// Order: [A] take the list, [B] a grace period, [C] free. A head is pushed when nobody can find its
// object any more, so that a hit which began after A does not. Forbidden: freed while a hit that
// had found it still reads it (C2). Pairs with the read sections of hit.ts.
// With leases (hprobe.ts) B has three steps, each for those that the one before lets through:
//   1  the readers: afterwards no hit that had found a uprobe can take one more lease on it
//   2  the leases: afterwards no return uses it any more
//   3  the readers again: an expiry may have found a lease, in a read section, just before it ended
// The kernel has the second and the third. There a hit that began before them, and whose handlers
// outlast the second, leaves its section with a lease on what the third frees.
// RECLAIMING is raised before A and lowered after C: who sees neither a list nor a CPU at work on
// one sees what was freed. Forbidden: "the table is full" while another CPU is about to make room.
//
// Any CPU may reclaim: the housekeeper does when it is woken, unregistration since it waits for a
// grace period anyway, registration before it refuses for want of room.
//
// plain: a `head` that was taken is this CPU's alone.

import { RCU_HEAD_KIND, RCU_HEAD_NEXT } from "../layout";
import { add32 } from "../atomics";
import { call_rcu_take } from "../rcu/callbacks";
import { free_breakpoints } from "./breakpoints";
import { has_leases } from "./hprobe";
import { readers_synchronize } from "./readers";
import { synchronize_leases } from "./ri_timer";
import { DEFERRED, DEFERRED_UPROBE, free_deferred_uprobe, RECLAIMING } from "./table";
import { table_is_deferring, table_strategy } from "./table";

/**
 * uprobe_unregister_sync: returns when every hit that had begun before the call has ended, and what
 * was deferred before has been freed, but for what another CPU has taken and is about to free.
 * Returns how many objects this one freed. Blocks; not in a section.
 */
export function uprobes_reclaim(table: usize): i32 {
  if (!table_is_deferring(table)) return 0;
  add32(table + RECLAIMING, 1);
  let head = call_rcu_take(table + DEFERRED); // A
  const strategy = table_strategy(table);
  if (has_leases(strategy)) {
    readers_synchronize(strategy); // B, 1
    synchronize_leases(table); // B, 2
  }
  readers_synchronize(strategy); // B, 3
  let freed = 0;
  while (head != 0) {
    const next = <usize>load<u32>(head, RCU_HEAD_NEXT);
    if (load<i32>(head, RCU_HEAD_KIND) == DEFERRED_UPROBE)
      free_deferred_uprobe(table, head); // C
    else free_breakpoints(table, head); // C
    head = next;
    freed++;
  }
  add32(table + RECLAIMING, -1);
  return freed;
}
