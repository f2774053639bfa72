// The engine's memory map and its commands as the host sees them: the very constants the engine is
// compiled from.
export * from "../../assembly/commands.js";
export * from "../../assembly/layout.js";
