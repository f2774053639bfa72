// The narrow waist: the only file that names `atomic.*` and `memory.atomic.*`.
//
// Everything here is sequentially consistent: WebAssembly has no other atomics. So an acquire, a
// release and a full barrier are the same access, and only *plain* accesses (`load<T>`,
// `store<T>`) are weaker: two plain accesses may be reordered by the compiler and by the CPU, and
// a plain store may stay in the store buffer for a while. A plain access to shared memory outside
// this file says "plain:" and why that is allowed.
//
// One exception: WebAssembly's model orders accesses of the same bytes only. An unlock by store8 or
// store16 and a lock by cas32 overlap without being the same (qspinlock, rwlock, ticket). That they
// order is what x86 and arm64 do and the kernel relies on, not what the specification promises.
//
// Read-modify-writes return the value before, as Wasm's do (the kernel's `fetch_` variants).

// @ts-ignore: decorator
@external("waist", "fence")
declare function fence_marker(): void;

/**
 * Full barrier (`smp_mb`): no access before it, plain or atomic, is reordered with one after it.
 * The compiler cannot emit `atomic.fence` (0.28.20 refuses its own output), so this is a marker
 * that the build replaces by the instruction (scripts/build.mjs; pinned by test/binary.test.ts).
 */
// @ts-ignore: decorator
@inline
export function fence(): void {
  fence_marker();
}

// @ts-ignore: decorator
@inline
export function load32(p: usize): i32 {
  return atomic.load<i32>(p);
}
// @ts-ignore: decorator
@inline
export function load16(p: usize): i32 {
  return <i32>atomic.load<u16>(p);
}
// @ts-ignore: decorator
@inline
export function load8(p: usize): i32 {
  return <i32>atomic.load<u8>(p);
}
// @ts-ignore: decorator
@inline
export function load64(p: usize): i64 {
  return atomic.load<i64>(p);
}
// @ts-ignore: decorator
@inline
export function store32(p: usize, v: i32): void {
  atomic.store<i32>(p, v);
}
// @ts-ignore: decorator
@inline
export function store16(p: usize, v: i32): void {
  atomic.store<u16>(p, <u16>v);
}
// @ts-ignore: decorator
@inline
export function store8(p: usize, v: i32): void {
  atomic.store<u8>(p, <u8>v);
}
// @ts-ignore: decorator
@inline
export function store64(p: usize, v: i64): void {
  atomic.store<i64>(p, v);
}
// @ts-ignore: decorator
@inline
export function add32(p: usize, v: i32): i32 {
  return atomic.add<i32>(p, v);
}
// @ts-ignore: decorator
@inline
export function add16(p: usize, v: i32): i32 {
  return <i32>atomic.add<u16>(p, <u16>v);
}
// @ts-ignore: decorator
@inline
export function add64(p: usize, v: i64): i64 {
  return atomic.add<i64>(p, v);
}
// @ts-ignore: decorator
@inline
export function or32(p: usize, v: i32): i32 {
  return atomic.or<i32>(p, v);
}
// @ts-ignore: decorator
@inline
export function and32(p: usize, v: i32): i32 {
  return atomic.and<i32>(p, v);
}
// @ts-ignore: decorator
@inline
export function xchg32(p: usize, v: i32): i32 {
  return atomic.xchg<i32>(p, v);
}
// @ts-ignore: decorator
@inline
export function xchg16(p: usize, v: i32): i32 {
  return <i32>atomic.xchg<u16>(p, <u16>v);
}
/** Stores `desired` if the word is `expected`; returns the word as it was. */
// @ts-ignore: decorator
@inline
export function cas32(p: usize, expected: i32, desired: i32): i32 {
  return atomic.cmpxchg<i32>(p, expected, desired);
}

/** The same for a byte. */
// @ts-ignore: decorator
@inline
export function cas8(p: usize, expected: i32, desired: i32): i32 {
  return <i32>atomic.cmpxchg<u8>(p, <u8>expected, <u8>desired);
}

/**
 * Sleeps while the word is `expected`, at most `timeoutNs` (negative: for ever).
 * Returns 0 woken by a notify, 1 the word was another, 2 timed out. A wait orders like a load.
 * Throws a RuntimeError on a thread that may not block (a browser's main thread).
 */
// @ts-ignore: decorator
@inline
export function wait32(p: usize, expected: i32, timeoutNs: i64): i32 {
  return atomic.wait<i32>(p, expected, timeoutNs);
}
/** Wakes at most `count` sleepers of the word; returns how many. 33 ns even without a sleeper. */
// @ts-ignore: decorator
@inline
export function notify(p: usize, count: i32): i32 {
  return atomic.notify(p, count);
}
