// The format of the tables in kernel mails, to the letter:
//
//   uprobe-nop      ( 8 cpus):   24.534 ± 0.010M/s  (  3.067M/s/cpu)
//
// that is, printf's "%-15s (%2d cpus): %8.3f ± %5.3fM/s  (%7.3fM/s/cpu)". Rows are grouped by
// preset under a title, as the mails group theirs by BEFORE and AFTER; comment lines start with
// "# ". A run whose operations were timed has a second line, indented by four blanks.

import { fixed } from "../../base/units.js";
import { measuredRuns, type MeasuredRun, type SweepResult } from "../result.js";
import { headerLines } from "./header.js";
import { latencyText, readersText } from "./latency.js";
import { blocksOf } from "./series.js";

const NAME_WIDTH = 15;

export type KernelRow = Pick<MeasuredRun, "bench" | "cpus" | "mean" | "stddev">;

/** One row. A deviation that does not exist is "n/a", in the width of a number. */
export function kernelLine(row: KernelRow, nameWidth = NAME_WIDTH): string {
  const name = row.bench.padEnd(nameWidth);
  const cpus = String(row.cpus).padStart(2);
  const rate = fixed(row.mean / 1e6, 8, 3);
  const deviation = row.stddev === null ? "n/a".padStart(5) : fixed(row.stddev / 1e6, 5, 3);
  const perCpu = fixed(row.mean / row.cpus / 1e6, 7, 3);
  return `${name} (${cpus} cpus): ${rate} ± ${deviation}M/s  (${perCpu}M/s/cpu)`;
}

export interface ParsedKernelLine extends KernelRow {
  perCpu: number;
}

/** Reads a row of this format, also from a mail that squeezed the blanks; undefined otherwise. */
export function parseKernelLine(line: string): ParsedKernelLine | undefined {
  const match =
    /^(\S+)\s+\(\s*(\d+) cpus\):\s*([\d.]+) ±\s*([\d.]+|n\/a)M\/s\s+\(\s*([\d.]+)M\/s\/cpu\)$/.exec(
      line.trim(),
    );
  if (match === null) return undefined;
  const [, bench = "", cpus, mean, stddev, perCpu] = match;
  return {
    bench,
    cpus: Number(cpus),
    mean: Number(mean) * 1e6,
    stddev: stddev === "n/a" ? null : Number(stddev) * 1e6,
    perCpu: Number(perCpu) * 1e6,
  };
}

export function formatKernel(result: SweepResult): string {
  const lines = headerLines(result).map((line) => `# ${line}`);
  const runs = measuredRuns(result);
  // Longer names than the kernel's widen the column for all rows, or the figures would not align.
  const width = Math.max(NAME_WIDTH, ...runs.map((run) => run.bench.length));
  for (const { title, runs: rows } of blocksOf(runs)) {
    lines.push("");
    if (title !== "") lines.push(title, "=".repeat(title.length));
    lines.push(...rows.flatMap((row) => [kernelLine(row, width), ...secondLine(row)]));
  }
  return lines.join("\n");
}

function secondLine(run: MeasuredRun): string[] {
  const readers = readersText(run);
  const parts = [latencyText(run), readers === "" ? "" : `readers: ${readers}`];
  const text = parts.filter((part) => part !== "").join("; ");
  return text === "" ? [] : [`    ${text}`];
}
