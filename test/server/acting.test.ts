import { describe, expect, it } from 'vitest';
import type { Events } from '../../src/core/events.ts';
import { LEASE, MEMBER, operatingWorld, TARGET, WORKFLOW } from '../support/operating-world.ts';

type World = Awaited<ReturnType<typeof operatingWorld>>;

interface Doing {
  readonly route: string;
  /** What has to be done before. */
  readonly after?: readonly [path: string, body?: object];
  readonly path: (world: World) => string;
  readonly body?: object;
  readonly act: { action: string; subject: string | RegExp; reason?: string };
}

const DEAD = /^mailer\/.+/;
const reason = 'stuck since noon';

/** Everything that changes something, but for intents, which tell of themselves, and what only lets somebody in. */
const DOINGS: readonly Doing[] = [
  {
    route: 'POST /api/v3/sessions',
    path: () => '/api/v3/sessions',
    body: { url: 'https://example.com/', id: 'new' },
    act: { action: 'session.add', subject: 'new' },
  },
  {
    route: 'POST /api/v3/sessions/{id}/pause',
    path: () => `/api/v3/sessions/${TARGET}/pause`,
    act: { action: 'session.pause', subject: TARGET },
  },
  {
    route: 'POST /api/v3/sessions/{id}/resume',
    after: [`/api/v3/sessions/${TARGET}/pause`],
    path: () => `/api/v3/sessions/${TARGET}/resume`,
    act: { action: 'session.resume', subject: TARGET },
  },
  {
    route: 'DELETE /api/v3/sessions/{id}',
    path: () => `/api/v3/sessions/${TARGET}`,
    act: { action: 'session.remove', subject: TARGET },
  },
  {
    route: 'POST /api/v3/targets',
    path: () => '/api/v3/targets',
    body: { url: 'https://example.com/', id: 'new' },
    act: { action: 'target.add', subject: 'new' },
  },
  {
    route: 'POST /api/v3/targets/{id}/pause',
    path: () => `/api/v3/targets/${TARGET}/pause`,
    act: { action: 'target.pause', subject: TARGET },
  },
  {
    route: 'POST /api/v3/targets/{id}/resume',
    after: [`/api/v3/targets/${TARGET}/pause`],
    path: () => `/api/v3/targets/${TARGET}/resume`,
    act: { action: 'target.resume', subject: TARGET },
  },
  {
    route: 'DELETE /api/v3/targets/{id}',
    path: () => `/api/v3/targets/${TARGET}`,
    act: { action: 'target.remove', subject: TARGET },
  },
  {
    route: 'POST /api/v3/members/{id}/drain',
    path: () => `/api/v3/members/${MEMBER}/drain`,
    act: { action: 'member.drain', subject: MEMBER },
  },
  {
    route: 'POST /api/v3/members/{id}/undrain',
    after: [`/api/v3/members/${MEMBER}/drain`],
    path: () => `/api/v3/members/${MEMBER}/undrain`,
    act: { action: 'member.undrain', subject: MEMBER },
  },
  {
    route: 'POST /api/v3/targets/{id}/unpin',
    after: [`/api/v3/targets/${TARGET}/transfer`, { to: MEMBER }],
    path: () => `/api/v3/targets/${TARGET}/unpin`,
    act: { action: 'target.unpin', subject: TARGET },
  },
  {
    route: 'POST /api/v3/targets/{id}/revoke',
    path: () => `/api/v3/targets/${TARGET}/revoke`,
    body: { reason },
    act: { action: 'target.revoke', subject: TARGET, reason },
  },
  {
    route: 'POST /api/v3/leases/{key}/revoke',
    path: () => `/api/v3/leases/${LEASE}/revoke`,
    body: { reason },
    act: { action: 'lease.revoke', subject: LEASE, reason },
  },
  {
    route: 'POST /api/v3/workflows/{id}/revoke',
    path: () => `/api/v3/workflows/${WORKFLOW}/revoke`,
    body: { reason },
    act: { action: 'workflow.revoke', subject: WORKFLOW, reason },
  },
  {
    route: 'POST /api/v3/deadletters/{target}/{id}/retry',
    path: ({ letter }) => `/api/v3/deadletters/${letter}/retry`,
    act: { action: 'deadletter.retry', subject: DEAD },
  },
  {
    route: 'POST /api/v3/deadletters/{target}/{id}/drop',
    path: ({ letter }) => `/api/v3/deadletters/${letter}/drop`,
    act: { action: 'deadletter.drop', subject: DEAD },
  },
  ...(['kill', 'freeze'] as const).map((verb) => ({
    route: `POST /api/v3/stage/{name}/${verb}`,
    path: () => `/api/v3/stage/ada/${verb}`,
    act: { action: `stage.${verb}`, subject: 'ada' },
  })),
  {
    route: 'POST /api/v3/stage/{name}/thaw',
    after: ['/api/v3/stage/ada/freeze'],
    path: () => '/api/v3/stage/ada/thaw',
    act: { action: 'stage.thaw', subject: 'ada' },
  },
  {
    route: 'POST /api/v3/stage/{name}/start',
    path: () => '/api/v3/stage/bob/start',
    act: { action: 'stage.start', subject: 'bob' },
  },
];

/** Audited every time: a repeated request is a new order, or a new write. */
const TRANSFER = 'POST /api/v3/targets/{id}/transfer';
const CHANGE = 'PATCH /api/v3/targets/{id}';
/** In workflow-runs.test.ts: a repeated signal is another one, and a restart needs a failed function. */
const RUNS = ['POST /api/v3/workflows/{id}/signal', 'POST /api/v3/workflows/{id}/restart'];
/** What clients do for their own work. Intents and leases have events of their own. */
const UNTOLD = [
  'POST /api/v3/intents',
  'POST /api/v3/intents/batch',
  'POST /api/v3/enter',
  'POST /api/v3/leases/{key}',
  'POST /api/v3/leases/{key}/renew',
  'POST /api/v3/leases/{key}/release',
  'POST /api/v3/leases/{key}/transfer',
];

async function doing({ after, path, body }: Doing) {
  const world = await operatingWorld();
  const acts: Events['operator.acted'][] = [];
  if (after !== undefined) {
    const [before, sent] = after;
    await world.ask('POST', before, sent === undefined ? {} : { body: sent });
  }
  world.holdfast.on('operator.acted', (act) => acts.push(act));
  const sent = body === undefined ? {} : { body };
  return { ...world, acts, path: path(world), sent };
}

describe('what operators do', () => {
  it('is all in this table', async () => {
    const { app } = await operatingWorld();
    const changing = app.routes.filter(({ method }) => method !== 'GET');
    const names = changing.map(({ method, path }) => `${method} ${path}`);
    expect(
      [...UNTOLD, ...RUNS, TRANSFER, CHANGE, ...DOINGS.map(({ route }) => route)].sort(),
    ).toEqual(names.sort());
  });

  it.each(DOINGS.map((one) => [one.route, one] as const))('is told of once: %s', async (_, one) => {
    const { ask, acts, path, sent } = await doing(one);
    const [method = ''] = one.route.split(' ');
    const got = await ask(method, path, sent);
    expect(got.status).toBeLessThan(300);
    const { action, subject, reason = null } = one.act;
    const by = 'api:admin';
    const about = typeof subject === 'string' ? subject : expect.stringMatching(subject);
    expect(acts).toEqual([{ action, subject: about, to: null, by, reason }]);
    // A second time there is nothing to do, or nothing to do it to.
    await ask(method, path, sent);
    expect(acts).toHaveLength(1);
  });

  it.each(DOINGS.map((one) => [one.route, one] as const))(
    'is not told of where it was not done: %s',
    async (_, one) => {
      const { ask, acts, calls, path, sent } = await doing(one);
      const [method = ''] = one.route.split(' ');
      calls.length = 0;
      expect((await ask(method, path, { ...sent, token: 'read' })).status).toBe(403);
      expect((await ask(method, path, { ...sent, token: null })).status).toBe(401);
      expect([acts, calls]).toEqual([[], []]);
    },
  );

  it('is written into the log that all instances share', async () => {
    const { ask, clock } = await operatingWorld({ history: 'on' });
    await ask('POST', `/api/v3/leases/${LEASE}/revoke`, { body: { reason } });
    await clock.advance(300);
    const { json } = await ask('GET', '/api/v3/history?event=operator.acted');
    expect(json.events).toMatchObject([
      { event: 'operator.acted', action: 'lease.revoke', subject: LEASE, by: 'api:admin', reason },
    ]);
  });
});

/** As browsers send it for a page of a stranger, and what nobody should take for our own. */
const FOREIGN = [
  'http://evil.example',
  'https://evil.example',
  'null',
  'http://localhost:8080',
  'http://localhost.evil.example',
  'http://evil.example/http://localhost',
  'http://localhost@evil.example',
  'ftp://localhost',
  'file://',
  'localhost',
  'http://localhost/',
  'http://localhost, http://localhost',
  'http://127.0.0.1',
  '*',
];

describe('a request from the page of a stranger', () => {
  it.each([...DOINGS.map(({ route }) => route), TRANSFER, ...RUNS, ...UNTOLD])(
    'is refused before anything is looked at: %s',
    async (name) => {
      const { ask, calls } = await operatingWorld();
      const [method = '', pattern = ''] = name.split(' ');
      const path = pattern.replace(/\{\w+\}/g, 'some-id');
      for (const origin of FOREIGN) {
        const got = await ask(method, path, { headers: { origin } });
        expect([origin, got.status, got.json.code]).toEqual([origin, 403, 'FOREIGN_ORIGIN']);
      }
      expect(calls).toEqual([]);
    },
  );

  it('may read, because it cannot see the answer', async () => {
    const { ask } = await operatingWorld();
    const got = await ask('GET', '/api/v3/about', { headers: { origin: 'http://evil.example' } });
    expect(got.status).toBe(200);
    expect(got.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('is not told before it asks that it might', async () => {
    const { ask } = await operatingWorld();
    const headers = { origin: 'http://evil.example', 'access-control-request-method': 'POST' };
    const got = await ask('OPTIONS', '/api/v3/intents', { headers });
    expect(got.status).toBe(403);
    expect(got.headers.get('access-control-allow-origin')).toBeNull();
  });

  it.each(['http://localhost', 'https://localhost'])(
    'is another than one from our own: %s',
    async (origin) => {
      const { ask } = await operatingWorld();
      const got = await ask('POST', `/api/v3/sessions/${TARGET}/pause`, { headers: { origin } });
      expect(got.status).toBe(200);
    },
  );
});
