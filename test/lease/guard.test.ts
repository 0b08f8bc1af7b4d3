import { describe, expect, it } from 'vitest';
import { FenceStaleError } from '../../src/core/errors.ts';
import { type GuardableTransaction, runGuard, runIn } from '../../src/lease/guard.ts';

const LEASE = { key: 'k', fence: 7 };
const guard = (transaction: unknown, sql = 'SELECT 1') =>
  runGuard(transaction as GuardableTransaction, sql, LEASE);

/** A client that has its statement and its own `this` from a method. */
class Client {
  readonly ran: string[] = [];

  async query(sql: string) {
    this.ran.push(sql);
  }
}

describe('the statement that guards a transaction', () => {
  it('runs as query of pg and PGlite, as unsafe of postgres, or through a function', async () => {
    const client = new Client();
    await guard(client, 'a');
    const ran: string[] = [];
    await guard(async (sql: string) => void ran.push(`function ${sql}`), 'b');
    const unsafe = async (sql: string) => void ran.push(`unsafe ${sql}`);
    await guard({ unsafe }, 'alone');
    await guard({ unsafe, query: () => Promise.reject(new Error('query')) }, 'c');
    await guard(
      Object.assign(() => Promise.reject(new Error('called')), { unsafe }),
      'd',
    );
    expect([client.ran, ran]).toEqual([
      ['a'],
      ['function b', 'unsafe alone', 'unsafe c', 'unsafe d'],
    ]);
  });

  it.each([
    ['a pool', { query: async () => {}, totalCount: 0 }],
    ['a PGlite database', { query: async () => {}, waitReady: Promise.resolve() }],
    [
      'an instance of postgres',
      Object.assign(async () => {}, { unsafe: () => {}, reserve: () => {} }),
    ],
  ])('K-11 refuses %s: the statement would run outside of the transaction', async (_, value) => {
    await expect(guard(value)).rejects.toMatchObject({
      ...{ code: 'CONFIG_INVALID', field: 'transaction', value },
      message: expect.stringContaining('not the pool or database itself'),
    });
  });

  it.each([
    ['a builder of queries', Object.assign(async () => {}, { raw: () => {} })],
    ['a builder with a query', { query: async () => {}, raw: () => {} }],
    ['nothing', undefined],
    ['null', null],
    ['a text', 'BEGIN'],
    ['a thing that runs nothing', { query: 'SELECT 1', unsafe: true }],
  ])('K-11 refuses %s', async (_, value) => {
    await expect(guard(value)).rejects.toMatchObject({
      ...{ code: 'CONFIG_INVALID', field: 'transaction', value },
      message: expect.stringContaining('it must be a transaction with query(sql)'),
    });
  });
});

describe('what the server says of a guarded transaction', () => {
  const said = (message: string, depth = 0) => {
    let error = new Error(message);
    for (let i = 0; i < depth; i++) error = new Error(`wrapped ${i}`, { cause: error });
    return { error, client: { query: () => Promise.reject(error) } };
  };

  it('K-11 a stale fence is an error with the fence seen, the holder, and the cause', async () => {
    const { error, client } = said('ERROR: FENCE_STALE 12 worker 3\nCONTEXT: x');
    const refused = guard(client);
    await expect(refused).rejects.toBeInstanceOf(FenceStaleError);
    await expect(refused).rejects.toMatchObject({
      ...{ resource: 'k', fence: 7, seen: 12, holder: 'worker 3', cause: error },
    });
  });

  it('K-11 a stale fence of a key that nobody holds has no holder', async () => {
    const { client } = said('FENCE_STALE 12');
    await expect(guard(client)).rejects.toMatchObject({ seen: 12, holder: null });
    await expect(guard(said('`FENCE_STALE 3 b`').client)).rejects.toMatchObject({ holder: 'b' });
  });

  it('K-11 the server’s words are found in five errors, one inside the other, and the outer one is the cause', async () => {
    const { error, client } = said('FENCE_STALE 12', 4);
    await expect(guard(client)).rejects.toMatchObject({ code: 'FENCE_STALE', cause: error });
    const deeper = said('FENCE_STALE 12', 5);
    await expect(guard(deeper.client)).rejects.toBe(deeper.error);
  });

  it('other errors are thrown as they are', async () => {
    for (const message of ['deadlock detected', 'MY_FENCE_STALE 3', 'FENCE_STALE soon']) {
      const { error, client } = said(message);
      await expect(guard(client)).rejects.toBe(error);
    }
    const thrown: unknown = 'a text';
    await expect(guard({ query: () => Promise.reject(thrown) })).rejects.toBe(thrown);
  });

  it('a statement with other refusals is given what the server said, and the error', async () => {
    const { error, client } = said('no');
    const typed = new Error('typed');
    const asked: unknown[] = [];
    const refusal = (message: string, cause: unknown) => {
      asked.push([message, cause]);
      return typed;
    };
    await expect(runIn(client, 'SELECT 1', refusal)).rejects.toBe(typed);
    expect(asked).toEqual([['no', error]]);
  });
});
