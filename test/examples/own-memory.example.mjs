// Two workers and the main thread share one counter under a mutex in a memory of their own.
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { CPU_AREA_BYTES, Mutex, openCpu } from "wasmprobe/sync";

const ROUNDS = 10_000;
const LOCK = 0; // a mutex, Mutex.BYTES of it
const COUNTER = 128; // what it protects, on another line
const AREAS = 256; // three CPUs queue here

const memory = isMainThread
  ? new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })
  : workerData.memory;
const cpu = await openCpu({ memory, areas: AREAS, cpu: isMainThread ? 2 : workerData.cpu });
const mutex = new Mutex(cpu.exports, LOCK, cpu.thread);
const words = new Int32Array(memory.buffer);

if (isMainThread) {
  const ended = [0, 1].map(
    (number) =>
      new Promise((resolve) => {
        const data = { workerData: { memory, cpu: number } };
        new Worker(new URL(import.meta.url), data).on("exit", resolve);
      }),
  );
  await mutex.lockAsync(); // lock() would throw here: a main thread must not block
  words[COUNTER / 4]++;
  mutex.unlock();
  await Promise.all(ended);
  console.log(AREAS + 3 * CPU_AREA_BYTES <= memory.buffer.byteLength, words[COUNTER / 4]);
} else {
  for (let i = 0; i < ROUNDS; i++) {
    mutex.lock();
    words[COUNTER / 4]++;
    mutex.unlock();
  }
}
