// The host's registrations: consumers are made, registered, and freed again when they are
// unregistered. One at a time, or many with one grace period.
//
// A list in the engine's memory is the host's, who has written it before it asks and reads it when
// it has the answer.
//
// plain: `list`, `entry`, `at`: as said; `SINK_KIND`, `SINK_SIZE`, `UPROBE_*` never change. What a
// consumer is registered at does not change meanwhile: the housekeeper alone registers and
// unregisters those.

import { BATCH_BYTES, BATCH_RESULT } from "../commands";
import { CONSUMER_ENTRY, CONSUMER_SESSION, EINVAL } from "../layout";
import { ENOMEM, ETIMEDOUT, HANDLER_CALL, HANDLER_LATENCY, SINK_KIND, SINK_SIZE } from "../layout";
import {
  consumer_create,
  consumer_free,
  consumer_is_live,
  consumer_kill,
} from "../uprobe/consumer";
import { consumer_set_cookie, consumer_set_kind, consumer_uprobe } from "../uprobe/consumer";
import { uprobe_register_refctr, uprobe_unregister_nosync } from "../uprobe/register";
import { uprobe_unregister_sync } from "../uprobe/register";
import { UPROBE_INODE, UPROBE_OFFSET } from "../uprobe/table";

/** Addresses above 2 GiB look negative: only the errno range is an error. */
function is_errno(rc: i32): bool {
  return rc < 0 && rc >= ETIMEDOUT;
}

function same_function(sink: usize, return_sink: usize): bool {
  return (
    load<i32>(sink, SINK_KIND) == HANDLER_CALL &&
    load<i32>(return_sink, SINK_KIND) == HANDLER_CALL &&
    load<i32>(sink, SINK_SIZE) == load<i32>(return_sink, SINK_SIZE)
  );
}

/** A consumer, or an errno: then nothing is left behind. */
export function register_one(
  table: usize,
  inode: usize,
  offset: i32,
  sink: usize,
  filter_task: i32,
  filter_mm: usize,
  limit: i32,
  cookie: i32,
  kind: i32,
  return_sink: usize,
  ref_ctr: i32,
): i32 {
  if (kind == 0) kind = CONSUMER_ENTRY;
  if (return_sink == 0) return_sink = sink;
  if ((kind & ~CONSUMER_SESSION) != 0) return EINVAL;
  // What takes the time from entry to return needs both.
  const times =
    load<i32>(sink, SINK_KIND) == HANDLER_LATENCY ||
    load<i32>(return_sink, SINK_KIND) == HANDLER_LATENCY;
  if (times && (kind != CONSUMER_SESSION || sink != return_sink)) return EINVAL;
  // A user's function is one of entries or one of returns: they have different parameters.
  if (kind == CONSUMER_SESSION && same_function(sink, return_sink)) return EINVAL;
  const c = consumer_create(table, sink, filter_task, filter_mm, limit);
  if (c == 0) return ENOMEM;
  consumer_set_cookie(c, cookie);
  consumer_set_kind(c, kind, return_sink);
  const rc = uprobe_register_refctr(table, inode, offset, ref_ctr, c);
  if (rc == 0) return <i32>c;
  consumer_free(table, c);
  return rc;
}

/** How many of `count` probes, `stride` apart; an errno if not even the first. */
export function register_many(
  table: usize,
  inode: usize,
  offset: i32,
  stride: i32,
  count: i32,
  sink: usize,
  kind: i32,
): i32 {
  for (let i = 0; i < count; i++) {
    const rc = register_one(table, inode, offset + i * stride, sink, 0, 0, 0, 0, kind, 0, 0);
    if (is_errno(rc)) return i == 0 ? rc : i;
  }
  return count;
}

// Takes the consumer out; its memory stays until hits that had begun have ended.
function unregister_nosync(table: usize, c: usize): i32 {
  if (!consumer_is_live(c)) return EINVAL;
  const u = consumer_uprobe(c);
  if (u == 0) return EINVAL;
  const inode = <usize>load<u32>(u, UPROBE_INODE);
  return uprobe_unregister_nosync(table, inode, load<i32>(u, UPROBE_OFFSET), c);
}

function free_consumer(table: usize, c: usize): void {
  consumer_kill(c);
  consumer_free(table, c);
}

/** Takes a consumer out and frees it. EINVAL: it is not registered. */
export function unregister_one(table: usize, c: usize): i32 {
  const rc = unregister_nosync(table, c);
  if (rc != 0) return rc;
  uprobe_unregister_sync(table);
  free_consumer(table, c);
  return 0;
}

/**
 * Takes `count` consumers, whose words are at `list`, out and frees them: one grace period for all.
 * The words become 0, or an errno for one that was not registered: the first is the result.
 */
export function unregister_many(table: usize, list: usize, count: i32): i32 {
  let result = 0;
  for (let i = 0; i < count; i++) {
    const at = list + <usize>(i << 2);
    const rc = unregister_nosync(table, <usize>load<u32>(at));
    if (rc == 0) continue;
    store<i32>(at, rc);
    if (result == 0) result = rc;
  }
  uprobe_unregister_sync(table);
  for (let i = 0; i < count; i++) {
    const at = list + <usize>(i << 2);
    const c = load<i32>(at);
    if (is_errno(c)) continue;
    free_consumer(table, <usize>(<u32>c));
    store<i32>(at, 0);
  }
  return result;
}

// @ts-ignore: decorator
@inline
function entry_of(list: usize, i: i32): usize {
  return list + <usize>(i * BATCH_BYTES);
}

function register_entry(table: usize, entry: usize): i32 {
  return register_one(
    table,
    <usize>load<u32>(entry),
    load<i32>(entry, 4),
    <usize>load<u32>(entry, 8),
    load<i32>(entry, 12),
    <usize>load<u32>(entry, 16),
    load<i32>(entry, 20),
    load<i32>(entry, 24),
    load<i32>(entry, 28),
    <usize>load<u32>(entry, 32),
    load<i32>(entry, 36),
  );
}

/**
 * Registers `count` probes, all or none; each entry at `list` (BATCH_BYTES) gets its consumer. On
 * an errno, which is the result, the entry that has it says so, and those before it are taken back
 * with one grace period: their results are 0, as those of the entries that were not tried.
 */
export function register_batch(table: usize, list: usize, count: i32): i32 {
  for (let i = 0; i < count; i++) store<i32>(entry_of(list, i), 0, BATCH_RESULT);
  for (let i = 0; i < count; i++) {
    const rc = register_entry(table, entry_of(list, i));
    store<i32>(entry_of(list, i), rc, BATCH_RESULT);
    if (!is_errno(rc)) continue;
    take_back(table, list, i);
    return rc;
  }
  return 0;
}

function take_back(table: usize, list: usize, count: i32): void {
  for (let i = 0; i < count; i++) {
    unregister_nosync(table, <usize>load<u32>(entry_of(list, i), BATCH_RESULT));
  }
  uprobe_unregister_sync(table);
  for (let i = 0; i < count; i++) {
    const entry = entry_of(list, i);
    free_consumer(table, <usize>load<u32>(entry, BATCH_RESULT));
    store<i32>(entry, 0, BATCH_RESULT);
  }
}
