// Rules on a file's text: size, width, words that belong elsewhere, what must not be published.

import { scan } from "./scan.js";
import { isCode, lineAt, type Tree } from "./tree.js";

const LINES_MAX = 600;
/** Above this a file is listed, not failed: think of splitting it. */
const LINES_SOFT = 350;
const WIDTH_MAX = 100;

/** Written by us, line by line; tables and prose (csv, md, json) have no width. */
const isWritten = (path: string): boolean =>
  isCode(path) || path.endsWith(".sh") || path.startsWith(".ci/");

function* written(files: Tree): Generator<[string, string]> {
  for (const [path, text] of files) if (isWritten(path)) yield [path, text];
}

const lineCount = (text: string): number => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);

export function tooLong(files: Tree): string[] {
  return [...written(files)]
    .filter(([, text]) => lineCount(text) > LINES_MAX)
    .map(([path, text]) => `${path}:${lineCount(text)} lines, ${LINES_MAX} allowed`);
}

/** For the output only. */
export function long(files: Tree): string[] {
  return [...written(files)]
    .filter(([, text]) => lineCount(text) > LINES_SOFT && lineCount(text) <= LINES_MAX)
    .map(([path, text]) => `${path}: ${lineCount(text)} lines`);
}

export function tooWide(files: Tree): string[] {
  return [...written(files)].flatMap(([path, text]) =>
    text
      .split("\n")
      .map((line, i) => [i + 1, [...line].length] as const)
      .filter(([, width]) => width > WIDTH_MAX)
      .map(([line, width]) => `${path}:${line} is ${width} wide`),
  );
}

/** Places where `pattern` matches in a view of the file. */
function matches(
  path: string,
  view: string,
  pattern: RegExp,
  problem: (word: string) => string,
): string[] {
  return [...view.matchAll(pattern)].map(
    (match) => `${path}:${lineAt(view, match.index)} ${problem(match[0].trim())}`,
  );
}

/** The waist: one file of assembly/ names atomic operations. */
export function atomics(files: Tree): string[] {
  return [...files].flatMap(([path, text]) =>
    path.startsWith("assembly/") && path.endsWith(".ts") && path !== "assembly/atomics.ts"
      ? matches(path, scan(text).codeOnly, /\batomic\s*\./g, (word) => `${word} outside the waist`)
      : [],
  );
}

const word = (name: string): RegExp => new RegExp(`(?<![\\w$.])${name}\\s*(?:\\.|\\()`, "g");

/** Words of one platform, and the folders of src/ that may say them. */
const PLATFORM_WORDS: readonly { view: "codeOnly" | "withoutComments"; in: RegExp; say: RegExp }[] =
  [
    { view: "withoutComments", in: /^src\/platform\//, say: /["'`]node:/g },
    ...["process", "Buffer", "require", "Deno", "Bun", "globalThis"].map((name) => ({
      view: "codeOnly" as const,
      in: /^src\/platform\//,
      say: word(name),
    })),
    ...["self", "window", "navigator", "document"].map((name) => ({
      view: "codeOnly" as const,
      in: /^src\/(platform|web)\//,
      say: word(name),
    })),
  ];

export function platformWords(files: Tree): string[] {
  return [...files].flatMap(([path, text]) => {
    if (!path.startsWith("src/") || !isCode(path)) return [];
    const views = scan(text);
    return PLATFORM_WORDS.filter((rule) => !rule.in.test(path)).flatMap((rule) =>
      matches(path, views[rule.view], rule.say, (found) => `${found} outside src/platform/`),
    );
  });
}

// A letter in brackets, or this file would complain about itself.
const LEFT_OVER = /\b(?:T[O]DO|F[I]XME|X[X]X)\b.*/g;

/** Open ends are issues: the word alone is not enough. */
export function leftOvers(files: Tree): string[] {
  return [...files].flatMap(([path, text]) =>
    path === "package-lock.json"
      ? []
      : matches(path, text, LEFT_OVER, (rest) => rest).filter((found) => !/#\d+/.test(found)),
  );
}

const MACHINE_PATH = /(?<![\w.$}/-])\/(?:w[o]rk|r[o]ot|h[o]me\/\w+|U[s]ers\/\w+)\//g;

/** Hosts that a stranger cannot use, and registries: no file names one. */
const PRIVATE_HOST = new RegExp(
  `\\bhttps?://(?:${[
    "registry\\.[\\w.-]+",
    "[\\w.-]+\\.(?:internal|local|lan|corp)\\b",
    "(?!localhost\\b)[\\w-]+(?=[:/\\s\"'`]|$)", // a bare machine name
    "(?!127\\.0\\.0\\.1)\\d+\\.\\d+\\.\\d+\\.\\d+",
  ].join("|")})`,
  "g",
);

/** What only this machine has must not be in a file: folders, registries. */
export function thisMachine(files: Tree): string[] {
  return [...files].flatMap(([path, text]) => [
    ...matches(path, text, MACHINE_PATH, (found) => `names a folder of one machine: ${found}`),
    ...matches(path, text, PRIVATE_HOST, (found) => `names a private host: ${found}`),
    ...(path === ".npmrc" ? matches(path, text, /^.*\bregistry=.*$/gm, (l) => `sets ${l}`) : []),
    ...(path === "package-lock.json"
      ? matches(path, text, /"resolved": "(?!file:)[^"]*"/g, (found) => `has ${found}`)
      : []),
  ]);
}
