// What every command shares: the platform, the terminal, and one place that knows of interruptions.

import type { Interrupt } from "../harness/measure.js";
import type { Platform, Terminal } from "../platform/platform.js";

/** Exit code when nobody reads the results any more: 128 + SIGPIPE, as a shell reports it. */
export const EXIT_STDOUT_CLOSED = 141;

/** Set once: by Ctrl-C, by a signal, or when nobody reads the results any more. */
class Interruption implements Interrupt {
  exitCode: number | undefined;
  #listeners: (() => void)[] = [];

  get aborted(): boolean {
    return this.exitCode !== undefined;
  }

  onAbort(listener: () => void): void {
    if (this.aborted) listener();
    else this.#listeners.push(listener);
  }

  abort(exitCode: number): void {
    this.exitCode ??= exitCode;
    for (const listener of this.#listeners.splice(0)) listener();
  }
}

export class Session {
  readonly platform: Platform;
  readonly terminal: Terminal;
  readonly #interruption = new Interruption();

  constructor(platform: Platform, terminal: Terminal) {
    this.platform = platform;
    this.terminal = terminal;
    const interruption = this.#interruption;
    terminal.onInterrupt((code) => {
      // The second request does not wait for anything.
      if (interruption.aborted) terminal.exit(code);
      interruption.abort(code);
    });
    terminal.onStdoutClosed(() => {
      if (interruption.aborted) return;
      this.note("wasmprobe: stdout was closed before all results were written");
      interruption.abort(EXIT_STDOUT_CLOSED);
    });
  }

  get interrupt(): Interrupt {
    return this.#interruption;
  }

  /** What an interruption ends the program with; undefined without one. */
  get interruptedCode(): number | undefined {
    return this.#interruption.exitCode;
  }

  print(text: string): void {
    this.terminal.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** For people, not for pipes: notes that belong to no result. */
  note(line: string): void {
    this.terminal.stderr.write(`${line}\n`);
  }
}
