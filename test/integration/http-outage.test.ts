import { afterAll, describe, expect, it } from 'vitest';
import { spawnChild } from '../support/child.ts';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { type Answered, type Api, startApi } from './support/api.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import {
  allSessions,
  type Ground,
  redisGround,
  sqliteGrounds,
  takeStarts,
} from './support/intent-ground.ts';

leaveNothingBehind();

const files = sqliteGrounds();
afterAll(() => files.end());

/** A call of the store may take 2 s, and a busy machine adds some. */
const LONGEST_ANSWER_MS = 6_000;
const CHANNELS = 40;

const channel = (i: number) => `channel-${i}`;

/** How it was answered, and that it was answered in time. */
async function timely(asking: Promise<Answered>): Promise<Answered> {
  const startedAt = performance.now();
  const answered = await asking;
  expect(performance.now() - startedAt).toBeLessThan(LONGEST_ANSWER_MS);
  return answered;
}

/** As a client that has no store to talk to is told. */
function expectUnavailable({ status, headers, body, text }: Answered): void {
  expect(status, text).toBe(503);
  expect(headers.get('content-type')).toBe('application/problem+json');
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  expect(['STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN']).toContain(body.code);
}

/** Starts of many channels at once; which were accepted. */
async function startMany(api: Api): Promise<Map<string, string>> {
  const refs = Array.from({ length: CHANNELS }, (_, i) => channel(i));
  const answers = await Promise.all(refs.map((ref) => timely(api.start(ref))));
  const accepted = new Map<string, string>();
  for (const [i, answer] of answers.entries()) {
    if (answer.status === 202) accepted.set(channel(i), String(answer.body.sessionId));
    else expectUnavailable(answer);
  }
  return accepted;
}

/** Everything that was accepted is there, and all there is is whole: each session once among the starts, and found by its key. */
async function expectWhole(api: Api, { store }: Ground, accepted: Map<string, string>) {
  const there = new Map((await allSessions(store)).map(({ target, id }) => [target, id]));
  for (const [ref, id] of accepted) expect(there.get(ref), ref).toBe(id);
  const again = await startMany(api);
  expect(again.size).toBe(CHANNELS);
  for (const [ref, id] of there) if (again.has(ref)) expect(again.get(ref), ref).toBe(id);
  const sessions = (await allSessions(store)).map(({ id }) => id).sort();
  expect((await takeStarts(store)).sort()).toEqual(sessions);
}

function untilAccepted(api: Api): Promise<unknown> {
  const isAccepted = async () => (await api.start('is it back?')).status === 202;
  return until(isAccepted, { what: 'starts to be accepted again', deadlineMs: 15_000, every: 50 });
}

describe.concurrent('while the store is away', () => {
  it('I-03 a Redis that is killed: 503 in time, nothing half-written, and it goes on by itself', async () => {
    await using redis = await startRedis({ appendonly: true });
    await using ground = await redisGround(redis.url);
    await using api = await startApi(ground.at);
    await api.start('one before');
    const starting = startMany(api);
    await redis.kill();
    const accepted = await starting;
    expectUnavailable(await timely(api.start('one more')));
    expectUnavailable(await timely(api.get('/api/v3/sessions')));
    await redis.restart();
    await untilAccepted(api);
    await expectWhole(api, ground, accepted);
  });

  it('I-03 a Redis that is frozen: 503 in time, and what it carries out on waking is whole', async () => {
    await using redis = await startRedis();
    await using ground = await redisGround(redis.url);
    await using api = await startApi(ground.at);
    await api.start('one before');
    const starting = startMany(api);
    await redis.freeze();
    const accepted = await starting;
    expectUnavailable(await timely(api.start('one more')));
    await redis.thaw();
    await untilAccepted(api);
    await expectWhole(api, ground, accepted);
  });

  it('I-03 a SQLite file that another process keeps locked: 503 in time, nothing half-written, and it goes on by itself', async () => {
    await using ground = await files.make();
    await using api = await startApi(ground.at);
    await using locker = spawnChild('file-locker.mjs', {
      args: [ground.at.url.slice('sqlite:'.length)],
    });
    await locker.next('ready');
    await api.start('one before');
    locker.send({ do: 'lock' });
    await locker.next('lock');
    const accepted = await startMany(api);
    expect(accepted.size).toBe(0);
    expect(await allSessions(ground.store)).toHaveLength(1);
    locker.send({ do: 'unlock' });
    await locker.next('unlock');
    await untilAccepted(api);
    await expectWhole(api, ground, accepted);
  });
});
