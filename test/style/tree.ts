// The project's files as the style rules see them: a map from path to text.
//
// A rule is a pure function from such a map to a list of complaints, "path:line problem", so that
// its test can hand it a small made-up tree and see that it bites.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../helpers/root.js";

/** Path relative to the project, with slashes, to text. */
export type Tree = ReadonlyMap<string, string>;

/** Not ours, or not source: never looked at. */
const SKIPPED = new Set([".git", "node_modules", "dist", "build"]);

function walk(dir: string, into: Map<string, string>): void {
  for (const entry of readdirSync(join(ROOT, dir), { withFileTypes: true })) {
    if (SKIPPED.has(entry.name)) continue;
    const path = dir === "" ? entry.name : `${dir}/${entry.name}`;
    if (entry.isDirectory()) walk(path, into);
    else if (entry.isFile()) into.set(path, readFileSync(join(ROOT, path), "utf8"));
  }
}

/** Every file of the project that is not ignored. */
export function projectTree(): Tree {
  const files = new Map<string, string>();
  walk("", files);
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A made-up tree, for the rules' own tests. */
export const tree = (files: Record<string, string>): Tree => new Map(Object.entries(files));

export const isCode = (path: string): boolean => /\.(ts|mts|mjs|js)$/.test(path);

/** 1-based number of the line that holds `index`. */
export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < index; at = text.indexOf("\n", at + 1)) line++;
  return line;
}
