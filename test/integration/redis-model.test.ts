import { afterAll, beforeAll, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import fc from '../support/fast-check.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

let redis: RedisServer;
let onRedis: Store;
beforeAll(async () => {
  redis = await startRedis();
  onRedis = await openRedisStore(redis.url, { quarantine: 'off' });
});
afterAll(async () => {
  await onRedis.close();
  await redis.stop();
});

const CALL = { timeoutMs: 5_000 };
const TTL = { ttlMs: 60_000 };

/** One step. `tenure` picks one of the fences the key has had so far, old ones included. */
const step = fc.record({
  verb: fc.constantFrom(
    'acquire',
    'refresh',
    'renew',
    'reassert',
    'release',
    'transfer',
    'revoke',
    'force',
    'read',
  ),
  key: fc.constantFrom('a', 'b'),
  holder: fc.constantFrom('h1', 'h2', 'h3'),
  tenure: fc.nat(),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** Plays the steps on a store, and tells what each came to, with every fence as its number in the order of minting. */
async function play(store: Store, steps: readonly Step[], run: string): Promise<unknown[]> {
  const { leases } = store;
  const minted: Record<string, number[]> = { a: [], b: [] };
  const told: unknown[] = [];
  const tellOf = (fences: number[]) => (reply: object) => {
    const fence = 'fence' in reply && typeof reply.fence === 'number' ? reply.fence : 0;
    if (fence > 0 && !fences.includes(fence)) fences.push(fence);
    const { expiresInMs: _e, mayActForMs: _m, ...facts } = reply as Record<string, unknown>;
    told.push({ ...facts, ...('fence' in reply && { fence: fences.indexOf(fence) }) });
  };
  for (const { verb, key: name, holder, tenure } of steps) {
    const key = `lease:${run}-${name}`;
    const fences = minted[name] ?? [];
    const tell = tellOf(fences);
    const fence = fences[tenure % Math.max(1, fences.length)] ?? 1;
    const tenancy = { key, holder, fence };
    const acquire = { ...CALL, ...TTL, inbox: 'inbox' };
    if (verb === 'acquire') tell((await leases.acquire([{ key, holder }], acquire))[0] ?? {});
    if (verb === 'refresh') tell((await leases.acquire([tenancy], acquire))[0] ?? {});
    if (verb === 'renew')
      tell((await leases.renew([{ key, holder }], { ...CALL, ...TTL }))[0] ?? {});
    if (verb === 'reassert') {
      told.push(await leases.reassert([tenancy], { ...CALL, ...TTL, forgotten: false }));
    }
    if (verb === 'release') tell((await leases.release([tenancy], CALL))[0] ?? {});
    if (verb === 'transfer') {
      const handover = { ...tenancy, successor: 'h3' };
      tell((await leases.transfer([handover], { ...CALL, windowMs: 60_000 }))[0] ?? {});
    }
    if (verb === 'revoke' || verb === 'force') {
      tell(await leases.revoke(key, { ...CALL, force: verb === 'force', fence }));
    }
    if (verb === 'read') tell((await leases.read([key], CALL))[0] ?? {});
  }
  return told;
}

it('K-01 K-03 K-09 memory and Redis give the same answers to the same requests, whatever their order', async () => {
  let runs = 0;
  const property = fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
    const run = `model-${runs++}`;
    expect(await play(onRedis, steps, run)).toEqual(await play(createMemoryStore(), steps, run));
  });
  await fc.assert(property, { numRuns: 300 });
});
