// Comma-separated values as in RFC 4180.

/** All records of `text`; a last line without a newline counts, an empty one does not. */
export function parseCsv(text: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  let field = "";
  let quoted = false;
  // Whether anything of the current record was seen: tells an empty last line from an empty field.
  let open = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charAt(i);
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') field += text.charAt(++i);
      else quoted = false;
      continue;
    }
    if (c === '"') {
      quoted = true;
      open = true;
    } else if (c === ",") {
      record.push(field);
      field = "";
      open = true;
    } else if (c === "\n") {
      if (open) records.push([...record, field]);
      record = [];
      field = "";
      open = false;
    } else if (c !== "\r" || text[i + 1] !== "\n") {
      field += c;
      open = true;
    }
  }
  if (open) records.push([...record, field]);
  return records;
}

/** One record, quoted where it must be, without a line end. */
export function csvLine(fields: readonly string[]): string {
  // A lone empty field must be quoted, or the record reads as an empty line.
  if (fields.length === 1 && fields[0] === "") return '""';
  return fields
    .map((field) => (/[",\r\n]/.test(field) ? `"${field.replace(/"/g, '""')}"` : field))
    .join(",");
}
