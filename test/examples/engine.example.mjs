// Two CPUs call a probed function; one consumer counts the hits, one writes events.
import { Engine } from "wasmprobe";

const engine = await Engine.start({ cpus: 2 }); // preset: "fastest"
const file = await engine.file({ bytes: 4096 }); // functions of one instruction each
const space = await engine.addressSpace();
await space.map(file, { address: 0x400000 });

const hits = await engine.counter();
const events = await engine.emitter({ records: 1024 });
const probe = await engine.register({ file, offset: 16, consumer: hits });
await engine.register({ file, offset: 16, consumer: events, cookie: 7 });

const tasks = await Promise.all([1, 2].map((pid) => space.task({ address: 0x400010, pid })));
const run = await engine.run(tasks.map((task) => ({ task, count: 400 })));
await run.done; // or: await run.stop()
console.log(hits.perCpu(), events.counts());
console.log(events.read(1)); // also while they run
await probe.unregister(); // resolves when no handler of it runs any more, nor will
await engine.stop();
