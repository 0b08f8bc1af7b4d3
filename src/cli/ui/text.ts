/** Text for terminals. Data from a store must not control the terminal. */
import { shortName } from '../../core/ids.ts';
import { spanOf } from '../../core/time-text.ts';
import { printableJson } from '../../telemetry/facts.ts';

export { jsonFacts, printable } from '../../telemetry/facts.ts';
export { spanOf };

/** `5 s ago`. The clock of the writer may be ahead of ours. */
export function agoText(atMs: number, nowMs: number): string {
  return `${spanOf(Math.max(0, nowMs - atMs))} ago`;
}

/** JSON with control characters escaped. Infinity becomes null. */
export function toJson(value: unknown, indent = 0): string {
  return printableJson(JSON.stringify(value, null, indent));
}

/** `1 target`, `12 targets`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Aligned columns. Lines are cut at the width of the terminal. */
export function table(
  rows: readonly (readonly string[])[],
  columns: number = Number.POSITIVE_INFINITY,
): string {
  const widths = (rows[0] ?? []).map((_, i) => widest(rows.map((row) => row[i]?.length ?? 0)));
  return rows
    .map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '))
    .map((line) => `${cut(line.trimEnd(), columns)}\n`)
    .join('');
}

/** Not `Math.max(...)`: a call takes at most about 120,000 arguments. */
function widest(lengths: readonly number[]): number {
  return lengths.reduce((most, length) => Math.max(most, length), 0);
}

/** `text` in at most this many columns. A cut text ends with `…`. */
export function cut(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`;
}

/** The text with short names instead of ids of instances. */
export function withShortNames(text: string): string {
  return text.replace(/\S+-\d{16,}-[0-9a-f]{8}/g, shortName);
}

/** A moment in UTC: `2026-01-31 12:00:00.000Z`. */
export function timeText(atMs: number): string {
  return new Date(atMs).toISOString().replace('T', ' ');
}
