import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import {
  defineConfig,
  defineKind,
  type KindDeclarations,
  type OpenOptions,
  open,
} from '../../src/index.ts';
import { dedupKey } from '../../src/intents/dedup-key.ts';
import type { Intent, Start } from '../../src/intents/intent.ts';
import { readKinds } from '../../src/intents/kind.ts';

const BY = { tenant: 'acme', client: 'c' };
const SECRETS = ['a'.repeat(32), 'b'.repeat(32)] as const;

const KINDS = {
  echo: {},
  file: defineKind({
    params: z.object({ file: z.string(), preset: z.enum(['hd', 'sd']).default('sd') }),
    exclusive: ({ file }) => file,
  }),
  first: defineKind({
    params: z.object({ file: z.string(), note: z.string().optional() }),
    same: ({ file }) => file,
  }),
  tenants: defineKind({ exclusive: (_, { key, tenant }) => `${tenant}/${key}` }),
  throws: defineKind({
    same: () => {
      throw new Error('no way');
    },
  }),
  odd: defineKind({ same: () => 1n }),
  empty: defineKind({ exclusive: () => '' }),
  dates: defineKind({ params: z.object({ at: z.string() }).transform(() => ({ n: 1n })) }),
} as KindDeclarations;

async function setting(options: OpenOptions = {}) {
  const holdfast = await open('memory:', { kinds: KINDS, history: 'off', ...options });
  const intents = holdfast.intents();
  const start = async (kind: string, more: Partial<Start> = {}, by = BY) => {
    const { session, isReplay } = await intents.submit({ type: 'start', kind, ...more }, by);
    return { ...session, isReplay };
  };
  return { holdfast, intents, start };
}

async function failure(promise: Promise<unknown>) {
  return promise.then(
    () => expect.unreachable('it was accepted'),
    (error: Error) => error,
  );
}

describe('the declaration of a kind', () => {
  it.each<[unknown, string, RegExp]>([
    [{ live: {} }, 'kinds.live', /name is taken/],
    [{ poll: {} }, 'kinds.poll', /name is taken/],
    [{ 'two words': {} }, 'kinds.two words', /1 to 32 letters/],
    [{ [`a${'x'.repeat(32)}`]: {} }, `kinds.a${'x'.repeat(32)}`, /1 to 32 letters/],
    [{ a: null }, 'kinds.a', /must be an object/],
    [{ a: { runs: 1 } }, 'kinds.a.runs', /Known options: params, exclusive/],
    [{ a: { params: {} } }, 'kinds.a.params', /Standard Schema/],
    [{ a: { exclusive: 'file' } }, 'kinds.a.exclusive', /function of params/],
    [{ a: { same: 1 } }, 'kinds.a.same', /function of params/],
    [{ a: { pool: 'a b' } }, 'kinds.a.pool', /./],
    [{ a: { priority: 11 } }, 'kinds.a.priority', /from 1 to 10/],
    [{ a: { priority: 1.5 } }, 'kinds.a.priority', /from 1 to 10/],
    [{ a: { timeLimit: 0 } }, 'kinds.a.timeLimit', /longer than 0/],
    [{ a: { timeLimit: 'soon' } }, 'kinds.a.timeLimit', /./],
    [{ a: { tries: 0 } }, 'kinds.a.tries', /from 1 to 1000/],
    [{ a: { run: 'x' } }, 'kinds.a.run', /a function, or/],
    [{ a: { run: { command: [] } } }, 'kinds.a.run.command', /a program/],
    [{ a: { run: { command: ['x'], shell: true } } }, 'kinds.a.run.shell', /Known options/],
  ])('B-11 is refused with field and rule: %o', (declared, field, rule) => {
    const read = () => readKinds(declared as KindDeclarations);
    expect(read).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', field }));
    expect(read).toThrow(rule);
  });

  it('B-11 types its functions by its schema', () => {
    const params = z.object({ file: z.string() });
    defineConfig({
      kinds: {
        transcode: {
          params,
          exclusive: ({ file }) => {
            expectTypeOf(file).toEqualTypeOf<string>();
            return file;
          },
          run: async ({ file }, { fence, signal }) => {
            expectTypeOf(file).toEqualTypeOf<string>();
            expectTypeOf(fence).toEqualTypeOf<number>();
            expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
          },
        },
        count: defineKind({
          params: z.object({ n: z.number() }),
          same: ({ n }) => n satisfies number,
        }),
        echo: { run: async (given) => given },
      },
      pools: { gpus: 2 },
    });
  });
});

describe('a start of a declared kind', () => {
  it('B-11 is stored with its key, and with params as the schema returns them', async () => {
    const { start, intents } = await setting();
    const made = await start('file', { params: { file: 'a.mp4', unknown: 1 } });
    expect(made).toMatchObject({ kind: 'file', type: 'start', target: 'a.mp4', state: 'NEW' });
    expect(made.params).toEqual({ file: 'a.mp4', preset: 'sd' });
    expect(await intents.session(made.id, 'acme')).toMatchObject({ params: made.params });
    expect(dedupKey(made)).toBe('kind:file:a.mp4');
  });

  it.each<[string, Partial<Start>, Partial<Start>, boolean]>([
    ['echo', {}, {}, true],
    ['echo', { params: { a: 1, b: [2] } }, { params: { b: [2], a: 1 } }, true],
    ['echo', { params: { a: 1 } }, { params: { a: '1' } }, false],
    ['echo', { params: { a: [1, 2] } }, { params: { a: [2, 1] } }, false],
    ['echo', { key: 'k', params: { a: 1 } }, { key: 'k', params: { a: 2 } }, false],
    ['echo', { key: 'k' }, { key: 'l' }, false],
    ['echo', { key: 'k' }, {}, false],
    ['file', { params: { file: 'a' } }, { params: { file: 'a', preset: 'sd' } }, true],
    ['file', { params: { file: 'a' } }, { params: { file: 'a', preset: 'hd' } }, false],
    ['file', { params: { file: 'a' } }, { key: 'a', params: { file: 'a' } }, true],
    ['first', { params: { file: 'a' } }, { params: { file: 'a', note: 'x' } }, true],
    ['first', { key: 'k', params: { file: 'a' } }, { key: 'l', params: { file: 'a' } }, true],
    ['first', { params: { file: 'a' } }, { params: { file: 'b' } }, false],
  ])('B-11 of %s, %o and then %o: the same request is %s', async (kind, one, two, isSame) => {
    const { start } = await setting();
    const first = await start(kind, one);
    const second = await start(kind, two);
    expect(second.isReplay).toBe(isSame);
    expect(second.id === first.id).toBe(isSame);
    // The params of the first start count.
    if (isSame) expect(second.params).toEqual(first.params);
  });

  it('B-11 never finds a session of another kind or tenant', async () => {
    const { start } = await setting();
    const ids = [
      await start('echo', { key: 'k' }),
      await start('tenants', { key: 'k' }),
      await start('echo', { key: 'k' }, { ...BY, tenant: 'other' }),
    ].map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
  });

  it('B-11 excludes by kind: the same key of two kinds is two leases', async () => {
    const { start } = await setting();
    const sessions = [
      await start('echo', { key: 'k' }),
      await start('tenants', { key: 'k' }),
      await start('echo', { key: 'k', params: { a: 1 } }),
      await start('echo'),
      await start('echo', { params: { a: 1 } }),
    ];
    const [one, other, again, ...keyless] = sessions.map(dedupKey);
    expect([one, other, again]).toEqual(['kind:echo:k', 'kind:tenants:acme%2fk', 'kind:echo:k']);
    // Without a key, nothing is excluded.
    expect(keyless).toEqual(sessions.slice(3).map(({ id }) => `kind:echo:${id}`));
    expect(sessions[3]?.target).toBe(sessions[3]?.id);
  });

  it('I-05 finds its session after a secret was rotated', async () => {
    const { holdfast } = await setting();
    const intent: Intent = { type: 'start', kind: 'echo', key: 'k', params: { a: [1] } };
    const before = await holdfast.intents({ secret: SECRETS[0] }).submit(intent, BY);
    const options = { secret: SECRETS[1], previousSecret: SECRETS[0] };
    const after = await holdfast.intents(options).submit(intent, BY);
    const only = await holdfast.intents({ secret: SECRETS[1] }).submit(intent, BY);
    expect([after, only].map(({ session, isReplay }) => [session.id, isReplay])).toEqual(
      [1, 2].map(() => [before.session.id, true]),
    );
  });

  it.each<[Record<string, unknown>, string, string, RegExp]>([
    [{ kind: 'nope' }, 'CONFIG_INVALID', 'kind', /Declared kinds: echo, file, first/],
    [{ kind: 'live' }, 'CONFIG_INVALID', 'kind', /started with type stream\.start/],
    [{ kind: 'no kind' }, 'CONFIG_INVALID', 'kind', /1 to 32 letters/],
    [{ kind: '__proto__' }, 'CONFIG_INVALID', 'kind', /1 to 32 letters/],
    [{ kind: 'constructor' }, 'CONFIG_INVALID', 'kind', /not declared/],
    [{ kind: 'echo', key: '' }, 'CONFIG_INVALID', 'key', /1 to 512 bytes/],
    [{ kind: 'echo', key: 'x'.repeat(513) }, 'CONFIG_INVALID', 'key', /1 to 512 bytes/],
    [{ kind: 'echo', key: 'a\u0000' }, 'CONFIG_INVALID', 'key', /control/],
    [{ kind: 'echo', params: [] }, 'CONFIG_INVALID', 'params', /must be an object/],
  ])('B-11 %o is refused, and nothing is written', async (start, code, field, rule) => {
    const { holdfast, intents } = await setting();
    const error = await failure(intents.submit({ type: 'start', ...start } as Start, BY));
    expect(error).toMatchObject({ code, field });
    expect(error.message).toMatch(rule);
    expect((await holdfast.intents().sessions({ tenant: null })).sessions).toEqual([]);
  });

  it('B-11 names every field of params that does not fit, its value and its rule', async () => {
    const { start, intents } = await setting();
    const params = { file: 7, preset: 'uhd' };
    const error = await failure(start('file', { params }));
    expect(error).toMatchObject({
      code: 'PARAMS_INVALID',
      kind: 'file',
      errors: [
        { field: 'params.file', value: 7 },
        { field: 'params.preset', value: 'uhd' },
      ],
    });
    expect(error.message).toMatch(/^the params do not fit kind 'file': params\.file: .*and 1 more/);
    expect((await intents.sessions({ tenant: null })).sessions).toEqual([]);
  });

  it.each([
    ['throws', 'same', /threw Error: no way/],
    ['odd', 'same', /cannot be JSON/],
    ['empty', 'exclusive', /no key/],
    ['dates', 'params', /cannot be JSON/],
  ])(
    'B-11 a declaration that fails (%s) is KIND_FAILED, an event, and nothing is written',
    async (kind, part, why) => {
      const refused: unknown[] = [];
      const { start, intents } = await setting({
        on: { 'intent.refused': (e) => refused.push(e) },
      });
      const error = await failure(start(kind, { params: { at: 'now' } }));
      expect(error).toMatchObject({ code: 'KIND_FAILED', kind, part });
      expect(error.message).toMatch(why);
      expect(refused).toMatchObject([{ type: 'start', why: error.message }]);
      expect((await intents.sessions({ tenant: null })).sessions).toEqual([]);
    },
  );

  it('B-03 refuses params that are too large or nested too deep', async () => {
    const { start } = await setting();
    const large = await failure(start('echo', { params: { a: 'x'.repeat(65_536) } }));
    expect(large.message).toMatch(/at most 65536 bytes/);
    let deep: Record<string, unknown> = {};
    for (let n = 0; n < 40; n++) deep = { deep };
    expect((await failure(start('echo', { params: deep }))).message).toMatch(/32 levels/);
  });
});

describe('sessions of declared kinds', () => {
  it('B-14 several starts are accepted or refused each for itself, in their order', async () => {
    const { intents } = await setting();
    const starts: Intent[] = [
      { type: 'start', kind: 'echo', key: 'a' },
      { type: 'start', kind: 'nope' },
      { type: 'start', kind: 'echo', key: 'a' },
      { type: 'stream.start', serviceRef: 'x' },
    ];
    const results = await intents.submitAll(starts, BY);
    expect(results.map(({ ok }) => ok)).toEqual([true, false, true, true]);
    expect(results[1]).toMatchObject({ error: { code: 'CONFIG_INVALID', field: 'kind' } });
    const { sessions } = await intents.sessions({ tenant: null });
    expect(sessions.map(({ kind }) => kind).sort()).toEqual(['echo', 'live']);
  });

  it('B-14 are listed by kind, key and state', async () => {
    const { intents, start } = await setting();
    const one = await start('echo', { key: 'a' });
    const two = await start('echo', { key: 'b' });
    await start('tenants', { key: 'a' });
    await intents.submit({ type: 'stop', sessionId: two.id }, BY);
    const list = async (query: object) => {
      const { sessions } = await intents.sessions({ tenant: 'acme', ...query });
      return sessions.map(({ id }) => id);
    };
    expect(await list({ kind: 'echo' })).toEqual([two.id, one.id]);
    expect(await list({ kind: 'echo', key: 'a' })).toEqual([one.id]);
    expect(await list({ kind: 'echo', states: ['NEW'] })).toEqual([one.id]);
    expect(await list({ kind: 'echo', key: 'b', states: ['NEW'] })).toEqual([]);
    await expect(list({ key: 'a' })).rejects.toMatchObject({ field: 'key' });
  });

  it('B-14 are stopped by key: the open ones of that kind, key and tenant', async () => {
    const { intents, start } = await setting();
    const mine = [
      await start('echo', { key: 'a' }),
      await start('echo', { key: 'a', params: { n: 1 } }),
    ];
    const others = [
      await start('tenants', { key: 'a' }),
      await start('echo', { key: 'b' }),
      await start('echo', { key: 'a' }, { ...BY, tenant: 'other' }),
    ];
    const stopped = await intents.stopKey({ kind: 'echo', key: 'a' }, BY);
    expect(stopped.map(({ session }) => session.id).sort()).toEqual(
      mine.map(({ id }) => id).sort(),
    );
    for (const { id } of mine)
      expect(await intents.session(id, null)).toMatchObject({
        state: 'ENDED',
        reason: 'R_STOPPED',
      });
    for (const { id } of others)
      expect(await intents.session(id, null)).toMatchObject({ state: 'NEW' });
    const again = intents.stopKey({ kind: 'echo', key: 'a' }, BY);
    await expect(again).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  });

  it('B-14 a stop by key leaves a session that another client needs, unless it is forced', async () => {
    const { intents, start } = await setting();
    const { id } = await start('echo', { key: 'a' });
    await start('echo', { key: 'a' }, { ...BY, client: 'other' });
    const [one] = await intents.stopKey({ kind: 'echo', key: 'a' }, BY);
    expect(one).toMatchObject({ isReplay: true, session: { state: 'NEW', clients: 1 } });
    await intents.stopKey({ kind: 'echo', key: 'a', force: true }, BY);
    expect(await intents.session(id, null)).toMatchObject({ state: 'ENDED' });
  });

  it('I-16 with apiLeases, a second session of the same key is refused at once', async () => {
    const { holdfast } = await setting();
    const intents = holdfast.intents({ apiLeases: 'on' });
    await intents.submit({ type: 'start', kind: 'echo', key: 'a' }, BY);
    const second = intents.submit({ type: 'start', kind: 'echo', key: 'a', params: { n: 1 } }, BY);
    await expect(second).rejects.toMatchObject({ code: 'LEASE_HELD', key: 'kind:echo:a' });
    await intents.submit({ type: 'start', kind: 'tenants', key: 'a' }, BY);
  });
});
