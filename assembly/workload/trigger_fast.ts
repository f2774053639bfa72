// The trigger loop of the preset `fastest`: as trigger.ts, but a hit that a single consumer only
// counts is taken in user mode's own loop; returns likewise (trigger_fast_returns.ts: loops of
// their own, since what they need does not fit the registers of these). Everything on the way is
// this CPU's own or only read: no shared write, no fence, no locked operation. All else leaves the
// loop for the general hit.
//
// The loop is a function without calls and with few variables, so that they stay in registers; a
// counter that the compiler keeps on the stack costs as much as the hit (bench/README.md). The
// registers of the task are the processor's (locals) here as in user mode, and an emulated
// instruction acts on those.
//
// Between two quiet moments, QUIET_ROUNDS at the most, the CPU is in one long read section: the
// table of breakpoints that was read at its beginning stays, and so does all that is found in it.
//
// plain: `TASK_*`, what lies at `task` and its stack (`sp`) are private to its CPU
// (uprobe/task.ts); `HDR_*` is read-only while CPUs run.

import { HDR_TABLE, HDR_TRAP_UNITS, INSN_TRAP, PRESET_FASTEST } from "../layout";
import { TASK_HANDLED, TASK_MISSED_NO_PROBE, TASK_SP, TASK_TRIGGERS } from "../layout";
import { load8 } from "../atomics";
import { cpu_begin_batch, cpu_slept } from "../cpu";
import { breakpoints_of, breakpoints_shift, find_random_place } from "../uprobe/breakpoints";
import { count_word, count_word_at, counted_uprobe, find_place } from "../uprobe/breakpoints";
import { no_place, place_of } from "../uprobe/breakpoints";
import { count_sole_hits, count_sole_nhits, sole_blocks, sole_nhits } from "../uprobe/consumer";
import { sole_entries, sole_returns } from "../uprobe/consumer";
import { this_engine } from "../uprobe/fault";
import { HIT_HANDLED } from "../uprobe/hit";
import { readers_offline, readers_online, readers_quiescent } from "../uprobe/readers";
import { return_to_user } from "../uprobe/signal";
import { begin_sole_returns, sole_instance } from "../uprobe/sole_return";
import { no_breakpoints } from "../uprobe/table";
import { returns_settle } from "../uprobe/uretprobe";
import { RETURN_ADDRESS, TASK_MM, TASK_RANDOM, TASK_SITE0, TASK_SITES } from "../uprobe/task";
import { TASK_STRIDE, TASK_TEXT } from "../uprobe/task";
import { fast_returns_many, fast_returns_one } from "./trigger_fast_returns";
import { add, AT_ENTRY, AT_RETURN, count, count_outcome, emulate_sole, QUIET_ROUNDS } from "./user";
import { site_of, trap, trap_return, user_execute, weyl } from "./user";

// The two loops: at most `n` rounds (> 0). They return how many are left, with AT_ENTRY if the last
// one trapped and has still to be handled. What they need is computed by their callers: then it is
// in registers, while an expression of constants is computed anew each round.

// One site: the instruction at `insn`, its count word at `word_at`.
// The word is read at each hit. As long as it is the same, the consumer's hits are gathered in a
// register too: a counter in memory that is raised at every hit waits for its own last store.
function fast_rounds_one(task: usize, sp: usize, insn: usize, word_at: usize, n: i32): i32 {
  let left = n;
  let handled = 0;
  let at = 0;
  let word: i64 = -1; // no word
  let hits = 0;
  do {
    store<i64>(sp, <i64>RETURN_ADDRESS);
    left--;
    const opcode = load8(insn);
    if (opcode == INSN_TRAP) {
      const now = count_word(word_at);
      if (now != word) {
        if (hits != 0) count_hits(word, sole_nhits(), sole_blocks(), hits);
        word = now;
        hits = 0;
        if (!sole_entries(now)) {
          at = AT_ENTRY;
          break;
        }
      }
      hits++;
      emulate_sole(task, sp, now);
      handled++;
    } else {
      user_execute(task, sp, opcode);
      count(task, TASK_MISSED_NO_PROBE);
    }
  } while (left != 0);
  if (hits != 0) count_hits(word, sole_nhits(), sole_blocks(), hits);
  return leave(task, n, left, handled, at);
}

// Sites in random order; this CPU's counters lie `nhits` and `blocks` behind CPU 0's.
function fast_rounds_many(
  task: usize,
  sp: usize,
  block: usize,
  text: usize,
  nhits: u32,
  blocks: u32,
  n: i32,
): i32 {
  const shift = breakpoints_shift(block);
  const site0 = load<u32>(task, TASK_SITE0);
  const stride = load<u32>(task, TASK_STRIDE);
  const sites = <u64>load<u32>(task, TASK_SITES);
  const end = weyl(load<u32>(task, TASK_RANDOM), n);
  let left = n;
  let handled = 0;
  let at = 0;
  do {
    left--;
    const vaddr = site0 + site_of(weyl(end, -left), sites) * stride;
    store<i64>(sp, <i64>RETURN_ADDRESS);
    const opcode = load8(text + <usize>vaddr);
    if (opcode == INSN_TRAP) {
      const place = find_random_place(place_of(block, shift, vaddr), vaddr);
      const word = place != 0 ? count_word(count_word_at(place)) : 0;
      if (!sole_entries(word)) {
        at = AT_ENTRY;
        break;
      }
      count_hits(word, nhits, blocks, 1);
      emulate_sole(task, sp, word);
      handled++;
    } else {
      user_execute(task, sp, opcode);
      count(task, TASK_MISSED_NO_PROBE);
    }
  } while (left != 0);
  store<u32>(task, weyl(end, -left), TASK_RANDOM);
  return leave(task, n, left, handled, at);
}

// @ts-ignore: decorator
@inline
function count_hits(word: i64, nhits: u32, blocks: u32, hits: i32): void {
  count_sole_nhits(word, nhits, hits);
  count_sole_hits(word, blocks, hits);
}

// What was counted in registers, each at its own point, is in memory before anything else happens.
// @ts-ignore: decorator
@inline
function leave(task: usize, n: i32, left: i32, handled: i32, at: i32): i32 {
  add(task, TASK_TRIGGERS, n - left);
  add(task, TASK_HANDLED, handled);
  return left | at;
}

// Where the last round went: the generator's state says it.
function last_vaddr(many: bool, task: usize): u32 {
  const site0 = load<u32>(task, TASK_SITE0);
  if (!many) return site0;
  const site = site_of(load<u32>(task, TASK_RANDOM), <u64>load<u32>(task, TASK_SITES));
  return site0 + site * load<u32>(task, TASK_STRIDE);
}

// The count word of the only site: found once, since its place stays its own while the section
// lasts.
// @ts-ignore: decorator
@inline
function sole_word_at(table: usize, block: usize, vaddr: u32): usize {
  const place = find_place(place_of(block, breakpoints_shift(block), vaddr), vaddr);
  return count_word_at(place != 0 ? place : no_place(table));
}

// @ts-ignore: decorator
@inline
function trigger_fast(many: bool, task: usize, n: i32): i32 {
  const engine = this_engine();
  const table = <usize>load<u32>(engine, HDR_TABLE);
  const raw = load<i32>(engine, HDR_TRAP_UNITS) == 0;
  const mm = <usize>load<u32>(task, TASK_MM);
  const text = <usize>load<u32>(task, TASK_TEXT);
  const site0 = load<u32>(task, TASK_SITE0);
  const caller = load<i64>(task, TASK_SP);
  const sp = <usize>caller - 8;
  cpu_begin_batch();
  readers_online(PRESET_FASTEST);
  let i = 0;
  let returns: bool = false; // whether some of many sites count returns
  while (i < n && !cpu_slept()) {
    readers_quiescent(PRESET_FASTEST);
    return_to_user(PRESET_FASTEST, task);
    let block = raw ? breakpoints_of(mm) : 0; // an exception that takes time is a general hit
    if (block == 0) block = no_breakpoints(table);
    const most = min(QUIET_ROUNDS, n - i);
    const ri = sole_instance(task);
    let rest: i32;
    if (many) {
      rest =
        returns && ri != 0
          ? fast_returns_many(task, sp, block, text, sole_nhits(), sole_blocks(), ri, most)
          : fast_rounds_many(task, sp, block, text, sole_nhits(), sole_blocks(), most);
    } else {
      const word_at = sole_word_at(table, block, site0);
      const insn = text + <usize>site0;
      const word = count_word(word_at);
      const u = ri != 0 && sole_returns(word) ? counted_uprobe(word_at, word) : 0;
      if (u != 0) {
        begin_sole_returns(ri, sp, u, site0);
        rest = fast_returns_one(task, sp, insn, word_at, word, ri, most);
      } else {
        rest = fast_rounds_one(task, sp, insn, word_at, most);
      }
    }
    i += most - (rest & ~(AT_ENTRY | AT_RETURN));
    if ((rest & (AT_ENTRY | AT_RETURN)) == 0) continue;
    if ((rest & AT_ENTRY) != 0) {
      const vaddr = last_vaddr(many, task);
      if (many && !returns) returns = sole_returns(count_word(sole_word_at(table, block, vaddr)));
      const outcome = trap(PRESET_FASTEST, table, task, text + <usize>vaddr, vaddr, sp, i);
      if (outcome == HIT_HANDLED) count(task, TASK_HANDLED);
      else count_outcome(task, outcome);
    }
    trap_return(PRESET_FASTEST, table, task, sp);
    returns_settle(PRESET_FASTEST, task);
  }
  store<i64>(task, caller, TASK_SP);
  readers_offline(PRESET_FASTEST);
  return i;
}

export function trigger_fastest(task: usize, n: i32): i32 {
  return trigger_fast(false, task, n);
}
export function trigger_fastest_many(task: usize, n: i32): i32 {
  return trigger_fast(true, task, n);
}
