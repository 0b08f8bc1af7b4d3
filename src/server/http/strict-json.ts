/**
 * Parses JSON that every parser reads the same way. Parsers differ on duplicate keys, invalid
 * Unicode and byte order marks. Where one program checks a request and another acts on it, such a
 * difference is a security hole, so this parser refuses all three.
 */
import { isUtf8 } from 'node:buffer';
import { Problem } from './problem.ts';

/** Deeper than the body of any route. */
export const MAX_JSON_DEPTH = 16;
/** Names that JavaScript does not treat as plain fields. */
const RESERVED = new Set(['__proto__', 'constructor', 'prototype']);
const UNICODE_RULE = 'has half of a surrogate pair';
const SPACE = /[\t\n\r ]/;

/** An object or a list whose end has not been reached. */
interface Container {
  /** Null for a list. */
  readonly keys: Set<string> | null;
  /** Its path from the root: `a.b`. */
  readonly path: string;
  /** The key of the next value. */
  key: string;
}

export function parseStrictJson(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  const text = textOf(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The message of the parser quotes the text.
    throw refusal('The body is not valid JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refusal('The body must be a JSON object.');
  checkText(text);
  return value as Readonly<Record<string, unknown>>;
}

function textOf(bytes: Uint8Array): string {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf)
    throw refusal('The body begins with a byte order mark. Send it without one.');
  if (!isUtf8(bytes)) throw refusal('The body is not in UTF-8.');
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

/** Finds what JSON.parse lets pass. The text is valid JSON, so only strings and brackets matter. */
function checkText(text: string): void {
  const open: Container[] = [];
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '{' || char === '[') {
      if (open.length >= MAX_JSON_DEPTH)
        throw refusal(`The body is nested more than ${MAX_JSON_DEPTH} levels deep.`);
      open.push({ keys: char === '{' ? new Set() : null, path: pathOf(open), key: '' });
    } else if (char === '}' || char === ']') {
      open.pop();
    } else if (char === '"') {
      const end = endOf(text, at);
      const string = stringOf(text.slice(at, end + 1));
      const parent = open.at(-1);
      if (!string.isWellFormed())
        throw refusal('The body has text that is not valid Unicode.', {
          field: pathOf(open),
          rule: UNICODE_RULE,
        });
      if (parent?.keys && isKey(text, end)) checkKey(parent, parent.keys, string);
      at = end;
    }
  }
}

function checkKey(parent: Container, keys: Set<string>, key: string): void {
  parent.key = key;
  const field = pathOf([parent]);
  if (RESERVED.has(key))
    throw refusal('The body has a field with a reserved name.', {
      field,
      rule: 'is a reserved name',
    });
  if (keys.has(key))
    throw refusal('The body has a duplicate field.', { field, rule: 'must occur only once' });
  keys.add(key);
}

/** The index of the quote that ends the string at `start`. */
function endOf(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at;
}

/** A quote is escaped by an odd number of backslashes before it. */
function isEscaped(text: string, quote: number): boolean {
  let from = quote;
  while (text[from - 1] === '\\') from--;
  return (quote - from) % 2 === 1;
}

function stringOf(quoted: string): string {
  return quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
}

function isKey(text: string, end: number): boolean {
  let at = end + 1;
  while (SPACE.test(text[at] ?? '')) at++;
  return text[at] === ':';
}

function pathOf(open: readonly Container[]): string {
  const parent = open.at(-1);
  if (parent === undefined) return '';
  if (parent.keys === null) return parent.path;
  return parent.path === '' ? parent.key : `${parent.path}.${parent.key}`;
}

function refusal(detail: string, error?: { field: string; rule: string }): Problem {
  if (error === undefined || error.field === '') return new Problem('invalid-request', { detail });
  const errors = [{ field: shownName(error.field), rule: error.rule }];
  return new Problem('invalid-request', { detail, errors });
}

const MAX_SHOWN_CHARACTERS = 100;

/** A field name for a response. Clients choose names, so long or unprintable ones are not shown. */
export function shownName(name: string): string {
  const isPlain = name.length <= MAX_SHOWN_CHARACTERS && /^[\x20-\x7e]*$/.test(name);
  return isPlain ? name : `a name of ${name.length} characters`;
}
