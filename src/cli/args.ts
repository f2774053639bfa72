// The command line: a wrong one ends in one error that names what is valid, a right one in the
// options of its command. Nothing runs here.

import { Command, Option } from "commander";
import { WasmprobeError } from "../base/errors.js";
import { parseCpuList } from "../base/ranges.js";
import { CPUS_MAX } from "../engine/abi.js";
import { type Arch, DEFAULT_PRESET, type PresetName } from "../harness/cases.js";
import { FORMAT_NAMES, type FormatName } from "../harness/format/names.js";
import { LOCK_TEST_NAMES } from "../harness/torture/names.js";
import { BENCH_HELP, LIST_HELP, PROGRAM_HELP, SWEEP_HELP, TORTURE_HELP } from "./help.js";
import {
  archOption,
  caseName,
  checkLatency,
  checkPreset,
  choice,
  choiceOption,
  fileOption,
  hasPresets,
  presetListOption,
  presetOption,
  probesListOption,
  probesOption,
  secondsOption,
  seedOption,
  siteBytesListOption,
  siteBytesOption,
  trapNsOption,
  unique,
  wasmOption,
  wholeOption,
} from "./option.js";
import {
  LIST_TOPICS,
  RUNNER_NAMES,
  TORTURE_NAMES,
  type BenchOptions,
  type CliOptions,
  type SweepOptions,
  type TortureOptions,
} from "./options.js";
import { SHOWN, translate } from "./usage.js";

const WARMUP_MAX_SEC = 600;
const DURATION_MAX_SEC = 3600;
const REPEAT_MAX = 1000;

/** `argv` without runtime and script: ["bench", "uprobe-nop", "-p", "2"]. */
export function parseArgs(argv: readonly string[], version: string): CliOptions {
  let written = "";
  let options: CliOptions | undefined;
  const take = (parsed: CliOptions): void => {
    options = parsed;
  };
  const program = new Command("wasmprobe")
    .description("uprobes for WebAssembly threads: how probe hits scale with CPUs, measured")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .addHelpText("after", PROGRAM_HELP)
    // Subcommands copy this when they are made.
    .configureOutput({
      writeOut: (text) => (written += text),
      writeErr: () => {},
      getOutHelpWidth: () => 100,
    });
  const commands = [bench(program, take), sweep(program, take)];
  commands.push(torture(program, take), list(program, take), program);
  for (const command of commands) {
    command.exitOverride((error) => {
      throw translate(error, command, argv);
    });
  }
  try {
    if (argv.length > 0) program.parse([...argv], { from: "user" });
  } catch (error) {
    if (error !== SHOWN) throw error;
  }
  if (options === undefined && written === "") program.outputHelp();
  return options ?? { command: "text", text: written.trimEnd() };
}

type Take = (options: CliOptions) => void;

function subcommand(program: Command, name: string, about: string, more: string): Command {
  return program
    .command(name)
    .description(about)
    .helpOption("-h, --help", "print this help")
    .addHelpText("after", more);
}

// The values as commander collects them, under the long names of the options.

interface BenchValues {
  producers: number;
  warmup: number;
  duration: number;
  affinity?: true;
  quiet?: true;
  verbose?: true;
  list?: true;
  latency?: true;
  preset?: PresetName;
  probes: number;
  siteBytes: number;
  arch: Arch;
  trapNs: number;
  seed: number;
  wasm?: string;
}

function bench(program: Command, take: Take): Command {
  const about = "one run, with the kernel bench's options and lines";
  const preset = `strategy of uprobe benches (default: ${DEFAULT_PRESET})`;
  return subcommand(program, "bench", about, BENCH_HELP)
    .argument("[name]", "what to run; trig-NAME is accepted for NAME")
    .addOption(producersOption("workers, one per CPU").default(1))
    .addOption(warmupOption("least warm-up").default(1))
    .addOption(durationOption("measured time").default(5))
    .option("-a, --affinity", "pin worker i to the i-th allowed CPU")
    .option("-q, --quiet", "no setup lines, no progress")
    .option("-v, --verbose", "also print the header and all counters")
    .option("-l, --list", "list the benches")
    .option("-L, --latency", "also time one hit in some thousands")
    .addOption(presetOption("--preset <name>", preset))
    .addOption(probesOption())
    .addOption(siteBytesOption())
    .addOption(archOption())
    .addOption(trapNsOption())
    .addOption(seedOption().default(1))
    .addOption(wasmOption())
    .action((name: string | undefined, values: BenchValues) => {
      take(values.list ? { command: "list", topic: "benches" } : benchOptions(name, values));
    });
}

function benchOptions(given: string | undefined, values: BenchValues): BenchOptions {
  if (given === undefined) {
    throw new WasmprobeError(
      "E_USAGE",
      "bench needs a name, such as uprobe-nop, uprobe-push or uprobe-ret (wasmprobe list benches)",
    );
  }
  const name = caseName(given);
  checkPreset([name], values.preset);
  checkLatency(name, values.latency);
  return {
    command: "bench",
    name,
    preset: hasPresets(name) ? (values.preset ?? DEFAULT_PRESET) : null,
    cpus: values.producers,
    warmupSec: values.warmup,
    durationSec: values.duration,
    affinity: values.affinity ?? false,
    quiet: values.quiet ?? false,
    verbose: values.verbose ?? false,
    latency: values.latency ?? false,
    probes: values.probes,
    siteBytes: values.siteBytes,
    arch: values.arch,
    trapNs: values.trapNs,
    seed: values.seed,
    wasm: values.wasm ?? null,
  };
}

interface SweepValues {
  preset?: PresetName[];
  cpus?: number[];
  on: "threads";
  probes: number[];
  siteBytes: number[];
  arch: Arch;
  trapNs: number;
  warmup?: number;
  duration?: number;
  repeat?: number;
  seed: number;
  format: FormatName;
  out?: string;
  compare?: string;
  affinity?: true;
  quiet?: true;
  wasm?: string;
}

function sweep(program: Command, take: Take): Command {
  const about = "presets and CPU counts against each other";
  const counts = "CPU counts, as in 1-8,10 (default: 1,2,4... and all)";
  const cpus = new Option("--cpus <list>", counts);
  const formats = `one of ${FORMAT_NAMES.join(", ")}`;
  return subcommand(program, "sweep", about, SWEEP_HELP)
    .argument("[name...]", "benches (default: uprobe-nop, beside its published tables)")
    .addOption(
      presetListOption("--preset <a,b>", "strategies of uprobe benches (default: the bench's own)"),
    )
    .addOption(cpus.argParser((text) => parseCpuList(text, "--cpus", CPUS_MAX)))
    .addOption(
      choiceOption("--on <where>", "where to run", "runner", RUNNER_NAMES).default("threads"),
    )
    .addOption(probesListOption())
    .addOption(siteBytesListOption())
    .addOption(archOption())
    .addOption(trapNsOption())
    .addOption(warmupOption("least warm-up of a run"))
    .addOption(durationOption("measured time of a run"))
    .addOption(wholeOption("--repeat <n>", "interleaved rounds", "--repeat", REPEAT_MAX))
    .addOption(seedOption().default(1))
    .addOption(choiceOption("--format <name>", formats, "format", FORMAT_NAMES).default("table"))
    .addOption(fileOption("--out <file>", "write the result there instead of to stdout"))
    .addOption(fileOption("--compare <old.json>", "compare with an earlier result"))
    .option("-a, --affinity", "pin worker i to the i-th allowed CPU")
    .option("-q, --quiet", "no progress")
    .addOption(wasmOption())
    .action((names: string[], values: SweepValues) => take(sweepOptions(names, values)));
}

function sweepOptions(given: readonly string[], values: SweepValues): SweepOptions {
  const names = unique(given.map(caseName));
  checkPreset(names, values.preset);
  return {
    command: "sweep",
    names,
    presets: values.preset ?? null,
    cpus: values.cpus ?? null,
    on: values.on,
    probes: values.probes,
    siteBytes: values.siteBytes,
    arch: values.arch,
    trapNs: values.trapNs,
    warmupSec: values.warmup ?? null,
    durationSec: values.duration ?? null,
    repeat: values.repeat ?? null,
    seed: values.seed,
    format: values.format,
    out: values.out ?? null,
    compare: values.compare ?? null,
    affinity: values.affinity ?? false,
    quiet: values.quiet ?? false,
    wasm: values.wasm ?? null,
  };
}

interface TortureValues {
  seconds: number;
  seed: number | null;
  producers?: number;
  lock?: string;
  quiet?: true;
  wasm?: string;
}

function torture(program: Command, take: Take): Command {
  const about = "the invariants under load until time is up";
  return subcommand(program, "torture", about, TORTURE_HELP)
    .argument("[name]", `one of ${TORTURE_NAMES.join(", ")}`)
    .addOption(
      secondsOption("--seconds <s>", "how long", "--seconds", DURATION_MAX_SEC).default(10),
    )
    .addOption(seedOption().default(null, "drawn, and printed"))
    .addOption(producersOption("workers (default: all CPUs)"))
    .addOption(choiceOption("--lock <name>", "one lock only", "lock", LOCK_TEST_NAMES))
    .option("-q, --quiet", "no progress")
    .addOption(wasmOption())
    .action((name: string | undefined, values: TortureValues) =>
      take(tortureOptions(name, values)),
    );
}

function tortureOptions(name: string | undefined, values: TortureValues): TortureOptions {
  if (name === undefined) {
    throw new WasmprobeError("E_USAGE", `torture needs a name; valid: ${TORTURE_NAMES.join(", ")}`);
  }
  const chosen = choice(name, "torture test", TORTURE_NAMES);
  if (values.lock !== undefined && chosen !== "locks") {
    throw new WasmprobeError("E_USAGE", `--lock goes with torture locks, not ${chosen}`);
  }
  return {
    command: "torture",
    name: chosen,
    lock: values.lock ?? null,
    seconds: values.seconds,
    seed: values.seed,
    cpus: values.producers ?? null,
    quiet: values.quiet ?? false,
    wasm: values.wasm ?? null,
  };
}

function list(program: Command, take: Take): Command {
  return subcommand(program, "list", "what can be run", LIST_HELP)
    .argument("[topic]", `one of ${LIST_TOPICS.join(", ")} (default: all)`)
    .action((topic: string | undefined) => {
      const chosen = topic === undefined ? null : choice(topic, "list topic", LIST_TOPICS);
      take({ command: "list", topic: chosen });
    });
}

function producersOption(about: string): Option {
  return wholeOption("-p, --producers <n>", about, "-p", CPUS_MAX);
}

function warmupOption(about: string): Option {
  return secondsOption("-w, --warmup <sec>", about, "-w", WARMUP_MAX_SEC);
}

function durationOption(about: string): Option {
  return secondsOption("-d, --duration <sec>", about, "-d", DURATION_MAX_SEC);
}
