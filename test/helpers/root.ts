// Where the project is. Tests are bundled into build/, so a path relative to a source file is of
// no use: the project's folder is the nearest one upwards with a package.json.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

function findRoot(): string {
  let dir = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(dir, "package.json"))) {
    const up = dirname(dir);
    if (up === dir) throw new Error("no package.json above the tests");
    dir = up;
  }
  return dir;
}

/** Absolute path of the project's folder. */
export const ROOT = findRoot();
