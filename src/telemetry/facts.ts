/** Makes facts of events safe to leave the process: plain JSON, no secrets, no terminal control. */

export type Facts = Readonly<Record<string, unknown>>;

/** Fences exceed the precision of numbers in some JSON parsers, so they are sent as text. */
const FENCES = new Set(['fence', 'seen']);

/** User and password in a URL: the text between `//` and the last `@` before the path. */
const CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s/?#]*@/gi;

/** Control characters (C0, DEL, C1), bidirectional controls, Unicode line ends, lone surrogates. */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

export function plainFacts(facts: object): Record<string, unknown> {
  // In one pass: an event is often one of thousands.
  const plainOnes: Record<string, unknown> = {};
  for (const name of Object.keys(facts)) plainOnes[name] = plain(name, (facts as Facts)[name]);
  return plainOnes;
}

function plain(name: string, value: unknown): unknown {
  if (FENCES.has(name)) return String(value);
  if (value instanceof Error) return withoutCredentials(value.message);
  if (typeof value === 'string') return withoutCredentials(value);
  if (typeof value === 'number') return name.endsWith('Ms') ? Math.round(value) : value;
  if (typeof value === 'boolean' || value === null) return value;
  // Objects are not searched for secrets, so their content is not shown.
  return withoutCredentials(String(value));
}

/** Fences as text and times as whole numbers, for JSON. */
export function jsonFacts(facts: Facts): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).map(([name, value]) => {
      if (name === 'fence') return [name, String(value)];
      const isSpan = name.endsWith('Ms') && value !== null;
      return [name, isSpan ? Math.round(Number(value)) : value];
    }),
  );
}

/** Replaces credentials in URLs, which targets and stores have and error messages repeat. */
export function withoutCredentials(text: string): string {
  return text.includes('@') ? text.replace(CREDENTIALS, '$1***@') : text;
}

/** `text` on one line, with unsafe characters as escapes. */
export function printable(text: string): string {
  return text.replace(UNSAFE, (unsafe) => {
    const code = unsafe.charCodeAt(0).toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** JSON with the same characters escaped. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE, (unsafe) =>
    // A line end is outside of strings: inside, JSON has escaped it.
    unsafe === '\n' ? unsafe : `\\u${unsafe.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
