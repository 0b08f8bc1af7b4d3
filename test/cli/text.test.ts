import { describe, expect, it } from 'vitest';
import { jsonFacts, printable, spanOf, table, toJson } from '../../src/cli/ui/text.ts';

describe('text from a store', () => {
  it.each([
    ['plain/key:1', 'plain/key:1'],
    ['ünïcode 世界 🎉', 'ünïcode 世界 🎉'],
    ['\u001b[31mred\u001b[0m', '\\x1b[31mred\\x1b[0m'],
    ['a\r\nb\tc\0', 'a\\x0d\\x0ab\\x09c\\x00'],
    ['\u007f\u0080\u009b31m\u009f', '\\x7f\\x80\\x9b31m\\x9f'],
    ['\u202etxt.exe\u202c \u2066x\u2069', '\\u202etxt.exe\\u202c \\u2066x\\u2069'],
    ['\u2028\u200f\ufeff', '\\u2028\\u200f\\ufeff'],
    ['half \ud83c of one', 'half \\ud83c of one'],
  ])('%j is shown without effect', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  it('is JSON that reads back the same, with nothing in it that acts', () => {
    const value = { a: '\u001b[31m\u007f\u009b\u202e\u2066', b: ['\n', 1, null] };
    for (const json of [toJson(value), toJson(value, 2)]) {
      expect(JSON.parse(json)).toEqual(value);
      expect(json).toMatch(/^[\n -~]*$/);
    }
  });

  it('has fences as text in JSON, because they are longer than some numbers are exact', () => {
    const facts = { fence: 1794727225559234, expiresInMs: 28_931.4, holder: 'a' };
    expect(jsonFacts(facts)).toEqual({
      fence: '1794727225559234',
      expiresInMs: 28_931,
      holder: 'a',
    });
    expect(toJson(jsonFacts({ expiresInMs: Number.POSITIVE_INFINITY }))).toContain('null');
  });
});

it.each([
  [0.2, '1 ms'],
  [340, '340 ms'],
  [27_400, '27 s'],
  [60_000, '1 min'],
  [310_000, '5 min 10 s'],
  [7_500_000, '2 h 5 min'],
  [Number.POSITIVE_INFINITY, 'never'],
])('%d ms are %s', (ms, text) => {
  expect(spanOf(ms)).toBe(text);
});

it('a table has columns as wide as what is in them, and no blanks at the end', () => {
  expect(
    table([
      ['KEY', 'HOLDER'],
      ['a-long-key', 'b'],
      ['c', ''],
    ]),
  ).toBe('KEY         HOLDER\na-long-key  b\nc\n');
});

it('K-12 a table has any number of rows', () => {
  const rows = Array.from({ length: 200_000 }, (_, i) => [`key-${i}`, 'holder']);
  expect(table(rows).slice(-20)).toBe('key-199999  holder\n'.padStart(20, '\n'));
});
