import { describe, expect, it } from 'vitest';
import { createApp } from '../../src/server/app.ts';
import { serverWorld, TOKENS } from '../support/server-world.ts';

describe('/healthz', () => {
  it('says that the process serves, to everybody, and asks no store', async () => {
    const { ask, calls, faults } = await serverWorld();
    faults.hang = true;
    const got = await ask('GET', '/healthz', { token: null });
    expect([got.status, got.json]).toEqual([200, { alive: true }]);
    expect(calls).toEqual([]);
  });
});

describe('/readyz', () => {
  it('is fine when nothing is wrong', async () => {
    const { ask } = await serverWorld();
    const got = await ask('GET', '/readyz', { token: null });
    expect([got.status, got.json]).toEqual([200, { ready: true }]);
  });

  it('asks the store once a second, however many ask', async () => {
    const { ask, calls, clock } = await serverWorld();
    const all = Array.from({ length: 1_000 }, () => ask('GET', '/readyz', { token: null }));
    expect(new Set((await Promise.all(all)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(calls).toHaveLength(1);
    await clock.advance(999);
    await ask('GET', '/readyz');
    expect(calls).toHaveLength(1);
    await clock.advance(1);
    await ask('GET', '/readyz');
    expect(calls).toHaveLength(2);
  });

  it('says why not when the store is away, and comes back by itself', async () => {
    const { ask, clock, faults } = await serverWorld();
    faults.refuse = true;
    const got = await ask('GET', '/readyz');
    expect(got.status).toBe(503);
    expect(got.headers.get('retry-after')).toBe('1');
    expect(got.json).toMatchObject({
      code: 'NOT_READY',
      reasons: ['the store is unreachable'],
    });
    faults.refuse = false;
    await clock.advance(1_000);
    expect((await ask('GET', '/readyz')).status).toBe(200);
  });

  it('I-05 says that a secret is missing which others have, and nothing is accepted or written until it is there', async () => {
    const { ask, holdfast, store } = await serverWorld();
    const intent = { type: 'stream.start', serviceRef: 'a' };
    expect((await ask('POST', '/api/v3/intents', { token: 'write', body: intent })).status).toBe(
      202,
    );
    const app = createApp(holdfast, { tokens: Object.values(TOKENS), intents: holdfast.intents() });
    const send = (path: string, init?: RequestInit) =>
      app.fetch(new Request(`http://localhost${path}`, init));
    const refused = await send('/api/v3/intents', {
      method: 'POST',
      body: JSON.stringify(intent),
      headers: {
        authorization: `Bearer ${TOKENS.write.token}`,
        'content-type': 'application/json',
      },
    });
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'NOT_READY' }]);
    const ready = await send('/readyz');
    expect(await ready.json()).toMatchObject({
      status: 503,
      reasons: [expect.stringContaining('HOLDFAST_IDEM_SECRET')],
    });
    expect((await store.intents.list({ timeoutMs: 1_000 })).sessions).toHaveLength(1);
  });

  it('waits a second for a store that hangs, asks it no second time meanwhile, and leaves no timer', async () => {
    const { ask, calls, clock, faults } = await serverWorld();
    const idle = clock.pendingTimers;
    faults.hang = true;
    const waiting = [ask('GET', '/readyz'), ask('GET', '/readyz')];
    await clock.advance(999);
    const late = ask('GET', '/readyz');
    await clock.advance(1);
    const reasons = ['the store did not answer within 1000 ms'];
    for (const got of await Promise.all([...waiting, late]))
      expect(got.json).toMatchObject({ status: 503, reasons });
    expect((await ask('GET', '/readyz')).json).toMatchObject({ reasons });
    expect(calls).toHaveLength(1);
    faults.hang = false;
    await clock.advance(4_500);
    expect((await ask('GET', '/readyz')).json.reasons).toEqual(['the store is unreachable']);
    await clock.advance(1_000);
    expect((await ask('GET', '/readyz')).status).toBe(200);
    expect(clock.pendingTimers).toBe(idle);
  });

  it('says all that is wrong: what others add, and that it closes', async () => {
    const { app, ask } = await serverWorld();
    let isStopped = true;
    const takeBack = app.readiness.add('poller', () =>
      isStopped ? 'its poller has stopped' : null,
    );
    const reasons = async () => (await ask('GET', '/readyz')).json.reasons;
    expect(await reasons()).toEqual(['its poller has stopped']);
    isStopped = false;
    expect(await reasons()).toBeUndefined();
    isStopped = true;
    await app.close();
    expect(await reasons()).toEqual(['this instance is closing', 'its poller has stopped']);
    takeBack();
    expect(await reasons()).toEqual(['this instance is closing']);
  });

  it('fails while the poller of this instance cannot see the fleet', async () => {
    const { ask, clock, faults, holdfast } = await serverWorld();
    const poller = holdfast.poller({ targets: [], poll: async () => null });
    await poller.start();
    faults.refuse = true;
    await clock.advance(60_000);
    faults.refuse = false;
    const got = await ask('GET', '/readyz');
    expect(got.json.reasons).toContain('its poller cannot see the fleet');
    await clock.advance(60_000);
    expect((await ask('GET', '/readyz')).status).toBe(200);
    const stopping = poller.stop();
    await clock.advance(10_000);
    await stopping;
  });
});

describe('/readyz of an instance with a worker', () => {
  it('fails while the worker cannot read sessions', async () => {
    const { ask, clock, faults, holdfast } = await serverWorld();
    const worker = holdfast.worker();
    await worker.start();
    faults.refuse = true;
    await clock.advance(10_000);
    faults.refuse = false;
    const got = await ask('GET', '/readyz');
    expect(got.json.reasons).toContain('its worker cannot read sessions');
    await clock.advance(60_000);
    expect((await ask('GET', '/readyz')).status).toBe(200);
    const stopping = worker.stop();
    await clock.advance(10_000);
    await stopping;
  });
});

describe('/metrics', () => {
  it('counts what happens, by the names of the catalogue', async () => {
    const { ask, clock, holdfast } = await serverWorld();
    await holdfast.acquire('a');
    await holdfast.acquire('b');
    await holdfast.acquire('b');
    await clock.advance(10_000);
    const { text, headers } = await ask('GET', '/metrics', { token: 'read' });
    expect(headers.get('content-type')).toMatch(/^text\/plain; version=/);
    expect(text).toContain('holdfast_events_total{event="lease.acquired"} 2');
    expect(text).toContain('holdfast_events_total{event="lease.refused"} 1');
    expect(text).toContain('holdfast_events_total{event="lease.extended"} 2');
    expect(text).toContain('holdfast_events_total{event="workflow.violation"} 0');
    expect(text).toContain('holdfast_leases_held{class="lease"} 2');
    expect(text).toMatch(/holdfast_build_info\{version="\d+\.\d+\.\d+"\} 1/);
    expect(text).toMatch(/holdfast_process_resident_memory_bytes \d+/);
  });

  it('counts intents by what came of them', async () => {
    const { ask } = await serverWorld();
    const body = { type: 'stream.start', serviceRef: 'x' };
    for (let i = 0; i < 3; i++) await ask('POST', '/api/v3/intents', { body });
    const { text } = await ask('GET', '/metrics');
    expect(text).toContain('holdfast_intents_total{type="stream.start",result="accepted"} 1');
    expect(text).toContain('holdfast_intents_total{type="stream.start",result="replayed"} 2');
  });

  it('counts sessions that have ended, by the reason', async () => {
    const { ask } = await serverWorld();
    const body = { type: 'stream.start', serviceRef: 'x' };
    const { sessionId } = (await ask('POST', '/api/v3/intents', { body })).json;
    await ask('POST', '/api/v3/intents', { body: { type: 'stream.stop', sessionId } });
    const { text } = await ask('GET', '/metrics');
    expect(text).toContain('holdfast_sessions_ended_total{reason="R_STOPPED"} 1');
    expect(text).toContain('holdfast_sessions_ended_total{reason="R_NO_TUNER"} 0');
  });

  it('shows how many sessions the worker of this instance has in hands', async () => {
    const { ask, clock, holdfast } = await serverWorld();
    const running = async () =>
      /^holdfast_sessions_running (\d+)$/m.exec((await ask('GET', '/metrics')).text)?.[1];
    expect(await running()).toBe('0');
    const run = (_: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    const worker = holdfast.worker({ pipelines: { live: run } });
    await worker.start();
    const body = { type: 'stream.start', serviceRef: 'x' };
    await ask('POST', '/api/v3/intents', { body });
    await clock.advance(2_000);
    expect(await running()).toBe('1');
    const stopping = worker.stop();
    await clock.advance(10_000);
    await stopping;
    expect(await running()).toBe('0');
  });

  it('counts requests by route, never by a path that a client made up', async () => {
    const { ask } = await serverWorld();
    await ask('GET', '/api/v3/sessions/secret-id');
    await ask('GET', '/api/v3/sessions', { token: null });
    for (let i = 0; i < 20; i++) await ask(`MADEUP${i}`, `/made/up/${i}?x=canary`);
    const { text } = await ask('GET', '/metrics');
    const counted = (labels: string) => `holdfast_http_requests_total{${labels}}`;
    expect(text).toContain(
      counted('route="/api/v3/sessions/{id}",method="GET",status="404"').concat(' 1'),
    );
    expect(text).toContain(counted('route="/api/v3/sessions",method="GET",status="401"'));
    expect(text).toContain(counted('route="none",method="other",status="404"').concat(' 20'));
    expect(text).toMatch(/holdfast_http_request_duration_seconds_bucket\{le="0.001",route=/);
    expect(text).not.toMatch(/secret-id|MADEUP|\/made\/|canary/);
  });

  it('is for those with a token of no tenant, unless it is open', async () => {
    const { ask } = await serverWorld();
    expect((await ask('GET', '/metrics', { token: null })).status).toBe(401);
    expect((await ask('GET', '/metrics', { token: 'acme' })).status).toBe(403);
    const open = await serverWorld({ metrics: 'open' });
    expect((await open.ask('GET', '/metrics', { token: null })).status).toBe(200);
  });

  it('counts nothing once its app is closed, whatever else the process does', async () => {
    const { app, ask, holdfast } = await serverWorld();
    await app.close();
    await holdfast.acquire('a');
    const { text } = await ask('GET', '/metrics');
    expect(text).toContain('holdfast_events_total{event="lease.acquired"} 0');
  });
});
