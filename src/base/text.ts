// Text for terminals and pipes: tables, and the nearest valid name to a wrong one.

import Table from "cli-table3";
import { WasmprobeError } from "./errors.js";
import { at } from "./list.js";

export interface TableOptions {
  /** Bold head and grey lines; off (the default) the text holds no escape code. */
  colour?: boolean;
  /** Alignment by column; columns beyond the list are right-aligned (numbers). */
  align?: readonly ("left" | "right")[];
}

// Only a line under the head: wide tables of numbers read better without a grid.
const LINES = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "  ",
};

/** A table of text; lines carry no trailing blanks, there is no newline at the end. */
export function textTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  options: TableOptions = {},
): string {
  const table = new Table({
    chars: LINES,
    colAligns: head.map((_, i) => options.align?.[i] ?? "right"),
    style: {
      head: options.colour ? ["bold"] : [],
      border: [],
      "padding-left": 0,
      "padding-right": 0,
      compact: true,
    },
  });
  const widths = head.map((name, i) =>
    Math.max(...[name, ...rows.map((r) => r[i] ?? "")].map(len)),
  );
  table.push(
    [...head],
    widths.map((w) => "-".repeat(w)),
    ...rows.map((row) => [...row]),
  );
  return table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

/** The same as a GitHub table. */
export function mdTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  align: readonly ("left" | "right")[] = [],
): string {
  const rule = head.map((_, i) => (align[i] === "left" ? "---" : "---:"));
  return [head, rule, ...rows].map(mdLine).join("\n");
}

function mdLine(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replace(/\|/g, "\\|")).join(" | ")} |`;
}

function len(text: string): number {
  return [...text].length;
}

/** Edits between two names: insert, delete, replace, or swap two neighbours. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min(at(last, j) + 1, at(row, j - 1) + 1, replace);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, at(beforeLast, j - 2) + 1);
      }
      row.push(best);
    }
    [beforeLast, last] = [last, row];
  }
  return at(last, b.length);
}

/** The valid names closest to `name`, best first; names that share a beginning or part count. */
export function nearest(name: string, valid: readonly string[], most = 3): string[] {
  const wanted = name.toLowerCase();
  // Two letters are one slip away from every other two.
  const limit = wanted.length < 3 ? 0 : Math.max(2, Math.ceil(wanted.length / 3));
  return valid
    .map((candidate, order) => {
      const lower = candidate.toLowerCase();
      const part = wanted.length >= 3 && lower.includes(wanted) ? 1 : Infinity;
      return { candidate, order, distance: Math.min(part, editDistance(wanted, lower)) };
    })
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance || a.order - b.order)
    .slice(0, most)
    .map(({ candidate }) => candidate);
}

/** The error for a name that does not exist: one line with the nearest valid ones. */
export function unknownName(
  what: string,
  name: string,
  valid: readonly string[],
  more = "",
): WasmprobeError {
  const near = nearest(name, valid);
  const hints: string[] = [];
  if (near.length > 0) hints.push(`did you mean ${oneOf(near)}?`);
  // Few names fit on the line anyway.
  if (near.length === 0 || (valid.length <= 6 && near.length < valid.length)) {
    hints.push(`valid: ${valid.slice(0, 20).join(", ")}${valid.length > 20 ? ", ..." : ""}`);
  }
  return new WasmprobeError(
    "E_NAME",
    `unknown ${what} "${name}": ${hints.join(" ")}${more === "" ? "" : ` (${more})`}`,
  );
}

/** "a", "a or b", "a, b or c". */
export function oneOf(names: readonly string[]): string {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} or ${names[names.length - 1]}`;
}

/** `text` in lines of at most `columns`, broken between words. */
export function wrapText(text: string, columns: number): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).filter((w) => w !== "")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && len(longer) > columns) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  if (line !== "") lines.push(line);
  return lines.join("\n");
}
