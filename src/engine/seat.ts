// One worker of a pool as the orchestrator sees it: messages in, messages out, and waiting for an
// answer with a limit, so that a worker that dies or never answers is named instead of waited for.

import { lineOf, WasmprobeError } from "../base/errors.js";
import type { HostWorker, Platform } from "../platform/platform.js";
import type { FromWorker, ToWorker, WorkerBirth } from "./protocol.js";

interface Waiter {
  accepts(message: FromWorker): boolean;
  resolve(message: FromWorker): void;
  reject(error: WasmprobeError): void;
}

export class Seat {
  readonly name: string;
  readonly #worker: HostWorker;
  #waiters: Waiter[] = [];
  #gone: WasmprobeError | undefined;
  #closing = false;
  #exited: Promise<void>;
  /** The operating system's thread id, once born. */
  threadId: number | undefined;
  /** How many of the user's modules it was told to load. */
  modules = 0;
  /** Messages that nobody waits for with a limit. */
  onMessage: ((message: FromWorker) => void) | undefined;
  /** Called once if the worker ends without having been asked to. */
  onDeath: ((error: WasmprobeError) => void) | undefined;

  constructor(platform: Platform, url: URL, birth: WorkerBirth) {
    this.name = birth.seat === "housekeeper" ? "the housekeeper" : `worker ${birth.seat}`;
    this.#worker = platform.spawnWorker(url, birth, `wasmprobe ${this.name}`);
    this.#worker.onMessage((raw) => this.#receive(raw as FromWorker));
    this.#exited = new Promise((resolve) => {
      this.#worker.onExit((reason) => {
        this.#die(reason);
        resolve();
      });
    });
  }

  /** Why the worker is gone; undefined while it lives. */
  get gone(): WasmprobeError | undefined {
    return this.#gone;
  }

  post(message: ToWorker): void {
    this.#worker.post(message);
  }

  /**
   * The next message that `accepts` says yes to. Rejects when the worker ends, or after `limitMs`,
   * with `what` it was expected to do.
   */
  expect<T extends FromWorker["type"]>(
    type: T,
    what: string,
    limitMs: number,
    accepts: (message: Extract<FromWorker, { type: T }>) => boolean = () => true,
  ): Promise<Extract<FromWorker, { type: T }>> {
    type Wanted = Extract<FromWorker, { type: T }>;
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    return new Promise<Wanted>((resolve, reject) => {
      const waiter: Waiter = {
        accepts: (message) => message.type === type && accepts(message as Wanted),
        resolve: (message) => {
          clearTimeout(timer);
          resolve(message as Wanted);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
      const timer = setTimeout(() => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        const seconds = limitMs / 1000;
        reject(new WasmprobeError("E_WORKER", `${this.name} did not ${what} within ${seconds} s`));
      }, limitMs);
      this.#waiters.push(waiter);
    });
  }

  /** Asks the worker to end and, after `limitMs`, ends it by force. */
  async close(limitMs: number): Promise<void> {
    this.#closing = true;
    if (this.#gone === undefined) this.post({ type: "close" });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), limitMs);
    });
    const how = await Promise.race([this.#exited, late]);
    clearTimeout(timer);
    if (how === "late") await this.#worker.terminate();
  }

  #receive(message: FromWorker): void {
    const index = this.#waiters.findIndex((waiter) => waiter.accepts(message));
    if (index >= 0) this.#waiters.splice(index, 1)[0]?.resolve(message);
    else this.onMessage?.(message);
  }

  #die(reason: string | undefined): void {
    const why = lineOf(reason ?? "without a reason");
    this.#gone = new WasmprobeError("E_WORKER", `${this.name} ended: ${why}`);
    for (const waiter of this.#waiters.splice(0)) waiter.reject(this.#gone);
    if (!this.#closing) this.onDeath?.(this.#gone);
  }
}
