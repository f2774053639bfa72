// Rules on what is said twice: the manifest, the README, the changelog, the tests.

import { scan } from "./scan.js";
import type { Tree } from "./tree.js";

interface Manifest {
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}

const manifestOf = (files: Tree): Manifest => ({
  version: "",
  dependencies: {},
  devDependencies: {},
  ...(JSON.parse(files.get("package.json") ?? "{}") as Partial<Manifest>),
});

/**
 * The packages that the README's dependency table names: first cells of the rows below a heading
 * with the word "dependencies", names in backticks, several in a cell allowed.
 */
export function documentedPackages(readme: string): string[] {
  const section = /^#+ [^\n]*\bdependencies\b[^\n]*\n([\s\S]*?)(?=^#+ |(?![\s\S]))/im.exec(readme);
  return (section?.[1] ?? "")
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`([^`]+)`/g)])
    .map((match) => match[1] ?? "");
}

export function dependencyTable(files: Tree): string[] {
  const { dependencies, devDependencies } = manifestOf(files);
  const declared = Object.keys({ ...dependencies, ...devDependencies });
  const documented = documentedPackages(files.get("README.md") ?? "");
  const twice = documented.filter((name, i) => documented.indexOf(name) !== i);
  return [
    ...declared.filter((d) => !documented.includes(d)).map((d) => `README.md: ${d} is missing`),
    ...documented.filter((d) => !declared.includes(d)).map((d) => `README.md: ${d} is not used`),
    ...twice.map((d) => `README.md: ${d} is listed twice`),
  ];
}

export function changelog(files: Tree): string[] {
  const { version } = manifestOf(files);
  const heading = `## [${version}]`;
  const text = files.get("CHANGELOG.md") ?? "";
  return text.split("\n").some((line) => line.startsWith(heading))
    ? []
    : [`CHANGELOG.md: no "${heading}", the version of package.json`];
}

/** Exact versions only: what was tested is what is installed. */
export function exactVersions(files: Tree): string[] {
  const { dependencies, devDependencies } = manifestOf(files);
  return Object.entries({ ...dependencies, ...devDependencies })
    .filter(([, version]) => !/^\d/.test(version))
    .map(([name, version]) => `package.json: ${name} ${version} is a range`);
}

/** A sentence of the README that ends with [W12] is proved by a test whose title begins "W12:". */
export function unprovedClaims(files: Tree): string[] {
  const claimed = [...(files.get("README.md") ?? "").matchAll(/\[(W\d+)\](?!\()/g)].map(
    (m) => m[1],
  );
  const proved = [...files].flatMap(([path, text]) => {
    if (!path.endsWith(".test.ts")) return [];
    const { withoutComments, codeOnly } = scan(text);
    return [...withoutComments.matchAll(/\b(?:test|testIf)\([^"'`]*["'`](W\d+):/g)]
      .filter((match) => codeOnly[match.index] !== " ")
      .map((match) => match[1]);
  });
  return [
    ...claimed.filter((tag) => !proved.includes(tag)).map((tag) => `README.md: ${tag} has no test`),
    ...proved.filter((tag) => !claimed.includes(tag)).map((tag) => `test ${tag}: no such claim`),
  ];
}
