import { mdTable } from "../../base/text.js";
import type { SweepResult } from "../result.js";
import { headerLines } from "./header.js";
import { rowsOf } from "./rows.js";

/** For issues and documents: the header as a list, then one table. */
export function formatMarkdown(result: SweepResult): string {
  const { head, align, rows, sources } = rowsOf(result);
  const parts = [
    headerLines(result)
      .map((line) => `- ${line}`)
      .join("\n"),
  ];
  if (rows.length > 0) parts.push(mdTable(head, rows, align));
  parts.push(...sources);
  return parts.join("\n\n");
}
