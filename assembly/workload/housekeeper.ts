// The housekeeper: one extra CPU that executes the orchestrator's commands, one after the other.
//
// The ring has one producer and one consumer. The producer [A] fills a slot, [B] raises HEAD,
// [C] raises the bell and notifies it. The consumer [D] reads HEAD, executes, [E] stores the
// result, [F] raises TAIL. Forbidden: a command executed before its arguments are there (A before
// B, B before D's read), a result read before it is there (E before F). Who has something large to
// be freed, or a timer to be set, rings the bell too. A ring that comes before the sleep is not
// lost: the consumer read the bell [G] before it looked for work, and the sleep's own comparison
// sees that it was raised since.
//
// plain: `slot` and its arguments `a`: between TAIL and HEAD they are the consumer's, all others
// the producer's. `HDR_*`, `UPROBE_*` do not change.

import {
  OP_REGISTER_BATCH,
  OP_UNREGISTER_MANY,
  OP_ALLOC,
  OP_CHECK_TREE,
  OP_CHURN,
  OP_CHURN_CREATE,
  OP_CHURN_DESTROY,
  OP_FREE,
  OP_INODE_CREATE,
  OP_INODE_DESTROY,
  OP_MM_CREATE,
  OP_MM_DESTROY,
  OP_MM_FORK,
  OP_MMAP,
  OP_MUNMAP,
  OP_NOP,
  OP_REGISTER,
  OP_REGISTER_MANY,
  OP_SINK_CREATE,
  OP_SINK_DESTROY,
  OP_REGISTRATION_CREATE,
  OP_REGISTRATION_DESTROY,
  OP_SIGNAL_SEND,
  OP_STOP,
  OP_SYNCHRONIZE,
  OP_TASK_CREATE,
  OP_TEXT_AT,
  OP_TASK_DESTROY,
  OP_TASK_FORK,
  OP_RETURNS_LEFT,
  OP_STRESS,
  OP_STRESS_CREATE,
  OP_STRESS_DESTROY,
  OP_STRESS_JOIN,
  OP_STRESS_LEAVE,
  OP_STRESS_UNWIND,
  OP_UNREGISTER,
} from "../commands";
import { EBUSY, EINVAL, ENOMEM, FAULT_TREE, HDR_ARENA, HDR_BELL, HDR_CPUS } from "../layout";
import { HDR_TABLE } from "../layout";
import { HEADER_BYTES } from "../layout";
import { RING_HEAD, RING_SLOT_BYTES, RING_SLOTS, RING_SLOTS_AT } from "../layout";
import { RING_TAIL, SLOT_ARGS, SLOT_OP, SLOT_RESULT } from "../layout";
import { load32, store32 } from "../atomics";
import { arena_alloc, arena_free } from "../mm/arena";
import { inode_create, inode_destroy } from "../mm/inode";
import { mm_create, mm_put } from "../mm/mm";
import { park } from "../sync/park";
import { vm_mmap, vm_munmap } from "../uprobe/breakpoint";
import { raise_slow, this_engine } from "../uprobe/fault";
import { vm_fork } from "../uprobe/fork";
import { rb_check, rb_first, rb_next } from "../uprobe/rbtree";
import { uprobes_reclaim } from "../uprobe/reclaim";
import { ri_timer_due, ri_timer_run } from "../uprobe/ri_timer";
import { signal_send } from "../uprobe/signal";
import { sink_create, sink_destroy } from "../uprobe/sink";
import { table_arena } from "../uprobe/table";
import {
  first_at_or_after,
  has_deferred,
  has_unfreed,
  table_strategy,
  table_tree,
} from "../uprobe/table";
import { treelock_read, treelock_write, treeunlock_read } from "../uprobe/table";
import { treeunlock_write } from "../uprobe/table";
import { UPROBE_INODE, UPROBE_OFFSET } from "../uprobe/table";
import { task_create, task_set_stack, task_text } from "../uprobe/task";
import { task_destroy, task_fits, task_fork } from "../uprobe/utask";
import { churn_create, churn_destroy, churn_probes } from "./churn";
import { register_batch, register_many, register_one, unregister_many } from "./registrar";
import { unregister_one } from "./registrar";
import { registration_create, registration_destroy } from "./registration";
import { returns_left, stress, stress_create, stress_destroy } from "./stresslife";
import { stress_join, stress_leave, stress_unwind } from "./stresslife";

// An address, or ENOMEM for 0.
function address_or(p: usize, otherwise: i32): i32 {
  return p == 0 ? otherwise : <i32>p;
}

function create_task(
  table: usize,
  mm: usize,
  pid: i32,
  vaddr: u32,
  stride: i32,
  sites: i32,
  seed: i32,
  stack: i32,
): i32 {
  const arena = table_arena(table);
  const task = task_create(arena, mm, pid, vaddr, stride, sites, seed);
  if (task == 0) return ENOMEM;
  if (stack == 0 || task_set_stack(arena, task, stack)) return <i32>task;
  task_destroy(table, task);
  return ENOMEM;
}

function destroy_inode(table: usize, inode: usize): i32 {
  const strategy = table_strategy(table);
  treelock_read(table, strategy);
  const probed = first_at_or_after(table, inode, 0) != 0;
  treeunlock_read(table, strategy);
  return !probed && inode_destroy(inode) ? 0 : EBUSY;
}

// Number of nodes; the rules of a red-black tree and the order of keys are checked on the way.
function check_tree(table: usize): i32 {
  treelock_write(table);
  const root = <usize>load32(table_tree(table));
  let sound = rb_check(root, 0, 64) > 0;
  let nodes = 0;
  let before: usize = 0;
  for (let n = rb_first(table_tree(table)); sound && n != 0; n = rb_next(n)) {
    if (before != 0) {
      const a = load<u32>(before, UPROBE_INODE);
      const b = load<u32>(n, UPROBE_INODE);
      const ordered = load<i32>(before, UPROBE_OFFSET) < load<i32>(n, UPROBE_OFFSET);
      if (a > b || (a == b && !ordered)) sound = false;
    }
    before = n;
    nodes++;
  }
  treeunlock_write(table);
  if (!sound) raise_slow(FAULT_TREE);
  return nodes;
}

function execute(slot: usize): i32 {
  const engine = this_engine();
  const arena = <usize>load<u32>(engine, HDR_ARENA);
  const table = <usize>load<u32>(engine, HDR_TABLE);
  const cpus = load<i32>(engine, HDR_CPUS) + 1; // sinks count the housekeeper's own hits too
  const a = slot + SLOT_ARGS;
  const a0 = load<u32>(a);
  const a1 = load<u32>(a, 4);
  const a2 = load<u32>(a, 8);
  const a3 = load<u32>(a, 12);
  const a4 = load<u32>(a, 16);
  const a5 = load<u32>(a, 20);
  const a6 = load<u32>(a, 24);
  const a7 = load<u32>(a, 28);
  const a8 = load<u32>(a, 32);
  const a9 = load<i32>(a, 36);
  switch (load<i32>(slot, SLOT_OP)) {
    case OP_NOP:
      return 0;
    case OP_ALLOC:
      return address_or(arena_alloc(arena, <i32>a0), ENOMEM);
    case OP_FREE:
      arena_free(arena, a0, <i32>a1);
      return 0;
    case OP_INODE_CREATE:
      return address_or(inode_create(arena, <i32>a0, <i32>a1), ENOMEM);
    case OP_INODE_DESTROY:
      return destroy_inode(table, a0);
    case OP_MM_CREATE:
      return address_or(mm_create(arena, <i32>a0), ENOMEM);
    case OP_MM_DESTROY:
      mm_put(a0);
      return 0;
    case OP_MMAP:
      // The slot's own last word is the scratch for the VMA's address.
      return vm_mmap(table, a0, a1, a2, <i32>a3, <i32>a4, slot + RING_SLOT_BYTES - 4);
    case OP_MM_FORK:
      return address_or(vm_fork(table, a0), ENOMEM);
    case OP_TEXT_AT: {
      // One byte is in one mapping, or in none.
      const text = task_text(a0, a1, 1, 1);
      return text != 0 ? <i32>text : EINVAL;
    }
    case OP_MUNMAP:
      return vm_munmap(table, a0, a1);
    case OP_TASK_CREATE:
      if (task_text(a0, a2, <i32>a3, <i32>a4) == 0 || (a6 & 15) != 0) return EINVAL;
      return create_task(table, a0, <i32>a1, a2, <i32>a3, <i32>a4, <i32>a5, <i32>a6);
    case OP_TASK_FORK:
      if (!task_fits(a0, a1)) return EINVAL;
      return address_or(task_fork(table, a0, a1, <i32>a2), ENOMEM);
    case OP_TASK_DESTROY:
      task_destroy(table, a0);
      return 0;
    case OP_SINK_CREATE:
      return address_or(sink_create(arena, <i32>a0, cpus, <i32>a1, <i32>a2), ENOMEM);
    case OP_SINK_DESTROY:
      sink_destroy(a0);
      return 0;
    case OP_REGISTER:
      return register_one(table, a0, <i32>a1, a2, <i32>a3, a4, <i32>a5, <i32>a6, <i32>a7, a8, a9);
    case OP_REGISTER_MANY:
      return register_many(table, a0, <i32>a1, <i32>a2, <i32>a3, a4, <i32>a5);
    case OP_UNREGISTER:
      return unregister_one(table, a0);
    case OP_REGISTER_BATCH:
      return register_batch(table, a0, <i32>a1);
    case OP_UNREGISTER_MANY:
      return unregister_many(table, a0, <i32>a1);
    case OP_CHECK_TREE:
      return check_tree(table);
    case OP_SYNCHRONIZE:
      return uprobes_reclaim(table);
    case OP_SIGNAL_SEND:
      return signal_send(a0, <i32>a1);
    case OP_CHURN_CREATE:
      return address_or(churn_create(a0, a1, a2, <i32>a3, <i32>a4, <i32>a5, <i32>a6, cpus), ENOMEM);
    case OP_CHURN_DESTROY:
      churn_destroy(a0);
      return 0;
    case OP_REGISTRATION_CREATE:
      return address_or(registration_create(a0, a1, a2, <i32>a3, <i32>a4, cpus), ENOMEM);
    case OP_REGISTRATION_DESTROY:
      registration_destroy(a0);
      return 0;
    case OP_STRESS_CREATE:
      return address_or(stress_create(<i32>a0, <i32>a1, <i32>a2, <i32>a3), ENOMEM);
    case OP_STRESS_JOIN:
      return address_or(stress_join(a0, <i32>a1, <i32>a2), ENOMEM);
    case OP_STRESS:
      return stress(a0, <i32>a1, <i32>a2);
    case OP_STRESS_LEAVE:
      stress_leave(a0);
      return 0;
    case OP_STRESS_UNWIND:
      stress_unwind(a0, a1);
      return 0;
    case OP_STRESS_DESTROY:
      stress_destroy(a0);
      return 0;
    case OP_RETURNS_LEFT:
      return returns_left();
    case OP_CHURN:
      churn_probes(a0, <i32>a1);
      return 0;
    default:
      return EINVAL;
  }
}

// What finds no memory is tried again after what was deferred has been freed: it left nothing
// behind.
function execute_or_wait(table: usize, slot: usize): i32 {
  const rc = execute(slot);
  if (rc != ENOMEM || !has_unfreed(table)) return rc;
  uprobes_reclaim(table);
  return execute(slot);
}

/**
 * Executes what is in the ring and frees what was deferred; if there is nothing to do, parks for at
 * most `timeout_ns` first. Returns the number of commands executed, or -1 after OP_STOP.
 */
export function housekeeper_run(timeout_ns: i64): i32 {
  const engine = this_engine();
  const ring = engine + HEADER_BYTES;
  const table = <usize>load<u32>(engine, HDR_TABLE);
  const bell = load32(engine + HDR_BELL); // G
  let tail = load32(ring + RING_TAIL);
  if (load32(ring + RING_HEAD) == tail && !has_deferred(table)) {
    const due = ri_timer_due(table);
    park(engine + HDR_BELL, bell, due < 0 ? timeout_ns : min(timeout_ns, due));
  }
  ri_timer_run(table);
  let done = 0;
  while (load32(ring + RING_HEAD) != tail) {
    // [D] HEAD was raised: the slot is filled.
    const slot = ring + RING_SLOTS_AT + <usize>((tail & (RING_SLOTS - 1)) * RING_SLOT_BYTES);
    const stop = load<i32>(slot, SLOT_OP) == OP_STOP;
    store<i32>(slot, stop ? 0 : execute_or_wait(table, slot), SLOT_RESULT); // E
    tail++;
    store32(ring + RING_TAIL, tail); // F
    if (stop) return -1;
    done++;
  }
  if (has_deferred(table)) uprobes_reclaim(table);
  return done;
}
