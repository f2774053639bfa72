// The loops of trigger_fast.ts where returns are counted: the same, and a hit whose word says so is
// a call that the loop sees returning.
//
// The word is read at the entry, and again at the return: a consumer that has gone, or come, in
// between is asked, or not asked, as the list says then. So a return that finds another word leaves
// the loop with the address of the trampoline on the stack and its instance pending, as if it had
// trapped there; and so does one that finds anything else than what the entry left. A task that has
// pending returns already is not for these loops (sole_instance).
//
// Within one call of a loop nothing else looks at the task, so that what only others need is right
// when it is left: the counters, each raised at its own point, and the list of one instance. The
// address on the stack, and the instance by which it comes back, are in memory at every call.
//
// plain: `TASK_*`, what lies at `task` and its stack (`sp`) are private to its CPU
// (uprobe/task.ts).

import { INSN_TRAP, TASK_HANDLED, TASK_MISSED_NO_PROBE, TASK_RETURN_ENTRIES } from "../layout";
import { TASK_RETURNS, TASK_TRIGGERS } from "../layout";
import { load8 } from "../atomics";
import { breakpoints_shift, count_word, count_word_at } from "../uprobe/breakpoints";
import { counted_uprobe, find_random_place, place_of } from "../uprobe/breakpoints";
import { count_sole_hits, count_sole_nhits, sole_blocks, sole_nhits } from "../uprobe/consumer";
import { sole_entries } from "../uprobe/consumer";
import { begin_sole_returns, is_sole_return, leave_sole_return } from "../uprobe/sole_return";
import { pop_sole_return, push_sole_return } from "../uprobe/sole_return";
import { RETURN_ADDRESS, TASK_RANDOM, TASK_SITE0, TASK_SITES, TASK_STRIDE } from "../uprobe/task";
import { add, AT_ENTRY, AT_RETURN, count, emulate_sole, site_of, user_execute, weyl } from "./user";

// Calls in one register: those entered in its low half, those returned in its high half.
const ENTERED: i64 = 1;
const RETURNED: i64 = 1 << 32;

// What the loop gathered for one word, each at its own point.
// @ts-ignore: decorator
@inline
function count_calls(task: usize, word: i64, entered: i32, returned: i32): void {
  if (word == 0) return;
  count_sole_nhits(word, sole_nhits(), entered);
  add(task, TASK_HANDLED, entered);
  add(task, TASK_RETURN_ENTRIES, entered);
  count_sole_hits(word, sole_blocks(), returned);
  add(task, TASK_RETURNS, returned);
}

/**
 * fast_rounds_one for a site whose word counts returns. `ri`: sole_instance. Another word than such
 * a one is none of this loop's.
 */
export function fast_returns_one(
  task: usize,
  sp: usize,
  insn: usize,
  word_at: usize,
  word: i64,
  ri: usize,
  n: i32,
): i32 {
  let left = n;
  let calls: i64 = 0;
  let at = 0;
  do {
    store<i64>(sp, <i64>RETURN_ADDRESS);
    left--;
    const opcode = load8(insn);
    if (opcode == INSN_TRAP) {
      if (count_word(word_at) != word) {
        at = AT_ENTRY;
        break;
      }
      calls += ENTERED;
      push_sole_return(ri, sp);
      emulate_sole(task, sp, word);
      if (!is_sole_return(ri, sp, word_at, word)) {
        at = AT_RETURN;
        break;
      }
      pop_sole_return(task, ri);
      calls += RETURNED;
    } else {
      user_execute(task, sp, opcode);
      count(task, TASK_MISSED_NO_PROBE);
    }
  } while (left != 0);
  if (at == AT_RETURN) leave_sole_return(task, ri);
  count_calls(task, word, <i32>calls, <i32>(calls >> 32));
  add(task, TASK_TRIGGERS, n - left);
  return left | at;
}

/** fast_rounds_many for sites of which some count returns, and others entries. `ri`: as above. */
export function fast_returns_many(
  task: usize,
  sp: usize,
  block: usize,
  text: usize,
  nhits: u32,
  blocks: u32,
  ri: usize,
  n: i32,
): i32 {
  const shift = breakpoints_shift(block);
  const site0 = load<u32>(task, TASK_SITE0);
  const stride = load<u32>(task, TASK_STRIDE);
  const sites = <u64>load<u32>(task, TASK_SITES);
  const end = weyl(load<u32>(task, TASK_RANDOM), n);
  let left = n;
  let handled = 0;
  let calls: i64 = 0;
  let at = 0;
  do {
    left--;
    const vaddr = site0 + site_of(weyl(end, -left), sites) * stride;
    store<i64>(sp, <i64>RETURN_ADDRESS);
    const opcode = load8(text + <usize>vaddr);
    if (opcode == INSN_TRAP) {
      const place = find_random_place(place_of(block, shift, vaddr), vaddr);
      const word = place != 0 ? count_word(count_word_at(place)) : 0;
      if (sole_entries(word)) {
        count_sole_nhits(word, nhits, 1);
        count_sole_hits(word, blocks, 1);
        emulate_sole(task, sp, word);
        handled++;
        continue;
      }
      const u = word != 0 ? counted_uprobe(count_word_at(place), word) : 0;
      if (u == 0) {
        at = AT_ENTRY;
        break;
      }
      count_sole_nhits(word, nhits, 1);
      calls += ENTERED;
      begin_sole_returns(ri, sp, u, vaddr);
      push_sole_return(ri, sp);
      emulate_sole(task, sp, word);
      if (!is_sole_return(ri, sp, count_word_at(place), word)) {
        at = AT_RETURN;
        break;
      }
      pop_sole_return(task, ri);
      count_sole_hits(word, blocks, 1);
      calls += RETURNED;
    } else {
      user_execute(task, sp, opcode);
      count(task, TASK_MISSED_NO_PROBE);
    }
  } while (left != 0);
  if (at == AT_RETURN) leave_sole_return(task, ri);
  store<u32>(task, weyl(end, -left), TASK_RANDOM);
  add(task, TASK_TRIGGERS, n - left);
  add(task, TASK_HANDLED, handled + <i32>calls);
  add(task, TASK_RETURN_ENTRIES, <i32>calls);
  add(task, TASK_RETURNS, <i32>(calls >> 32));
  return left | at;
}
