// Every plain access to shared memory says why it may be plain. Atomics are all sequentially
// consistent; what is left to argue about, and to get wrong, are the plain accesses.
//
// In the folders below, each `load<T>(...)`, `store<T>(...)`, `memory.copy`, `memory.fill` needs,
// nearest first, one of:
//
//   line       store<i32>(p, 0);            // plain: only the holder writes it
//              return load<i32>(p); // [D]  (a label whose argument stands elsewhere in the file)
//   paragraph  // plain: all under wait_lock      a comment line above, in the same run of lines
//              store<i32>(p, 0);                  without an empty one, inside the function
//              store<i32>(p, 0, 4);
//   function   // plain: REASON              in the comment directly above the function; in sync/
//                                            only above a short one: longer ones argue step by step
//   file       // plain: `task`, `MM_*`: REASON      in the file's header, but not in sync/: a
//              class of addresses, by the names that such an access uses: a variable, a constant
//              or a prefix of constants. It covers accesses whose address names one of them.
//
// Two ways to rot are complaints as well: a class of a header that no access uses, and a reason
// that is empty.

import { scan } from "./scan.js";
import { lineAt, type Tree } from "./tree.js";

const FOLDERS = /^assembly\/(sync|percpu|rcu|mm|uprobe|workload)\//;
/** Protocols between CPUs: no sweeping reasons. */
const STRICT = /^assembly\/sync\//;

/** Lines of a body that one reason above its function may cover there. */
const SHORT = 4;

const REASON = /\bplain: *\S/;
const LABEL = /\[[A-Z]\]/;
const says = (comment: string): boolean => REASON.test(comment) || LABEL.test(comment);
/** A label behind the access may stand without its brackets: `load<u8>(p) // D`. */
const saysAtEnd = (comment: string): boolean =>
  says(comment) || /^\/\/ [A-Z]\b(?!\w)/.test(comment);

interface Access {
  readonly line: number;
  readonly lastLine: number;
  readonly text: string;
  /** Names that make up the address: not the stored value, not what a nested access reads. */
  readonly names: readonly string[];
}

/** End of the bracketed text that opens at `open`, behind its closing sign. */
function closing(code: string, open: number): number {
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    if (code[at] === "(") depth++;
    if (code[at] === ")" && --depth === 0) return at + 1;
  }
  return code.length;
}

function splitArguments(text: string): string[] {
  const parts = [""];
  let depth = 0;
  for (const sign of text) {
    if (sign === "(" || sign === "[") depth++;
    if (sign === ")" || sign === "]") depth--;
    if (sign === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += sign;
  }
  return parts;
}

const ACCESS = /\b(?:(load|store)<\w+>|memory\.(copy|fill))\s*\(/g;

function accessesOf(code: string): Access[] {
  return [...code.matchAll(ACCESS)].map((match) => {
    const open = match.index + match[0].length - 1;
    const end = closing(code, open);
    let inner = code.slice(open + 1, end - 1);
    // What a nested load reads is that load's affair.
    for (let nested = ACCESS.exec(inner); nested; nested = ACCESS.exec(inner)) {
      const until = closing(inner, nested.index + nested[0].length - 1);
      inner = inner.slice(0, nested.index) + inner.slice(until);
      ACCESS.lastIndex = 0;
    }
    const args = splitArguments(inner);
    const address = match[1] === "store" || match[2] === "fill" ? args.toSpliced(1, 1) : args;
    return {
      line: lineAt(code, match.index),
      lastLine: lineAt(code, end - 1),
      text: `${match[0]}${code.slice(open + 1, end)}`.replace(/\s+/g, " "),
      names: address.join(" ").match(/[A-Za-z_]\w*/g) ?? [],
    };
  });
}

/** The header: the comment lines before the first line of code. */
function headerOf(lines: readonly string[]): string[] {
  const end = lines.findIndex((line) => line.trim() !== "" && !line.startsWith("//"));
  return lines.slice(0, end < 0 ? lines.length : end);
}

/** Names in backticks of the header's `plain:` paragraphs. */
function classesOf(lines: readonly string[]): string[] {
  const classes: string[] = [];
  let inside = false;
  for (const line of headerOf(lines)) {
    const text = line.replace(/^\/\/ ?/, "").trim();
    if (text === "") inside = false;
    if (REASON.test(text)) inside = true;
    if (inside) classes.push(...[...text.matchAll(/`([A-Za-z_]\w*\*?)`/g)].map((m) => m[1] ?? ""));
  }
  return classes;
}

const covers = (known: string, name: string): boolean =>
  known.endsWith("*") ? name.startsWith(known.slice(0, -1)) : known === name;

const isComment = (line: string | undefined): boolean =>
  line !== undefined && /^\s*(\/\/|\/?\*)/.test(line);
const isDecorator = (line: string | undefined): boolean => /^\s*@\w+/.test(line ?? "");
const isFunction = (line: string | undefined): boolean =>
  /^(export )?(declare )?function\b/.test(line ?? "");

/** Whether a comment line above, in the same paragraph of the same function, says why. */
function paragraphSays(lines: readonly string[], line: number): boolean {
  for (let at = line - 2; at >= 0; at--) {
    const text = lines[at] ?? "";
    if (text.trim() === "" || isFunction(text) || text === "}") return false;
    if (isComment(text) && says(text)) return true;
  }
  return false;
}

/** Whether the comment directly above the function that holds the line says why. */
function functionSays(lines: readonly string[], line: number, longest: number): boolean {
  let at = line - 1;
  while (at >= 0 && !isFunction(lines[at])) at--;
  const end = lines.indexOf("}", at);
  if (end - at - 1 > longest) return false;
  for (at--; at >= 0 && (isComment(lines[at]) || isDecorator(lines[at])); at--) {
    if (REASON.test(lines[at] ?? "")) return true;
  }
  return false;
}

/** From the access to the end of its statement: a comment behind any of these lines counts. */
function statementSays(lines: readonly string[], comments: string[], access: Access): boolean {
  for (let at = access.line - 1; at < lines.length; at++) {
    const comment = (comments[at] ?? "").trim();
    if (comment !== "" && saysAtEnd(comment)) return true;
    const last = at >= access.lastLine - 1;
    if (last && /[;{}]\s*$/.test((lines[at] ?? "").replace(/\s*\/\/.*$/, ""))) return false;
  }
  return false;
}

export function plainAccesses(files: Tree): string[] {
  const wrong: string[] = [];
  for (const [path, text] of files) {
    if (!FOLDERS.test(path) || !path.endsWith(".ts")) continue;
    const { codeOnly, commentsOnly } = scan(text);
    const lines = text.split("\n");
    const comments = commentsOnly.split("\n");
    const strict = STRICT.test(path);
    const classes = strict ? [] : classesOf(lines);
    const used = new Set<string>();
    for (const access of accessesOf(codeOnly)) {
      const known = classes.filter((c) => access.names.some((name) => covers(c, name)));
      for (const c of known) used.add(c);
      const said =
        known.length > 0 ||
        statementSays(lines, comments, access) ||
        paragraphSays(lines, access.line) ||
        functionSays(lines, access.line, strict ? SHORT : Infinity);
      if (!said) wrong.push(`${path}:${access.line} no reason (plain: ...) at ${access.text}`);
    }
    for (const c of classes) {
      if (!used.has(c)) wrong.push(`${path}:1 the header explains \`${c}\`, no access uses it`);
    }
    for (const match of commentsOnly.matchAll(/\bplain:[ \t]*$/gm)) {
      wrong.push(`${path}:${lineAt(commentsOnly, match.index)} "plain:" without a reason`);
    }
  }
  return wrong;
}

/**
 * A label is an argument between two places. One that its file mentions once, in a comment that
 * mentions no other label either, has no other side.
 */
export function loneLabels(files: Tree): string[] {
  const wrong: string[] = [];
  for (const [path, text] of files) {
    if (!/^assembly\/.*\.ts$/.test(path)) continue;
    const lines = text.split("\n");
    const labels = scan(text)
      .commentsOnly.split("\n")
      .flatMap((comment, i) =>
        [...comment.matchAll(/\[([A-Z])\]|^ *\/\/ ([A-Z])\b(?= *$|[,;:])/g)].map((m) => ({
          line: i + 1,
          name: m[1] ?? m[2] ?? "",
          block: blockOf(lines, i),
        })),
      );
    for (const label of labels) {
      const others = labels.filter((other) => other !== label);
      const same = others.some((other) => other.name === label.name);
      const paired = others.some((o) => o.block === label.block && o.name !== label.name);
      if (!same && !paired) wrong.push(`${path}:${label.line} [${label.name}] has no other side`);
    }
  }
  return wrong;
}

/** First line of the comment that line i belongs to: comment lines above belong together. */
function blockOf(lines: readonly string[], i: number): number {
  let first = i;
  while (isComment(lines[first - 1])) first--;
  return first;
}

/** `Checked: NAME` promises a test: test/**\/NAME*.ts. */
export function promisedTests(files: Tree): string[] {
  const tests = [...files.keys()].filter((path) => path.startsWith("test/"));
  return [...files].flatMap(([path, text]) => {
    if (!/^(assembly|src)\/.*\.ts$/.test(path)) return [];
    return [...scan(text).commentsOnly.matchAll(/\bChecked: ([\w+/.-]*[\w+-])/g)]
      .filter(
        (m) =>
          !tests.some((test) =>
            test
              .split("/")
              .at(-1)
              ?.startsWith(m[1] ?? ""),
          ),
      )
      .map((m) => `${path}:${lineAt(text, m.index)} "${m[0]}": no such test`);
  });
}
