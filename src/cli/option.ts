// Options that commands share: each parses its own value, or throws the one line that names what
// would have been valid.

import { Option } from "commander";
import { WasmprobeError } from "../base/errors.js";
import { parseSeed } from "../base/random.js";
import { unknownName } from "../base/text.js";
import { parseNumber, parseWhole } from "../base/units.js";
import {
  ARCH_NAMES,
  CASE_NAMES,
  CASES,
  PRESET_NAMES,
  findCase,
  findPreset,
  hasLatency,
  plainName,
  SITE_STRIDE,
  type PresetName,
} from "../harness/cases.js";

const SECONDS_MIN = 0.01;
const PROBES = { option: "--probes", min: 1, max: 1_000_000 };
const SITE_BYTES = { option: "--site-bytes", min: 1, max: 4096, unit: "bytes" };
const TRAP_NS = { option: "--trap-ns", min: 0, max: 1_000_000, unit: "ns" };

/** A whole number; `typed` is how errors call the option. */
export function wholeOption(flags: string, about: string, typed: string, max: number): Option {
  const rule = { option: typed, min: 1, max };
  return new Option(flags, about).argParser((text) => parseWhole(text, rule));
}

export function secondsOption(flags: string, about: string, typed: string, max: number): Option {
  const rule = { option: typed, min: SECONDS_MIN, max, unit: "seconds" };
  return new Option(flags, `${about}, in seconds`).argParser((text) => parseNumber(text, rule));
}

export function probesOption(): Option {
  return new Option("--probes <n>", "probes in the table")
    .default(1)
    .argParser((text) => parseWhole(text, PROBES));
}

export function probesListOption(): Option {
  return new Option("--probes <n,m>", "probes in the table")
    .default([1], "1")
    .argParser((text) => unique(text.split(",")).map((n) => parseWhole(n, PROBES)));
}

export function siteBytesOption(): Option {
  return new Option("--site-bytes <n>", "from one probed site to the next, in bytes")
    .default(SITE_STRIDE)
    .argParser((text) => parseWhole(text, SITE_BYTES));
}

export function siteBytesListOption(): Option {
  return new Option("--site-bytes <n,m>", "from one probed site to the next, in bytes")
    .default([SITE_STRIDE], String(SITE_STRIDE))
    .argParser((text) => unique(text.split(",")).map((n) => parseWhole(n, SITE_BYTES)));
}

export function trapNsOption(): Option {
  const about =
    "private delay in ns of each exception (a step and a return are one more each); 0 is raw";
  return new Option("--trap-ns <n>", about)
    .default(0)
    .argParser((text) => parseWhole(text, TRAP_NS));
}

export function archOption(): Option {
  const about = `whose instructions are stepped: one of ${ARCH_NAMES.join(", ")}`;
  return choiceOption("--arch <name>", about, "architecture", ARCH_NAMES).default("x86");
}

export function seedOption(): Option {
  return new Option("--seed <n>", "seed of everything random").argParser((text) => parseSeed(text));
}

export function wasmOption(): Option {
  return fileOption("--wasm <file>", "another engine binary").hideHelp();
}

export function fileOption(flags: string, about: string): Option {
  return new Option(flags, about).argParser((text) => {
    if (text !== "") return text;
    throw new WasmprobeError("E_VALUE", `${flags.split(" ")[0]} "": valid is the path of a file`);
  });
}

/** One of a fixed list of names. */
export function choiceOption<T extends string>(
  flags: string,
  about: string,
  what: string,
  names: readonly T[],
): Option {
  return new Option(flags, about).argParser((text) => choice(text, what, names));
}

export function choice<T extends string>(text: string, what: string, names: readonly T[]): T {
  const found = names.find((name) => name === text);
  if (found === undefined) throw unknownName(what, text, names);
  return found;
}

export function presetOption(flags: string, about: string): Option {
  return new Option(flags, about).argParser(preset);
}

export function presetListOption(flags: string, about: string): Option {
  return new Option(flags, about).argParser((text) =>
    unique(text.split(",").map((name) => preset(name.trim()))),
  );
}

function preset(text: string): PresetName {
  const found = findPreset(text);
  if (found === undefined) throw unknownName("preset", text, PRESET_NAMES);
  return found.name;
}

/** The name of a bench as the catalogue has it; trig-NAME is NAME. */
export function caseName(text: string): string {
  const plain = plainName(text);
  if (findCase(plain) === undefined) {
    throw unknownName("bench", text, CASE_NAMES, "wasmprobe list benches");
  }
  return plain;
}

/** Refuses --preset where no named bench has presets. */
export function checkPreset(names: readonly string[], given: unknown): void {
  if (given === undefined || names.length === 0 || names.some(hasPresets)) return;
  const valid = CASE_NAMES.filter(hasPresets).join(", ");
  throw new WasmprobeError(
    "E_USAGE",
    `--preset: ${names.join(", ")} has no presets; valid with ${valid}`,
  );
}

/** Refuses -L where nothing is timed one by one. */
export function checkLatency(name: string, given: unknown): void {
  const found = findCase(name);
  if (given === undefined || (found !== undefined && hasLatency(found))) return;
  const valid = CASES.filter(hasLatency).map((bench) => bench.name);
  throw new WasmprobeError(
    "E_USAGE",
    `-L: nothing of ${name} is timed one by one; valid with ${valid.join(", ")}`,
  );
}

export function hasPresets(name: string): boolean {
  return (findCase(name)?.presets.length ?? 0) > 0;
}

export function unique<T>(list: readonly T[]): T[] {
  return [...new Set(list)];
}
