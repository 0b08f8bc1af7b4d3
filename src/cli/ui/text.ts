/** How the command line shows what is not its own: whatever stands in a store may not drive somebody's terminal. */
import { shortName } from '../../core/ids.ts';
import { printableJson } from '../../telemetry/facts.ts';

export { jsonFacts, printable } from '../../telemetry/facts.ts';
export { spanOf } from '../../telemetry/span.ts';

/** JSON with what would act on a terminal escaped. Infinity, which JSON does not have, is null. */
export function toJson(value: unknown, indent = 0): string {
  return printableJson(JSON.stringify(value, null, indent));
}

/** `1 target`, `12 targets`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Columns as wide as what is in them; lines are cut where a terminal has no more room. */
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

/** Not `Math.max(...)`: a call takes about 120,000 arguments at most. */
function widest(lengths: readonly number[]): number {
  return lengths.reduce((most, length) => Math.max(most, length), 0);
}

/** `text` in so many columns; what is cut off shows. */
export function cut(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`;
}

/** The text with the ids of instances in it as people can read them. */
export function withShortNames(text: string): string {
  return text.replace(/\S+-\d{16,}-[0-9a-f]{8}/g, shortName);
}
