// What every command shares: the platform, the terminal, and one place that knows of interruptions.

import type { Interrupt } from "../harness/measure.js";
import type { Platform, Terminal } from "../platform/platform.js";

/** Exit code when nobody reads the results any more: 128 + SIGPIPE, as a shell reports it. */
export const EXIT_STDOUT_CLOSED = 141;

export class Session {
  readonly platform: Platform;
  readonly terminal: Terminal;
  /** Set when the user asked to stop, or nobody reads the results any more. */
  readonly interrupt: Interrupt;
  #exitCode: number | undefined;
  #listeners: (() => void)[] = [];

  constructor(platform: Platform, terminal: Terminal) {
    this.platform = platform;
    this.terminal = terminal;
    const session = this;
    this.interrupt = {
      get aborted() {
        return session.#exitCode !== undefined;
      },
      onAbort(listener) {
        if (session.#exitCode !== undefined) listener();
        else session.#listeners.push(listener);
      },
    };
    terminal.onInterrupt((code) => {
      // The second request does not wait for anything.
      if (this.#exitCode !== undefined) terminal.exit(code);
      this.#abort(code);
    });
    terminal.onStdoutClosed(() => {
      if (this.#exitCode !== undefined) return;
      terminal.stderr.write("wasmprobe: stdout was closed before all results were written\n");
      this.#abort(EXIT_STDOUT_CLOSED);
    });
  }

  /** What an interruption ends the program with; undefined without one. */
  get interruptedCode(): number | undefined {
    return this.#exitCode;
  }

  print(text: string): void {
    this.terminal.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** For people, not for pipes: notes that belong to no result. */
  note(line: string): void {
    this.terminal.stderr.write(`${line}\n`);
  }

  #abort(code: number): void {
    this.#exitCode = code;
    for (const listener of this.#listeners.splice(0)) listener();
  }
}
