// The displaced instruction, step by step: which are emulated and which executed out of line, on
// which architecture and by which preset; and that they really act on the task.

import { test } from "uvu";
import * as assert from "uvu/assert";
import * as abi from "../../src/engine/abi.js";
import { entryOf, strategyOf, type PresetName } from "../../src/engine/presets.js";
import { Probes, VADDR } from "../helpers/probes.js";
import { leftovers, type SoloOptions } from "../helpers/solo.js";
import { UTASK_STATE, XolArea } from "../helpers/xol.js";

/** What enter_* says (workload/call.ts), and where its function returns to: two words deep. */
const ENTERED_HANDLED = 1;
const ENTERED_RETURNED = 2;
const RETURN_ADDRESS = 0x7000_0002;
const INSTRUCTIONS = { nop: abi.INSN_NOP, push: abi.INSN_PUSH, ret: abi.INSN_RET } as const;
type Name = keyof typeof INSTRUCTIONS;

interface Row {
  arch: "x86" | "arm64";
  presets: readonly PresetName[];
  stepped: readonly Name[];
}

const OLD = ["spinlock", "rwlock", "siglock", "signal-flag", "srcu"] as const;
const NEW = ["tasks-trace", "mmap-lock", "speculative", "uret-pool"] as const;
const TABLE: readonly Row[] = [
  { arch: "x86", presets: OLD, stepped: ["ret"] },
  { arch: "x86", presets: NEW, stepped: ["ret"] },
  { arch: "x86", presets: ["fastest"], stepped: [] },
  { arch: "arm64", presets: OLD, stepped: ["nop", "push"] },
  { arch: "arm64", presets: NEW, stepped: ["push"] },
  { arch: "arm64", presets: ["fastest"], stepped: [] },
];
const ARCH = { x86: abi.ARCH_X86, arm64: abi.ARCH_ARM64 } as const;
const SLOT_BYTES = { x86: abi.XOL_SLOT_BYTES_X86, arm64: abi.XOL_SLOT_BYTES_ARM64 } as const;

/** A task of a program whose first function is probed. */
class Stepping extends Probes {
  readonly name: Name;
  readonly stepper: number;

  constructor(name: Name, preset: PresetName, options: SoloOptions = {}) {
    super(INSTRUCTIONS[name], { strategy: strategyOf(preset), ...options });
    this.name = name;
    assert.is(this.map(), 0);
    this.register(0, this.sink());
    this.stepper = this.task();
    this.memory.i64[(this.stepper + abi.TASK_BP) >> 3] = 0x1234_5678_9abcn;
  }

  /** Calls the function: looks at the registers after its first instruction, then returns. */
  hit(preset: PresetName): void {
    const returned = this.name === "ret" ? ENTERED_RETURNED : 0;
    const entered = this.call(0, entryOf(preset, "enter"), this.stepper, VADDR, 0);
    assert.is(entered, ENTERED_HANDLED | returned);
    this.#checkRegisters();
    if (returned === 0) assert.is(this.call(0, entryOf(preset, "leave"), this.stepper, 0), 0);
  }
  count(offset: number): number {
    return this.memory.load64(this.stepper + offset);
  }
  #checkRegisters(): void {
    const { name } = this;
    const top = this.stepper + abi.TASK_STACK_TOP;
    const sp = { nop: top - 16, push: top - 24, ret: top }[name];
    assert.is(this.count(abi.TASK_SP), sp, "sp");
    assert.is(this.count(abi.TASK_IP), name === "ret" ? RETURN_ADDRESS : VADDR + 1, "ip");
    assert.is(this.memory.load64(top - 16), RETURN_ADDRESS, "the return address");
    if (name === "push") assert.is(this.memory.load64(sp), 0x1234_5678_9abc, "what was pushed");
    assert.is(this.memory.load(this.stepper + UTASK_STATE), 0, "running");
  }
}

for (const { arch, presets, stepped } of TABLE) {
  for (const preset of presets) {
    test(`${preset}, ${arch}: ${stepped.join(" and ") || "nothing"} is stepped`, () => {
      for (const name of ["nop", "push", "ret"] as const) {
        const steps = new Stepping(name, preset, { arch: ARCH[arch] });
        for (let n = 1; n <= 2; n++) {
          steps.hit(preset);
          assert.is(steps.count(abi.TASK_STEPS), stepped.includes(name) ? n : 0, name);
        }
        assert.is(steps.count(abi.TASK_STEPS_COPY), 0);
        assert.is(steps.memory.task(steps.stepper).handled, 2);
        steps.checkFaults();
      }
    });
  }
}

test("an XOL area is made by the first step, with the trampoline's slot taken", () => {
  for (const arch of ["x86", "arm64"] as const) {
    const steps = new Stepping("push", "rwlock", { arch: ARCH[arch], xolSlots: 4 });
    assert.is(steps.memory.load(steps.mm + abi.MM_XOL_AREA), 0);
    steps.hit("rwlock");
    if (arch === "x86") {
      assert.is(steps.memory.load(steps.mm + abi.MM_XOL_AREA), 0, "push is emulated");
      continue;
    }
    const area = new XolArea(steps.memory, steps.mm);
    const rest = Array.from({ length: 28 }, (_, i) => i + 4); // not there
    assert.equal(area.inUse(), { count: 1, bits: [0, ...rest] });
    assert.is(area.opcode(1, SLOT_BYTES[arch]), abi.INSN_PUSH, "the copy");
  }
});

test("slots of x86 are 128 bytes apart, of arm64 4", () => {
  for (const [arch, name] of [
    ["x86", "ret"],
    ["arm64", "nop"],
  ] as const) {
    const steps = new Stepping(name, "rwlock", { arch: ARCH[arch] });
    steps.hit("rwlock");
    const area = new XolArea(steps.memory, steps.mm);
    area.hold(1);
    area.hold(2);
    steps.hit("rwlock");
    assert.is(area.opcode(3, SLOT_BYTES[arch]), INSTRUCTIONS[name]);
    assert.is(area.opcode(2, SLOT_BYTES[arch]), 0, "nobody wrote that one");
  }
});

test("only the kernels before 6.13 count slots in use", () => {
  const counts = (["rwlock", "speculative"] as const).map((preset) => {
    const steps = new Stepping("push", preset, { arch: abi.ARCH_ARM64 });
    steps.hit(preset);
    // The count before the step that follows is 7: what is added and taken away stays that.
    const area = new XolArea(steps.memory, steps.mm);
    steps.memory.store(area.at + abi.XOL_SLOT_COUNT, 7);
    area.hold(1);
    steps.hit(preset);
    steps.checkFaults();
    return area.inUse().count;
  });
  assert.equal(counts, [8, 8]);
});

test("an XOL area goes with its address space", () => {
  const steps = new Stepping("ret", "rwlock");
  const before = leftovers(steps.memory);
  const mm = steps.ok(abi.OP_MM_CREATE, 1);
  assert.is(steps.map(VADDR, mm), 0);
  const task = steps.task(VADDR, mm);
  assert.is(steps.call(0, "call_rwlock", task, VADDR, 0), 1);
  assert.not.equal(new XolArea(steps.memory, mm).at, 0);
  assert.is(steps.memory.load(steps.mm + abi.MM_XOL_AREA), 0, "its own only");
  steps.ok(abi.OP_TASK_DESTROY, task);
  steps.ok(abi.OP_MM_DESTROY, mm);
  assert.equal(leftovers(steps.memory), before);
});

test("without memory for an XOL area a step is not lost, and is counted", () => {
  const steps = new Stepping("ret", "rwlock", { memoryBytes: 1 << 20 });
  const taken: [number, number][] = [];
  for (let bytes = 1 << 19; bytes >= 4096; bytes >>= 1) {
    for (;;) {
      const at = steps.op(abi.OP_ALLOC, bytes);
      if (at === abi.ENOMEM) break;
      taken.push([at, bytes]);
    }
  }
  for (let n = 1; n <= 2; n++) {
    steps.hit("rwlock");
    assert.equal([steps.count(abi.TASK_STEPS), steps.count(abi.TASK_STEPS_COPY)], [0, n]);
  }
  for (const [at, bytes] of taken) steps.ok(abi.OP_FREE, at, bytes);
  steps.hit("rwlock");
  assert.equal([steps.count(abi.TASK_STEPS), steps.count(abi.TASK_STEPS_COPY)], [1, 2]);
  assert.is(steps.memory.task(steps.stepper).handled, 3);
  assert.is(steps.memory.task(steps.stepper).restarts, 0);
  steps.checkFaults();
});

test.run();
