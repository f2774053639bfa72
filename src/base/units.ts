// Numbers as text and back: printf's widths for the kernel's formats, readable units for people,
// and the parsing of numeric options with errors that name what is valid.

import { WasmprobeError } from "./errors.js";

/** printf's %WIDTH.DIGITSf */
export function fixed(value: number, width: number, digits: number): string {
  return value.toFixed(digits).padStart(width);
}

/** Operations per second as millions, three digits, the way the kernel's tables print them. */
export function mops(opsPerSec: number): string {
  return (opsPerSec / 1e6).toFixed(3);
}

const RATE_STEPS = [
  [1e9, "G/s"],
  [1e6, "M/s"],
  [1e3, "k/s"],
] as const;

/** A rate with three significant digits: 24.5M/s, 310k/s, 12.0/s. */
export function formatRate(opsPerSec: number): string {
  for (const [size, unit] of RATE_STEPS) {
    if (Math.abs(opsPerSec) >= size * 0.9995) return significant(opsPerSec / size) + unit;
  }
  return `${significant(opsPerSec)}/s`;
}

/** A time given in nanoseconds, in the unit a person would choose. */
export function formatNs(ns: number): string {
  const size = Math.abs(ns);
  if (size < 999.5) return `${significant(ns)} ns`;
  if (size < 999.5e3) return `${significant(ns / 1e3)} us`;
  if (size < 999.5e6) return `${significant(ns / 1e6)} ms`;
  return `${significant(ns / 1e9)} s`;
}

/** A count with thousands apart: 12 345 678. */
export function formatCount(count: number): string {
  return Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  if (bytes < 1024 ** 2) return `${significant(bytes / 1024)} KiB`;
  if (bytes < 1024 ** 3) return `${significant(bytes / 1024 ** 2)} MiB`;
  return `${significant(bytes / 1024 ** 3)} GiB`;
}

/** A ratio: 1.47x. */
export function formatRatio(ratio: number): string {
  return Number.isFinite(ratio) ? `${ratio.toFixed(2)}x` : "n/a";
}

/** Three significant digits without an exponent. */
function significant(value: number): string {
  const size = Math.abs(value);
  if (value !== 0 && size < 0.01) return value.toPrecision(2).replace(/e([+-])0*/, "e$1");
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

export interface NumberRule {
  /** As the user typed it: "-d", "--probes". */
  option: string;
  min: number;
  max: number;
  /** What the number counts: "seconds", "ns", "CPUs". */
  unit?: string;
}

/** A whole number within the rule. */
export function parseWhole(text: string, rule: NumberRule): number {
  const value = /^[+]?\d+$/.test(text.trim()) ? Number(text) : NaN;
  if (!(value >= rule.min && value <= rule.max)) throw invalid(text, "whole numbers", rule);
  return value;
}

/** A number with or without a fraction within the rule. */
export function parseNumber(text: string, rule: NumberRule): number {
  const value = /^[+]?(\d+(\.\d*)?|\.\d+)$/.test(text.trim()) ? Number(text) : NaN;
  if (!(value >= rule.min && value <= rule.max)) throw invalid(text, "numbers", rule);
  return value;
}

function invalid(text: string, kind: string, rule: NumberRule): WasmprobeError {
  const unit = rule.unit === undefined ? "" : ` (${rule.unit})`;
  return new WasmprobeError(
    "E_VALUE",
    `${rule.option} ${text.trim() || '""'}: valid are ${kind} ${rule.min}..${rule.max}${unit}`,
  );
}
