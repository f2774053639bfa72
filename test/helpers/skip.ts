// Tests that need something the machine may lack. The runner fails a skipped test that gave no
// reason (test/run.mjs), so a test is skipped through this function and never by test.skip alone.

import type { Test } from "uvu";

/**
 * Registers the test when `available`, else skips it and prints why.
 * `reason` names what is missing here: "taskset is not installed".
 */
export function testIf(
  available: boolean,
  reason: string,
  test: Test,
  title: string,
  body: () => void | Promise<void>,
): void {
  if (available) {
    test(title, body);
    return;
  }
  console.log(`# skip: ${title}: ${reason}`);
  test.skip(title, body);
}
