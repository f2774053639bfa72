// Who imports whom: the direction, cycles, files that nothing reaches, undeclared packages.

import { scan } from "./scan.js";
import { isCode, lineAt, type Tree } from "./tree.js";

/** A folder (or file of the root) imports only what is listed before it, and itself. */
export const ORDER = {
  assembly: "layout commands atomics cpu sync percpu rcu mm uprobe workload engine".split(" "),
  src: "base platform wasm engine harness virtual reproduce trace cli web sync rcu index".split(
    " ",
  ),
} as const;

/** Neighbours in the list that must not know each other: [importer, imported]. */
const APART = [
  ["web", "cli"],
  ...["index", "sync", "rcu"].flatMap((entry) => [
    [entry, "cli"],
    [entry, "web"],
  ]),
];

/** What a file of src/ may import from outside of src/. */
const OUTSIDE_OF_SRC = [
  { from: /^src\/engine\/abi\.ts$/, to: /^assembly\/(layout|commands)\.ts$/ },
  { from: /^src\/(harness|reproduce)\//, to: /^bench\/tables\/[\w.-]+\.csv$/ }, // data, not code
];

/** Where programs begin. */
const ROOTS = [
  /^assembly\/engine\.ts$/,
  /^src\/(index|sync|rcu|cli\/main|engine\/worker)\.ts$/,
  /^test\/.*\.test\.ts$/,
  /^test\/examples\/.*\.example\.mjs$/, // run by their test, as a user's program
  /^test\/run\.mjs$/,
  /^test\/mutants\//, // loaded by name: scripts/mutants.mjs
  /^(bench|scripts)\//,
];

export interface Import {
  readonly from: string;
  readonly line: number;
  /** The words between the quotes. */
  readonly what: string;
  /** Path of the imported file in the tree; undefined for a package or a missing file. */
  readonly to: string | undefined;
}

const FORMS = [
  /\b(?:import|export)\b[^;"'`]*?\bfrom\s*["']([^"']+)["']/g,
  /\bimport\s*["']([^"']+)["']/g,
  /\bimport\s*\(\s*["']([^"']+)["']/g,
  /\bnew URL\(\s*["']([^"']+)["']\s*,\s*import\.meta\.url/g,
];

/** The file that a relative import means: "./x.js" is x.ts, AssemblyScript's "./x" too. */
function resolveIn(files: Tree, from: string, what: string): string | undefined {
  const parts = from.split("/").slice(0, -1);
  for (const part of what.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  const path = parts.join("/");
  const bare = path.replace(/\.js$/, "");
  return [path, `${bare}.ts`, `${bare}/index.ts`].find((candidate) => files.has(candidate));
}

export function importsOf(files: Tree, from: string): Import[] {
  const { withoutComments: text, codeOnly } = scan(files.get(from) ?? "");
  // An import inside a string (a test's made-up file) is none: its first letter is blank in code.
  const isCodeAt = (match: RegExpExecArray): boolean => codeOnly[match.index] !== " ";
  return FORMS.flatMap((form) =>
    [...text.matchAll(form)].filter(isCodeAt).map((match) => {
      const what = match[1] ?? "";
      const to = what.startsWith(".") ? resolveIn(files, from, what) : undefined;
      return { from, line: lineAt(text, match.index), what, to };
    }),
  );
}

const codeUnder = (files: Tree, dirs: RegExp): string[] =>
  [...files.keys()].filter((path) => isCode(path) && dirs.test(path));

/** "assembly/sync/mutex.ts" -> ["assembly", "sync"]; "assembly/cpu.ts" -> ["assembly", "cpu"]. */
function placeOf(path: string): [keyof typeof ORDER, string] | undefined {
  const [half, next] = path.split("/");
  if ((half !== "assembly" && half !== "src") || next === undefined) return undefined;
  return [half, next.replace(/\.ts$/, "")];
}

export function direction(files: Tree): string[] {
  const wrong: string[] = [];
  for (const path of codeUnder(files, /^(assembly|src)\//)) {
    const place = placeOf(path);
    if (!place) continue;
    const [half, own] = place;
    const order: readonly string[] = ORDER[half];
    if (!order.includes(own)) {
      wrong.push(`${path}:1 lies in no folder of the order: ${order.join(" ")}`);
      continue;
    }
    for (const { line, what, to } of importsOf(files, path)) {
      if (!what.startsWith(".")) continue;
      const where = `${path}:${line} imports ${to ?? what}`;
      const target = to === undefined ? undefined : placeOf(to);
      if (to === undefined) {
        // A build product, by URL: the engine's module. A missing file is tsc's business.
        if (!/\.(wasm|js|json)$/.test(what)) wrong.push(`${where}: there is no such file`);
      } else if (!target || target[0] !== half) {
        const allowed = OUTSIDE_OF_SRC.some((a) => a.from.test(path) && a.to.test(to));
        if (!allowed) wrong.push(`${where}: outside of ${half}/`);
      } else if (order.indexOf(target[1]) > order.indexOf(own)) {
        wrong.push(`${where}: ${own} comes before ${target[1]}`);
      } else if (APART.some(([a, b]) => a === own && b === target[1])) {
        wrong.push(`${where}: ${own} and ${target[1]} must not know each other`);
      }
    }
  }
  return wrong;
}

/** Every cycle is reported once, as the path that closes it. */
export function cycles(files: Tree): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): void => {
    const at = path.indexOf(file);
    if (at >= 0) found.push([...path.slice(at), file].join(" -> "));
    if (at >= 0 || done.has(file)) return;
    path.push(file);
    for (const { to } of importsOf(files, file)) if (to !== undefined && isCode(to)) visit(to);
    path.pop();
    done.add(file);
  };
  for (const file of codeUnder(files, /./)) visit(file);
  return found;
}

function reachedFrom(files: Tree, roots: string[]): Set<string> {
  const reached = new Set<string>();
  const queue = roots;
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    for (const { to } of importsOf(files, file)) if (to !== undefined) queue.push(to);
  }
  return reached;
}

export function unreached(files: Tree): string[] {
  const all = codeUnder(files, /^(assembly|src|test|bench|scripts)\//).filter(
    (path) => !/\.d\.m?ts$/.test(path),
  );
  const reached = reachedFrom(
    files,
    all.filter((path) => ROOTS.some((root) => root.test(path))),
  );
  return all.filter((path) => !reached.has(path)).map((path) => `${path}:1 nothing imports it`);
}

/** Imported packages that package.json does not declare; dev packages do not reach src/. */
export function undeclared(files: Tree): string[] {
  const manifest = JSON.parse(files.get("package.json") ?? "{}") as {
    name?: string;
    dependencies?: Record<string, string>;
    devDependencies?: Record<string, string>;
  };
  const shipped = Object.keys(manifest.dependencies ?? {});
  const all = [...shipped, ...Object.keys(manifest.devDependencies ?? {})];
  if (manifest.name !== undefined) all.push(manifest.name); // examples import the package itself
  const wrong: string[] = [];
  for (const path of codeUnder(files, /^(src|test|bench|scripts)\//)) {
    const allowed = path.startsWith("src/") ? shipped : all;
    for (const { line, what } of importsOf(files, path)) {
      if (/^(\.|node:)/.test(what)) continue;
      const name = what.split("/", what.startsWith("@") ? 2 : 1).join("/");
      if (!allowed.includes(name)) wrong.push(`${path}:${line} imports ${name}: not declared`);
    }
  }
  return wrong;
}
