/**
 * JSON of which there is only one reading. Programs disagree on what a key means that is there twice, on text that is no Unicode, on a mark
 * at the beginning; where one of them checks a request and another one acts on it, such a difference is a hole. So it is refused here.
 */
import { Problem } from './problem.ts';

/** Deeper than anything we take. */
export const DEEPEST_JSON = 16;
/** They mean something else to JavaScript than a field. */
const RESERVED = new Set(['__proto__', 'constructor', 'prototype']);
const UNICODE = 'half of a character stands alone';
const SPACE = /[\t\n\r ]/;

/** An object or a list that has begun and not ended. */
interface Open {
  /** Null for a list. */
  readonly keys: Set<string> | null;
  /** Where it stands, as a path of names. */
  readonly path: string;
  /** What the next value belongs to. */
  key: string;
}

export function parseStrictJson(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  const text = textOf(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // What the parser says quotes the text.
    throw refusal('The body is no JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refusal('The body has to be a JSON object.');
  checkText(text);
  return value as Readonly<Record<string, unknown>>;
}

function textOf(bytes: Uint8Array): string {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf)
    throw refusal('The body begins with a byte order mark. Send it without one.');
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refusal('The body is not in UTF-8.');
  }
}

/** Looks for what the parser lets pass. The text is known to be JSON, so only strings and brackets have to be told apart. */
function checkText(text: string): void {
  const open: Open[] = [];
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '{' || char === '[') {
      if (open.length >= DEEPEST_JSON)
        throw refusal(`The body is nested more than ${DEEPEST_JSON} deep.`);
      open.push({ keys: char === '{' ? new Set() : null, path: placeOf(open), key: '' });
    } else if (char === '}' || char === ']') {
      open.pop();
    } else if (char === '"') {
      const end = endOf(text, at);
      const string = stringOf(text.slice(at, end + 1));
      const parent = open.at(-1);
      if (!string.isWellFormed())
        throw refusal('The body has text that is no Unicode.', {
          field: placeOf(open),
          rule: UNICODE,
        });
      if (parent?.keys && isKey(text, end)) enter(parent, parent.keys, string);
      at = end;
    }
  }
}

function enter(parent: Open, keys: Set<string>, key: string): void {
  parent.key = key;
  const field = placeOf([parent]);
  if (RESERVED.has(key))
    throw refusal('The body has a field with a reserved name.', { field, rule: 'it is reserved' });
  if (keys.has(key))
    throw refusal('The body has a field twice.', { field, rule: 'it may be there once' });
  keys.add(key);
}

/** The quote that ends the string which begins at `start`. */
function endOf(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at;
}

/** By an odd number of backslashes: each two of them are one that stands for itself. */
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

function placeOf(open: readonly Open[]): string {
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

const LONGEST_SHOWN = 100;

/** The name of a field as an answer may show it: it was sent by the client, and may be anything. */
export function shownName(name: string): string {
  const isPlain = name.length <= LONGEST_SHOWN && /^[\x20-\x7e]*$/.test(name);
  return isPlain ? name : `a name of ${name.length} characters`;
}
