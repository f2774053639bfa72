import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  changelog,
  dependencyTable,
  documentedPackages,
  exactVersions,
  unprovedClaims,
} from "./project.js";
import { projectTree, tree } from "./tree.js";

const project = projectTree();

test("the README's dependency table lists exactly the packages of package.json", () => {
  assert.equal(dependencyTable(project), []);
});

test("the changelog has the version of package.json", () => {
  assert.equal(changelog(project), []);
});

test("dependencies have exact versions", () => {
  assert.equal(exactVersions(project), []);
});

test("every tagged sentence of the README has its test", () => {
  assert.equal(unprovedClaims(project), []);
});

const README = `# x
| \`not-this\` | before |
## Dependencies
| package | why |
|---|---|
| \`a\` | \`code\` |
| \`b\`, [\`@c/d\`](https://c) | more |

### More
| \`nor-this\` | after |
`;

test("dependency table: rows under the heading, first cells, several names a cell", () => {
  assert.equal(documentedPackages(README), ["a", "b", "@c/d"]);
});

test("dependency table: missing, unused and repeated packages are complaints", () => {
  const files = tree({
    "README.md": README.replace("| `a` |", "| `b` |"),
    "package.json": `{"dependencies":{"a":"1"},"devDependencies":{"@c/d":"1"}}`,
  });
  assert.equal(dependencyTable(files), [
    "README.md: a is missing",
    "README.md: b is not used",
    "README.md: b is not used",
    "README.md: b is listed twice",
  ]);
});

test("changelog: another version is a complaint", () => {
  const files = (version: string) =>
    tree({
      "CHANGELOG.md": "# C\n## [1.2.0] - 2026-01-01\n",
      "package.json": `{"version":"${version}"}`,
    });
  assert.equal(changelog(files("1.2.0")), []);
  assert.is(changelog(files("1.3.0")).length, 1);
});

test("versions: a range is a complaint", () => {
  const files = tree({ "package.json": `{"dependencies":{"a":"^1.0.0","b":"1.0.0"}}` });
  assert.equal(exactVersions(files), ["package.json: a ^1.0.0 is a range"]);
});

test("claims: a tag without a test and a test without a tag are complaints", () => {
  const files = tree({
    "README.md": "It counts exactly [W1]. It is quick [W2].",
    "test/a.test.ts": `test("W1: it counts", f); test("W3: it flies", f);`,
  });
  assert.equal(unprovedClaims(files), ["README.md: W2 has no test", "test W3: no such claim"]);
});

test.run();
