// A function of your own module handles the hits, another one makes them, and both work in your own
// memory: its first MiB is your heap, the engine lies behind it and touches nothing else.
import { Engine } from "wasmprobe";

// (module
//   (import "env" "memory" (memory 1 65536 shared))
//   (import "env" "HEAP" (global $heap i32))
//   (import "wasmprobe" "cpu" (global $cpu i32))
//   (import "wasmprobe" "call" (func $call (param i32 i32 i32) (result i32)))
//   (func (export "sum") (param $cookie i32) (param $pid i32) (param $address i32)
//     (param $argument i64) (result i32)
//     (local $mine i32)
//     (local.set $mine
//       (i32.add (global.get $heap) (i32.mul (global.get $cpu) (i32.const 128))))
//     (i64.store (local.get $mine)
//       (i64.add (i64.load (local.get $mine)) (local.get $argument)))
//     (i32.const 1))
//   (func (export "work") (param $task i32) (param $address i32) (param $n i32)
//     (loop $next
//       (drop (call $call (local.get $task) (local.get $address) (local.get $n)))
//       (br_if $next
//         (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))
const wasm = Buffer.from(
  "AGFzbQEAAAABFgNgA39/fwF/YAR/f39+AX9gA39/fwACQAQJd2FzbXByb2JlBGNhbGwAAANlbnYESEVBUAN/AAl3YXNt" +
    "cHJvYmUDY3B1A38AA2VudgZtZW1vcnkCAwGAgAQDAwIBAgcOAgNzdW0AAQR3b3JrAAIKOAIeAQF/IwAjAUGAAWxq" +
    "IQQgBCAEKQMAIAN8NwMAQQELFwADQCAAIAEgAhAAGiACQQFrIgINAAsL",
  "base64",
);

const HEAP = 0x400; // where this program keeps its sums: one for each CPU, on a line of its own
const CPUS = 2;
const PROBED = 0x400000;

const memory = new WebAssembly.Memory({ initial: 96, maximum: 96, shared: true });
const engine = await Engine.start({ cpus: CPUS, memory, base: 1 << 20, workers: 1 });
const file = await engine.file({ bytes: 4096 });
const space = await engine.addressSpace();
await space.map(file, { address: PROBED });

const module = await engine.load(wasm, { name: "sums", constants: { env: { HEAP } } });
const consumer = await engine.caller(module, "sum");
await engine.register({ file, offset: 0, consumer });

const work = async (pid) => {
  const task = await space.task({ address: PROBED, pid });
  return { module, workload: "work", args: [task, PROBED] };
};
const run = await engine.run([await work(1)]); // until it is stopped
while (consumer.total() === 0) await new Promise((resolve) => setTimeout(resolve, 1));
await run.join(await work(2)); // a thread of its own, which comes up now
while (consumer.perCpu()[1] === 0) await new Promise((resolve) => setTimeout(resolve, 1));
await run.stop();

const sums = new BigInt64Array(memory.buffer, HEAP, CPUS * 16);
console.log(sums[0] > 0n, sums[16] > 0n, consumer.perCpu().length);
await engine.stop();
