/** How the command line shows what is not its own: whatever stands in a store may not drive somebody's terminal. */
import { printableJson } from '../telemetry/facts.ts';

export { printable } from '../telemetry/facts.ts';
export { spanOf } from '../telemetry/span.ts';

/** JSON with what would act on a terminal escaped. Infinity, which JSON does not have, is null. */
export function toJson(value: unknown, indent = 0): string {
  return printableJson(JSON.stringify(value, null, indent));
}

/** Fences and expiries as JSON carries them: a fence is longer than some readers' numbers are exact. */
export function jsonFacts(facts: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).map(([name, value]) => {
      if (name === 'fence') return [name, String(value)];
      return [name, name.endsWith('Ms') ? Math.round(Number(value)) : value];
    }),
  );
}

/** Columns as wide as what is in them. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows
    .map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}
