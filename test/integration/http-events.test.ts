import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADMIN, type Api, startApi, type Token, WRITER } from './support/api.ts';
import { type Frame, listen } from './support/event-source.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { type Ground, redisGrounds, sqliteGrounds } from './support/intent-ground.ts';
import { ScriptedWorker, tell } from './support/scripted-worker.ts';

leaveNothingBehind();

const A: Token = { id: 'a', token: 'the-token-of-tenant-a', scope: 'v3:write', tenant: 'a' };
const B: Token = { id: 'b', token: 'the-token-of-tenant-b', scope: 'v3:admin', tenant: 'b' };
/** Long enough for a busy machine to open the store, and to listen before it is over. */
const BRIEF_MS = 3_000;
const EVENTS = 600;
const CUTS = 12;

const files = sqliteGrounds();
const GROUNDS = [files, redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const numberOf = ({ data }: Frame) => Number(data.state);

describe.each(GROUNDS)('events over HTTP and $name', (kind) => {
  let ground: Ground;
  let api: Api;
  let other: Api;
  beforeAll(async () => {
    ground = await kind.make();
    const start = () => startApi({ ...ground.at, app: { tokens: [ADMIN, WRITER, A, B] } });
    [api, other] = await Promise.all([start(), start()]);
  });
  afterAll(async () => {
    await Promise.all([api?.child.kill(), other?.child.kill()]);
    await ground?.[Symbol.asyncDispose]();
  });

  it('I-10 whoever listens hears that its session has ended, and why', async () => {
    const first = await api.start('one channel', { profile: 'hd' });
    const second = await api.start('one channel', { profile: 'sd' });
    using source = await listen(other, {
      as: WRITER,
      query: `session=${second.body.sessionId}&event=session`,
    });
    await new ScriptedWorker(ground.store).takeAll();
    const { data } = await source.heard(({ event }) => event === 'session.advanced', 'the end');
    expect(data).toMatchObject({ state: 'ENDED', reason: 'R_LEASE_BUSY' });
    const about = source.events('session.advanced').map(({ data: { session } }) => session);
    expect(about).not.toContain(first.body.sessionId);
  });

  it('a connection that is cut again and again, and taken up at either process where it ended, loses nothing and doubles nothing', async () => {
    const query = 'session=cut';
    const heard: Frame[] = [];
    let source = await listen(api, { as: ADMIN, query });
    let told = 0;
    for (let cut = 1; cut <= CUTS; cut++) {
      const first = told;
      const telling = (async () => {
        while (told < (cut * EVENTS) / CUTS)
          await tell(ground.store, { session: 'cut', state: String(told++) });
      })();
      await source.heard((frame) => numberOf(frame) >= first, `event ${first}`);
      source.cut();
      heard.push(...source.frames);
      const at = cut % 2 === 0 ? api : other;
      source = await listen(at, { as: ADMIN, query, lastEventId: source.lastId ?? '' });
      await telling;
    }
    await tell(ground.store, { session: 'cut', state: String(EVENTS) });
    await source.heard((frame) => numberOf(frame) === EVENTS, 'the last event');
    heard.push(...source.frames);
    source.cut();
    expect(heard.map(({ event }) => event)).not.toContain('gap');
    expect(heard.map(numberOf)).toEqual(Array.from({ length: EVENTS + 1 }, (_, n) => n));
  });

  it('another tenant hears nothing of what happens, an administrator of no tenant does', async () => {
    using quiet = await listen(api, { as: B });
    using own = await listen(api, { as: A });
    using all = await listen(api, { as: ADMIN });
    const { body } = await api.start('of tenant a', { as: A });
    const isIt = ({ data }: Frame) => data.session === body.sessionId;
    await own.heard(isIt, 'the event at its own tenant');
    await all.heard(isIt, 'the event at the administrator');
    // What B hears comes later than what it must not hear.
    const its = await api.start('of tenant b', { as: B });
    await quiet.heard(({ data }) => data.session === its.body.sessionId, 'the event of tenant b');
    expect(quiet.frames.map(({ data }) => data.tenant)).toEqual(['b']);
  });
});

it('I-19 a token that is over while somebody listens with it ends the stream, and does not open another', async () => {
  await using ground = await files.make();
  let overMs = 0;
  const brief: Token = { id: 'brief', token: 'the-token-for-a-while', scope: 'v3:read' };
  const app = () => {
    overMs = Date.now() + BRIEF_MS;
    return { tokens: [{ ...brief, expiresAt: new Date(overMs).toISOString() }] };
  };
  await using own = await startApi({ ...ground.at, app });
  using source = await listen(own, { as: brief });
  expect(source.status).toBe(200);
  await source.ended();
  expect(Date.now()).toBeGreaterThanOrEqual(overMs);
  expect(source.events('bye')).toMatchObject([{ data: { reason: 'token-expired' } }]);
  using again = await listen(own, { as: brief });
  expect(again.status).toBe(401);
});
