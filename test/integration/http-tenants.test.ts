import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADMIN, type Answered, type Api, startApi, type Token, WRITER } from './support/api.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { type Ground, redisGrounds, sqliteGrounds } from './support/intent-ground.ts';

leaveNothingBehind();

const A: Token = { id: 'a', token: 'the-token-of-tenant-a', scope: 'v3:write', tenant: 'a' };
const B: Token = { id: 'b', token: 'the-token-of-tenant-b', scope: 'v3:admin', tenant: 'b' };

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const idsIn = ({ body }: Answered) => (body.sessions as { id: string }[]).map(({ id }) => id);

describe.each(GROUNDS)('tenants over HTTP and $name', (kind) => {
  let ground: Ground;
  let api: Api;
  let ofA: string;
  beforeAll(async () => {
    ground = await kind.make();
    api = await startApi({ ...ground.at, app: { tokens: [ADMIN, WRITER, A, B] } });
    ofA = String((await api.start('a channel', { as: A })).body.sessionId);
  });
  afterAll(async () => {
    await api?.child.kill();
    await ground?.[Symbol.asyncDispose]();
  });

  it.each([
    ['another tenant, though it may do everything', B],
    ['whoever is of no tenant and is no administrator', WRITER],
  ])(
    'I-20 for %s the session is not there: not to look at, not in lists, not to stop',
    async (_, as) => {
      const path = `/api/v3/sessions/${ofA}`;
      const [looked, listed] = [await api.get(path, as), await api.get('/api/v3/sessions', as)];
      expect([looked.status, looked.body.code]).toEqual([404, 'NOT_FOUND']);
      expect(idsIn(listed)).not.toContain(ofA);
      const force = as.scope === 'v3:admin' ? { force: true } : {};
      const stopped = await api.stop(ofA, { as, clientId: 'a', ...force });
      expect([stopped.status, stopped.body.code]).toEqual([404, 'NOT_FOUND']);
      const unknown = await api.get('/api/v3/sessions/there-is-none', as);
      const { type, title, detail, code } = looked.body;
      expect(unknown.body).toMatchObject({ type, title, detail, code });
      expect((await api.get(path, A)).body).toMatchObject({ state: 'NEW', clients: 1 });
    },
  );

  it('I-04 the same channel started by two tenants is two sessions', async () => {
    const { status, body } = await api.start('a channel', { as: B });
    expect([status, body.replayed]).toEqual([202, false]);
    expect(body.sessionId).not.toBe(ofA);
    expect(idsIn(await api.get('/api/v3/sessions', B))).toEqual([body.sessionId]);
    expect(idsIn(await api.get('/api/v3/sessions', A))).toEqual([ofA]);
  });

  it('I-20 an administrator of no tenant sees those of all', async () => {
    const ofB = String((await api.start('another', { as: B })).body.sessionId);
    const ofNone = String((await api.start('a third')).body.sessionId);
    const seen = idsIn(await api.get('/api/v3/sessions', ADMIN));
    expect(seen).toEqual(expect.arrayContaining([ofA, ofB, ofNone]));
    expect((await api.get(`/api/v3/sessions/${ofB}`, ADMIN)).body).toMatchObject({ tenant: 'b' });
    expect((await api.stop(ofB, { as: ADMIN, force: true })).body).toMatchObject({
      state: 'ENDED',
    });
  });
});
