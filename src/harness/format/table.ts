// For people at a terminal: a header, the rows with the published ones beside them, and a chart.

import { textTable, wrapText } from "../../base/text.js";
import { isTimed, measuredRuns, type SweepResult } from "../result.js";
import { chart } from "./chart.js";
import { headerLines } from "./header.js";
import { SPARE_MAX, rowsOf } from "./rows.js";
import { seriesOf } from "./series.js";

/** Where sentences wrap in a file or a pipe. */
const WIDTH = 100;

/** How much room there is, and whether escape codes are welcome. */
export interface View {
  columns?: number;
  colour?: boolean;
}

export function formatTable(result: SweepResult, view: View = {}): string {
  const fit = (line: string) => (view.columns === undefined ? line : wrapText(line, view.columns));
  const parts = [headerLines(result).map(fit).join("\n")];
  if (result.runs.length > 0) parts.push(fittingTable(result, view));
  const { sources } = rowsOf(result);
  if (sources.length > 0) {
    parts.push(sources.map((line) => wrapText(line, view.columns ?? WIDTH)).join("\n"));
  }
  parts.push(...charts(result, view.columns));
  return parts.join("\n\n");
}

/** The table with as many columns as fit; in a file or a pipe, where nothing wraps, with all. */
function fittingTable(result: SweepResult, view: View): string {
  const room = view.columns ?? Infinity;
  for (let spared = 0; ; spared++) {
    const { head, align, rows } = rowsOf(result, spared);
    const plain = textTable(head, rows, { align });
    const fits = Math.max(...plain.split("\n").map((line) => line.length)) <= room;
    if (!fits && spared < SPARE_MAX) continue;
    return view.colour ? textTable(head, rows, { align, colour: true }) : plain;
  }
}

/** Benches with presets get a chart each; all others share one, to be compared with each other. */
function charts(result: SweepResult, columns = 80): string[] {
  // Rates of timed registrations say little: what counts are the times, and those are in the table.
  const runs = measuredRuns(result).filter((run) => run.preset === null || !isTimed(run));
  const benches = [...new Set(runs.filter((run) => run.preset !== null).map((run) => run.bench))];
  const plain = runs.filter((run) => run.preset === null);
  const drawn = benches.map((bench) => {
    const text = chart(seriesOf(runs.filter((run) => run.bench === bench)), columns);
    return benches.length > 1 && text !== "" ? `${bench}: ${text}` : text;
  });
  // Controls beside a preset comparison are there for the verdict, and would flatten its curves.
  if (benches.length === 0) drawn.push(chart(seriesOf(plain), columns));
  return drawn.filter((text) => text !== "");
}
