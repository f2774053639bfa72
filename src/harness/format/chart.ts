// M/s against CPUs, drawn with characters: a mark per series, no colours, so that it reads the same
// in a terminal, a file and a mail.

import { plot } from "simple-ascii-chart";
import { at } from "../../base/list.js";
import { fixed } from "../../base/units.js";
import type { MeasuredRun } from "../result.js";
import type { Series } from "./series.js";

const MARKS = ["o", "x", "+", "#", "%", "@", "&", "~", "*", "=", "$", "?"];
/** Where several series have the same cell. */
const SAME = "*";
const HEIGHT = 13;
const WIDTH_MIN = 20;
const WIDTH_MAX = 64;
/** Room for the labels of the y axis. */
const MARGIN = 10;
/** From this ratio of the highest rate to the lowest on, the y axis is logarithmic. */
const LOG_FROM = 30;
/** Columns from label to label of the x axis, at least. */
const TICK_GAP = 4;

/**
 * The chart of `series`, or bars when there is one CPU count only; empty without runs, and with
 * more series than there are marks.
 */
export function chart(series: readonly Series<MeasuredRun>[], columns = 80): string {
  const drawn = series.filter((s) => s.runs.length > 0);
  if (drawn.length === 0 || drawn.length > MARKS.length) return "";
  const counts = [...new Set(drawn.flatMap((s) => s.runs.map((run) => run.cpus)))];
  counts.sort((a, b) => a - b);
  const width = Math.max(WIDTH_MIN, Math.min(WIDTH_MAX, columns - MARGIN));
  return counts.length === 1 ? bars(drawn, width) : curves(drawn, counts, width);
}

function bars(series: readonly Series<MeasuredRun>[], width: number): string {
  const rates = series.map((s) => at(s.runs, 0).mean);
  const most = Math.max(...rates, Number.MIN_VALUE);
  const label = Math.max(...series.map((s) => s.label.length));
  const room = Math.max(8, width - label);
  const lines = series.map((s, i) => {
    const bar = "█".repeat(Math.max(1, Math.round((at(rates, i) / most) * room)));
    return `${s.label.padEnd(label)} │${bar} ${(at(rates, i) / 1e6).toFixed(3)}`;
  });
  return [`M/s, ${cpusText(at(at(series, 0).runs, 0).cpus)}`, ...lines].join("\n");
}

function cpusText(cpus: number): string {
  return cpus === 1 ? "1 cpu" : `${cpus} cpus`;
}

function curves(
  series: readonly Series<MeasuredRun>[],
  counts: readonly number[],
  width: number,
): string {
  // CPU counts double from point to point: a logarithmic axis gives each the same room.
  const lines = series.map((s) =>
    s.runs.map((run): [number, number] => [Math.log2(run.cpus), run.mean / 1e6]),
  );
  const rates = lines.flat().map(([, rate]) => rate);
  const [lowest, most] = [Math.min(...rates), Math.max(...rates)];
  // Or all curves but the steepest would lie on the x axis.
  const logarithmic = lowest > 0 && most / lowest >= LOG_FROM;
  const ticks = logarithmic ? powersOfTen(lowest, most) : niceTicks(most);
  const [bottom, top] = [at(ticks, 0), at(ticks, -1)];
  const step = logarithmic ? 10 ** bottom : at(ticks, 1);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const valueOf = (tick: number): number => (logarithmic ? 10 ** tick : tick);
  const labelWidth = valueOf(top).toFixed(digits).length;
  const pen = createPen();
  const scaled = lines.map((line) =>
    line.map(([x, rate]): [number, number] => [x, logarithmic ? Math.log10(rate) : rate]),
  );
  const text = plot(scaled, {
    width,
    height: HEIGHT,
    yRange: [bottom, top],
    customYAxisTicks: ticks,
    customXAxisTicks: spacedTicks(counts, width).map(Math.log2),
    formatter: (value, { axis }) =>
      axis === "x" ? Math.round(2 ** value) : fixed(valueOf(value), labelWidth, digits),
    lineFormatter: ({ index, plotX, plotY }) => pen.point(index, plotX, plotY),
  });
  const body = text.split("\n").map((line) => line.trimEnd());
  const shown = body.filter((line) => line !== "");
  const marks = series.map((s, i) => `${MARKS[i]} ${s.label}`);
  if (pen.overlapped()) marks.push(`${SAME} several`);
  const title = `M/s against cpus${logarithmic ? ", logarithmic" : ""}`;
  return [title, ...shown, ...legendLines(marks, width + MARGIN)].join("\n");
}

function legendLines(marks: readonly string[], columns: number): string[] {
  const lines: string[] = [];
  for (const mark of marks) {
    const longer = `${lines.at(-1) ?? ""}   ${mark}`;
    if (lines.length > 0 && longer.length <= columns) lines[lines.length - 1] = longer;
    else lines.push(mark);
  }
  return lines;
}

/**
 * Turns the chart library's points into marks joined by dots. It reports the points of one series
 * after the other, each starting at index 0, without saying which series it is.
 */
function createPen() {
  const taken = new Map<string, string>();
  let series = -1;
  let last = { x: 0, y: 0 };
  let overlap = false;
  return {
    overlapped: () => overlap,
    point(index: number, x: number, y: number) {
      if (index === 0) series++;
      const symbols: { x: number; y: number; symbol: string }[] = [];
      const steps = index === 0 ? 0 : Math.max(Math.abs(x - last.x), Math.abs(y - last.y));
      for (let i = 1; i < steps; i++) {
        const dot = {
          x: Math.round(last.x + ((x - last.x) * i) / steps),
          y: Math.round(last.y + ((y - last.y) * i) / steps),
        };
        if (!taken.has(`${dot.x},${dot.y}`)) symbols.push({ ...dot, symbol: "·" });
      }
      const mark = at(MARKS, series);
      const cell = `${x},${y}`;
      const before = taken.get(cell);
      const symbol = before === undefined || before === mark ? mark : SAME;
      overlap ||= symbol === SAME;
      taken.set(cell, symbol);
      symbols.push({ x, y, symbol });
      last = { x, y };
      return symbols;
    },
  };
}

/** 0 and up to five steps of 1, 2 or 5 times a power of ten, the last at or above `most`. */
function niceTicks(most: number): number[] {
  const top = Math.max(most, 1e-6);
  const rough = top / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((n) => n * power >= rough * 0.999) ?? 10);
  const ticks: number[] = [];
  for (let i = 0; (i - 1) * step < top; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** Exponents of the powers of ten from at or below `lowest` to at or above `most`. */
function powersOfTen(lowest: number, most: number): number[] {
  const first = Math.floor(Math.log10(lowest));
  const last = Math.max(first + 1, Math.ceil(Math.log10(most)));
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** The counts whose labels fit beside each other; the ends always. */
function spacedTicks(counts: readonly number[], width: number): number[] {
  const [least, most] = [at(counts, 0), at(counts, -1)];
  const scale = (width - 1) / Math.log2(most / least);
  const column = (n: number): number => Math.log2(n / least) * scale;
  const kept = [least];
  for (const n of counts.slice(1, -1)) {
    const before = column(n) - column(at(kept, -1));
    if (before >= TICK_GAP && column(most) - column(n) >= TICK_GAP) kept.push(n);
  }
  return [...kept, most];
}
