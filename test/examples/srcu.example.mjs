// As rcu.example.mjs, with SRCU: readers need not say when they are online.
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { CPU_AREA_BYTES, openCpu, Srcu } from "wasmprobe/rcu";

const CPUS = 3;
const DOMAIN = 0; // Srcu.BYTES of it
const CURRENT = 128; // address of the pair that readers find
const STOP = 192;
const PAIRS = [256, 320]; // a number and its square, each on a line of its own
const AREAS = 384; // CPU_AREA_BYTES for each CPU

const memory = isMainThread
  ? new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })
  : workerData.memory;
const me = isMainThread ? 0 : workerData.number;
const srcu = new Srcu(await openCpu({ memory, areas: AREAS, cpu: me }), DOMAIN);
const words = new Int32Array(memory.buffer);

function update() {
  for (let n = 1; n <= 10_000; n++) {
    const [old, fresh] = n % 2 === 1 ? PAIRS : PAIRS.toReversed();
    words.set([n, n * n], fresh / 4);
    Atomics.store(words, CURRENT / 4, fresh); // from here on nobody new finds the old pair
    srcu.synchronize(); // from here on nobody has it
    words.set([-1, -1], old / 4);
  }
  Atomics.store(words, STOP / 4, 1);
}

function read() {
  let torn = 0;
  while (Atomics.load(words, STOP / 4) === 0) {
    const index = srcu.readLock();
    const pair = Atomics.load(words, CURRENT / 4) / 4;
    if (words[pair] ** 2 !== words[pair + 1]) torn++;
    srcu.readUnlock(index);
  }
  console.log(`CPU ${me}: ${torn} torn pairs`);
}

if (isMainThread) {
  srcu.init(CPUS);
  words[CURRENT / 4] = PAIRS[0];
  const ended = [1, 2].map(
    (number) =>
      new Promise((resolve) => {
        const data = { workerData: { memory, number } };
        new Worker(new URL(import.meta.url), data).on("exit", resolve);
      }),
  );
  await Promise.all(ended);
  const { completed, stalls } = srcu.gracePeriods();
  console.log(AREAS + CPUS * CPU_AREA_BYTES <= memory.buffer.byteLength, completed, stalls);
} else if (me === 1) update();
else read();
