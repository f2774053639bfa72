// The library: what a program needs to run the engine's workloads on threads of its own.

export { VERSION } from "./base/version.js";
export type {
  Consumer,
  Emitter,
  EmitterOptions,
  HistogramConsumer,
  LatencyConsumer,
  LoadedModule,
  LoadOptions,
} from "./engine/consumers.js";
export { Engine, type EngineRun, type EngineStart, type Work } from "./engine/engine.js";
export type { EventCounts, ProbeEvent } from "./engine/event-ring.js";
export type { HitCounts, ReturnCounts } from "./engine/memory.js";
export { type Arch, PRESETS, type Preset, type PresetName } from "./engine/presets.js";
export type { Probe, ProbeEnd, RegisterOptions } from "./engine/probes.js";
export type { EngineOptions, Job, Run, Runner } from "./engine/runner.js";
export type {
  AddressSpace,
  CodeFile,
  FileOptions,
  MapOptions,
  Task,
  TaskForkOptions,
  TaskOptions,
} from "./engine/spaces.js";
export type { ModuleConstants } from "./engine/user-module.js";
export { startThreads, type ThreadsOptions } from "./engine/threads.js";
export { loadPlatform } from "./platform/index.js";
export type { Platform } from "./platform/platform.js";
export * from "./sync.js";
