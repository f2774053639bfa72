// A user's own module over the engine's memory: what it may import, which of its functions can be
// handlers, and its instance in each worker.
//
// Every CPU has an instance of its own, as of the engine. So a module's globals and tables are
// private to a CPU, and what all share is in the memory; a segment that is written at instantiation
// would be written again by every CPU, over what is there by then, and is refused.

import { WasmprobeError } from "../base/errors.js";
import { Cursor } from "../wasm/leb.js";
import { readModule, SECTION, type FunctionType, type WasmModule } from "../wasm/reader.js";
import type { EngineInstance } from "./instance.js";
import type { UserModule } from "./protocol.js";

const I32 = 0x7f;
const I64 = 0x7e;

/** Values for a module's imported globals: `{ env: { LIMIT: 8, STEP: 1n } }`. */
export type ModuleConstants = Readonly<Record<string, Readonly<Record<string, number | bigint>>>>;

/** What a module offers, read from its bytes. */
export interface ModuleOutline {
  /** Exports that consumers can call: (cookie i32, pid i32, vaddr i32, argument i64) -> i32. */
  handlers: string[];
  /** Those of them that end sessions: (cookie i32, pid i32, vaddr i32, value i64, session i64). */
  sessionReturns: string[];
  /** Exports that CPUs can run: any number of i32, the last being the iterations. */
  workloads: string[];
}

const HANDLER: FunctionType = { params: [I32, I32, I32, I64], results: [I32] };
const SESSION_RETURN: FunctionType = { params: [...HANDLER.params, I64], results: [I32] };

/** Calls of probed functions that a module may import as wasmprobe.NAME. */
export const CALLS = ["call", "enter", "jump", "leave", "longjmp"] as const;
export type CallName = (typeof CALLS)[number];

/** What the engine itself provides, beside the memory. */
const PROVIDED: Readonly<Record<string, "func" | "global">> = {
  ...Object.fromEntries(CALLS.map((name) => [name, "func"] as const)),
  cpu: "global",
};

function isLike(type: FunctionType, model: FunctionType): boolean {
  const text = ({ params, results }: FunctionType): string => `${params}:${results}`;
  return text(type) === text(model);
}

function isWorkload({ params, results }: FunctionType): boolean {
  const counts = results.length === 0 || (results.length === 1 && results[0] === I32);
  return params.length > 0 && params.every((type) => type === I32) && counts;
}

function functionType(read: WasmModule, index: number): FunctionType | undefined {
  const imported = read.imports.filter((i) => i.kind === "func");
  const type = imported[index]?.type ?? read.functions[index - imported.length];
  return type === undefined ? undefined : read.types[type];
}

/** Segments that are written when the module is instantiated. */
function hasActiveData(read: WasmModule): boolean {
  const section = read.sections.find(({ id }) => id === SECTION.data);
  if (section === undefined) return false;
  const at = new Cursor(read.bytes, section.start, section.end);
  for (let left = at.u32(); left > 0; left--) {
    if (at.u32() !== 1) return true;
    at.skip(at.u32());
  }
  return false;
}

function complaint(read: WasmModule, constants: ModuleConstants): string | undefined {
  if (hasActiveData(read)) {
    return "has active data segments, which every CPU would write again; make them passive";
  }
  if (read.memories.length > 0) return "has a memory of its own; it must import env.memory";
  for (const { module, name, kind } of read.imports) {
    if (module === "env" && name === "memory" && kind === "memory") continue;
    if (module === "wasmprobe" && PROVIDED[name] === kind) continue;
    if (kind === "global" && constants[module]?.[name] !== undefined) continue;
    return `imports ${module}.${name} (${kind}), which nobody provides`;
  }
  return undefined;
}

/** Reads what a module offers, or says in one line why it cannot be loaded. */
export function outlineOf(
  bytes: Uint8Array,
  name: string,
  constants: ModuleConstants,
): ModuleOutline {
  let read: WasmModule;
  try {
    read = readModule(bytes);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new WasmprobeError("E_VALUE", `the bytes of module "${name}": ${why}`, cause);
  }
  const wrong = complaint(read, constants);
  if (wrong !== undefined) throw new WasmprobeError("E_VALUE", `module "${name}" ${wrong}`);
  const outline: ModuleOutline = { handlers: [], sessionReturns: [], workloads: [] };
  for (const entry of read.exports) {
    const type = entry.kind === "func" ? functionType(read, entry.index) : undefined;
    if (type === undefined) continue;
    const ends = isLike(type, SESSION_RETURN);
    if (ends) outline.sessionReturns.push(entry.name);
    if (ends || isLike(type, HANDLER)) outline.handlers.push(entry.name);
    else if (isWorkload(type)) outline.workloads.push(entry.name);
  }
  return outline;
}

/** In a worker: the module's instance on this CPU, its handlers in this instance's table. */
export function instantiateUserModule(
  what: UserModule,
  memory: WebAssembly.Memory,
  cpu: number,
  engine: EngineInstance,
): WebAssembly.Exports {
  const { table } = engine.exports;
  if (table.length !== what.firstPlace) {
    throw new Error(`its handlers' place is ${table.length} here, not ${what.firstPlace}`);
  }
  // The places are taken whatever happens next: they are the same in every instance.
  table.grow(what.handlers.length);
  // An i64 global takes a bigint, which the DOM's type of imports does not know.
  const imports: Record<string, Record<string, unknown>> = {};
  for (const [module, values] of Object.entries(what.constants)) imports[module] = { ...values };
  imports["env"] = { ...imports["env"], memory };
  imports["wasmprobe"] = { ...imports["wasmprobe"], cpu };
  for (const [name, entry] of Object.entries(what.calls)) {
    imports["wasmprobe"][name] = engine.workload(entry);
  }
  const { exports } = new WebAssembly.Instance(what.module, imports as WebAssembly.Imports);
  what.handlers.forEach((handler, i) => table.set(what.firstPlace + i, exports[handler]));
  return exports;
}
