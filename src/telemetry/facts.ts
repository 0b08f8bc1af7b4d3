/** What happened, as it may leave the process: plain JSON, and nothing in it that is secret or acts on a terminal. */

export type Facts = Readonly<Record<string, unknown>>;

/** Fences are longer than some readers' numbers are exact, so they travel as text. */
const FENCES = new Set(['fence', 'seen']);

/** A name and a password in front of a host: whatever comes between `//` and the last `@` before a path. */
const CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s/?#]*@/gi;

/** Control characters (C0, DEL, C1), what turns the direction of writing, line ends of Unicode, halves of characters. */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

export function plainFacts(facts: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [name, plain(name, value)]),
  );
}

function plain(name: string, value: unknown): unknown {
  if (FENCES.has(name)) return String(value);
  if (value instanceof Error) return withoutCredentials(value.message);
  if (typeof value === 'string') return withoutCredentials(value);
  if (typeof value === 'number') return name.endsWith('Ms') ? Math.round(value) : value;
  if (typeof value === 'boolean' || value === null) return value;
  // What is inside an object nobody has looked at for secrets.
  return withoutCredentials(String(value));
}

/** Fences and expiries as JSON carries them: a fence is longer than some readers' numbers are exact. */
export function jsonFacts(facts: Facts): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).map(([name, value]) => {
      if (name === 'fence') return [name, String(value)];
      const isSpan = name.endsWith('Ms') && value !== null;
      return [name, isSpan ? Math.round(Number(value)) : value];
    }),
  );
}

/** Poll targets and stores have URLs, and error messages repeat them. */
export function withoutCredentials(text: string): string {
  return text.includes('@') ? text.replace(CREDENTIALS, '$1***@') : text;
}

/** `text` on one line and without effect on a terminal: what is unsafe is shown as its code. */
export function printable(text: string): string {
  return text.replace(UNSAFE, (unsafe) => {
    const code = unsafe.charCodeAt(0).toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** JSON in which the same characters are escaped. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE, (unsafe) =>
    // The line ends are JSON's own: inside of strings they are escaped already.
    unsafe === '\n' ? unsafe : `\\u${unsafe.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
