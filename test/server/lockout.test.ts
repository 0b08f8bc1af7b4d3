import { describe, expect, it } from 'vitest';
import { requestOf, serverWorld, type TokenName } from '../support/server-world.ts';

const START = { type: 'stream.start', serviceRef: '1:0:19' };

/** A request whose body has begun, and does not go on until it is told to. */
function slowly(token: TokenName) {
  let finish = () => {};
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const text = new TextEncoder().encode(JSON.stringify(START));
      controller.enqueue(text.subarray(0, 1));
      finish = () => {
        controller.enqueue(text.subarray(1));
        controller.close();
      };
    },
  });
  return { request: requestOf('POST', '/api/v3/intents', { token, body }), finish: () => finish() };
}

describe('one token that sends slowly', () => {
  it('I-03 keeps no other token out, nor its own questions, and only its own bodies wait', async () => {
    const { app, ask } = await serverWorld({ limits: { inFlight: 3 } });
    const slow = [slowly('write'), slowly('write'), slowly('write')];
    const answers = slow.map(({ request }) => app.fetch(request));
    await new Promise((resolve) => setImmediate(resolve));
    expect((await ask('POST', '/api/v3/intents', { token: 'acme', body: START })).status).toBe(202);
    expect((await ask('GET', '/api/v3/sessions', { token: 'write' })).status).toBe(200);
    const more = await ask('POST', '/api/v3/intents', { token: 'write', body: START });
    expect([more.status, more.json.code]).toEqual([429, 'TOO_MANY_REQUESTS']);
    for (const { finish } of slow) finish();
    for (const answer of answers) expect((await answer).status).toBe(202);
    expect((await ask('POST', '/api/v3/intents', { token: 'write', body: START })).status).toBe(
      202,
    );
  });
});

describe('a token without a tenant that is no administrator', () => {
  it('I-14 does not learn the ids of other tenants’ sessions from leases or events', async () => {
    const { ask, clock, holdfast, intents } = await serverWorld({ history: 'on' });
    const start = async (serviceRef: string, tenant: string) => {
      const intent = { type: 'stream.start', serviceRef } as const;
      return (await intents.submit(intent, { tenant, client: 'c' })).session.id;
    };
    const acme = await start('1:0:1', 'acme');
    const own = await start('1:0:2', 'default');
    await holdfast.acquire('service:1:0:1', { holder: `w/${acme}`, class: 'resource' });
    await holdfast.acquire('service:1:0:2', { holder: `w/${own}`, class: 'resource' });
    await holdfast.acquire('device', { holder: 'w/a' });
    await clock.advance(1_000);
    const paths = ['/api/v3/leases', '/api/v3/leases/service:1:0:1', '/api/v3/history'];
    for (const path of [...paths, '/api/v3/slots', '/api/v3/sessions']) {
      const read = await ask('GET', path, { token: 'read' });
      expect([path, read.status, read.text.includes(acme)]).toEqual([path, 200, false]);
    }
    const { json, text } = await ask('GET', '/api/v3/leases', { token: 'read' });
    const holders = json.leases.map(({ holder }: { holder: string }) => holder);
    expect(holders.sort()).toEqual(['w/a', `w/${own}`, 'w/…'].sort());
    expect(text).not.toContain(acme);
    expect((await ask('GET', '/api/v3/leases')).text).toContain(acme);
    expect((await ask('GET', '/api/v3/history')).text).toContain(`w/${acme}`);
  });
});

describe('a place in the history', () => {
  it.each(['garbage', '-', 'abc-1', '1-2-3'])('%s is no place, and refused', async (before) => {
    const { ask } = await serverWorld({ history: 'on' });
    const { status, json } = await ask('GET', `/api/v3/history?before=${before}`);
    expect([status, json.errors?.[0]?.field]).toEqual([400, 'before']);
  });

  it('that the log has forgotten is one with nothing before it', async () => {
    const { ask } = await serverWorld({ history: 'on' });
    expect((await ask('GET', '/api/v3/history?before=1')).json).toEqual({ events: [] });
  });
});
