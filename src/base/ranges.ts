// Lists of CPU counts as people type them: "1-8,10".

import { WasmprobeError } from "./errors.js";
import { at } from "./list.js";

/** Most CPUs of one engine. The engine's own constant of the same value is checked by a test. */
export const CPUS_LIMIT = 256;

/** "1-8,10" as sorted numbers, each once. Every part is N or FROM-TO with FROM <= TO. */
export function parseRanges(text: string, option: string, limit: number): number[] {
  const found = new Set<number>();
  for (const part of text.split(",")) {
    const match = /^\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?$/.exec(part);
    if (match === null) throw invalid(text, part, "is neither N nor FROM-TO", option, limit);
    const from = Number(match[1]);
    const to = match[2] === undefined ? from : Number(match[2]);
    if (from < 1) throw invalid(text, part, "starts below 1", option, limit);
    if (to < from) throw invalid(text, part, "runs backwards", option, limit);
    if (to > limit) throw invalid(text, part, `goes beyond ${limit}`, option, limit);
    for (let n = from; n <= to; n++) found.add(n);
  }
  return [...found].sort((a, b) => a - b);
}

/** A list of CPU counts, 1..256 each. */
export function parseCpuList(text: string, option = "--cpus", limit = CPUS_LIMIT): number[] {
  return parseRanges(text, option, limit);
}

/** The shortest list that parses to `numbers`: [1, 2, 3, 8] is "1-3,8". */
export function formatRanges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0, end = 0; i < sorted.length; i = end + 1) {
    const from = at(sorted, i);
    end = i;
    while (sorted[end + 1] === from + (end + 1 - i)) end++;
    const to = at(sorted, end);
    parts.push(from === to ? `${from}` : to === from + 1 ? `${from},${to}` : `${from}-${to}`);
  }
  return parts.join(",");
}

/** 1, 2, 4, ... and the maximum itself: the counts of a sweep that named none. */
export function doublingCounts(most: number): number[] {
  const counts: number[] = [];
  for (let n = 1; n < most; n *= 2) counts.push(n);
  return [...counts, most];
}

function invalid(
  text: string,
  part: string,
  why: string,
  option: string,
  limit: number,
): WasmprobeError {
  const where = part === text ? "it" : `"${part}"`;
  return new WasmprobeError(
    "E_VALUE",
    `${option} ${text.trim() || '""'}: ${where} ${why}; ` +
      `valid are numbers and ranges within 1..${limit}, as in 1-8,10`,
  );
}
