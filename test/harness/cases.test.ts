import { test } from "uvu";
import * as assert from "uvu/assert";
import * as cases from "../../src/harness/cases.js";

test("names of benches and presets are unique and fit the command line", () => {
  for (const names of [cases.CASE_NAMES, cases.PRESET_NAMES]) {
    assert.is(new Set(names).size, names.length);
    for (const name of names) assert.match(name, /^[a-z]+(-[a-z]+)*$/);
  }
});

test("benches with a probe table have all presets, others none", () => {
  for (const bench of cases.CASES) {
    const { name, family, presets } = bench;
    const probed = ["uprobe", "uretprobe", "registration"].includes(family);
    assert.equal([...presets], probed ? [...cases.PRESET_NAMES] : [], name);
    assert.is(cases.hasProbes(bench), probed, name);
  }
  assert.ok(cases.findPreset(cases.DEFAULT_PRESET));
});

test("a sweep without presets shows some of those that its bench has, steps on arm64 only", () => {
  const shown = (name: string, arch: cases.Arch): readonly string[] => {
    const found = cases.findCase(name);
    return found === undefined ? [] : cases.shownPresets(found, arch);
  };
  for (const { name, presets } of cases.CASES) {
    for (const arch of cases.ARCH_NAMES) {
      assert.ok(
        shown(name, arch).every((preset) => presets.some((p) => p === preset)),
        name,
      );
      assert.is(shown(name, arch).length > 0, presets.length > 0, name);
    }
  }
  assert.equal(shown("uprobe-nop", "x86"), cases.LADDER_PRESETS);
  const steps = ["siglock", "signal-flag"];
  assert.equal(
    shown("uprobe-push", "arm64").filter((name) => steps.includes(name)),
    steps,
  );
  assert.ok(shown("uretprobe-nop", "x86").includes("uret-pool"));
});

test("every control is itself a bench without a control", () => {
  const controls = cases.CASES.map((c) => c.control).filter((name) => name !== null);
  for (const name of [...controls, cases.HOST_CONTROL]) {
    assert.is(cases.findCase(name)?.control, null, name);
  }
});

test("every bench and preset has a description and a unit", () => {
  for (const { name, description, unit } of cases.CASES) assert.ok(description && unit, name);
  for (const { name, description } of cases.PRESETS) assert.ok(description, name);
});

test("trig-uprobe-nop is uprobe-nop", () => {
  assert.is(cases.plainName("trig-uprobe-nop"), "uprobe-nop");
  assert.is(cases.plainName("uprobe-nop"), "uprobe-nop");
});

test.run();
