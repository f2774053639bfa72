import type { Platform } from "./platform.js";

/** The platform of the running program. Only Node.js is there so far. */
export async function loadPlatform(): Promise<Platform> {
  const { nodePlatform } = await import("./node.js");
  return nodePlatform;
}
