// Compiles assembly/ into the engine's module: asc without optimisation, then binaryen.
//
// The post-pass exists for two things that asc cannot do:
//  - a real `atomic.fence` (0.28.20's own validator refuses it): assembly/atomics.ts calls the
//    import waist.fence, which becomes a function whose body is the instruction, and is inlined;
//  - keeping slow paths out of line and under their names, so that profiles can name them.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import asc from "assemblyscript/asc";
import binaryen from "binaryen";

/** Functions that are never inlined: patterns over binaryen's names (file/function). */
export const NO_INLINE = [
  "*_slow",
  "*/park",
  "*/osq_lock",
  "*/cpu_delay",
  "*/handler_chain*",
  "*/trampoline_*",
  "*/begin_*",
  "*/end_*",
  "*/fast_rounds_*",
  "*/fast_returns_*",
];

const { Features } = binaryen;
const FEATURES =
  Features.Atomics |
  Features.BulkMemory |
  Features.BulkMemoryOpt |
  Features.MutableGlobals |
  Features.NontrappingFPToInt |
  Features.SignExt;

/**
 * Compiles the AssemblyScript tree at `source` and returns the module's bytes.
 * `patch`: replaces a file's text before it is compiled (mutants); given the path relative to
 * `source` and the text.
 */
export async function buildEngine({ source, patch = (_file, text) => text }) {
  const { options } = JSON.parse(await readFile(join(source, "..", "asconfig.json"), "utf8"));
  const args = ["engine.ts", "--outFile", "engine.wasm"];
  for (const [name, value] of Object.entries(options)) {
    if (value === true) args.push(`--${name}`);
    else for (const v of [value].flat()) args.push(`--${name}`, String(v));
  }
  let wasm;
  const stderr = asc.createMemoryStream();
  const { error } = await asc.main(args, {
    stderr,
    readFile: async (name) => {
      try {
        return patch(name, await readFile(join(source, name), "utf8"));
      } catch {
        return null;
      }
    },
    writeFile: (name, contents) => {
      if (name === "engine.wasm") wasm = contents;
    },
    listFiles: () => [],
  });
  if (error || !wasm) throw new Error(`asc: ${stderr.toString() || error?.message}`);
  return postPass(wasm);
}

function postPass(wasm) {
  const module = binaryen.readBinary(wasm);
  try {
    module.setFeatures(FEATURES);
    for (const pattern of NO_INLINE) {
      binaryen.setPassArgument("no-inline", pattern);
      module.runPasses(["no-inline"]);
    }
    binaryen.setOptimizeLevel(3);
    binaryen.setShrinkLevel(0);
    binaryen.setDebugInfo(true); // keeps the name section: profiles and tests read it
    module.optimize();
    module.optimize();
    putFences(module);
    if (!module.validate()) throw new Error("post-pass: the module does not validate");
    return module.emitBinary();
  } finally {
    module.dispose();
  }
}

/**
 * Replaces the marker import by the instruction. After all optimisation: this binaryen takes a
 * fence for an instruction without effect and removes it, while a call of an import is a barrier to
 * its passes as well. Plain inlining moves it into place and optimises nothing.
 */
function putFences(module) {
  for (let i = module.getNumFunctions() - 1; i >= 0; i--) {
    const { name, module: from, base } = binaryen.getFunctionInfo(module.getFunctionByIndex(i));
    if (from !== "waist" || base !== "fence") continue;
    module.removeFunction(name);
    module.addFunction(name, binaryen.none, binaryen.none, [], module.atomic.fence());
  }
  module.runPasses(["inlining"]);
}
