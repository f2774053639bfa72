// The engine's memory map as the host sees it: the very constants the engine is compiled from.
export * from "../../assembly/layout.js";
