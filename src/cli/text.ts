/** How the command line shows what is not its own: whatever stands in a store may not drive somebody's terminal. */

/** Control characters (C0, DEL, C1), what turns the direction of writing, line ends of Unicode, halves of characters. */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

/** `text` on one line and without effect on a terminal: what is unsafe is shown as its code. */
export function printable(text: string): string {
  return text.replace(UNSAFE, (unsafe) => {
    const code = unsafe.charCodeAt(0).toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** JSON with the same characters escaped. Infinity, which JSON does not have, is null. */
export function toJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).replace(UNSAFE, (unsafe) =>
    // The line ends are JSON's own: inside of strings they are escaped already.
    unsafe === '\n' ? unsafe : `\\u${unsafe.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
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

/** A span of time for people: `340 ms`, `27 s`, `5 min 10 s`, `2 h 5 min`. */
export function spanOf(ms: number): string {
  if (!Number.isFinite(ms)) return 'never';
  if (ms < 1_000) return `${Math.ceil(ms)} ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return joined([minutes, 'min'], [seconds % 60, 's']);
  return joined([Math.floor(minutes / 60), 'h'], [minutes % 60, 'min']);
}

function joined(...parts: readonly (readonly [number, string])[]): string {
  return parts.flatMap(([count, unit]) => (count > 0 ? [`${count} ${unit}`] : [])).join(' ');
}

/** Columns as wide as what is in them. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows
    .map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}
