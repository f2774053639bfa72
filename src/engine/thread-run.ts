// One run on real threads: the start barrier, the end, and who is to blame if there is none.

import { WasmprobeError } from "../base/errors.js";
import * as abi from "./abi.js";
import type { EngineMemory } from "./memory.js";
import type { Job, Run } from "./runner.js";
import type { Seat } from "./seat.js";

/** One run of some of the pool's workers. */
export class ThreadRun implements Run {
  readonly done: Promise<void>;
  /** Set when a CPU did not leave: the pool cannot be used again. */
  lost: WasmprobeError | undefined;
  readonly #memory: EngineMemory;
  readonly #seats: Seat[];
  readonly #jobs: Job[];
  readonly #generation: number;
  readonly #limits: { startMs: number; leaveMs: number };
  #failure: WasmprobeError | undefined;
  #giveUp: ReturnType<typeof setTimeout> | undefined;
  #remaining: Set<number>;
  #finish: () => void = () => {};
  #fail: (error: WasmprobeError) => void = () => {};

  constructor(
    memory: EngineMemory,
    seats: readonly Seat[],
    jobs: readonly Job[],
    generation: number,
    limits: { startMs: number; leaveMs: number },
  ) {
    this.#memory = memory;
    this.#seats = seats.slice(0, jobs.length);
    this.#jobs = [...jobs];
    this.#generation = generation;
    this.#limits = limits;
    this.#remaining = new Set(jobs.keys());
    this.done = new Promise((resolve, reject) => {
      this.#finish = resolve;
      this.#fail = reject;
    });
    this.done.catch(() => {}); // whoever cares awaits it; a failure also shows in stop()
  }

  /** CPUs that have, or had, a job of this run. */
  get cpus(): number {
    return this.#jobs.length;
  }

  async start(): Promise<void> {
    const arrivals = this.#seats.map((_, cpu) => this.#send(cpu));
    await this.#arrived(Promise.all(arrivals));
    const go = this.#memory.base + abi.HDR_GO;
    this.#memory.store(go, this.#generation);
    Atomics.notify(this.#memory.i32, go >> 2);
  }

  /** Throws if the run has ended. */
  checkJoin(): void {
    if (this.#remaining.size > 0) return;
    throw new WasmprobeError("E_STATE", "the run has ended; nobody can join it any more");
  }

  /** One CPU more, after the barrier has opened: it finds it open and goes on. */
  async join(seat: Seat, job: Job): Promise<void> {
    this.checkJoin();
    const cpu = this.#jobs.push(job) - 1;
    this.#seats.push(seat);
    this.#remaining.add(cpu);
    await this.#arrived(this.#send(cpu));
  }

  /** Tells a CPU to go to the barrier; resolves when it is there. */
  #send(cpu: number): Promise<unknown> {
    const generation = this.#generation;
    const seat = this.#seats[cpu] as Seat;
    const job = this.#jobs[cpu] as Job;
    const arrived = seat.expect(
      "arrived",
      `arrive at the start barrier of ${job.entry}`,
      this.#limits.startMs,
      (message) => message.generation === generation,
    );
    seat.onMessage = (message) => {
      if (message.type === "left" && message.generation === generation) {
        this.#onLeft(cpu, message.error);
      }
    };
    seat.post({ type: "run", generation, job });
    return arrived;
  }

  async #arrived(arrivals: Promise<unknown>): Promise<void> {
    try {
      await arrivals;
    } catch (error) {
      this.#memory.store(this.#memory.base + abi.HDR_STOP, 1);
      this.lost = error as WasmprobeError;
      this.#fail(this.lost);
      throw error;
    }
  }

  async stop(): Promise<void> {
    // A run that has ended leaves the word alone: by now it may be the next one's.
    if (this.#remaining.size > 0) this.#memory.store(this.#memory.base + abi.HDR_STOP, 1);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), this.#limits.leaveMs);
    });
    const how = await Promise.race([this.done, late]).finally(() => clearTimeout(timer));
    if (how !== "late") return;
    const who = [...this.#remaining]
      .map((cpu) => `CPU ${cpu} (in ${this.#jobs[cpu]?.entry})`)
      .join(", ");
    const error = new WasmprobeError(
      "E_WORKER",
      `${who} did not leave the run within ${this.#limits.leaveMs / 1000} s of being asked`,
    );
    this.abandon(error);
    throw error;
  }

  /** The pool has lost a worker: nobody waits for this run any longer. */
  abandon(error: WasmprobeError): void {
    this.lost ??= error;
    clearTimeout(this.#giveUp);
    this.#fail(error);
  }

  #onLeft(cpu: number, error: string | undefined): void {
    if (error !== undefined) {
      this.#failure ??= new WasmprobeError(
        "E_WORKER",
        `CPU ${cpu} failed in ${this.#jobs[cpu]?.entry}: ${error}`,
      );
      // The others may wait for what this one held: they are asked to leave, for a limited time.
      this.#memory.store(this.#memory.base + abi.HDR_STOP, 1);
      const failure = this.#failure;
      if (this.lost === undefined) {
        this.#giveUp ??= setTimeout(() => this.abandon(failure), this.#limits.leaveMs);
      }
    }
    this.#remaining.delete(cpu);
    if (this.#remaining.size > 0) return;
    clearTimeout(this.#giveUp);
    if (this.#failure !== undefined) this.#fail(this.#failure);
    else this.#finish();
  }
}
