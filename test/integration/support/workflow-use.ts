import assert from 'node:assert/strict';
import type { Store } from '../../../src/store/port/store.ts';
import { openRedisStore } from '../../../src/store/redis/redis-store.ts';
import { CALL, Kit } from '../../../testing/conformance/kit.ts';
import { begun, succeed } from '../../../testing/conformance/orchestrator.ts';

/** Uses every verb of streams and workflows once: for users who may lack a right. */
export async function useWorkflows(url: string, prefix: string): Promise<void> {
  const store = await openRedisStore(url, { prefix, quarantine: 'off', maxTtls: null });
  const kit = new Kit({ store, elapse: async () => {}, dispose: async () => {} });
  const flow = await begun(kit);
  await flow.emit('x', 'y', 'z');
  await flow.update('going');
  const reserved = await flow.reserve({ id: 'x', epoch: 0 }, { strict: true });
  assert(reserved.kind === 'reserved');
  assert.equal(await flow.settle(reserved, { outcome: 'retry', afterMs: 0 }), 'done');
  await flow.die();
  await flow.revive();
  await flow.store.unpark(flow.id, flow.ref, CALL);
  const [result] = await flow.results();
  await flow.store.markRead(flow.id, { ...flow.ref, read: [result?.position ?? ''] }, CALL);
  const held = await flow.takeOne();
  await flow.store.extend(flow.target, [held], { ...CALL, claimMs: 60_000 });
  flow.epoch = (await flow.read())?.epoch ?? 0;
  const next = await (await flow.handOff()).acquire();
  await next.begin();
  await next.revoke();
  const { next: last } = await succeed(next, { leaseId: 'tenure-3' });
  assert((await last.history()).length > 0);
  await last.store.resultOf(last.id, 'x', CALL);
  assert((await last.store.list(CALL)).ids.includes(last.id));
  await kit.release(last.key, last.leaseId, last.fence);
  assert.equal(await last.store.remove(last.id, CALL), 'removed');
  await useStreams(store);
  await store.close();
}

async function useStreams({ streams }: Store): Promise<void> {
  const entries = ['a', 'b', 'c'].map((lane) => ({ lane, priority: 5, value: lane }));
  await streams.append('s', entries, CALL);
  const call = { ...CALL, consumer: 'c', most: 3, claimMs: 60_000 };
  const [a, b, c] = await streams.consume('s', call);
  assert(a !== undefined && b !== undefined && c !== undefined);
  assert.deepEqual(await streams.extend('s', [a], call), ['done']);
  assert.deepEqual(await streams.ack('s', [a], CALL), ['done']);
  assert.deepEqual(await streams.retry('s', [{ ...b, afterMs: 0 }], CALL), ['done']);
  assert.deepEqual(await streams.bury('s', [{ ...c, reason: 'why' }], CALL), ['done']);
  const [dead] = (await streams.dead('s', CALL)).entries;
  assert.equal(await streams.drop('s', [dead?.id ?? ''], CALL), 1);
  assert((await streams.names(CALL)).includes('s'));
}
