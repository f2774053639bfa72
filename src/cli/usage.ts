// Commander's complaints as ours: one line, with the nearest valid names.

import { CommanderError, type Command } from "commander";
import { WasmprobeError } from "../base/errors.js";
import { unknownName } from "../base/text.js";

/** Thrown where commander would end the process after --help or --version. */
export const SHOWN = new CommanderError(0, "wasmprobe.shown", "shown");

/** Commander's complaint as one of ours: one line with the nearest valid names. */
export function translate(error: CommanderError, command: Command, argv: readonly string[]): Error {
  if (error.exitCode === 0) return SHOWN;
  const where = command.parent === null ? "wasmprobe" : command.name();
  const quoted = /'([^']*)'/.exec(error.message)?.[1] ?? "";
  switch (error.code) {
    case "commander.help": // "help NAME" of a name that does not exist, or nothing to do
      if (argv[0] !== "help" || argv[1] === undefined) return SHOWN;
      return unknownName("command", argv[1], commandNames(command));
    case "commander.unknownOption":
      return unknownName(`option of ${where}`, quoted, optionNames(command));
    case "commander.unknownCommand":
      return unknownName("command", quoted, commandNames(command));
    case "commander.optionMissingArgument": {
      const option = command.options.find((o) => o.flags === quoted);
      const typed = argv.find((a) => a === option?.short || a === option?.long) ?? quoted;
      const takes = option === undefined ? "a value" : `${option.description}`;
      return new WasmprobeError("E_VALUE", `${typed} needs a value: ${takes}`);
    }
    case "commander.excessArguments": {
      const most = command.registeredArguments.length;
      const extra = command.args.slice(most).join(" ");
      const takes = most === 0 ? "no name" : "one name";
      return new WasmprobeError("E_USAGE", `${where} takes ${takes}; "${extra}" is one too many`);
    }
    default:
      return new WasmprobeError(
        "E_USAGE",
        error.message.replace(/^error: /, "").replace(/\s+/g, " "),
      );
  }
}

function optionNames(command: Command): string[] {
  return command.options
    .filter((o) => !o.hidden)
    .flatMap((o) => [o.long, o.short].filter((name) => name !== undefined))
    .concat("--help");
}

function commandNames(program: Command): string[] {
  return program.commands.map((c) => c.name());
}
