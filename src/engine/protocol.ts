// What the orchestrator and its workers say to each other: typed, one union a direction.

import type { Job } from "./runner.js";

/** A module of the user's, as each worker instantiates it over the shared memory. */
export interface UserModule {
  name: string;
  module: WebAssembly.Module;
  /** Values of its imported globals, by module and name. */
  constants: Readonly<Record<string, Readonly<Record<string, number | bigint>>>>;
  /** Exports that are handlers: they get consecutive places of the engine's function table. */
  handlers: readonly string[];
  firstPlace: number;
  /** The engine's exports, by the names that the module imports them by from wasmprobe. */
  calls: Readonly<Record<string, string>>;
}

/** Given to a worker at its birth. */
export interface WorkerBirth {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  /** Number among the pool's workers; "housekeeper" for the one extra. */
  seat: number | "housekeeper";
}

export type ToWorker =
  /** Become CPU `cpu` of the engine at `base`. */
  | { type: "attach"; base: number; cpu: number }
  /** Arrive at the barrier of run `generation`, wait for it to open, then do the job. */
  | { type: "run"; generation: number; job: Job }
  /** Instantiate a user's module and put its handlers into this instance's table. */
  | { type: "load"; what: UserModule }
  /** Serve the command ring until OP_STOP. */
  | { type: "serve" }
  | { type: "close" };

export type FromWorker =
  | { type: "born"; threadId: number | undefined }
  | { type: "attached" }
  /** `error` in words if the module cannot be instantiated. */
  | { type: "loaded"; name: string; error?: string }
  | { type: "arrived"; generation: number }
  /** Left the run: `iterations` done; `error` in words if the workload failed. */
  | { type: "left"; generation: number; iterations: number; error?: string }
  /** The housekeeper has completed all commands below `tail`. */
  | { type: "served"; tail: number }
  | { type: "stopped-serving" };
