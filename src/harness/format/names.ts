/** The output formats of a sweep, by name. Apart, so that the command line needs no formatter. */
export const FORMAT_NAMES = ["table", "kernel", "json", "csv", "markdown"] as const;

export type FormatName = (typeof FORMAT_NAMES)[number];
