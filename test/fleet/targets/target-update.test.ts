import { describe, expect, it } from 'vitest';
import { TARGET_COLLECTION } from '../../../src/fleet/targets/target-record.ts';
import { world } from '../../support/world.ts';

const CALL = { timeoutMs: 1_000 };

async function setUp() {
  const { actor, store } = world();
  const { holdfast } = await actor();
  const stored = async (id: string) => {
    const [reply] = await store.records.get(TARGET_COLLECTION, [id], CALL);
    return reply?.kind === 'found' ? reply.value : null;
  };
  return { holdfast, store, stored };
}

describe('changing a target', () => {
  it('replaces the given fields, keeps the others, and announces it', async () => {
    const { holdfast, stored } = await setUp();
    const told: string[] = [];
    holdfast.on('session.changed', ({ session }) => told.push(session));
    await holdfast.targets.add({ id: 'a', url: 'http://one/', every: '5s', city: 'Oslo' });
    const { target: session } = await holdfast.targets.update('a', { url: 'http://two/' });
    expect(session).toMatchObject({ url: 'http://two/', everyMs: 5_000, data: { city: 'Oslo' } });
    expect(await holdfast.targets.get('a')).toEqual(session);
    await holdfast.targets.update('a', { every: '9s', city: 'Bergen' });
    expect(await stored('a')).toMatchObject({ url: 'http://two/', every: '9s', city: 'Bergen' });
    expect((await holdfast.targets.get('a'))?.everyMs).toBe(9_000);
    expect(told).toEqual(['a', 'a']);
  });

  it('keeps the field names of the program that wrote the record', async () => {
    const { holdfast, store, stored } = await setUp();
    const value = { URL: 'http://one/', is_paused: true, intervalMs: 700 };
    await store.records.put(TARGET_COLLECTION, [{ id: 'a', value }], CALL);
    await holdfast.targets.update('a', { url: 'http://two/' });
    expect(await stored('a')).toEqual({ url: 'http://two/', is_paused: true, intervalMs: 700 });
  });

  it('refuses an invalid change, and changes nothing', async () => {
    const { holdfast, stored } = await setUp();
    await holdfast.targets.add({ id: 'a', url: 'http://one/' });
    const before = await stored('a');
    const { targets: sessions } = holdfast;
    await expect(sessions.update('a', { url: 'ftp://x/' })).rejects.toThrow(/only http and https/);
    await expect(sessions.update('a', { every: '1ms' })).rejects.toThrow(/every is "1ms"/);
    await expect(sessions.update('a', { id: 'b' })).rejects.toThrow(/id is "b"/);
    await expect(sessions.update('b', { url: 'http://x/' })).rejects.toThrow(/'b' does not exist/);
    expect(await stored('a')).toEqual(before);
  });
});

it('the last result of each target is read with the fleet, and an invalid one is left out', async () => {
  const { holdfast, store } = await setUp();
  const value = { at: 1, by: 'api-1', ok: true, tookMs: 3, value: { status: 200 } };
  const writes = [
    { id: 'a', value },
    { id: 'b', value: 'garbage' },
  ];
  await store.records.put('result', writes, CALL);
  expect(await holdfast.fleet.results(['a', 'b', 'c'])).toEqual(
    new Map([['a', { ...value, recent: [] }]]),
  );
});
