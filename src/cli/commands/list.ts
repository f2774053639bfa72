// `wasmprobe list`: what can be run, measured on, and compared with.

import { textTable } from "../../base/text.js";
import { type Case, CASES, PRESETS } from "../../harness/cases.js";
import { publishedTable, TABLES } from "../../harness/published.js";
import { LIST_TOPICS, type ListOptions, type ListTopic } from "../options.js";
import type { Session } from "../session.js";

const LEFT = { align: ["left", "left", "left", "left"] } as const;

function benches(): string {
  const takes = (c: Case): string => {
    if (c.presets.length === PRESETS.length) return "all";
    return c.presets.join(", ") || "-";
  };
  return textTable(
    ["bench", "unit", "presets", "what it does"],
    CASES.map((c) => [c.name, c.unit, takes(c), c.description]),
    LEFT,
  );
}

function presets(): string {
  return textTable(
    ["preset", "what it is"],
    PRESETS.map((preset) => [preset.name, preset.description]),
    LEFT,
  );
}

function machines(session: Session): string {
  const { cpuModel, allowedCpus } = session.platform.host();
  return textTable(
    ["machine", "what it is"],
    [["threads", `real threads on this host: ${cpuModel}, ${allowedCpus.length} allowed CPUs`]],
    LEFT,
  );
}

function tables(): string {
  return textTable(
    ["table", "rows", "what it shows", "source"],
    TABLES.map((t) => {
      const rows = t.rates ? String(publishedTable(t.name).length) : "-";
      return [t.name, rows, t.title, t.source];
    }),
    { align: ["left", "right", "left", "left"] },
  );
}

export function runList(session: Session, options: ListOptions): number {
  const texts: Record<ListTopic, () => string> = {
    benches,
    presets,
    machines: () => machines(session),
    tables,
  };
  const topics = options.topic === null ? LIST_TOPICS : [options.topic];
  session.print(topics.map((topic) => texts[topic]()).join("\n\n"));
  return 0;
}
