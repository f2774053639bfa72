// A mutant: the engine with one step of one algorithm taken out or turned round, and the run that
// must notice. `npm run mutants` compiles and runs them (scripts/mutants.mjs); a test or torture
// that no mutant can fail proves nothing.
//
// Every other file of this folder exports `mutants: Mutant[]`, one file per primitive.

export interface Mutant {
  /** Unique: the noun of the file, then what is broken: "mutex-no-handoff". */
  readonly name: string;
  /** File of assembly/ that is changed: "sync/mutex.ts". */
  readonly file: string;
  /** Text of the file that is replaced: it occurs exactly once. */
  readonly find: string;
  readonly replace: string;
  /**
   * What must fail. A command line of wasmprobe, `torture locks --lock mutex` (seed and module are
   * added, and `--seconds 3` unless it says how many, at most 10), or a test, `test sync/mutex` (a
   * file of test/, which gets the module's path in WASMPROBE_WASM and a seed in WASMPROBE_SEED).
   */
  readonly kills: string;
  /** Why two threads cannot notice: the mutant is compiled and listed, not run. */
  readonly unkillable?: string;
}
