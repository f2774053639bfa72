// The command line as a user has it: the built program, in a process of its own.

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import * as assert from "uvu/assert";
import { ROOT } from "./root.js";

export const MAIN = join(ROOT, "dist", "cli", "main.js");
/** Nothing here takes so long, on any machine: who does is stuck. */
const STUCK_MS = 60_000;

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Running {
  child: ChildProcess;
  /** All that came so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves when the text of one of the streams matches. */
  seen(pattern: RegExp): Promise<void>;
  ended: Promise<Ended>;
}

/** Starts wasmprobe with these words; `prefix` are words before the runtime's ("taskset -c 0"). */
export function start(line: string | readonly string[], prefix: readonly string[] = []): Running {
  const words = typeof line === "string" ? line.split(" ").filter(Boolean) : line;
  const [program = "", ...args] = [...prefix, process.execPath, MAIN, ...words];
  const env = { ...process.env, NO_COLOR: "1" };
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  const text = { stdout: "", stderr: "" };
  let look = (): void => {};
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      text[name] += chunk;
      look();
    });
  }
  let stuck = false;
  const timer = setTimeout(() => {
    stuck = true;
    child.kill("SIGKILL");
  }, STUCK_MS);
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      look();
      if (stuck) reject(new Error(`${words.join(" ")}: not ended after ${STUCK_MS} ms`));
      else resolve({ code, signal, ...text });
    });
  });
  ended.catch(() => {}); // awaited by whoever wants it
  return {
    child,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    seen: (pattern) =>
      new Promise((resolve, reject) => {
        look = () => {
          if (pattern.test(text.stdout) || pattern.test(text.stderr)) resolve();
          else if (child.exitCode !== null || child.signalCode !== null) {
            reject(new Error(`ended without ${pattern}:\n${text.stdout}\n${text.stderr}`));
          }
        };
        look();
      }),
    ended,
  };
}

/** Runs wasmprobe to its end. */
export function run(line: string | readonly string[], prefix?: readonly string[]): Promise<Ended> {
  return start(line, prefix).ended;
}

/** Runs it to its good end. */
export async function good(
  line: string | readonly string[],
  prefix?: readonly string[],
): Promise<Ended> {
  const ended = await run(line, prefix);
  assert.is(ended.code, 0, `${String(line)}: ${ended.stderr}`);
  return ended;
}

/** Runs what must be refused: nothing on stdout, one line on stderr, which is returned. */
export async function refused(
  code: number,
  line: string | readonly string[],
  prefix?: readonly string[],
): Promise<string> {
  const ended = await run(line, prefix);
  assert.is(ended.code, code, `${String(line)}: ${ended.stderr}`);
  assert.is(ended.stdout, "", String(line));
  assert.match(ended.stderr, /^wasmprobe: [^\n]+\n$/);
  return ended.stderr.trimEnd();
}

/** Ended as an interrupted program does; before the program itself runs, the signal ends it. */
export function checkEnd(ended: Ended, code = 130, signal: NodeJS.Signals = "SIGINT"): void {
  const early = ended.signal === signal && ended.stdout === "" && ended.stderr === "";
  assert.ok(ended.code === code || early, JSON.stringify(ended));
  assert.not.match(ended.stderr, /\n +at /, "no stack");
}
