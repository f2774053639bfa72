// The ABI: everything the host can call. Re-exports only, one line a file.
export { cpu_delay, cpu_init } from "./cpu";
