import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADMIN, type Api, startApi, type Token, WRITER } from './support/api.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { type Ground, redisGrounds, sqliteGrounds } from './support/intent-ground.ts';
import { ScriptedWorker } from './support/scripted-worker.ts';

leaveNothingBehind();

const READER: Token = { id: 'reader', token: 'the-token-of-a-reader', scope: 'v3:read' };
const SECOND: Token = { id: 'second', token: 'the-token-of-another', scope: 'v3:write' };
const TOKENS = [ADMIN, WRITER, READER, SECOND];

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

describe.each(GROUNDS)('intents over HTTP and $name', (kind) => {
  let ground: Ground;
  let api: Api;
  let other: Api;
  beforeAll(async () => {
    ground = await kind.make();
    const start = () => startApi({ ...ground.at, app: { tokens: TOKENS } });
    [api, other] = await Promise.all([start(), start()]);
  });
  afterAll(async () => {
    await Promise.all([api?.child.kill(), other?.child.kill()]);
    await ground?.[Symbol.asyncDispose]();
  });

  const session = async (id: unknown, from = other) => {
    const { status, body } = await from.get(`/api/v3/sessions/${id}`, READER);
    expect(status).toBe(200);
    return body;
  };

  it('I-10 I-03 the same channel with other parameters: both are accepted; one runs, and the client of the other reads why it does not', async () => {
    const a = await api.start('one channel', { profile: 'hd' });
    const b = await other.start('one channel', { profile: 'sd' });
    expect([a.status, b.status]).toEqual([202, 202]);
    expect(a.body.sessionId).not.toBe(b.body.sessionId);
    expect(await session(b.body.sessionId)).toMatchObject({ state: 'NEW', reason: null });
    await new ScriptedWorker(ground.store).takeAll();
    expect(await session(a.body.sessionId)).toMatchObject({ state: 'RUNNING', worker: 'worker-1' });
    expect(await session(b.body.sessionId)).toMatchObject({
      state: 'ENDED',
      reason: 'R_LEASE_BUSY',
      outcome: 'REJECTED_BUSY',
    });
  });

  it('I-06 what has ended is not found again: the same start makes a new session', async () => {
    const first = await api.start('for a while');
    await new ScriptedWorker(ground.store).advance(String(first.body.sessionId), 'ENDED', {
      reason: 'R_WORKER_LOST',
      outcome: 'FAILED',
    });
    const second = await other.start('for a while');
    expect(second.body).toMatchObject({ replayed: false, state: 'NEW' });
    expect(second.body.sessionId).not.toBe(first.body.sessionId);
  });

  it('I-14 two tokens share a session: a replay adds none, and the last who stops it stops it', async () => {
    const { body: started } = await api.start('shared');
    const id = String(started.sessionId);
    expect((await other.start('shared')).body).toMatchObject({ clients: 1, replayed: true });
    expect((await other.start('shared', { as: SECOND })).body).toMatchObject({ clients: 2 });
    expect((await api.stop(id)).body).toMatchObject({ state: 'NEW', clients: 1 });
    expect((await api.stop(id)).body).toMatchObject({ state: 'NEW', clients: 1 });
    expect((await other.stop(id, { as: SECOND })).body).toMatchObject({
      ...{ state: 'ENDED', clients: 0 },
    });
    expect(await session(id)).toMatchObject({ reason: 'R_STOPPED', outcome: 'STOPPED' });
  });

  it('I-14 one token counts for as many clients as it names', async () => {
    const { body: started } = await api.start('for many', { clientId: 'living-room' });
    const id = String(started.sessionId);
    const { body } = await other.start('for many', { clientId: 'kitchen' });
    expect(body).toMatchObject({ sessionId: id, clients: 2 });
    await new ScriptedWorker(ground.store).takeAll();
    const kitchen = { clientId: 'kitchen' };
    expect((await api.stop(id, kitchen)).body).toMatchObject({ state: 'RUNNING', clients: 1 });
    expect((await api.stop(id, { clientId: 'cellar' })).body).toMatchObject({ clients: 1 });
    const last = await other.stop(id, { clientId: 'living-room' });
    expect(last.body).toMatchObject({ state: 'STOPPING', clients: 0 });
  });

  it('I-14 only an administrator stops what others still need', async () => {
    const { body: started } = await api.start('needed', { clientId: 'a' });
    const id = String(started.sessionId);
    await api.start('needed', { clientId: 'b' });
    const refused = await api.stop(id, { force: true });
    expect([refused.status, refused.body.code]).toEqual([403, 'FORBIDDEN']);
    expect(await session(id)).toMatchObject({ state: 'NEW', clients: 2 });
    const { body } = await api.stop(id, { as: ADMIN, force: true });
    expect(body).toMatchObject({ state: 'ENDED', clients: 0 });
  });

  it('I-04 recordings share a session within one second of them, at either process', async () => {
    const play = async (at: Api, startMs: number) => {
      const body = { type: 'vod.start', recordingId: 'a|b', profile: 'hd', startMs };
      return (await at.ask('POST', '/api/v3/intents', { as: WRITER, body })).body.sessionId;
    };
    const [first, same] = [await play(api, 10_000), await play(other, 10_999)];
    expect(same).toBe(first);
    expect(await play(other, 9_999)).not.toBe(first);
    expect(await play(api, 11_000)).not.toBe(first);
  });
});
