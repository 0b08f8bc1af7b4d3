import assert from 'node:assert/strict';
import { startStream } from '../../../src/store/port/intent-store.ts';
import { openRedisStore } from '../../../src/store/redis/redis-store.ts';

const START_STREAM = startStream('live');

const CALL = { timeoutMs: 2_000 };

/** Uses every verb of intents once: for users who may lack a right. */
export async function useIntents(url: string, prefix: string): Promise<void> {
  const { intents, streams, close } = await openRedisStore(url, {
    prefix,
    quarantine: 'off',
    maxTtls: null,
  });
  const request = { tenant: 't', kind: 'live', label: 'l', body: '{}', status: '{}', priority: 5 };
  const start = (id: string, client: string, keys: string[]) =>
    intents.start({ ...request, id, client, keys }, CALL);
  assert.equal((await start('a', 'one', ['old'])).kind, 'created');
  assert.equal((await start('b', 'two', ['new', 'old'])).kind, 'replayed');
  assert.deepEqual(await intents.republish(['a'], CALL), []);
  const [given] = await streams.consume(START_STREAM, {
    ...{ ...CALL, consumer: 'c', most: 1, claimMs: 60_000 },
  });
  assert(given !== undefined);
  assert.deepEqual(await intents.republish(['a'], CALL), []);
  assert.deepEqual(await streams.ack(START_STREAM, [given], CALL), ['done']);
  assert.deepEqual(await intents.republish(['a'], CALL), ['a']);
  const whose = { id: 'a', tenant: 't', client: 'one', ending: '{}' };
  assert.equal((await intents.stop({ ...whose, force: false }, CALL)).kind, 'found');
  const change = { ifRevision: 1, state: 'RUNNING', status: '{}' } as const;
  assert.equal((await intents.advance('a', change, CALL)).kind, 'advanced');
  assert.equal((await intents.stop({ ...whose, force: true }, CALL)).kind, 'found');
  const end = { ifRevision: 3, state: 'ENDED', status: '{}' } as const;
  assert.equal((await intents.advance('a', end, CALL)).kind, 'advanced');
  assert.equal((await intents.read(['a'], CALL))[0]?.state, 'ENDED');
  assert.equal((await intents.list({ ...CALL, tenant: 't' })).sessions.length, 1);
  assert.equal(await intents.prune({ ...CALL, endedBeforeMs: Infinity, most: 10 }), 1);
  await close();
}
