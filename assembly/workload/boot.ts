// Formatting an engine, and attaching an instance to it.
//
// plain: `base`, `HDR_*`: engine_init runs before any other CPU knows the engine; afterwards these
// words are read-only (who starts the workers orders them: postMessage happens before receipt).

import { ABI_VERSION, ARCH_ARM64, ARCH_X86, CPUS_MAX, EINVAL, ENGINE_MAGIC } from "../layout";
import { ENOMEM, HDR_ABI, HDR_ARCH, HDR_ARENA, HDR_LEASE_US, HDR_URET_SRCU } from "../layout";
import { HDR_XOL_SLOTS, LEASE_US_DEFAULT, PCPU_URET_SRCU, PRESET_SIGLOCK } from "../layout";
import { PRESET_SIGNAL_FLAG, PRESET_URET_POOL, XOL_AREA_BYTES } from "../layout";
import { XOL_SLOT_BYTES_ARM64, XOL_SLOT_BYTES_X86 } from "../layout";
import { HDR_BYTES, HDR_CPUS, HDR_MAGIC, HDR_PERCPU, HDR_RCU, HDR_SRCU } from "../layout";
import { HDR_STRATEGY, HDR_TABLE, HDR_TRAP_UNITS, HEADER_BYTES, PERCPU_BYTES } from "../layout";
import { PRESET_FASTEST, PRESET_MMAP_LOCK, PRESET_RWLOCK, PRESET_SPECULATIVE } from "../layout";
import { PRESET_SPINLOCK, PRESET_SRCU, PRESET_TASKS_TRACE, RING_BYTES, STRIDE } from "../layout";
import { cpu_init } from "../cpu";
import { ARENA_HEADER_BYTES, arena_alloc, arena_init } from "../mm/arena";
import { srcu_init, srcu_init_at } from "../rcu/srcu";
import { rcu_init } from "../rcu/tasks_trace";
import { set_engine } from "../uprobe/fault";
import { breakpoints_init_empty } from "../uprobe/breakpoints";
import { no_breakpoints, TABLE_BYTES, table_init } from "../uprobe/table";

/** Areas besides the measuring CPUs': the housekeeper's and the orchestrator's. */
const EXTRA_AREAS = 2;

// The strategies that entries exist for; others are not made.
function is_preset(strategy: i32): bool {
  return (
    strategy == PRESET_SPINLOCK ||
    strategy == PRESET_RWLOCK ||
    strategy == PRESET_SRCU ||
    strategy == PRESET_TASKS_TRACE ||
    strategy == PRESET_MMAP_LOCK ||
    strategy == PRESET_SPECULATIVE ||
    strategy == PRESET_SIGLOCK ||
    strategy == PRESET_SIGNAL_FLAG ||
    strategy == PRESET_URET_POOL ||
    strategy == PRESET_FASTEST
  );
}

/**
 * Formats [base, base + bytes) as an engine of `cpus` measuring CPUs, with a hit path of
 * `strategy` (PRESET_ constant) and a probe table for at most `uprobes_max` probes. `arch`: an
 * ARCH_ constant. `xol_slots`: of an address space, the trampoline's among them; 0: as many as fit
 * its area. `lease_us`: of return probes, 0 for LEASE_US_DEFAULT. CPU number `cpus` is the
 * housekeeper, `cpus + 1` the orchestrator. EINVAL: an argument is out of range, base
 * or size is not a multiple of STRIDE. ENOMEM: the size does not even hold the engine's own
 * structures.
 */
export function engine_init(
  base: usize,
  bytes: i32,
  cpus: i32,
  strategy: i32,
  uprobes_max: i32,
  trap_units: i32,
  arch: i32,
  xol_slots: i32,
  lease_us: i32,
): i32 {
  if (cpus < 1 || cpus > CPUS_MAX || uprobes_max < 0 || trap_units < 0) return EINVAL;
  if (!is_preset(strategy)) return EINVAL;
  if (arch != ARCH_X86 && arch != ARCH_ARM64) return EINVAL;
  const slots_most =
    XOL_AREA_BYTES / (arch == ARCH_X86 ? XOL_SLOT_BYTES_X86 : XOL_SLOT_BYTES_ARM64);
  if (xol_slots == 0) xol_slots = slots_most;
  // One slot is the trampoline's.
  if (xol_slots < 2 || xol_slots > slots_most || lease_us < 0) return EINVAL;
  if (base % STRIDE != 0 || bytes % STRIDE != 0) return EINVAL;
  const percpu = base + HEADER_BYTES + RING_BYTES;
  const arena = percpu + <usize>((cpus + EXTRA_AREAS) * PERCPU_BYTES);
  const end = base + <usize>bytes;
  if (bytes < 0 || arena + ARENA_HEADER_BYTES + TABLE_BYTES > end) return ENOMEM;

  memory.fill(base, 0, arena - base);
  arena_init(arena, end);
  const table = arena_alloc(arena, TABLE_BYTES);
  if (table == 0) return ENOMEM;
  set_engine(base);
  // The domains clear their lines in the CPUs' areas: those of this engine, not of address 0.
  cpu_init(percpu, cpus + 1);
  table_init(table, arena, strategy, uprobes_max, cpus + EXTRA_AREAS);
  breakpoints_init_empty(no_breakpoints(table));
  srcu_init(base + HDR_SRCU, cpus + EXTRA_AREAS);
  srcu_init_at(base + HDR_URET_SRCU, cpus + EXTRA_AREAS, PCPU_URET_SRCU);
  rcu_init(base + HDR_RCU, cpus + EXTRA_AREAS);
  store<i32>(base, ABI_VERSION, HDR_ABI);
  store<i32>(base, cpus, HDR_CPUS);
  store<i32>(base, bytes, HDR_BYTES);
  store<u32>(base, <u32>percpu, HDR_PERCPU);
  store<u32>(base, <u32>arena, HDR_ARENA);
  store<u32>(base, <u32>table, HDR_TABLE);
  store<i32>(base, trap_units, HDR_TRAP_UNITS);
  store<i32>(base, strategy, HDR_STRATEGY);
  store<i32>(base, arch, HDR_ARCH);
  store<i32>(base, xol_slots, HDR_XOL_SLOTS);
  store<i32>(base, lease_us == 0 ? LEASE_US_DEFAULT : lease_us, HDR_LEASE_US);
  store<i32>(base, ENGINE_MAGIC, HDR_MAGIC);
  return 0;
}

/** Makes this instance CPU `cpu` of the engine at `base`. EINVAL: no engine, or no such CPU. */
export function engine_attach(base: usize, cpu: i32): i32 {
  if (load<i32>(base, HDR_MAGIC) != ENGINE_MAGIC) return EINVAL;
  if (load<i32>(base, HDR_ABI) != ABI_VERSION) return EINVAL;
  if (cpu < 0 || cpu >= load<i32>(base, HDR_CPUS) + EXTRA_AREAS) return EINVAL;
  set_engine(base);
  cpu_init(<usize>load<u32>(base, HDR_PERCPU), cpu);
  return 0;
}
