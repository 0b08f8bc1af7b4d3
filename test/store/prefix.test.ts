import { describe, expect, it } from 'vitest';
import { KEYSPACES } from '../../src/store/port/keyspaces.ts';
import { checkPrefix } from '../../src/store/port/prefix.ts';
import { fenceOf, keysOf } from '../../src/store/redis/keys.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import fc from '../support/fast-check.ts';

const refusal = { code: 'CONFIG_INVALID', field: 'prefix' };
const refused = async (prefix: string) => {
  expect(() => keysOf(prefix)).toThrow(expect.objectContaining(refusal));
  await expect(openSqliteStore('not-made.db', { prefix })).rejects.toMatchObject(refusal);
};

describe('a prefix', () => {
  it.each(['', 'app:', 'a:b:', '{team}:', 'app:{team}:', 'polls:', 'lease-2:'])(
    'K-15 %j is one',
    (prefix) => {
      expect(keysOf(prefix).prefix).toBe(prefix);
      expect(() => checkPrefix(prefix)).not.toThrow();
    },
  );

  it.each(['app', 'a b:', '{team}', '{a}{b}:', '{}:', 'ä:'])('K-15 %j is none', refused);

  it.each(['poll:', 'a:lease:', 'lease:', '{a:holdfast}:', 'x:{workflow}:', 'record:', 'fence:'])(
    'K-15 %j is refused: its names could be those of another prefix',
    refused,
  );

  it('K-15 two prefixes never make one key of two leases, nor of a lease and what belongs to another', () => {
    const word = fc.constantFrom('a', 'b', 'poll', 'lease', 'fence', 'holdfast', 'x1', 'workflow');
    const text = fc.array(word, { maxLength: 4 }).map((words) => words.join(':'));
    const prefix = fc.oneof(
      fc.constant(''),
      text.map((words) => `${words}:`),
      text.map((words) => `{${words}}:`),
    );
    const usable = prefix.filter((one) => {
      try {
        return keysOf(one).prefix === one;
      } catch {
        return false;
      }
    });
    const space = fc.constantFrom(...Object.values(KEYSPACES));
    const lease = fc.tuple(
      usable,
      space,
      text.filter((id) => id !== ''),
    );
    fc.assert(
      fc.property(lease, lease, (one, other) => {
        if (one.join(' ') === other.join(' ')) return;
        const names = ([own, keyspace, id]: typeof one) => {
          const key = keysOf(own).lease(keyspace + id);
          return [key, fenceOf(key)];
        };
        expect(names(one).filter((name) => names(other).includes(name))).toEqual([]);
      }),
    );
  });
});
