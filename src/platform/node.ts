// Node.js behind the Platform interface.

import { execFile } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { arch, availableParallelism, cpus, platform, release } from "node:os";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { promisify } from "node:util";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { HostInfo, HostWorker, Platform, WorkerPort } from "./platform.js";

const run = promisify(execFile);

function spawnWorker(url: URL, data: unknown, name: string): HostWorker {
  const worker = new Worker(url, { workerData: data, name });
  let failure: string | undefined;
  let exited = false;
  let exitListener: ((reason: string | undefined) => void) | undefined;
  worker.on("error", (error: unknown) => {
    failure = error instanceof Error ? error.message : String(error);
  });
  worker.on("exit", (code) => {
    exited = true;
    exitListener?.(failure ?? (code === 0 ? undefined : `exit code ${code}`));
  });
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (listener) => {
      worker.removeAllListeners("message");
      worker.on("message", listener);
    },
    onExit: (listener) => {
      exitListener = listener;
      if (exited) listener(failure);
    },
    terminate: async () => {
      await worker.terminate();
    },
    unref: () => worker.unref(),
  };
}

function workerPort(): WorkerPort {
  const port = parentPort;
  if (port === null) throw new Error("workerPort: this thread is not a worker");
  return {
    data: workerData as unknown,
    post: (message) => port.postMessage(message),
    onMessage: (listener) => port.on("message", listener),
    close: () => port.close(),
  };
}

function readOr<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** "0-3,8" of /proc/self/status, which follows the affinity mask; else a count of 0..n-1. */
function allowedCpus(): number[] {
  const status = readOr(() => readFileSync("/proc/self/status", "utf8"), "");
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1];
  if (list === undefined) return Array.from({ length: availableParallelism() }, (_, i) => i);
  return list.split(",").flatMap((part) => {
    const [first = 0, last = first] = part.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/** The cgroup's CPU quota, version 2 or 1, in CPUs; undefined without one. */
function quotaCpus(): number | undefined {
  const v2 = readOr(() => readFileSync("/sys/fs/cgroup/cpu.max", "utf8"), "");
  const [quota, period] = v2.trim().split(" ");
  if (quota !== undefined && period !== undefined && quota !== "max") {
    return Number(quota) / Number(period);
  }
  const at = "/sys/fs/cgroup/cpu/cpu.cfs_";
  const q1 = readOr(() => Number(readFileSync(`${at}quota_us`, "utf8")), -1);
  const p1 = readOr(() => Number(readFileSync(`${at}period_us`, "utf8")), 0);
  return q1 > 0 && p1 > 0 ? q1 / p1 : undefined;
}

function host(): HostInfo {
  const quota = quotaCpus();
  return {
    cpuModel: cpus()[0]?.model.trim() ?? "unknown CPU",
    allowedCpus: allowedCpus(),
    ...(quota === undefined ? {} : { quotaCpus: quota }),
    runtime: `node ${process.versions.node}`,
    engine: `v8 ${process.versions.v8}`,
    os: `${platform()} ${release()} ${arch()}`,
  };
}

function threadId(): number | undefined {
  const link = readOr(() => readlinkSync("/proc/thread-self"), "");
  const id = Number(link.split("/").at(-1));
  return Number.isInteger(id) && id > 0 ? id : undefined;
}

async function pinThread(id: number, cpu: number): Promise<boolean> {
  if (platform() !== "linux") return false;
  try {
    await run("taskset", ["-cp", String(cpu), String(id)]);
    return true;
  } catch {
    return false;
  }
}

export const nodePlatform: Platform = {
  name: "node",
  isMainThread,
  nowMs: () => performance.now(),
  readBytes: async (url) => readFile(fileURLToPath(url)),
  fileUrl: (path) => pathToFileURL(path),
  spawnWorker,
  workerPort,
  host,
  threadId,
  pinThread,
};
