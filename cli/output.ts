/** What a command says. */
export interface Output {
  /** With `--json`, on standard output. */
  json: unknown;
  /** Else, on standard output. */
  text: string;
  /** For people only, on standard error. */
  note?: string;
  /** 0 unless set. */
  exitCode?: number;
}

/** Where texts go, with their line breaks. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
}

export function print({ json, text, note }: Output, { out, err }: Io, asJson: boolean): void {
  out(`${asJson ? JSON.stringify(json, null, 2) : text}\n`);
  if (!asJson && note !== undefined) err(`${note}\n`);
}

/** What stands in a cell; null is shown as a dash. */
export type Cell = string | number | boolean | null;

/** Rows in columns, under a line of headings. */
export function table(headings: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const lines = [
    headings.map((heading) => heading.toUpperCase()),
    ...rows.map((row) => row.map(show)),
  ];
  const widths = headings.map((_, at) =>
    Math.max(...lines.map((line) => [...(line[at] ?? "")].length)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, at) => pad(cell, widths[at]))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** One thing, a line a field. */
export function fields(values: Readonly<Record<string, Cell>>): string {
  const width = Math.max(...Object.keys(values).map((name) => name.length));
  return Object.entries(values)
    .map(([name, value]) => `${name.padEnd(width)}  ${show(value)}`)
    .join("\n");
}

function pad(cell: string, width = 0): string {
  return cell + " ".repeat(Math.max(0, width - [...cell].length));
}

// What others named must not write to the terminal.
function show(cell: Cell): string {
  return cell === null ? "-" : String(cell).replaceAll(/\p{Cc}/gu, " ");
}
