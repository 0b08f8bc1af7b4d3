import { describe, expect, it } from 'vitest';
import { Problem } from '../../src/server/http/problem.ts';
import { MAX_JSON_DEPTH, parseStrictJson } from '../../src/server/http/strict-json.ts';
import fc from '../support/fast-check.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const parse = (text: string) => parseStrictJson(bytes(text));

function problemOf(run: () => unknown): Problem {
  try {
    run();
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('strict JSON', () => {
  it.each([
    ['nothing', '', undefined],
    ['no JSON', '{a:1}', undefined],
    ['half of it', '{"a":', undefined],
    ['something after it', '{} {}', undefined],
    ['a comma too many', '{"a":1,}', undefined],
    ['a comment', '{/* a */}', undefined],
    ['a list', '[]', undefined],
    ['text', '"a"', undefined],
    ['a number', '1', undefined],
    ['null', 'null', undefined],
    ['a byte order mark', '\ufeff{}', undefined],
    ['a field twice', '{"a":1,"a":1}', 'a'],
    ['a field twice, once escaped', '{"a":1,"\\u0061":1}', 'a'],
    ['a field twice, deep down', '{"x":[{"b":{"a":1,"c":[],"a":2}}]}', 'x.b.a'],
    ['a field twice after lists and objects', '{"a":[1,{"b":2}],"b":"}","a":{}}', 'a'],
    ['a field twice around backslashes', '{"a":"\\\\\\"\\\\","a":1}', 'a'],
    ['a field twice, its name ends with a backslash', '{"a\\\\":"\\"","a\\u005c":1}', 'a\\'],
    ['an empty name twice', '{"x":{"":1,"":2}}', 'x.'],
    ['__proto__', '{"__proto__":{}}', '__proto__'],
    ['__proto__, escaped', '{"a":{"\\u005f_proto__":1}}', 'a.__proto__'],
    ['constructor', '{"constructor":1}', 'constructor'],
    ['prototype', '{"a":[{"prototype":1}]}', 'a.prototype'],
    ['half of a character', '{"a":"\\ud800"}', 'a'],
    ['the other half', '{"a":["x","\\udc00"]}', 'a'],
    ['halves in the wrong order', '{"a":"\\udc00\\ud800"}', 'a'],
    ['half of a character in a name', '{"a":1,"\\ud800":1}', 'a'],
    ['a control character', '{"a":"\u0001"}', undefined],
    ['lists too deep', `{"a":${'['.repeat(16)}${']'.repeat(16)}}`, undefined],
    ['objects too deep', `${'{"a":'.repeat(17)}1${'}'.repeat(17)}`, undefined],
    ['lists far too deep', `{"a":${'['.repeat(8_000)}${']'.repeat(8_000)}}`, undefined],
  ])('has not: %s', (_, text, field) => {
    const { kind, facts } = problemOf(() => parse(text));
    expect(kind).toBe('invalid-request');
    expect(facts.errors?.[0]?.field).toBe(field);
  });

  it.each([
    ['text that is no UTF-8', [0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]],
    ['a longer form of a character', [0x7b, 0x22, 0xc1, 0x81, 0x22, 0x3a, 0x31, 0x7d]],
    ['half of a character', [0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]],
    ['UTF-16', [0x7b, 0x00, 0x7d, 0x00]],
    ['a byte order mark of UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])('has not, in bytes: %s', (_, list) => {
    expect(problemOf(() => parseStrictJson(Uint8Array.from(list))).kind).toBe('invalid-request');
  });

  it('says which field, never what stood in it', () => {
    const secret = 'do-not-repeat-me';
    for (const text of [
      `{"a":"${secret}","a":1}`,
      `{"a":"${secret}\\ud800"}`,
      `{"a":"${secret}"`,
      `"${secret}"`,
    ]) {
      const { message, facts } = problemOf(() => parse(text));
      expect(JSON.stringify([message, facts])).not.toContain(secret);
    }
    const long = 'n'.repeat(5_000);
    const { facts } = problemOf(() => parse(`{"${long}":1,"${long}":1}`));
    expect(facts.errors?.[0]?.field).toBe('a name of 5000 characters');
  });

  it('is read as JSON.parse reads it', () => {
    const text = ' {"a" : [1, {"b":"\\"}{,:\\\\"}, null], "c":"\\ud83d\\ude00", "d":{"a":1e3}}\n';
    expect(parse(text)).toEqual(JSON.parse(text));
    const deep = `${'{"a":'.repeat(MAX_JSON_DEPTH)}1${'}'.repeat(MAX_JSON_DEPTH)}`;
    expect(parse(deep)).toEqual(JSON.parse(deep));
  });

  it('takes whatever has one reading', () => {
    const plain = fc.string({ unit: 'grapheme' });
    const reserved = ['__proto__', 'constructor', 'prototype'];
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 6 },
        ...[plain, fc.double(), fc.boolean(), fc.constant(null)],
        fc.array(tie('tree'), { maxLength: 4 }),
        tie('object'),
      ),
      object: fc.dictionary(
        plain.filter((name) => !reserved.includes(name)),
        tie('tree'),
        { maxKeys: 4 },
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        const text = JSON.stringify({ value });
        expect(parse(text)).toEqual(JSON.parse(text));
      }),
      { numRuns: 500 },
    );
  });
});
