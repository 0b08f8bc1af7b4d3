import { describe, expect, it } from 'vitest';
import { LEASE, MEMBER, operatingWorld, TARGET, WORKFLOW } from '../support/operating-world.ts';
import { serverWorld } from '../support/server-world.ts';

describe('GET /api/v3/about', () => {
  it('says who asks, and whom', async () => {
    const { ask, calls, clock, holdfast } = await operatingWorld();
    const { json } = await ask('GET', '/api/v3/about', { token: 'read' });
    expect(json).toEqual({
      scope: 'v3:read',
      tokenId: 'reader',
      tenant: null,
      instance: holdfast.instanceId,
      version: expect.stringMatching(/^\d/),
      store: 'memory:',
      now: clock.wallMs(),
      stage: true,
    });
    const acme = (await ask('GET', '/api/v3/about', { token: 'acme' })).json;
    expect(acme).toMatchObject({ scope: 'v3:admin', tenant: 'acme' });
    expect(calls).toEqual([]);
  });

  it('tells of no stage where there is none, nor is there a route for it', async () => {
    const { ask, app } = await serverWorld();
    expect((await ask('GET', '/api/v3/about')).json).not.toHaveProperty('stage');
    expect(app.routes.some(({ path }) => path.startsWith('/api/v3/stage'))).toBe(false);
    expect((await ask('POST', '/api/v3/stage/ada/kill')).status).toBe(404);
  });
});

describe('workflows', () => {
  it('are listed in order, a page at a time', async () => {
    const { ask, holdfast, workflow } = await operatingWorld();
    const { instanceId: instance } = holdfast;
    const at = { createdAt: expect.any(Number), changedAt: expect.any(Number) };
    for (const id of ['a', 'z']) await (await holdfast.workflows.claim(id)).release();
    const first = await ask('GET', '/api/v3/workflows?limit=2', { token: 'read' });
    expect(first.json.workflows).toEqual([
      {
        id: 'a',
        state: 'initialized',
        epoch: 0,
        leaseId: expect.any(String),
        isHeld: false,
        expiresInMs: null,
        unresolved: 0,
        ...{ ...at, instance, run: null },
      },
      {
        id: WORKFLOW,
        state: { step: 'paid' },
        epoch: 2,
        leaseId: workflow.leaseId,
        isHeld: true,
        expiresInMs: expect.any(Number),
        unresolved: 0,
        ...{ ...at, instance, run: null },
      },
    ]);
    const second = await ask('GET', `/api/v3/workflows?limit=2&cursor=${first.json.cursor}`);
    expect(second.json.workflows.map(({ id }: { id: string }) => id)).toEqual(['z']);
    expect(second.json).not.toHaveProperty('cursor');
  });

  it('are shown with what has happened to them, the latest first', async () => {
    const { ask, workflow } = await operatingWorld();
    const { json } = await ask('GET', `/api/v3/workflows/${WORKFLOW}`, { token: 'read' });
    expect(json).toMatchObject({ id: WORKFLOW, epoch: 2, leaseId: workflow.leaseId });
    expect(json.steps.map(({ kind }: { kind: string }) => kind)).toEqual([
      'settled',
      'emitted',
      'updated',
      'claimed',
    ]);
    expect(json.steps[0]).toMatchObject({
      at: expect.any(Number),
      epoch: 2,
      leaseId: workflow.leaseId,
      facts: { target: 'mailer', outcome: 'dead' },
    });
  });

  it('lose their tenure to an administrator', async () => {
    const { ask, holdfast, workflow } = await operatingWorld();
    const revoke = (id: string) =>
      ask('POST', `/api/v3/workflows/${id}/revoke`, { body: { reason: 'stuck' } });
    const { json } = await revoke(WORKFLOW);
    expect(json).toEqual({ workflow: WORKFLOW, revoked: true, leaseId: workflow.leaseId });
    expect((await holdfast.workflows.get(WORKFLOW))?.leaseId).toBeNull();
    expect((await revoke(WORKFLOW)).json).toMatchObject({ revoked: false, leaseId: null });
    expect((await revoke('nothing')).json.code).toBe('NOT_FOUND');
  });

  it.each(['nothing', '__proto__'])('are not found as %s', async (id) => {
    const { ask } = await operatingWorld();
    expect((await ask('GET', `/api/v3/workflows/${id}`)).json.code).toBe('NOT_FOUND');
  });

  it.each(['cursor=', 'cursor=%00', 'cursor=AAAA', 'limit=0', 'state=x'])(
    'are not listed for ?%s',
    async (search) => {
      const { ask, calls } = await operatingWorld();
      expect((await ask('GET', `/api/v3/workflows?${search}`)).status).toBe(400);
      expect(calls).toEqual([]);
    },
  );
});

describe('dead letters', () => {
  it('are listed, without anything secret', async () => {
    const { ask, letter } = await operatingWorld();
    const { json, text } = await ask('GET', '/api/v3/deadletters', { token: 'read' });
    expect(json.deadLetters).toEqual([
      {
        id: letter,
        workflow: WORKFLOW,
        type: 'SEND',
        tries: 1,
        reason: expect.stringContaining('no answer'),
        diedAt: expect.any(String),
      },
    ]);
    expect(text).not.toContain('canary');
  });

  it('are tried again, or dropped; each once', async () => {
    for (const verb of ['retry', 'drop']) {
      const { ask, letter } = await operatingWorld();
      const act = () => ask('POST', `/api/v3/deadletters/${letter}/${verb}`);
      const done = verb === 'retry' ? { workflow: WORKFLOW } : { dropped: true };
      expect((await act()).json).toEqual({ id: letter, ...done });
      expect((await act()).json.code).toBe('NOT_FOUND');
      expect((await ask('GET', '/api/v3/deadletters')).json).toEqual({ deadLetters: [] });
    }
  });

  it.each(['%7Bx%7D/1', 'mailer/%00', `mailer/${'x'.repeat(300)}`, '%80/1'])(
    'are not looked for as %.20s',
    async (id) => {
      const { ask, calls } = await operatingWorld();
      expect((await ask('POST', `/api/v3/deadletters/${id}/drop`)).status).toBe(400);
      expect(calls).toEqual([]);
    },
  );
});

describe('slots', () => {
  it('are those of the worker, with who has them', async () => {
    const { ask, holdfast } = await operatingWorld();
    expect((await ask('GET', '/api/v3/slots')).json).toEqual({ slots: [] });
    const { pools } = holdfast.worker({ resources: { tuners: 3 } });
    const [pool] = pools;
    const first = await pool?.acquire({ holder: 'worker-1/session-7' });
    await pool?.acquire({ holder: 'ana' });
    if (first?.ok !== true) throw new Error('not granted');
    const { json } = await ask('GET', '/api/v3/slots', { token: 'read' });
    const held = { state: 'held', fence: String(first.lease.fence), expiresInMs: 30_000 };
    expect(json.slots).toMatchObject([
      { pool: 'tuners', slot: '1', worker: 'worker-1', session: 'session-7', ...held },
      { pool: 'tuners', slot: '2', state: 'held', worker: 'ana', session: null },
      { slot: '3', state: 'free', worker: null, session: null, fence: '0', expiresInMs: null },
    ]);
  });
});

describe('a stage', () => {
  it('shows its actors, and does with them what an administrator wants', async () => {
    const { ask, stage } = await operatingWorld();
    const { json } = await ask('GET', '/api/v3/stage', { token: 'read' });
    expect(json.actors).toMatchObject([
      { name: 'ada', state: 'running', pid: 7 },
      { name: 'bob', state: 'dead', instance: null, pid: null },
    ]);
    const frozen = await ask('POST', '/api/v3/stage/ada/freeze');
    expect(frozen.json.actors[0]).toMatchObject({ name: 'ada', state: 'frozen' });
    expect(stage.told).toEqual([['ada', 'freeze']]);
  });

  it('has nobody do what makes no sense, and knows no others', async () => {
    const { ask, stage } = await operatingWorld();
    for (const path of ['ada/thaw', 'ada/start', 'bob/kill', 'bob/freeze'])
      expect((await ask('POST', `/api/v3/stage/${path}`)).json.code).toBe('CONFLICT');
    expect((await ask('POST', '/api/v3/stage/eve/kill')).json.code).toBe('NOT_FOUND');
    expect((await ask('POST', '/api/v3/stage/ada/eat')).status).toBe(404);
    expect(stage.told).toEqual([]);
  });
});

describe('GET /api/v3/doctor', () => {
  it('says how the store and the fleet are', async () => {
    const { ask, clock } = await operatingWorld();
    const { status, json } = await ask('GET', '/api/v3/doctor', { token: 'read' });
    expect(status).toBe(200);
    expect(json).toMatchObject({ store: 'memory:', at: clock.wallMs(), clock: null });
    expect(json.roundTrip).toMatchObject({ reads: 100 });
    const unknown = { marginMs: null, renewP99Ms: null, ttlMs: null, loopDelayMs: null };
    expect(json.members).toEqual([{ id: MEMBER, ...unknown }]);
    const targets = json.findings.find(({ subject }: { subject: string }) => subject === 'targets');
    expect(targets).toEqual({
      level: 'ok',
      subject: 'targets',
      fact: 'Each of 1 targets has an owner.',
    });
  });

  it('leaves no trace, and asks the store once for all who want to know within two seconds', async () => {
    const { ask, calls, clock, holdfast } = await operatingWorld();
    const acquired: unknown[] = [];
    holdfast.on('lease.acquired', (facts) => acquired.push(facts));
    await Promise.all([1, 2, 3].map(() => ask('GET', '/api/v3/doctor')));
    expect(calls.filter((call) => call === 'leases.read').length).toBeLessThan(110);
    calls.length = 0;
    await clock.advance(1_900);
    await ask('GET', '/api/v3/doctor');
    expect(calls.filter((call) => call === 'members.list')).toEqual([]);
    await clock.advance(200);
    await ask('GET', '/api/v3/doctor');
    expect(calls).toContain('members.list');
    expect(acquired).toEqual([]);
  });

  it('asks again after it failed', async () => {
    const { ask, faults } = await operatingWorld();
    faults.refuse = true;
    expect((await ask('GET', '/api/v3/doctor')).json.code).toBe('STORE_UNAVAILABLE');
    faults.refuse = false;
    expect((await ask('GET', '/api/v3/doctor')).status).toBe(200);
  });
});

describe('what is of no tenant', () => {
  it.each([
    '/api/v3/fleet',
    '/api/v3/fleet/live',
    `/api/v3/targets/${TARGET}`,
    '/api/v3/workflows',
    '/api/v3/deadletters',
    '/api/v3/slots',
    '/api/v3/doctor',
    '/api/v3/stage',
    `/api/v3/leases/${LEASE}`,
  ])('is not for those of one: %s', async (path) => {
    const { ask, calls } = await operatingWorld();
    const got = await ask('GET', path, { token: 'acme' });
    expect([got.status, got.json.code]).toEqual([403, 'FORBIDDEN']);
    expect(calls).toEqual([]);
  });
});
