import { test } from "uvu";
import * as assert from "uvu/assert";
import { createProgress } from "../../src/cli/progress.js";

function record(isTty: boolean, quiet = false) {
  let written = "";
  const write = (text: string): void => {
    written += text;
  };
  const progress = createProgress({ isTty, columns: 80, write }, quiet);
  return { progress, text: () => written };
}

test("without a terminal each step is a plain line", () => {
  const { progress, text } = record(false);
  progress.start(12);
  progress.step("uprobe-nop rwlock, 1 cpu");
  progress.say("round 1 dropped");
  progress.step("uprobe-nop rwlock, 2 cpus");
  progress.stop();
  assert.is(
    text(),
    "[ 1/12] uprobe-nop rwlock, 1 cpu\nround 1 dropped\n[ 2/12] uprobe-nop rwlock, 2 cpus\n",
  );
});

test("steps that are done again raise the total instead of passing it", () => {
  const { progress, text } = record(false);
  progress.start(1);
  progress.step("first");
  progress.more(1);
  progress.step("first");
  assert.is(text(), "[1/1] first\n[2/2] first\n");
});

test("on a terminal there is a bar, and a line that is said stays on its own", () => {
  const { progress, text } = record(true);
  progress.start(4);
  progress.step("first");
  progress.step("second");
  progress.say("round 1 dropped");
  progress.step("third");
  progress.stop();
  progress.stop();
  // Redraws are limited to ten a second, but a bar that comes back is drawn at once.
  assert.match(text(), "second");
  assert.match(text(), "round 1 dropped\n");
  assert.match(text(), "1/4");
  // The last thing written clears the line and shows the cursor again.
  assert.ok(text().lastIndexOf("\x1b[?25h") > text().lastIndexOf("\x1b[?25l"));
  assert.ok(text().endsWith("\x1b[2K"));
});

test("quiet is silent", () => {
  for (const isTty of [true, false]) {
    const { progress, text } = record(isTty, true);
    progress.start(2);
    progress.step("first");
    progress.say("a warning");
    progress.stop();
    assert.is(text(), "");
  }
});

test("a stop before a start, and a step without one, do nothing harmful", () => {
  for (const isTty of [true, false]) {
    const { progress } = record(isTty);
    progress.stop();
    progress.say("line");
    progress.start(1);
    progress.stop();
  }
});

test.run();
