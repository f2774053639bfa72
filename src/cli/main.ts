#!/usr/bin/env node
// The command line's entry: chooses the platform, runs one command, ends with its exit code.
// A command that throws ends in one line on stderr; nothing is left running either way.

import { exitCodeOf, lineOf } from "../base/errors.js";
import { VERSION } from "../base/version.js";
import { nodeTerminal } from "../platform/node-terminal.js";
import { nodePlatform } from "../platform/node.js";
import { parseArgs } from "./args.js";
import { runList } from "./commands/list.js";
import type { CliOptions } from "./options.js";
import { Session } from "./session.js";

// Commands that measure are loaded when they are asked for: help and list start without them.
async function dispatch(session: Session, options: CliOptions): Promise<number> {
  switch (options.command) {
    case "text":
      session.print(options.text);
      return 0;
    case "list":
      return runList(session, options);
    case "bench":
      return (await import("./commands/bench.js")).runBench(session, options);
    case "sweep":
      return (await import("./commands/sweep.js")).runSweep(session, options);
    case "torture":
      return (await import("./commands/torture.js")).runTorture(session, options);
  }
}

const session = new Session(nodePlatform, nodeTerminal);
let code: number;
try {
  code = await dispatch(session, parseArgs(nodeTerminal.argv, VERSION));
} catch (error) {
  session.note(`wasmprobe: ${lineOf(error)}`);
  code = exitCodeOf(error);
}
await nodeTerminal.flush();
nodeTerminal.exit(session.interruptedCode ?? code);
