// Progress on stderr: a bar on a terminal, plain lines otherwise, nothing with -q. Results go to
// stdout and never through here.

import { SingleBar } from "cli-progress";

/** Where progress is shown; the platform's stderr fits. */
export interface ProgressOutput {
  isTty: boolean;
  /** Width of the terminal, where known. */
  columns: number | undefined;
  write(text: string): void;
}

export interface Progress {
  /** Announces `total` steps. */
  start(total: number): void;
  /** A step begins; `what` is said while it lasts. */
  step(what: string): void;
  /** More steps than announced: something has to be done again. */
  more(steps: number): void;
  /** A line that stays: a dropped round, a warning. */
  say(line: string): void;
  /** Ends the bar and leaves no trace of it; may be called at any time, and twice. */
  stop(): void;
}

const BAR_WIDTH = 24;
const COLUMNS_DEFAULT = 80;

export function createProgress(output: ProgressOutput, quiet = false): Progress {
  if (quiet) return { start() {}, step() {}, more() {}, say() {}, stop() {} };
  return output.isTty ? bar(output) : lines(output);
}

function lines(output: ProgressOutput): Progress {
  let total = 0;
  let begun = 0;
  return {
    start(steps) {
      total = steps;
      begun = 0;
    },
    step(what) {
      begun++;
      const width = String(total).length;
      output.write(`[${String(begun).padStart(width)}/${total}] ${what}\n`);
    },
    more(steps) {
      total += steps;
    },
    say(line) {
      output.write(`${line}\n`);
    },
    stop() {},
  };
}

function bar(output: ProgressOutput): Progress {
  // What the bar needs of a stream, and no more.
  const stream = {
    isTTY: true,
    columns: output.columns ?? COLUMNS_DEFAULT,
    write(text: string) {
      output.write(text);
      return true;
    },
  } as unknown as NodeJS.WritableStream;
  const shown = new SingleBar({
    stream,
    format: `[{bar}] {value}/{total} {what}`,
    barsize: BAR_WIDTH,
    barCompleteChar: "=",
    barIncompleteChar: " ",
    hideCursor: true,
    clearOnComplete: true,
    // Signals belong to the command: it has results to print, and workers to stop.
    gracefulExit: false,
  });
  let begun = 0;
  let total = 0;
  let now = "";
  const begin = (): void => shown.start(total, Math.max(0, begun - 1), { what: now });
  return {
    start(steps) {
      total = steps;
      begun = 0;
      now = "";
      begin();
    },
    step(what) {
      now = what;
      // A step counts as done when the next one begins.
      shown.update(begun, { what });
      begun++;
    },
    more(steps) {
      total += steps;
      shown.setTotal(total);
    },
    say(line) {
      const active = shown.isActive;
      if (active) shown.stop();
      output.write(`${line}\n`);
      if (active) begin();
    },
    stop() {
      if (shown.isActive) shown.stop();
    },
  };
}
