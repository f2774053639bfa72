// Broken twins of the sinks: the ring of records, and the call of a user's function.

import type { Mutant } from "./types.js";

const SINK = "test engine/sink";
const FILE = "uprobe/sink.ts";

export const mutants: readonly Mutant[] = [
  {
    name: "emit-head-before-the-record",
    file: FILE,
    find: "  const time: i64 = load",
    replace: "  store32(block + EMIT_HEAD, head + 1);\n  const time: i64 = load",
    kills: SINK,
  },
  {
    name: "emit-over-the-oldest-record",
    file: FILE,
    find: "if (head - load32(block + EMIT_TAIL) >= size) {",
    replace: "if (head - load32(block + EMIT_TAIL) > size) {",
    kills: SINK,
  },
  {
    name: "emit-loses-without-a-word",
    file: FILE,
    find: "    store<i64>(block, lost + 1, EMIT_LOST);\n    return false;",
    replace: "    store<i64>(block, lost + 1, EMIT_LOST);\n    return true;",
    kills: SINK,
  },
  {
    name: "emit-loses-without-counting",
    file: FILE,
    find: "    store<i64>(block, lost + 1, EMIT_LOST);\n",
    replace: "",
    kills: SINK,
  },
  {
    name: "call-takes-what-the-handler-did-not",
    file: FILE,
    find: "    if (took == 0) return rc & ~RC_HANDLED;\n",
    replace: "",
    kills: SINK,
  },
  {
    name: "call-forgets-that-it-is-in-a-handler",
    file: FILE,
    find: "  in_handler = true;\n  const took = call_indirect<i32>(place, cookie, pid, vaddr, load",
    replace: "  const took = call_indirect<i32>(place, cookie, pid, vaddr, load",
    kills: SINK,
  },
];
