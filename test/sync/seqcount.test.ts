import { test } from "uvu";
import * as assert from "uvu/assert";
import { SequenceCount } from "../../src/engine/locks.js";
import { AT, cpusOnThisThread } from "../helpers/engine.js";

test("seqcount: odd inside a write section, two more after it", () => {
  const { exports, word } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  cpu.seqcount_init(AT);
  cpu.write_seqcount_begin(AT);
  assert.is(word(), 1);
  cpu.write_seqcount_end(AT);
  assert.is(word(), 2);
});

test("seqcount: a reader retries exactly when a write section began since", () => {
  const { exports } = cpusOnThisThread(2);
  const [a, b] = exports as [(typeof exports)[0], (typeof exports)[0]];
  const begin = a.read_seqcount_begin(AT);
  assert.is(a.read_seqcount_retry(AT, begin), 0);
  b.write_seqcount_begin(AT);
  assert.is(a.read_seqcount_retry(AT, begin), 1);
  b.write_seqcount_end(AT);
  assert.is(a.read_seqcount_retry(AT, begin), 1);
  assert.is(a.read_seqcount_retry(AT, a.read_seqcount_begin(AT)), 0);
});

test("seqcount: the count wraps from 2^32 - 1 to 0", () => {
  const { exports, set, word } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  set(-2);
  const begin = cpu.read_seqcount_begin(AT);
  cpu.write_seqcount_begin(AT);
  cpu.write_seqcount_end(AT);
  assert.is(word(), 0);
  assert.is(cpu.read_seqcount_retry(AT, begin), 1);
});

test("seqcount: tryReadBegin says undefined while a writer is inside", () => {
  const { exports, thread } = cpusOnThisThread(1);
  const [cpu] = exports as [(typeof exports)[0]];
  const count = new SequenceCount(cpu, AT, thread);
  assert.is(count.tryReadBegin(), 0);
  count.writeBegin();
  assert.is(count.tryReadBegin(), undefined);
  count.writeEnd();
  assert.is(count.tryReadBegin(), 2);
});

test.run();
