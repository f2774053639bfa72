// Tells code, comments and strings of a TypeScript file apart. Blanked text keeps every offset and
// line break, so that what a rule finds in it has its place in the file.

export interface Scanned {
  /** Comments blanked, strings kept: for imports. */
  readonly withoutComments: string;
  /** Comments and the insides of strings blanked: for words of code. */
  readonly codeOnly: string;
  /** Everything but comments blanked. */
  readonly commentsOnly: string;
}

type Kind = "code" | "comment" | "string";

const blank = (text: string): string => text.replace(/[^\n]/g, " ");

/** Whether a slash after `before` begins a regular expression rather than divides. */
function startsRegex(before: string): boolean {
  return /(^|[(,=:[!&|?{};+<>~^%*-]|\b(?:return|typeof|case|of|in))\s*$/.test(before);
}

export function scan(source: string): Scanned {
  const parts: [Kind, string][] = [];
  let at = 0;
  let codeFrom = 0;
  // Of template literals: how many braces are open in each ${...} that we are in.
  const templates: number[] = [];

  const take = (kind: Kind, end: number): void => {
    if (at > codeFrom) parts.push(["code", source.slice(codeFrom, at)]);
    parts.push([kind, source.slice(at, end)]);
    at = end;
    codeFrom = end;
  };
  const endOf = (pattern: RegExp): number => {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    return match ? match.index + match[0].length : source.length;
  };
  // From a backtick or the closing brace of ${}: to the next ${ or the closing backtick.
  const template = (): void => {
    const end = endOf(/[`}](?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y);
    const opens = source.slice(at, end).endsWith("${");
    take("string", end);
    if (opens) templates.push(0);
  };

  while (at < source.length) {
    const two = source.slice(at, at + 2);
    const one = two[0];
    if (two === "//") take("comment", endOf(/\/\/[^\n]*/y));
    else if (two === "/*") take("comment", endOf(/\/\*[\s\S]*?\*\//y));
    else if (one === '"') take("string", endOf(/"(?:[^"\\\n]|\\[\s\S])*"/y));
    else if (one === "'") take("string", endOf(/'(?:[^'\\\n]|\\[\s\S])*'/y));
    else if (one === "`") template();
    else if (one === "/" && startsRegex(source.slice(Math.max(0, at - 80), at))) {
      take("string", endOf(/\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y));
    } else if (one === "}" && templates.at(-1) === 0) {
      templates.pop();
      template();
    } else {
      const open = templates.length - 1;
      if (open >= 0 && one === "{") templates[open] = (templates[open] ?? 0) + 1;
      if (open >= 0 && one === "}") templates[open] = (templates[open] ?? 0) - 1;
      at++;
    }
  }
  if (at > codeFrom) parts.push(["code", source.slice(codeFrom)]);

  const inside = (text: string): string =>
    text.length < 2
      ? text
      : text.charAt(0) + blank(text.slice(1, -1)) + text.charAt(text.length - 1);
  const join = (text: (kind: Kind, part: string) => string): string =>
    parts.map(([kind, part]) => text(kind, part)).join("");
  return {
    withoutComments: join((kind, part) => (kind === "comment" ? blank(part) : part)),
    codeOnly: join((kind, part) => {
      if (kind === "comment") return blank(part);
      return kind === "string" ? inside(part) : part;
    }),
    commentsOnly: join((kind, part) => (kind === "comment" ? part : blank(part))),
  };
}
