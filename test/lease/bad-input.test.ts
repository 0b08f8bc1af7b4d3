import { describe, expect, it } from 'vitest';
import { type OpenOptions, open } from '../../src/holdfast.ts';
import type { AcquireOptions } from '../../src/lease/options.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { LeaseStore } from '../../src/store/port/lease-store.ts';
import type { Store } from '../../src/store/port/store.ts';

/** A store that must never be asked anything. */
function untouchable(): { store: Store; calls: string[] } {
  const calls: string[] = [];
  const leases = new Proxy({} as LeaseStore, {
    get: (_, verb) =>
      verb === 'maxTtls'
        ? undefined
        : async () => {
            calls.push(String(verb));
            throw new Error(`${String(verb)} was sent`);
          },
  });
  return { store: { ...createMemoryStore(), leases }, calls };
}

const BAD_KEYS: [string, unknown][] = [
  ['empty', ''],
  ['1 MB long', 'x'.repeat(1_048_576)],
  ['one byte too long', `${'ä'.repeat(128)}x`],
  ['with a NUL', 'a\u0000b'],
  ['with a newline', 'a\nb'],
  ['with a C1 control character', 'a\u0085b'],
  ['with an opening brace', '{x}y'],
  ['with a stray brace', 'a}'],
  ['with half an emoji', 'a\ud83d'],
  ['a number', 7],
  ['null', null],
  ['an object', {}],
];

const BAD_OPTIONS: [string, object, field: string][] = [
  ['ttl 0', { ttl: 0 }, 'ttl'],
  ['a negative ttl', { ttl: -1 }, 'ttl'],
  ['ttl NaN', { ttl: Number.NaN }, 'ttl'],
  ['ttl Infinity', { ttl: Number.POSITIVE_INFINITY }, 'ttl'],
  ['ttl 2^31', { ttl: 2 ** 31 }, 'ttl'],
  ['a ttl below the shortest', { ttl: 599 }, 'ttl'],
  ['a ttl above maxTtl', { ttl: '6m' }, 'ttl'],
  ['a ttl without a unit', { ttl: '30' }, 'ttl'],
  ['a ttl with a strange unit', { ttl: '30 parsecs' }, 'ttl'],
  ['ttl as an object', { ttl: {} }, 'ttl'],
  ['a renewal later than the lease allows', { ttl: '10s', renewEvery: '9s' }, 'renewEvery'],
  ['a guard as long as the lease', { ttl: '10s', guard: '10s' }, 'renewEvery'],
  ['a guard shorter than the time to stop', { ttl: '30s', stop: '2s', guard: '1s' }, 'guard'],
  [
    'an operation timeout that leaves no room',
    { ttl: '10s', operationTimeout: '4s' },
    'renewEvery',
  ],
  ['a negative wait', { wait: -1 }, 'wait'],
  ['a wait that is no duration', { wait: 'soon' }, 'wait'],
  ['an unknown option', { tll: 1_000 }, 'tll'],
  ['an unknown class', { class: 'vip' }, 'class'],
  ['a class from the prototype', { class: 'constructor' }, 'class'],
  ['an empty holder', { holder: '' }, 'holder'],
  ['a holder like a tombstone', { holder: '!revoked' }, 'holder'],
  ['a fractional fence floor', { fenceFloor: 1.5 }, 'fenceFloor'],
  ['a fence floor beyond exact numbers', { fenceFloor: 2 ** 53 }, 'fenceFloor'],
  ['a fence without the holder that has it', { fence: 7 }, 'fence'],
  ['a fence that none has', { fence: 0, holder: 'h' }, 'fence'],
  ['a fractional fence', { fence: 1.5, holder: 'h' }, 'fence'],
  ['a signal that is none', { signal: {} }, 'signal'],
];

const BAD_OPEN: [string, unknown, object, field: string][] = [
  ['a store that is nothing', null, {}, 'store'],
  ['an unknown scheme', 'mysql://u:secret@h', {}, 'store'],
  ['text without a scheme', 'localhost', {}, 'store'],
  ['a URL that is none', 'redis://[', {}, 'store'],
  ['a scheme that only looks like Redis', 'redisx://u:secret@h', {}, 'store'],
  ['a Redis scheme nobody knows', 'redis+ring://u:secret@h', {}, 'store'],
  ['an object that is no client', { get: () => {} }, {}, 'store'],
  ['a client of another kind', { duplicate: () => {} }, {}, 'store'],
  ['TLS options for a plain URL', 'redis://127.0.0.1:1', { tls: {} }, 'tls'],
  ['an unknown option', 'memory:', { prefx: 'a' }, 'prefx'],
  ['a maxTtl of a day', 'memory:', { maxTtl: '24h' }, 'maxTtl'],
  ['a prefix with a space', 'redis://127.0.0.1:1', { prefix: 'a b' }, 'prefix'],
  ['a prefix with a stray brace', 'redis://127.0.0.1:1', { prefix: '}a' }, 'prefix'],
  ['a quarantine that is neither', 'redis://127.0.0.1:1', { quarantine: 'maybe' }, 'quarantine'],
];

describe('bad input gets a typed error that names the field, the value and the rule, before any I/O', () => {
  it.each(BAD_KEYS)('refuses a key %s', async (_, key) => {
    const { store, calls } = untouchable();
    const holdfast = await open(store);
    const refused = {
      code: 'CONFIG_INVALID',
      field: 'key',
      value: key,
      rule: expect.stringContaining('1 to 256 bytes'),
    };
    const bad = key as string;
    await expect(holdfast.acquire(bad)).rejects.toMatchObject(refused);
    await expect(holdfast.acquireAll([bad])).rejects.toMatchObject(refused);
    await expect(holdfast.withLease(bad, () => {})).rejects.toMatchObject(refused);
    await expect(holdfast.revoke(bad, { reason: 'x' })).rejects.toMatchObject(refused);
    await expect(holdfast.inspect(bad)).rejects.toMatchObject(refused);
    await expect(holdfast.records.get(bad)).rejects.toMatchObject(refused);
    await expect(holdfast.records.put(bad, 1)).rejects.toMatchObject(refused);
    expect(calls).toEqual([]);
  });

  it.each(BAD_OPTIONS)('%s', async (_, options, field) => {
    const { store, calls } = untouchable();
    const holdfast = await open(store);
    await expect(holdfast.acquire('k', options as AcquireOptions)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      field,
    });
    expect(calls).toEqual([]);
  });

  it.each(BAD_OPEN)('refuses open with %s', async (_, store, options, field) => {
    const opening = open(store as string, options as OpenOptions);
    await expect(opening).rejects.toMatchObject({ code: 'CONFIG_INVALID', field });
    await opening.catch((error: Error) => expect(error.message).not.toContain('secret'));
  });

  it('acquireAll refuses no keys, and a key twice', async () => {
    const holdfast = await open(untouchable().store);
    await expect(holdfast.acquireAll([])).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      field: 'keys',
    });
    await expect(holdfast.acquireAll(['a', 'a'])).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      field: 'keys',
    });
  });

  it('revoke needs a reason, withLease a function, and a record a JSON value', async () => {
    const holdfast = await open(untouchable().store);
    await expect(holdfast.revoke('k', { reason: ' ' })).rejects.toMatchObject({ field: 'reason' });
    await expect(holdfast.withLease('k', 1 as never)).rejects.toMatchObject({ field: 'work' });
    await expect(holdfast.records.put('k', undefined)).rejects.toMatchObject({ field: 'value' });
    await expect(holdfast.records.put('k', 1, { fence: -1 })).rejects.toMatchObject({
      field: 'fence',
    });
  });

  it('accepts names in any script, up to 256 bytes', async () => {
    const holdfast = await open('memory:');
    for (const key of ['x', 'x'.repeat(256), 'ä'.repeat(128), 'Gerät 7', '設備/七', 'a🦑b']) {
      expect((await holdfast.acquire(key)).ok).toBe(true);
    }
    await holdfast.close({ within: 0 });
  });

  it('shortens a long value in the message', async () => {
    const holdfast = await open('memory:');
    const refused = expect(holdfast.acquire('x'.repeat(1_048_576))).rejects;
    await refused.toThrow(/^key is "x{40}…" \(1048576 characters\): a key is .{1,200}$/);
  });
});
