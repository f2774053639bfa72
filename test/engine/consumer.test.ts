// Consumers: who takes a hit, filters, limits and the log2 histogram.

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { FILE_BYTES, Probes, VADDR } from "../helpers/probes.js";
import { all, leftovers } from "../helpers/solo.js";

const SECOND = VADDR + 2 * FILE_BYTES;
const LATER = VADDR + 4 * FILE_BYTES;

test("of several consumers of a probe each counts every hit", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const sinks = Array.from({ length: 5 }, () => p.sink());
  const consumers = sinks.map((sink) => p.register(0, sink));
  const task = p.task();
  assert.equal(p.trigger(task, 1000), all("handled", 1000));
  assert.equal(
    sinks.map((sink) => p.hits(sink)),
    [1000, 1000, 1000, 1000, 1000],
  );
  const nhit = consumers.map((c) => p.memory.load(c + abi.CONSUMER_NHIT));
  assert.equal(nhit, [1000, 1000, 1000, 1000, 1000], "nobody races here");
  assert.is(p.unregister(consumers[2] as number), 0, "from the middle of the list");
  assert.equal(p.trigger(task, 10), all("handled", 10));
  assert.equal(
    sinks.map((sink) => p.hits(sink)),
    [1010, 1010, 1000, 1010, 1010],
  );
  assert.is(p.unregister(consumers[4] as number), 0, "its head");
  assert.is(p.unregister(consumers[0] as number), 0, "its end");
  assert.equal(p.trigger(task, 10), all("handled", 10));
  assert.equal(
    sinks.map((sink) => p.hits(sink)),
    [1010, 1020, 1000, 1020, 1010],
  );
});

test("hits of another task than the filter's are filtered, and counted as that", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const [only, every] = [p.sink(), p.sink()];
  p.register(0, only, { task: 7 });
  const [seven, eight] = [p.task(VADDR, p.mm, 7), p.task(VADDR, p.mm, 8)];
  assert.equal(p.trigger(seven, 3), all("handled", 3));
  assert.equal(p.trigger(eight, 4), all("filtered", 4));
  assert.is(p.hits(only), 3);
  p.register(0, every);
  assert.equal(p.trigger(eight, 5), all("handled", 5));
  assert.equal([p.hits(only), p.hits(every)], [3, 5]);
});

test("C11: remove after N takes N hits, then the breakpoint is gone", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  assert.is(p.map(SECOND), 0);
  const before = leftovers(p.memory);
  const sink = p.sink();
  const consumer = p.register(0, sink, { limit: 5 });
  const task = p.task();
  assert.equal(p.trigger(task, 4), all("handled", 4));
  assert.ok(p.isTrap(VADDR));
  const counts = p.trigger(task, 20);
  assert.equal([counts.handled, counts.filtered, counts.missed["no-probe"]], [1, 0, 19]);
  assert.not(p.isTrap(VADDR));
  assert.is(p.hits(sink), 5);

  assert.ok(p.isTrap(SECOND), "only where it was hit");
  assert.equal(p.call1(SECOND), all("filtered"), "too late: it wants no more");
  assert.not(p.isTrap(SECOND));
  assert.is(p.map(LATER), 0);
  assert.not(p.isTrap(LATER), "nor in a new mapping");
  assert.is(p.hits(sink), 5);

  assert.is(p.op(abi.OP_MUNMAP, p.mm, LATER), 0);
  assert.is(p.unregister(consumer), 0);
  p.ok(abi.OP_SINK_DESTROY, sink);
  p.ok(abi.OP_TASK_DESTROY, task);
  assert.equal(leftovers(p.memory), before);
});

test("C11: while another consumer is there the breakpoint stays after the last wanted hit", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const [some, every] = [p.sink(), p.sink()];
  p.register(0, some, { limit: 5 });
  const second = p.register(0, every);
  const task = p.task();
  assert.equal(p.trigger(task, 100), all("handled", 100));
  assert.equal([p.hits(some), p.hits(every)], [5, 100]);
  assert.is(p.unregister(second), 0);
  assert.not(p.isTrap(VADDR), "nobody is left who wants it");
});

test("C11: a consumer that wants another task's hits keeps the breakpoint too", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const [some, theirs] = [p.sink(), p.sink()];
  p.register(0, some, { limit: 2 });
  p.register(0, theirs, { task: 99 });
  const counts = p.trigger(p.task(), 10);
  assert.equal([counts.handled, counts.filtered], [2, 8]);
  assert.ok(p.isTrap(VADDR));
  assert.equal(p.call1(VADDR, p.mm, 99), all("handled"));
  assert.equal([p.hits(some), p.hits(theirs)], [2, 1]);
});

test("C11: a breakpoint is removed from the address space nobody wants it in any more only", () => {
  const p = new Probes();
  const other = p.ok(abi.OP_MM_CREATE, 4);
  for (const mm of [p.mm, other]) assert.is(p.map(VADDR, mm), 0);
  const [mine, theirs] = [p.sink(), p.sink()];
  p.register(0, mine, { mm: p.mm });
  p.register(0, theirs, { limit: 3 });
  const [task, alien] = [p.task(), p.task(VADDR, other)];
  const counts = p.trigger(alien, 10);
  assert.equal([counts.handled, counts.filtered, counts.missed["no-probe"]], [3, 0, 7]);
  assert.equal([p.isTrap(VADDR), p.isTrap(VADDR, other)], [true, false]);
  assert.equal(p.trigger(task, 10), all("handled", 10));
  assert.equal(
    [p.hits(mine), p.hits(theirs)],
    [10, 3],
    "hits of another address space are not mine",
  );
  assert.ok(p.isTrap(VADDR));
});

test("C11: after a removal a new consumer brings the breakpoint back", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const [some, late] = [p.sink(), p.sink()];
  p.register(0, some, { limit: 1 });
  const task = p.task();
  p.trigger(task, 2);
  assert.not(p.isTrap(VADDR));
  p.register(0, late);
  assert.ok(p.isTrap(VADDR));
  assert.equal(p.trigger(task, 10), all("handled", 10));
  assert.equal([p.hits(some), p.hits(late)], [1, 10]);
});

test("C11: two limits are counted apart", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const [three, seven] = [p.sink(), p.sink()];
  p.register(0, three, { limit: 3 });
  p.register(0, seven, { limit: 7 });
  const counts = p.trigger(p.task(), 20);
  assert.equal([counts.handled, counts.filtered, counts.missed["no-probe"]], [7, 0, 13]);
  assert.equal([p.hits(three), p.hits(seven)], [3, 7]);
});

test("a limit counts the hits of the filter's task only", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const sink = p.sink();
  p.register(0, sink, { task: 7, limit: 3 });
  const [seven, eight] = [p.task(VADDR, p.mm, 7), p.task(VADDR, p.mm, 8)];
  assert.equal(p.trigger(eight, 50), all("filtered", 50));
  assert.equal(p.trigger(seven, 3), all("handled", 3));
  assert.equal(p.trigger(seven, 2), all("no-probe", 2));
  assert.is(p.hits(sink), 3);
});

test("the histogram has each hit in the bucket of its argument's bit length", () => {
  const p = new Probes();
  assert.is(p.map(), 0);
  const sink = p.sink(abi.HANDLER_HIST);
  p.register(0, sink);
  const task = p.task();
  // The argument of a call is its number within its batch, from 1 on.
  const wanted = Array<number>(abi.SINK_BUCKET_COUNT).fill(0);
  for (const n of [1, 7, 8, 1000]) {
    p.trigger(task, n);
    for (let i = 1; i <= n; i++) {
      const bucket = i.toString(2).length;
      wanted[bucket] = (wanted[bucket] ?? 0) + 1;
    }
  }
  assert.equal(p.memory.sinkHistogram(sink, p.cpus + 1), wanted);
  assert.is(p.hits(sink), 1016);
});

test.run();
