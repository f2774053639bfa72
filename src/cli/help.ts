// Texts below the options of --help. Every line shown as an example is run by a test.

export const PROGRAM_HELP = `
Examples:
  wasmprobe bench uprobe-nop -p 2          one run on two CPUs
  wasmprobe sweep                          all presets, beside the published tables
  wasmprobe torture locks --seconds 30     the locks' invariants under load
  wasmprobe list benches                   what can be measured
`;

export const BENCH_HELP = `
Examples:
  wasmprobe bench uprobe-nop -p 2 -w 1 -d 3
  wasmprobe bench trig-uprobe-nop -a -p 4 --preset spinlock --trap-ns 250
  wasmprobe bench lock-mutex -p 2 --quiet
  wasmprobe bench uprobe-nop -p 2 -L
  wasmprobe bench gp-tasks-trace -p 2
  wasmprobe bench uretprobe-nop -p 2 --preset uret-pool -v
`;

export const SWEEP_HELP = `
Without names, all presets run beside the published tables of the steps they re-implement.
Times that are not given are chosen so that the whole sweep ends within a minute.

Examples:
  wasmprobe sweep uprobe-nop --preset spinlock,rwlock --cpus 1,2 --format kernel
  wasmprobe sweep uprobe-nop --trap-ns 250 --repeat 5 --format json --out new.json
  wasmprobe sweep uprobe-nop --compare old.json
  wasmprobe sweep uprobe-nop --preset speculative,fastest --probes 1,1000 --site-bytes 16,64
  wasmprobe sweep lock-spinlock lock-qspinlock count-atomic --cpus 1-4
  wasmprobe sweep uprobe-push uprobe-ret --preset siglock,signal-flag --arch arm64 --trap-ns 480
  wasmprobe sweep uretprobe-nop --preset uret-alloc,uret-pool --cpus 1,2
`;

export const TORTURE_HELP = `
Ends with SUCCESS (exit 0) or FAILURE (exit 1), the counts and the seed. probes, after
uprobe-stress, prints its counts every 5 s, and has been through all presets by then.

Examples:
  wasmprobe torture locks --seconds 30
  wasmprobe torture probes --seconds 30 --seed 7 -p 4
`;

export const LIST_HELP = `
Examples:
  wasmprobe list
  wasmprobe list benches
`;
