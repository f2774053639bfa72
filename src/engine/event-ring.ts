// Reading what an emitting consumer wrote: one ring a CPU, while the CPUs go on writing.
//
// The consumer's end of assembly/uprobe/sink.ts, where the letters are argued: [D] HEAD, [E] the
// records before it, [F] TAIL. All by atomic accesses: who reads here has time.

import * as abi from "./abi.js";
import type { EngineMemory } from "./memory.js";

/** One hit that a consumer emitted. */
export interface ProbeEvent {
  /** The CPU that hit. */
  cpu: number;
  /** Running number among this CPU's hits of the consumer, lost ones counted: a gap is a loss. */
  number: number;
  /** Nanoseconds of the runtime's monotonic clock, or 0 if the consumer has no clock. */
  timeNs: number;
  /** What the probe was registered with. */
  cookie: number;
  /** The task's process number. */
  pid: number;
  /** Where the hit was. */
  address: number;
  /** First argument of the probed function. */
  argument: bigint;
}

/** What became of the hits that came to an emitting consumer. */
export interface EventCounts {
  /** Records written. emitted = read + pending, exactly once no CPU runs. */
  emitted: number;
  /** Hits for which there was no room: they have no record. */
  lost: number;
  read: number;
  /** Written, and not yet read. */
  pending: number;
}

export class EventRings {
  readonly #memory: EngineMemory;
  readonly #sink: number;
  readonly #cpus: number;
  readonly #records: number;
  #read = 0;
  /** The CPU that the next read begins with. */
  #turn = 0;

  /** Of a sink of HANDLER_EMIT with a block for each of `cpus`. Only one may read it. */
  constructor(memory: EngineMemory, sink: number, cpus: number) {
    this.#memory = memory;
    this.#sink = sink;
    this.#cpus = cpus;
    this.#records = memory.load(sink + abi.SINK_SIZE);
  }

  /**
   * At most `most` events that have not been read: CPU after CPU, each CPU's in the order of its
   * hits. The next read begins with the CPU after the one that `most` ended at, so that a busy CPU
   * does not keep the others from being read. What is read makes room for new records.
   */
  read(most = Number.POSITIVE_INFINITY): ProbeEvent[] {
    const events: ProbeEvent[] = [];
    for (let i = 0; i < this.#cpus && events.length < most; i++) {
      const cpu = this.#turn;
      this.#turn = (cpu + 1) % this.#cpus;
      const block = this.#block(cpu);
      const head = this.#memory.load(block + abi.EMIT_HEAD); // D
      let tail = this.#memory.load(block + abi.EMIT_TAIL);
      while (tail !== head && events.length < most) {
        events.push(this.#event(cpu, block, tail)); // E
        tail = (tail + 1) | 0;
      }
      this.#memory.store(block + abi.EMIT_TAIL, tail); // F
    }
    this.#read += events.length;
    return events;
  }

  counts(): EventCounts {
    const sum: EventCounts = { emitted: 0, lost: 0, read: this.#read, pending: 0 };
    for (let cpu = 0; cpu < this.#cpus; cpu++) {
      const block = this.#block(cpu);
      sum.lost += this.#memory.load64(block + abi.EMIT_LOST);
      sum.emitted += this.#memory.load64(block + abi.SINK_HITS);
      const head = this.#memory.load(block + abi.EMIT_HEAD);
      sum.pending += (head - this.#memory.load(block + abi.EMIT_TAIL)) | 0;
    }
    return sum;
  }

  #block(cpu: number): number {
    const area = this.#memory.load(this.#sink + abi.SINK_AREA) >>> 0;
    return area + cpu * this.#memory.load(this.#sink + abi.SINK_STRIDE);
  }

  #event(cpu: number, block: number, index: number): ProbeEvent {
    const memory = this.#memory;
    const slot = index & (this.#records - 1);
    const at = block + abi.EMIT_RECORDS + slot * abi.RECORD_BYTES;
    return {
      cpu,
      number: memory.load(at + abi.RECORD_NUMBER) >>> 0,
      timeNs: memory.load64(at + abi.RECORD_TIME),
      cookie: memory.load(at + abi.RECORD_COOKIE),
      pid: memory.load(at + abi.RECORD_PID),
      address: memory.load(at + abi.RECORD_VADDR) >>> 0,
      argument: Atomics.load(memory.i64, (at + abi.RECORD_ARGUMENT) >>> 3),
    };
  }
}
