import { describe, expect, it } from 'vitest';
import { checkTargetId, randomUuid } from '../../../src/core/ids.ts';
import { seededRandom } from '../../../src/core/random.ts';
import {
  InvalidRecord,
  idProblem,
  readTargetRecord,
  recordOf,
  type TargetRecord,
  withPaused,
} from '../../../src/fleet/targets/target-record.ts';
import { shownUrl, urlProblem } from '../../../src/fleet/targets/target-url.ts';

const UUID = '0b9f6e0a-6c1d-4c7e-9a43-2f1d2f6b8a10';

function read(value: unknown, id = 'a'): TargetRecord {
  const session = readTargetRecord(id, value, 7);
  if (session instanceof InvalidRecord) throw new Error(session.why);
  return session;
}

function parsed(json: string): unknown {
  return JSON.parse(json);
}

describe('FR-011 a record of another program', () => {
  it('is a poll that is not paused, if it is empty', () => {
    expect(read({})).toEqual({ id: 'a', kind: 'poll', isPaused: false, data: {}, revision: 7 });
  });

  it.each<[string, object, Partial<TargetRecord>]>([
    ['an id in the record', { id: 'a' }, {}],
    ['an id as Go writes it', { ID: 'a' }, {}],
    ['an id under a longer name', { sessionId: 'a' }, {}],
    ['several names that agree', { id: 'a', sessionId: 'a', ID: null }, {}],
    ['a kind', { kind: 'vod' }, { kind: 'vod' }],
    ['a pause', { isPaused: true }, { isPaused: true }],
    ['a pause as Python writes it', { is_paused: true }, { isPaused: true }],
    ['a pause as Go writes it', { IsPaused: true }, { isPaused: true }],
    ['a pause in short', { paused: true }, { isPaused: true }],
    ['nothing, said as null', { isPaused: null, url: null, every: null }, { isPaused: false }],
    ['a URL', { url: 'http://h/' }, { url: 'http://h/' }],
    ['a URL as Go writes it', { URL: 'http://h/' }, { url: 'http://h/' }],
    ['an interval in milliseconds', { everyMs: 250 }, { everyMs: 250 }],
    ['an interval as text', { every: '5s' }, { everyMs: 5_000 }],
    ['an interval as a duration', { every: 1_500 }, { everyMs: 1_500 }],
    ['an interval under another name', { intervalMs: 100 }, { everyMs: 100 }],
    ['the longest interval', { every: '24h' }, { everyMs: 86_400_000 }],
    ['more than we know', { room: 4, tags: ['x'] }, { data: { room: 4, tags: ['x'] } }],
  ])('may have %s', (_, value, expected) => {
    expect(read(value)).toMatchObject(expected);
  });

  it.each<[string, unknown, string]>([
    ['text', 'poll', 'session'],
    ['null', null, 'session'],
    ['a list', [], 'session'],
    ['a number', 1, 'session'],
    ['the id of another', { id: 'b' }, 'id'],
    ['an id that is a number', { id: 1 }, 'id'],
    ['a kind nobody knows', { kind: 'game' }, 'kind'],
    ['a kind from the prototype', { kind: 'constructor' }, 'kind'],
    ['a pause that is text', { isPaused: 'false' }, 'isPaused'],
    ['a pause that is a number', { paused: 1 }, 'paused'],
    ['a pause and its contrary', { isPaused: true, paused: false }, 'paused'],
    ['a URL that is none', { url: {} }, 'url'],
    ['a URL without end', { url: `http://h/${'x'.repeat(9_000)}` }, 'url'],
    ['an interval of 0', { everyMs: 0 }, 'everyMs'],
    ['an interval below 100 ms', { every: '99ms' }, 'every'],
    ['an interval above 24 h', { everyMs: 86_400_001 }, 'everyMs'],
    ['an interval that is negative', { everyMs: -1 }, 'everyMs'],
    ['an interval that is a word', { every: 'often' }, 'every'],
    ['an interval that is an object', { every: {} }, 'every'],
    ['two intervals', { every: '5s', everyMs: 6_000 }, 'every'],
    ['more than fits', { data: 'x'.repeat(70_000) }, 'session'],
  ])('makes no sense as %s', (_, value, field) => {
    const flaw = readTargetRecord('a', value, 1);
    expect(flaw).toBeInstanceOf(InvalidRecord);
    expect((flaw as InvalidRecord).field).toBe(field);
    expect((flaw as InvalidRecord).why).toMatch(/^\w+: .{10}/);
  });

  it('is not repeated in the message that it is invalid', () => {
    const flaw = readTargetRecord('a', { kind: 'canary', url: 5 }, 1) as InvalidRecord;
    expect(flaw.why).not.toContain('canary');
  });

  it('cannot reach the prototype of anything', () => {
    const session = read(parsed('{"__proto__":{"isPaused":true},"constructor":{"x":1}}'));
    expect(session.isPaused).toBe(false);
    expect(Object.keys(session.data)).toEqual(['__proto__', 'constructor']);
    expect(Object.getPrototypeOf(session.data)).toBe(Object.prototype);
    expect(({} as { isPaused?: boolean }).isPaused).toBeUndefined();
    expect(JSON.stringify(recordOf(session))).toContain('"__proto__":{"isPaused":true}');
  });
});

describe('ids of targets', () => {
  it.each(['a', 'device-000001', 'x'.repeat(128), '10.0.0.5:80', 'a~b_c', 'constructor', UUID])(
    'may be %s',
    (id) => {
      expect(idProblem(id, 'any')).toBeNull();
      expect(() => checkTargetId(id)).not.toThrow();
    },
  );

  it.each([
    ...['', '}', '{x}y', '*', 'a\nb', 'a\n', 'a\0b', 'a b', 'a/b', '😀', 'ä', 'x'.repeat(129)],
    ...['x'.repeat(1_048_576), 5, null, undefined, {}, ['a']],
  ])('may not be %j', (id) => {
    expect(idProblem(id, 'any')).toContain('128');
    expect(() => checkTargetId(id)).toThrow('128');
  });

  it('are only UUIDs with targetIds uuid', () => {
    expect(idProblem(UUID, 'uuid')).toBeNull();
    expect(idProblem(UUID.toUpperCase(), 'uuid')).toBeNull();
    for (const id of ['a', `${UUID}0`, UUID.replaceAll('-', '')])
      expect(idProblem(id, 'uuid')).toContain('UUID');
    expect(readTargetRecord('a', {}, 1, 'uuid')).toBeInstanceOf(InvalidRecord);
  });

  it('that are generated are UUIDs of version 4', () => {
    const random = seededRandom(1);
    for (let i = 0; i < 100; i++)
      expect(randomUuid(random)).toMatch(/^\w{8}-\w{4}-4\w{3}-[89ab]\w{3}-\w{12}$/);
  });
});

describe('a record that is paused', () => {
  it.each<[string, unknown, unknown]>([
    ['our field where it has none', {}, { isPaused: true }],
    ['the field that it has', { paused: false, x: 1 }, { paused: true, x: 1 }],
    [
      'every field that it has',
      { is_paused: null, paused: false },
      { is_paused: true, paused: true },
    ],
  ])('says so in %s', (_, record, expected) => {
    expect(withPaused(record, true)).toEqual(expected);
  });
});

describe('URLs', () => {
  it.each(['http://h', 'https://h:1/a?b#c', 'http://user:secret@h/'])('may be %s', (url) => {
    expect(urlProblem(url)).toBeNull();
  });

  it.each(['', 'h', '/a', 'ftp://h/', 'file:///etc/passwd', 'javascript:1', 'http://', 'http://['])(
    'may not be %j',
    (url) => {
      expect(urlProblem(url)).not.toBeNull();
    },
  );

  it('are shown without secrets', () => {
    expect(shownUrl('https://user:canary@h:8443/canary?key=canary#canary')).toBe('https://h:8443');
    expect(shownUrl('canary')).toBe('text');
    expect(shownUrl('data:canary')).toBe('text');
  });
});
