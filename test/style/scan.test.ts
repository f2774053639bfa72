import { test } from "uvu";
import * as assert from "uvu/assert";
import { scan } from "./scan.js";
import { isCode, projectTree } from "./tree.js";

/** What is left of a line of code, runs of blanks as one. */
const code = (source: string): string => scan(source).codeOnly.replace(/ +/g, " ").trim();
const comments = (source: string): string => scan(source).commentsOnly.replace(/ +/g, " ").trim();

test("comments go, and quotes inside of them begin nothing", () => {
  assert.is(code(`a; // it's "one\nb; /* don't\n */ c;`), "a; \nb; \n c;");
  assert.is(comments(`a; // it's\nb; /* two */`), "// it's\n /* two */");
});

test("the insides of strings go, and comment signs inside of them begin nothing", () => {
  assert.is(code(`f("https://a.b", 'it\\'s', "\\"//") + g;`), `f(" ", ' ', " ") + g;`);
});

test("templates: text goes, code in them stays, braces and templates nest", () => {
  assert.is(code("x(`a ${f({ b: `${c}` })} // d`, e);"), "x(` {f({ b: ` {c}` })} `, e);");
});

test("regular expressions are no divisions, and the other way round", () => {
  assert.is(code(`m(/["'/]\\/*/g) + a / b / c;`), "m(/ g) + a / b / c;");
  assert.is(code(`return /"/.test(x) ? 1 : "y";`), `return / /.test(x) ? 1 : " ";`);
});

test("every view keeps length and line breaks, on every file of the project", () => {
  for (const [path, text] of projectTree()) {
    if (!isCode(path)) continue;
    for (const view of Object.values(scan(text)) as string[]) {
      assert.is(view.length, text.length, path);
      assert.is(view.split("\n").length, text.split("\n").length, path);
    }
  }
});

test("on every file of the project, what is left as code balances its brackets", () => {
  for (const [path, text] of projectTree()) {
    if (!isCode(path)) continue;
    // Insides of templates end in the middle of a brace pair: count those signs too.
    const left = scan(text).codeOnly;
    for (const [open, close] of ["()", "[]"] as const) {
      const count = (sign: string | undefined): number => left.split(sign ?? "").length;
      assert.is(count(open), count(close), `${path}: ${open}${close}`);
    }
  }
});

test.run();
