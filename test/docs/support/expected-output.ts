/**
 * Whether an output is the one that is shown on a page. Every line has to be there, in order, and no other, except where
 * the page has a line of `…`, which stands for any lines, or `…` within a line, for any text. What differs from run to run
 * is compared by its kind alone: ids, fences, times of day, dates, durations, ports, the widths of columns and of bars.
 */
export function isExpected(expected: string, actual: string): boolean {
  return pattern(expected).test(`${plain(actual)}\n`);
}

/** Without what a terminal makes of it, and without blank space at the ends. */
export function plain(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what colours are made of.
      .replace(/\u001b\[[0-9;]*[A-Za-z]/g, '')
      .replaceAll('\r', '')
      .split('\n')
      .map((line) => line.trimEnd())
      .join('\n')
      .replace(/^\n+|\n+$/g, '')
  );
}

/** What may differ, and what may stand for it. The first one that fits is taken. */
const LOOSE: readonly (readonly [RegExp, string])[] = [
  // The id of an instance, which has the name of its host in it.
  [/[\w.]+(?:-[\w.]+)*-\d{16,}-[0-9a-f]{8}/, '[\\w.-]+-\\d{16,}-[0-9a-f]{8}'],
  [
    /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/,
    '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}',
  ],
  [
    /\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?/,
    '\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?Z?',
  ],
  [/\d\d:\d\d:\d\d(?:\.\d+)?/, '\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?'],
  [/\d[\d.,]*\s?(?:µs|ms|s|min|h|d)(?![\w-])/, '\\d[\\d.,]*\\s?(?:µs|ms|s|min|h|d)'],
  [/(?<=(?:127\.0\.0\.1|localhost):)\d+/, '\\d+'],
  [/(?<![\w.])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}(?!\w)/, '[0-9a-f]{8,}'],
  [/\d{8,}/, '\\d{8,}'],
  [/(?<=Ms"?:\s?)\d[\d.]*/, '\\d[\\d.]*'],
  [/[█░]+/, '[█░]*'],
  [/[ \t]+/, '[ \\t]+'],
  [/…/, '[^\\n]*?'],
];
const ANY_LOOSE = new RegExp(LOOSE.map(([kind]) => `(${kind.source})`).join('|'), 'g');

function pattern(expected: string): RegExp {
  const parts = plain(expected)
    .split('\n')
    .map((line) => (line.trim() === '…' ? '(?:[^\\n]*\\n)*?' : `${looseLine(line)}\\n`));
  return new RegExp(`^${parts.join('')}$`);
}

function looseLine(line: string): string {
  let text = '';
  let from = 0;
  for (const match of line.matchAll(ANY_LOOSE)) {
    const kind = match.slice(1).findIndex((found) => found !== undefined);
    text += literally(line.slice(from, match.index)) + (LOOSE[kind]?.[1] ?? '');
    from = match.index + match[0].length;
  }
  return text + literally(line.slice(from));
}

/** As a part of a regular expression that stands for itself. */
export function literally(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}
