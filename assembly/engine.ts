// The ABI: everything the host can call. Re-exports only, one line a file.
export { cpu_delay, cpu_init, cpu_set_blocking } from "./cpu";
export {
  mutex_init,
  mutex_lock,
  mutex_lock_timeout,
  mutex_owner,
  mutex_trylock,
  mutex_unlock,
} from "./sync/mutex";
export { call_rcu_init, call_rcu_push, call_rcu_take } from "./rcu/callbacks";
export { srcu_init, srcu_read_lock, srcu_read_unlock, synchronize_srcu } from "./rcu/srcu";
export {
  rcu_init,
  rcu_offline,
  rcu_online,
  rcu_online_silent,
  rcu_quiescent,
  rcu_read_lock_trace,
  rcu_read_unlock_trace,
  synchronize_rcu_qsbr,
  synchronize_rcu_tasks_trace,
} from "./rcu/tasks_trace";
export { osq_init, osq_lock, osq_unlock } from "./sync/osq";
export { qspin_init, qspin_lock, qspin_trylock, qspin_unlock } from "./sync/qspinlock";
export {
  refcount_dec_and_test,
  refcount_inc,
  refcount_inc_not_zero,
  refcount_read,
  refcount_saturated,
  refcount_set,
} from "./sync/refcount";
export {
  read_lock,
  read_trylock,
  read_unlock,
  rwlock_init,
  write_lock,
  write_trylock,
  write_unlock,
} from "./sync/rwlock";
export {
  down_read,
  down_read_trylock,
  down_write,
  down_write_trylock,
  rwsem_init,
  up_read,
  up_write,
} from "./sync/rwsem";
export {
  read_seqcount_begin,
  read_seqcount_retry,
  seqcount_init,
  write_seqcount_begin,
  write_seqcount_end,
} from "./sync/seqcount";
export { spin_init, spin_lock, spin_trylock, spin_unlock } from "./sync/spinlock";
export { ticket_init, ticket_lock, ticket_trylock, ticket_unlock } from "./sync/ticket";
export { signal_send } from "./uprobe/signal";
export { engine_attach, engine_init } from "./workload/boot";
export {
  call_fastest,
  call_mmap_lock,
  call_rwlock,
  call_siglock,
  call_signal_flag,
  call_speculative,
  call_spinlock,
  call_srcu,
  call_tasks_trace,
  call_uret_pool,
  enter_fastest,
  enter_mmap_lock,
  enter_rwlock,
  enter_siglock,
  enter_signal_flag,
  enter_speculative,
  enter_spinlock,
  enter_srcu,
  enter_tasks_trace,
  enter_uret_pool,
  jump_fastest,
  jump_mmap_lock,
  jump_rwlock,
  jump_siglock,
  jump_signal_flag,
  jump_speculative,
  jump_spinlock,
  jump_srcu,
  jump_tasks_trace,
  jump_uret_pool,
  leave_fastest,
  leave_mmap_lock,
  leave_rwlock,
  leave_siglock,
  leave_signal_flag,
  leave_speculative,
  leave_spinlock,
  leave_srcu,
  leave_tasks_trace,
  leave_uret_pool,
  task_longjmp,
} from "./workload/call";
export { torture_callbacks_push, torture_callbacks_take } from "./workload/callbacktorture";
export { fences_srcu_reader, fences_srcu_updater } from "./workload/rcufences";
export { fences_trace_reader, fences_trace_updater } from "./workload/rcufences";
export { churn_probes } from "./workload/churn";
export { count_atomic, count_percpu, import_count } from "./workload/count";
export { torture_refcount, torture_seqcount } from "./workload/datatorture";
export { histogram_record, time_nothing } from "./workload/histogram";
export { housekeeper_run } from "./workload/housekeeper";
export {
  gp_qsbr,
  gp_srcu,
  gp_tasks_trace,
  latency_fastest,
  latency_fastest_many,
  latency_mmap_lock,
  latency_mmap_lock_many,
  latency_rwlock,
  latency_rwlock_many,
  latency_siglock,
  latency_siglock_many,
  latency_signal_flag,
  latency_signal_flag_many,
  latency_speculative,
  latency_speculative_many,
  latency_spinlock,
  latency_spinlock_many,
  latency_srcu,
  latency_srcu_many,
  latency_tasks_trace,
  latency_tasks_trace_many,
  latency_uret_pool,
  latency_uret_pool_many,
} from "./workload/latency";
export { torture_lifetimes } from "./workload/lifetimetorture";
export {
  bench_mutex,
  bench_qspinlock,
  bench_refcount,
  bench_rwlock,
  bench_rwlock_write,
  bench_rwsem,
  bench_rwsem_write,
  bench_seqcount,
  bench_spinlock,
  bench_ticket,
} from "./workload/lock";
export {
  torture_mutex,
  torture_qspinlock,
  torture_rwlock,
  torture_rwlock_readers,
  torture_rwlock_writers,
  torture_rwsem,
  torture_rwsem_readers,
  torture_rwsem_writers,
  torture_spinlock,
  torture_ticket,
} from "./workload/locktorture";
export {
  torture_maps_mapper,
  torture_maps_reader,
  torture_tree_churner,
  torture_tree_clear,
  torture_tree_reader,
} from "./workload/lookuptorture";
export {
  rcu_area_init,
  rcu_read_qsbr,
  rcu_read_srcu,
  rcu_read_tasks_trace,
  torture_qsbr_reader,
  torture_qsbr_updater,
  torture_srcu_reader,
  torture_srcu_updater,
  torture_trace_reader,
  torture_trace_updater,
} from "./workload/rcu";
export { register_probes, unregister_batches } from "./workload/registration";
export { stress_calls } from "./workload/stress";
export { ri_timer_rounds } from "./uprobe/ri_timer";
export { stress_attaches } from "./workload/stressattach";
export { stress_forks } from "./workload/stressforks";
export { stress_maps } from "./workload/stressmaps";
export {
  trigger_mmap_lock,
  trigger_mmap_lock_many,
  trigger_rwlock,
  trigger_rwlock_many,
  trigger_siglock,
  trigger_siglock_many,
  trigger_signal_flag,
  trigger_signal_flag_many,
  trigger_speculative,
  trigger_speculative_many,
  trigger_spinlock,
  trigger_spinlock_many,
  trigger_srcu,
  trigger_srcu_many,
  trigger_tasks_trace,
  trigger_tasks_trace_many,
  trigger_uret_pool,
  trigger_uret_pool_many,
} from "./workload/trigger";
export { trigger_fastest, trigger_fastest_many } from "./workload/trigger_fast";
export { torture_mutex_expired, torture_mutex_timed, torture_osq } from "./workload/waittorture";
