// What keeps the uprobe of a pending return alive, step by step: leases and their timer (C18, C19),
// the memory of return instances (C21), sessions. On one thread, with a clock that the test moves.
// time limit: 60 s

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { entryOf, PRESET_NAMES } from "../../src/engine/presets.js";
import { VADDR } from "../helpers/probes.js";
import { CONSUMED, GONE, LEASED, LEASING, RETURN_SEQ, Returns } from "../helpers/returns.js";
import { RI_STATE, STABLE } from "../helpers/returns.js";
import type { SoloOptions } from "../helpers/solo.js";

const LEASE_MS = 100;

/** A clock that goes on by a step whenever somebody looks, up to a moment that must not come. */
function steppingClock(startMs = 1000) {
  const clock = {
    ms: startMs,
    endMs: startMs + 20 * LEASE_MS,
    now: (): number => {
      clock.ms += 0.25;
      if (clock.ms > clock.endMs) throw new Error("it takes too long");
      return clock.ms;
    },
  };
  return clock;
}

function withClock(preset: (typeof PRESET_NAMES)[number], options: SoloOptions = {}) {
  const clock = steppingClock();
  const now = () => clock.now();
  const r = new Returns(preset, abi.INSN_NOP, { leaseUs: LEASE_MS * 1000, now, ...options });
  return { r, clock, left: () => r.ok(abi.OP_RETURNS_LEFT) };
}

for (const preset of LEASING) {
  test(`C18: ${preset}: a lease ends once, by the return or by the timer`, () => {
    const { r, clock, left } = withClock(preset);
    const sink = r.sink();
    r.probe(0, sink);
    const task = r.nested();
    r.go("enter", task, VADDR, 0);
    assert.is(r.stateOf(task), LEASED);
    assert.is(left(), 2, "a lease and an instance");
    r.go("leave", task, 0);
    r.go("enter", task, VADDR, 0);
    for (let round = 0; round < 3; round++) {
      clock.ms += LEASE_MS;
      assert.is(left(), 1, "an instance");
      assert.is(r.stateOf(task), STABLE);
    }
    assert.is(r.memory.load(task + RETURN_SEQ) & 1, 0);
    assert.ok(r.memory.load(task + RETURN_SEQ) >= 6, "each walk raises the sequence twice");
    r.go("leave", task, 0);
    r.ok(abi.OP_TASK_DESTROY, task);
    assert.is(left(), 0);
    assert.is(r.hits(sink), 2);
    r.checkFaults();
  });

  test(`C19: ${preset}: unregistering takes a lease and a period, whoever never returns`, () => {
    const { r, clock } = withClock(preset);
    const sink = r.sink();
    const consumer = r.probe(0, sink);
    const task = r.nested();
    for (let depth = 0; depth < 3; depth++) r.go("enter", task, VADDR, 0);
    clock.endMs = clock.ms + 2 * LEASE_MS;
    assert.is(r.unregister(consumer), 0);
    assert.is(r.stateOf(task), GONE);
    clock.endMs += 20 * LEASE_MS;
    assert.equal(r.memory.uprobes(), { alive: 0, inTree: 0 });
    for (let depth = 0; depth < 3; depth++) r.go("leave", task, 0);
    assert.equal(r.counts(task), { entries: 3, gone: 3 });
    assert.is(r.hits(sink), 0);
    r.checkFaults();
  });

  test(`C19: ${preset}: the same where the clock jumps back, or CPUs do not agree on it`, () => {
    const { r, clock } = withClock(preset);
    const consumer = r.probe(0, r.sink());
    const task = r.nested();
    clock.ms = 1e9;
    clock.endMs += 1e9;
    r.ok(abi.OP_NOP); // the timer's next round is then
    clock.ms = 1000;
    r.go("enter", task, VADDR, 0);
    clock.endMs = clock.ms + 2 * LEASE_MS;
    assert.is(r.unregister(consumer), 0);
    assert.is(r.stateOf(task), STABLE, "the round that was due");
    r.checkFaults();
  });

  test(`C18: ${preset}: a fork ends the parent's lease, and the child holds a reference`, () => {
    const { r, left } = withClock(preset);
    const sink = r.sink();
    const consumer = r.probe(0, sink);
    const [kept, lost] = [r.probe(16, sink), r.probe(32, sink)];
    const parent = r.nested();
    r.go("enter", parent, VADDR, 0);
    r.go("enter", parent, VADDR + 16, 0);
    r.go("enter", parent, VADDR + 32, 0);
    assert.is(r.unregister(lost), 0);
    assert.is(left(), 3, "unregistering has ended all leases");
    r.go("enter", parent, VADDR + 16, 0);
    assert.is(left(), 5);
    const child = r.ok(abi.OP_TASK_FORK, parent, r.mm, 2);
    assert.is(left(), 8, "no lease, and as many instances again");
    for (const task of [parent, child]) {
      for (let depth = 0; depth < 4; depth++) r.go("leave", task, 0);
      assert.equal(r.counts(task), { entries: 4, returns: 3, gone: 1 });
      r.ok(abi.OP_TASK_DESTROY, task);
    }
    assert.is(left(), 0);
    assert.is(r.unregister(consumer), 0);
    assert.is(r.unregister(kept), 0);
    assert.equal(r.memory.uprobes(), { alive: 0, inTree: 0 });
    r.checkFaults();
  });

  test(`C21: ${preset}: what is freed in a walk is not reused before its grace period`, () => {
    const { r } = withClock(preset, { cpus: 2, memoryBytes: 8 << 20, now: () => 1000 });
    r.probe(0, r.sink());
    const task = r.nested();
    const rcu = r.memory.base + abi.HDR_RCU;
    r.call(1, "rcu_online", rcu);
    r.call(1, "rcu_read_lock_trace");
    r.memory.store(task + RETURN_SEQ, 1); // a walk that CPU 1 is at
    const seen = new Set<number>();
    for (let i = 0; i < 3000; i++) {
      r.go("enter", task, VADDR, 0);
      const ri = r.newest(task);
      assert.not(seen.has(ri), `instance ${i} is another's`);
      seen.add(ri);
      r.go("leave", task, 0);
      assert.is(r.memory.load(ri + RI_STATE), CONSUMED);
    }
    r.call(1, "rcu_read_unlock_trace", rcu);
    r.call(1, "rcu_offline");
    const before = seen.size;
    for (let i = 0; i < 2000; i++) {
      r.go("enter", task, VADDR, 0);
      seen.add(r.newest(task));
      r.go("leave", task, 0);
    }
    assert.ok(seen.size < before + 2000, "afterwards it is");
    r.memory.store(task + RETURN_SEQ, 2);
    r.ok(abi.OP_TASK_DESTROY, task);
    assert.is(r.ok(abi.OP_RETURNS_LEFT), 0);
    r.checkFaults();
  });

  test(`C21: ${preset}: a CPU that is never quiet does not make the memory grow`, () => {
    const r = new Returns(preset, abi.INSN_NOP, { cpus: 2, memoryBytes: 16 << 20, leaseUs: 1e6 });
    r.probe(0, r.sink());
    const task = r.nested();
    r.call(1, "rcu_online", r.memory.base + abi.HDR_RCU);
    r.memory.store(task + RETURN_SEQ, 1); // nothing is pooled
    for (let i = 0; i < 400_000; i++) {
      r.go("enter", task, VADDR, 0);
      r.go("leave", task, 0);
    }
    r.memory.store(task + RETURN_SEQ, 2);
    r.call(1, "rcu_offline");
    assert.equal(r.counts(task), { entries: 400_000, returns: 400_000 });
    r.checkFaults();
  });

  test(`C21: ${preset}: frames left by the thousand are freed in hits, without waiting`, () => {
    const r = new Returns(preset, abi.INSN_NOP, { cpus: 2, memoryBytes: 16 << 20, leaseUs: 1e6 });
    r.probe(0, r.sink());
    const task = r.nested();
    r.call(1, "rcu_online", r.memory.base + abi.HDR_RCU);
    r.memory.store(task + RETURN_SEQ, 1);
    for (let i = 0; i < 1200; i++) {
      for (let depth = 0; depth < 64; depth++) r.go("enter", task, VADDR, 0);
      assert.is(r.call(0, "task_longjmp", task, 64), 64);
    }
    r.memory.store(task + RETURN_SEQ, 2);
    r.call(1, "rcu_offline");
    assert.equal(r.counts(task), { entries: 76_800, longjmp: 76_736, pending: 64 });
    r.checkFaults();
  });
}

for (const preset of PRESET_NAMES) {
  test(`${preset}: tasks that end elsewhere leave no memory behind`, () => {
    const r = new Returns(preset);
    const session = r.sink(abi.HANDLER_LATENCY);
    for (let i = 0; i < 2; i++) r.probe(0, session, abi.CONSUMER_SESSION);
    const bytes: number[] = [];
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 400; i++) {
        const task = r.nested();
        for (let depth = 0; depth < 5; depth++) r.go("enter", task, VADDR, 0);
        for (let depth = 0; depth < 2; depth++) r.go("leave", task, 0);
        r.ok(abi.OP_TASK_DESTROY, task);
      }
      r.ok(abi.OP_SYNCHRONIZE);
      bytes.push(r.memory.arena().liveBytes);
    }
    assert.is(bytes[3], bytes[1], bytes.join(" "));
    assert.is(r.ok(abi.OP_RETURNS_LEFT), 0);
    r.checkFaults();
  });
}

test("C21: uret-pool: an instance is reused at once while nobody walks", () => {
  const { r } = withClock("uret-pool");
  r.probe(0, r.sink());
  const task = r.nested();
  r.go("enter", task, VADDR, 0);
  const ri = r.newest(task);
  r.go("leave", task, 0);
  r.go("enter", task, VADDR, 0);
  assert.is(r.newest(task), ri);
  r.checkFaults();
});

for (const preset of PRESET_NAMES) {
  test(`${preset}: calls that return on another CPU do not make the memory grow`, () => {
    const r = new Returns(preset, abi.INSN_NOP, { cpus: 2, memoryBytes: 12 << 20 });
    const session = r.sink(abi.HANDLER_LATENCY);
    for (let i = 0; i < 2; i++) r.probe(0, session, abi.CONSUMER_SESSION);
    const task = r.nested();
    for (let i = 0; i < 250_000; i++) {
      r.go("enter", task, VADDR, 0);
      r.call(1, entryOf(preset, "leave"), task, 0);
    }
    assert.equal(r.counts(task), { entries: 250_000, returns: 250_000 });
    assert.is(r.hits(session), 500_000, "a session without memory is not seen");
    r.ok(abi.OP_TASK_DESTROY, task);
    assert.is(r.ok(abi.OP_RETURNS_LEFT), 0);
    r.checkFaults();
  });
}

for (const preset of PRESET_NAMES) {
  test(`${preset}: a session's return is its own: not another's at the same address`, () => {
    const r = new Returns(preset);
    const [sink, mine, other] = [r.sink(), r.sink(), r.sink()];
    r.probe(0, sink); // the uprobe stays
    const session = r.probe(0, sink, abi.CONSUMER_SESSION, mine);
    const task = r.nested();
    r.go("enter", task, VADDR, 0);
    assert.is(r.unregister(session), 0);
    const next = r.probe(0, sink, abi.CONSUMER_SESSION, other);
    assert.is(next, session, "its memory is used again");
    r.go("leave", task, 0);
    assert.equal([r.hits(mine), r.hits(other)], [0, 0]);
    r.go("enter", task, VADDR, 0);
    r.go("leave", task, 0);
    assert.equal([r.hits(mine), r.hits(other)], [0, 1]);
    assert.equal(r.counts(task), { entries: 2, returns: 2 });
    r.checkFaults();
  });
}

test("a session of one user's function is refused: returns are called differently", () => {
  const r = new Returns("uret-pool");
  const [a, b, c] = [7, 7, 8].map((place) => r.ok(abi.OP_SINK_CREATE, abi.HANDLER_CALL, place));
  const register = (entry = 0, back = 0) =>
    r.op(abi.OP_REGISTER, r.inode, 0, entry, 0, 0, 0, 0, abi.CONSUMER_SESSION, back);
  assert.is(register(a, a), abi.EINVAL);
  assert.is(register(a, b), abi.EINVAL);
  const consumer = register(a, c);
  assert.ok(consumer > 0);
  assert.is(r.unregister(consumer), 0);
});

test.run();
