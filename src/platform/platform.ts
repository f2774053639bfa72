// The one interface between the project and the machine it runs on. Everything that names a
// runtime's own objects is behind it; the implementations are its siblings, a file a runtime.

/** A worker as its creator sees it. */
export interface HostWorker {
  post(message: unknown): void;
  /** Called for each message of the worker. One listener; a later call replaces it. */
  onMessage(listener: (message: unknown) => void): void;
  /** Called once when the worker is gone, with the reason in words if it did not end by itself. */
  onExit(listener: (reason: string | undefined) => void): void;
  /** Ends the worker by force. To be used only after it was asked: see platforms' known hangs. */
  terminate(): Promise<void>;
  /** Lets the program end although this worker still lives. */
  unref(): void;
}

/** The creator as a worker sees it. */
export interface WorkerPort {
  readonly data: unknown;
  post(message: unknown): void;
  onMessage(listener: (message: unknown) => void): void;
  close(): void;
}

/** What the results' header says about the machine. */
export interface HostInfo {
  cpuModel: string;
  /** CPUs this process may run on, by the operating system's numbers. */
  allowedCpus: readonly number[];
  /** CPUs' worth of time that the process may use, where a quota says so. */
  quotaCpus?: number;
  /** e.g. "node 20.20.2". */
  runtime: string;
  /** e.g. "v8 11.3.244.8". */
  engine: string;
  os: string;
}

export interface Platform {
  readonly name: "node" | "deno" | "browser";
  /** False where waiting would freeze an event loop that others need. */
  readonly isMainThread: boolean;
  /** Monotonic time, milliseconds with fractions. */
  nowMs(): number;
  readBytes(url: URL): Promise<Uint8Array>;
  /** The address of a file named on the command line. */
  fileUrl(path: string): URL;
  spawnWorker(url: URL, data: unknown, name: string): HostWorker;
  /** Only inside a worker. */
  workerPort(): WorkerPort;
  host(): HostInfo;
  /** The operating system's id of the calling thread, where it can be learned. */
  threadId(): number | undefined;
  /** Binds a thread to one CPU; false where that cannot be done. */
  pinThread(threadId: number, cpu: number): Promise<boolean>;
}

/** Where text goes. */
export interface TextSink {
  readonly isTty: boolean;
  /** Width of the terminal, where it is one. */
  readonly columns: number | undefined;
  /** Never throws: who listens is told by `onStdoutClosed`. */
  write(text: string): void;
}

/** The process that a command runs in. */
export interface Terminal {
  /** The words after the program's name. */
  readonly argv: readonly string[];
  readonly stdout: TextSink;
  readonly stderr: TextSink;
  /** Each request to end (Ctrl-C, a signal), with the exit code that stands for it. */
  onInterrupt(listener: (exitCode: number) => void): void;
  /** The reader of stdout has gone away. */
  onStdoutClosed(listener: () => void): void;
  /** Throws the system's error. */
  readText(path: string): string;
  writeText(path: string, text: string): void;
  /** Any number; different each time. */
  entropy(): number;
  /** Resolves when all that was written has been handed to the system. */
  flush(): Promise<void>;
  /** Ends the process now, whatever still runs in it. */
  exit(code: number): never;
}
