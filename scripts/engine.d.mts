// Types of engine.mjs, for the tests that compile an engine of their own.

export interface BuildOptions {
  /** Folder of the AssemblyScript sources; asconfig.json lies beside it. */
  readonly source: string;
  /** Replaces a file's text before it is compiled. `file` is relative to `source`. */
  readonly patch?: (file: string, text: string) => string;
}

/** Functions that are never inlined: patterns over binaryen's names (file/function). */
export const NO_INLINE: readonly string[];

/** Compiles the engine and returns the module's bytes. Rejects with asc's messages. */
export function buildEngine(options: BuildOptions): Promise<Uint8Array>;
