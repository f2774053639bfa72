// The output formats by name. A formatter is pure: a result in, text without a last newline out.

import type { SweepResult } from "../result.js";
import { formatCsv } from "./csv.js";
import { formatJson } from "./json.js";
import { formatKernel } from "./kernel.js";
import { formatMarkdown } from "./markdown.js";
import type { FormatName } from "./names.js";
import { formatTable, type View } from "./table.js";

export type Formatter = (result: SweepResult, view?: View) => string;

export const FORMATS: Readonly<Record<FormatName, Formatter>> = {
  table: formatTable,
  kernel: formatKernel,
  json: formatJson,
  csv: formatCsv,
  markdown: formatMarkdown,
};

export type { View };
