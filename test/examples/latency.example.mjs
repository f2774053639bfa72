// How long calls take from entry to return: a consumer of latencies is both ends of a session.
// Calls nest, so they are made in two parts, by a module of your own.
import { Engine } from "wasmprobe";

// (module
//   (import "env" "memory" (memory 1 65536 shared))
//   (import "wasmprobe" "enter" (func $enter (param i32 i32 i32) (result i32)))
//   (import "wasmprobe" "leave" (func $leave (param i32 i32) (result i32)))
//   (func (export "work") (param $task i32) (param $outer i32) (param $inner i32) (param $n i32)
//     (loop $next
//       (drop (call $enter (local.get $task) (local.get $outer) (i32.const 1)))
//       (drop (call $enter (local.get $task) (local.get $inner) (i32.const 2)))
//       (drop (call $leave (local.get $task) (i32.const 3)))
//       (drop (call $leave (local.get $task) (i32.const 4)))
//       (br_if $next
//         (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))
const wasm = Buffer.from(
  "AGFzbQEAAAABFQNgA39/fwF/YAJ/fwF/YAR/f39/AAI2Awl3YXNtcHJvYmUFZW50ZXIA" +
    "AAl3YXNtcHJvYmUFbGVhdmUAAQNlbnYGbWVtb3J5AgMBgIAEAwIBAgcIAQR3b3JrAAIK" +
    "MAEuAANAIAAgAUEBEAAaIAAgAkECEAAaIABBAxABGiAAQQQQARogA0EBayIDDQALCw==",
  "base64",
);

const OUTER = 0x400000;
const INNER = 0x400010;

const engine = await Engine.start({ cpus: 1, preset: "uret-pool" });
const file = await engine.file({ bytes: 4096 });
const space = await engine.addressSpace();
await space.map(file, { address: OUTER });

const [outer, inner] = [await engine.latency(), await engine.latency()];
const probes = await engine.registerAll([
  { file, offset: 0, consumer: outer },
  { file, offset: INNER - OUTER, consumer: inner },
]);

const module = await engine.load(wasm, { name: "calls" });
const task = await space.task({ address: OUTER, functions: 2 });
const args = [task, OUTER, INNER];
const run = await engine.run([{ module, workload: "work", args, count: 1000 }]);
await run.done;

// Bucket b has the calls that took 2^(b-1) to 2^b - 1 ns.
for (const [name, consumer] of Object.entries({ outer, inner })) {
  let left = consumer.total() / 2;
  const median = consumer.buckets().findIndex((calls) => (left -= calls) <= 0);
  console.log(`${name}: ${consumer.total()} calls, half of them in less than ${2 ** median} ns`);
}
const { entries, returns, pending } = task.returns();
console.log("entries", entries, "returns", returns, "pending", pending);
await engine.unregisterAll(probes); // one grace period for both
await engine.stop();
