// The process of a command under Node.js, behind the Terminal interface.

import { readFileSync, writeFileSync } from "node:fs";
import type { Terminal, TextSink } from "./platform.js";

/** 128 plus the signal's number, as shells report it. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

let pending = 0;
let drained: (() => void)[] = [];

function written(): void {
  pending--;
  if (pending > 0) return;
  for (const resolve of drained) resolve();
  drained = [];
}

function sink(stream: NodeJS.WriteStream): TextSink {
  return {
    isTty: stream.isTTY === true,
    get columns() {
      return stream.isTTY === true ? stream.columns : undefined;
    },
    write(text) {
      if (stream.destroyed || text === "") return;
      pending++;
      stream.write(text, written);
    },
  };
}

// A closed pipe is an event, not an exception; for stderr there is nobody left to tell.
const closedListeners: (() => void)[] = [];
process.stdout.on("error", () => {
  for (const listener of closedListeners) listener();
});
process.stderr.on("error", () => {});

export const nodeTerminal: Terminal = {
  argv: process.argv.slice(2),
  stdout: sink(process.stdout),
  stderr: sink(process.stderr),
  onInterrupt(listener) {
    for (const [signal, code] of Object.entries(SIGNALS)) {
      process.on(signal, () => listener(code));
    }
  },
  onStdoutClosed(listener) {
    closedListeners.push(listener);
  },
  readText: (path) => readFileSync(path, "utf8"),
  writeText: (path, text) => writeFileSync(path, text),
  entropy: () => Math.floor(Math.random() * 2 ** 32),
  flush: () =>
    pending === 0
      ? Promise.resolve()
      : new Promise((resolve) => {
          drained.push(resolve);
        }),
  exit: (code) => process.exit(code),
};
