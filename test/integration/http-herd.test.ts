import { afterAll, describe, expect, it } from 'vitest';
import { LEASE_CLASSES } from '../../src/lease/timings.ts';
import { type Answered, type Api, startApi } from './support/api.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import {
  allSessions,
  type Ground,
  redisGrounds,
  sqliteGrounds,
  takeStarts,
} from './support/intent-ground.ts';

leaveNothingBehind();

const OLD = 'the old secret, which is long enough to be one';
const NEW = 'the new secret, which is long enough to be one';
const CHANNEL = '1:0:19:283D:3FB:1:C00000:0:0:0:';
const HERD = 200;
const CALL = { timeoutMs: 5_000 };

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

/** So many starts of one channel and profile at once, every other one at the other process. */
async function herd(apis: readonly [Api, Api], ref: string, size = HERD): Promise<Answered[]> {
  const ask = (_: unknown, i: number) => {
    const api = i % 2 === 0 ? apis[0] : apis[1];
    return api.start(ref, { profile: 'hd', clientId: `client-${i}` });
  };
  return Promise.all(Array.from({ length: size }, ask));
}

/** The one session that all of them were told of. */
function oneOf(answers: readonly Answered[]): string {
  const statuses = [...new Set(answers.map(({ status }) => status))];
  const ids = [...new Set(answers.map(({ body }) => body.sessionId))];
  expect({ statuses, sessions: ids.length }).toEqual({ statuses: [202], sessions: 1 });
  return String(ids[0]);
}

function newOf(answers: readonly Answered[]): number {
  return answers.filter(({ body }) => body.replayed === false).length;
}

async function clientsOf({ store }: Ground, id: string): Promise<number | undefined> {
  const [session] = await store.intents.read([id], CALL);
  return session?.clients;
}

describe.each(GROUNDS)('a herd at two processes over $name', (kind) => {
  it('I-07 I-01 200 starts of one channel and profile at once: 200 times 202, one session, one start, no lease taken', async () => {
    await using ground = await kind.make();
    await using one = await startApi(ground.at);
    await using other = await startApi(ground.at);
    const answers = await herd([one, other], CHANNEL);
    const id = oneOf(answers);
    expect(newOf(answers)).toBe(1);
    expect(await takeStarts(ground.store)).toEqual([id]);
    expect(await allSessions(ground.store)).toMatchObject([{ id, state: 'NEW', clients: HERD }]);
    const { leases } = await ground.store.leases.list(LEASE_CLASSES.resource.keyspace, CALL);
    expect(leases).toEqual([]);
  });

  it('I-07 I-05 while a secret is changed, process by process, 200 starts of a channel still are one session, and so they are right after', async () => {
    await using ground = await kind.make();
    const withSecret = (secret: string, previousSecret?: string) =>
      startApi({ ...ground.at, intents: { secret, ...(previousSecret && { previousSecret }) } });
    await using behind = await withSecret(OLD);
    const before = oneOf(await herd([behind, behind], 'before', 10));
    await using ahead = await withSecret(NEW, OLD);
    const amid = oneOf(await herd([behind, ahead], 'amid'));
    expect(oneOf(await herd([behind, ahead], 'before', 20))).toBe(before);
    await using done = await withSecret(NEW);
    const after = oneOf(await herd([ahead, done], 'after'));
    expect(oneOf(await herd([ahead, done], 'amid', 20))).toBe(amid);
    expect(oneOf(await herd([ahead, done], 'before', 20))).toBe(before);
    expect((await takeStarts(ground.store)).sort()).toEqual([before, amid, after].sort());
    expect(await clientsOf(ground, amid)).toBe(HERD);
  });

  it('I-16 with leases of the interface, of two starts at once one gets 202 and one 409 LEASE_BUSY, and the worker gets the tenure that the store names', async () => {
    await using ground = await kind.make();
    const phase1 = { ...ground.at, intents: { apiLeases: 'on' } };
    await using one = await startApi(phase1);
    await using other = await startApi(phase1);
    const answers = await Promise.all([one.start(CHANNEL), other.start(CHANNEL)]);
    const [accepted, refused] = answers.sort((a, b) => a.status - b.status);
    expect([accepted?.status, refused?.status]).toEqual([202, 409]);
    expect(refused?.headers.get('content-type')).toBe('application/problem+json');
    expect(refused?.body).toMatchObject({ code: 'LEASE_BUSY', status: 409 });
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
    const [session, ...more] = await allSessions(ground.store);
    expect(more).toEqual([]);
    expect(session?.id).toBe(accepted?.body.sessionId);
    expect(session?.tenure?.key).toBe(`service:${CHANNEL}`);
    const { leases } = await ground.store.leases.list(LEASE_CLASSES.resource.keyspace, CALL);
    const { key, holder, fence } = leases[0] ?? {};
    expect(leases).toHaveLength(1);
    expect(key).toMatch(new RegExp(`${session?.tenure?.key}$`));
    expect({ holder, fence }).toEqual({
      holder: session?.tenure?.holder,
      fence: session?.tenure?.fence,
    });
    expect(await takeStarts(ground.store)).toEqual([session?.id]);
  });
});
