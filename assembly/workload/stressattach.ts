// Stress of probes: attachers. A link is up to PROBES consumers at functions of the file, all of
// one kind and with one sink, registered one after the other and taken away together, with one
// grace period. Every step is checked: what registration and unregistration promise of the very
// next call.
//
// link
//   offset  bytes  content
//        0      4  how many consumers there are; 0: the link is free
//        4     20  pid they are for, or 0; kind; limit, or 0; sink; whether it was detached
//       24      8  what its sink had been given when it was, i64
//       32  10*8   consumer, function
//
// A detached link stays until its place is drawn again: its consumers are dead, and a handler that
// still runs on one is a fault; and its sink must not be given anything any more.
//
// plain: `link`, `probe`: their member's own; `area`, `AREA_*`, `STRESS_MM`: do not change while
// CPUs run. `CONSUMER_UPROBE` does not change while its consumer is registered. `SINK_KIND` never
// does.

import { CONSUMER_ENTRY, CONSUMER_RETURN, CONSUMER_SESSION, ENOMEM, ENOSPC } from "../layout";
import { FAULT_DUPLICATE_KEY, FAULT_LATE_HANDLER, FAULT_LOST_HIT, HDR_CPUS } from "../layout";
import { HANDLER_COUNT, HANDLER_EMIT, HANDLER_HIST, HANDLER_LATENCY, SINK_KIND } from "../layout";
import { STRESS_DETACHED, STRESS_ERRORS, STRESS_LINKS, STRESS_MM, STRESS_TASK } from "../layout";
import { STRESS_TASKS, STRESS_UPROBES, STRESS_URETPROBES } from "../layout";
import { cpu_begin_batch, cpu_slept, this_cpu } from "../cpu";
import { consumer_create, consumer_free, consumer_kill, CONSUMER_UPROBE } from "../uprobe/consumer";
import { consumer_set_kind } from "../uprobe/consumer";
import { raise_slow, this_engine } from "../uprobe/fault";
import { uprobe_register, uprobe_unregister, uprobe_unregister_nosync } from "../uprobe/register";
import { uprobe_unregister_sync } from "../uprobe/register";
import { sink_create, sink_destroy } from "../uprobe/sink";
import { find_live_uprobe, put_uprobe, table_arena } from "../uprobe/table";
import { TASK_PID } from "../uprobe/task";
import { trigger_call } from "./call";
import {
  area_of,
  AREA_INODE,
  AREA_SITES,
  below,
  check,
  count,
  draw,
  FUNCTION_BYTES,
} from "./stress";
import { given, MAIN_VADDR, MEMBER_LINKS, own_pid, slot_at, SLOT_TASK } from "./stress";
import { send_signal, this_table } from "./stress";

const LINKS = 5;
const PROBES = 10;
const LINK_BYTES = 128;
/** Records of a ring that nobody reads: it fills, and what comes then is lost, and counted. */
const RING_RECORDS = 8;

const LINK_COUNT = 0;
const LINK_PID = 4;
const LINK_KIND = 8;
const LINK_LIMIT = 12;
const LINK_SINK = 16;
const LINK_DEAD = 20;
const LINK_GIVEN = 24;
const LINK_PROBES = 32;

// @ts-ignore: decorator
@inline
function probe_at(link: usize, i: i32): usize {
  return link + LINK_PROBES + <usize>(i << 3);
}
function consumer_of(probe: usize): usize {
  return <usize>load<u32>(probe);
}
function offset_of(probe: usize): i32 {
  return load<i32>(probe, 4) * FUNCTION_BYTES;
}

function given_anywhere(sink: usize): i64 {
  const cpus = load<i32>(this_engine(), HDR_CPUS) + 1; // plain: never changes
  let sum: i64 = 0;
  for (let cpu = 0; cpu < cpus; cpu++) sum += given(sink, cpu);
  return sum;
}

// One call of the probe's function by the member's own task: what the link's sink was given by it.
function probe_call(member: usize, link: usize, probe: usize): i64 {
  const sink = <usize>load<u32>(link, LINK_SINK);
  const before = given(sink, this_cpu());
  const task = <usize>load<u32>(member, STRESS_TASK); // plain: the member's own
  trigger_call(task, MAIN_VADDR + <u32>offset_of(probe));
  return given(sink, this_cpu()) - before;
}

// What one call should give: at the entry, at the return.
function wanted_of(member: usize, link: usize): i64 {
  const pid = load<i32>(link, LINK_PID);
  if (pid != 0 && pid != own_pid(member)) return 0;
  if (load<i32>(link, LINK_KIND) != CONSUMER_SESSION) return 1;
  const kind = load<i32>(<usize>load<u32>(link, LINK_SINK), SINK_KIND);
  return kind == HANDLER_LATENCY ? 1 : 2;
}

// C12, C11: the very next calls are seen, as many as the limit says, and none after those.
function check_attached(member: usize, link: usize, probe: usize): void {
  const wanted = wanted_of(member, link);
  const limit = load<i32>(link, LINK_LIMIT);
  if (limit != 0 && load<i32>(link, LINK_PID) != own_pid(member)) {
    probe_call(member, link, probe); // others use it up as well
    return;
  }
  const sink = <usize>load<u32>(link, LINK_SINK);
  const may_lose = wanted == 2 && load<i32>(sink, SINK_KIND) == HANDLER_EMIT;
  for (let i = 0; i < max(limit, 1); i++) {
    const seen = probe_call(member, link, probe);
    // A session whose entry found no room has no return.
    check(member, seen == wanted || (may_lose && seen == 1), FAULT_LOST_HIT);
  }
  if (limit != 0) check(member, probe_call(member, link, probe) == 0, FAULT_LATE_HANDLER);
}

// C3: while a consumer keeps it alive, the key has one uprobe: the one that the consumer is on.
function check_key(member: usize, table: usize, inode: usize, probe: usize): void {
  const u = find_live_uprobe(table, inode, offset_of(probe));
  check(member, u == <usize>load<u32>(consumer_of(probe), CONSUMER_UPROBE), FAULT_DUPLICATE_KEY);
  if (u != 0) put_uprobe(table, u);
}

function make_sink(member: usize, kind: i32): usize {
  const arena = table_arena(this_table());
  const cpus = load<i32>(this_engine(), HDR_CPUS) + 1; // plain: never changes
  const r = draw(member) & 7;
  if (kind == CONSUMER_SESSION && r < 3) return sink_create(arena, HANDLER_LATENCY, cpus, 0, 0);
  if (r == 3) return sink_create(arena, HANDLER_EMIT, cpus, RING_RECORDS, 0);
  return sink_create(arena, r == 4 ? HANDLER_HIST : HANDLER_COUNT, cpus, 0, 0);
}

// Whom a link is for: its member's own task, everybody, or one of the stress's tasks.
function draw_pid(member: usize, r: u32): i32 {
  if ((r & 7) < 3) return own_pid(member);
  if ((r & 7) < 7) return 0;
  const area = area_of(member);
  const slot = slot_at(area, below(member, load<i32>(area, STRESS_TASKS)));
  return load<i32>(<usize>load<u32>(slot, SLOT_TASK), TASK_PID); // plain: tasks outlive CPUs' runs
}

function attach(member: usize, link: usize): void {
  const table = this_table();
  const area = area_of(member);
  const inode = <usize>load<u32>(area, AREA_INODE);
  const r = draw(member);
  const kind = 1 + below(member, CONSUMER_SESSION);
  const pid = draw_pid(member, r);
  const limit = kind != CONSUMER_RETURN && ((r >>> 3) & 7) == 0 ? 1 + below(member, 3) : 0;
  const mm = ((r >>> 6) & 3) == 0 ? <usize>load<u32>(area, STRESS_MM) : 0;
  const sink = make_sink(member, kind);
  if (sink == 0) {
    count(member, STRESS_ERRORS, 1);
    return;
  }
  store<i32>(link, pid, LINK_PID);
  store<i32>(link, kind, LINK_KIND);
  store<i32>(link, limit, LINK_LIMIT);
  store<u32>(link, <u32>sink, LINK_SINK);
  store<i32>(link, 0, LINK_DEAD);
  const probes = 1 + below(member, PROBES);
  const sites = load<i32>(area, AREA_SITES);
  const apart = 1 + 2 * below(member, PROBES / 2); // no function twice
  let site = below(member, sites);
  let made = 0;
  while (made < probes) {
    const probe = probe_at(link, made);
    const c = consumer_create(table, sink, pid, mm, limit);
    if (c != 0) consumer_set_kind(c, kind, sink);
    const rc = c == 0 ? ENOMEM : uprobe_register(table, inode, site * FUNCTION_BYTES, c);
    if (rc != 0) {
      if (rc != ENOMEM && rc != ENOSPC) raise_slow(FAULT_LOST_HIT);
      if (c != 0) consumer_free(table, c);
      count(member, STRESS_ERRORS, 1);
      break;
    }
    store<u32>(probe, <u32>c);
    store<i32>(probe, site, 4);
    made++;
    site = (site + apart) % sites;
  }
  store<i32>(link, made, LINK_COUNT);
  if (made == 0) {
    sink_destroy(sink);
    return;
  }
  count(member, STRESS_LINKS, 1);
  if ((kind & CONSUMER_ENTRY) != 0) count(member, STRESS_UPROBES, made);
  if ((kind & CONSUMER_RETURN) != 0) count(member, STRESS_URETPROBES, made);
  const probe = probe_at(link, below(member, made));
  check_attached(member, link, probe);
  check_key(member, table, inode, probe);
}

function detach(member: usize, link: usize): void {
  const table = this_table();
  const inode = <usize>load<u32>(area_of(member), AREA_INODE);
  const probes = load<i32>(link, LINK_COUNT);
  const limit = load<i32>(link, LINK_LIMIT);
  const kind = load<i32>(link, LINK_KIND);
  const sink = <usize>load<u32>(link, LINK_SINK);
  if (probes == 1) {
    const probe = probe_at(link, 0);
    const rc = uprobe_unregister(table, inode, offset_of(probe), consumer_of(probe));
    if (rc != 0) raise_slow(FAULT_LOST_HIT);
  } else {
    for (let i = 0; i < probes; i++) {
      const probe = probe_at(link, i);
      const rc = uprobe_unregister_nosync(table, inode, offset_of(probe), consumer_of(probe));
      if (rc != 0) raise_slow(FAULT_LOST_HIT);
    }
    uprobe_unregister_sync(table);
  }
  // C9: from here on nobody may touch the consumers, or give their sink anything.
  for (let i = 0; i < probes; i++) consumer_kill(consumer_of(probe_at(link, i)));
  const total = given_anywhere(sink);
  store<i64>(link, total, LINK_GIVEN);
  store<i32>(link, 1, LINK_DEAD);
  count(member, STRESS_DETACHED, 1);
  // Of a session the children return, too, that were forked since its entry.
  if (limit != 0 && kind == CONSUMER_ENTRY) {
    check(member, total <= <i64>(limit * probes), FAULT_LATE_HANDLER);
  }
  const seen = probe_call(member, link, probe_at(link, below(member, probes)));
  check(member, seen == 0, FAULT_LATE_HANDLER);
}

// The place of a detached link is used again.
function free_link(member: usize, link: usize): void {
  const probes = load<i32>(link, LINK_COUNT);
  if (probes == 0) return;
  const sink = <usize>load<u32>(link, LINK_SINK);
  check(member, given_anywhere(sink) == load<i64>(link, LINK_GIVEN), FAULT_LATE_HANDLER);
  for (let i = 0; i < probes; i++) consumer_free(this_table(), consumer_of(probe_at(link, i)));
  sink_destroy(sink);
  store<i32>(link, 0, LINK_COUNT);
}

function link_at(member: usize, i: i32): usize {
  return member + MEMBER_LINKS + <usize>(i * LINK_BYTES);
}

/** `n` links drawn and attached or detached. Ends early if the CPU slept; returns how many. */
export function stress_attaches(member: usize, n: i32): i32 {
  const area = area_of(member);
  const tasks = load<i32>(area, STRESS_TASKS);
  cpu_begin_batch();
  let i = 0;
  while (i < n && !cpu_slept()) {
    i++;
    send_signal(member, slot_at(area, below(member, tasks)));
    const link = link_at(member, below(member, LINKS));
    if (load<i32>(link, LINK_COUNT) != 0 && load<i32>(link, LINK_DEAD) == 0) {
      detach(member, link);
    } else {
      free_link(member, link);
      attach(member, link);
    }
  }
  return i;
}

/** All links are detached and freed. */
export function detach_all(member: usize): void {
  for (let i = 0; i < LINKS; i++) {
    const link = link_at(member, i);
    if (load<i32>(link, LINK_COUNT) != 0 && load<i32>(link, LINK_DEAD) == 0) detach(member, link);
    free_link(member, link);
  }
}
