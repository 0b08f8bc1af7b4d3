import { describe, expect, it } from 'vitest';
import { OperatorClient } from '../../src/client/index.ts';
import type { Events } from '../../src/core/events.ts';
import type { Orchestrator } from '../../src/workflow/orchestrator.ts';
import { serverWorld, TOKENS } from '../support/server-world.ts';
// The memory store loads it on first use, which takes longer than a clock that is stepped will wait.
import '../../src/store/memory/tables.ts';

const HOSTILE = '<script>alert(1)</script>';

/** A function that does what its input says, run by the instance that serves the API. */
async function runs(ids: readonly string[]) {
  const world = await serverWorld({ history: 'on' });
  const { holdfast, clock } = world;
  const code = async (order: Orchestrator, input: { mode: string }) => {
    await order.step('reserve', () => ({ note: HOSTILE }));
    if (input.mode === 'sleep') await order.sleep('review', '3d');
    if (input.mode === 'signal') await order.waitFor('delivered', { timeout: '14d' });
    if (input.mode === 'any') await order.waitFor('approved');
    if (input.mode === 'call') await order.call('SHIP', { to: 'x' }, { to: 'warehouse' });
    if (input.mode === 'large') return 'x'.repeat(50_000);
    if (input.mode === 'fail') throw new Error('no answer from https://ada:canary@bank/');
    return { mode: input.mode };
  };
  const fn = holdfast.workflow('fulfil', code, { retry: { tries: 1 } });
  for (const mode of ids) await fn.start(mode, { mode });
  await fn.run();
  await clock.advance(1_000);
  return { ...world, fn };
}

const idsOf = (json: { workflows: { id: string }[] }) => json.workflows.map(({ id }) => id);

describe('runs of workflow functions', () => {
  it('are listed with what each does', async () => {
    const { ask, holdfast } = await runs(['any', 'fail', 'ok', 'signal', 'sleep']);
    const { json, text } = await ask('GET', '/api/v3/workflows', { token: 'read' });
    const all = json.workflows as { id: string; run: object; instance: string }[];
    expect(all.every(({ instance }) => instance === holdfast.instanceId)).toBe(true);
    const [any, fail, ok, signal, sleep] = all.map(({ run }) => run);
    const common = { function: 'fulfil', tries: 0, error: null };
    expect(any).toEqual({
      ...{ ...common, phase: 'suspended', dueInMs: null },
      waits: [{ kind: 'signal', name: 'approved', until: null }],
    });
    expect(fail).toMatchObject({
      ...{ phase: 'failed', tries: 1, waits: [] },
      error: 'no answer from https://***@bank/',
    });
    expect(ok).toEqual({ ...common, phase: 'done', dueInMs: null, waits: [] });
    expect(signal).toMatchObject({ phase: 'suspended', dueInMs: expect.any(Number) });
    expect(sleep).toMatchObject({ waits: [{ kind: 'sleep', name: 'review' }] });
    expect(text).not.toContain('canary');
  });

  it('can be those of one function, or in some phases, page by page', async () => {
    const { ask, holdfast } = await runs(['any', 'fail', 'ok', 'sleep']);
    await holdfast.workflows.start('bill', 'another', null);
    await (await holdfast.workflows.claim('explicit')).release();
    const list = async (search: string) => (await ask('GET', `/api/v3/workflows?${search}`)).json;
    expect(idsOf(await list('function=bill'))).toEqual(['another']);
    expect(idsOf(await list('phase=suspended'))).toEqual(['any', 'sleep']);
    expect(idsOf(await list('phase=failed,done&function=fulfil'))).toEqual(['fail', 'ok']);
    const first = await list('phase=suspended&limit=1');
    expect(idsOf(first)).toEqual(['any']);
    const second = await list(`phase=suspended&limit=1&cursor=${first.cursor}`);
    expect(idsOf(second)).toEqual(['sleep']);
    expect(second).not.toHaveProperty('cursor');
  });

  it.each(['phase=x', 'phase=', 'function=', 'function=a%20b', 'function=a&function=b'])(
    'are not listed for ?%s',
    async (search) => {
      const { ask, calls } = await serverWorld();
      expect((await ask('GET', `/api/v3/workflows?${search}`)).status).toBe(400);
      expect(calls).toEqual([]);
    },
  );

  it('B-20 are shown with their steps, failed tries, waits and values', async () => {
    const { ask, holdfast } = await runs(['signal']);
    await holdfast.workflows.signal('signal', 'other', HOSTILE);
    const { json } = await ask('GET', '/api/v3/workflows/signal', { token: 'read' });
    expect(json.run).toMatchObject({
      function: 'fulfil',
      input: { bytes: 17, text: '{"mode":"signal"}', isCut: false },
      result: null,
      signals: [{ name: 'other', value: { text: JSON.stringify(HOSTILE) } }],
    });
    expect(json.run.steps).toMatchObject([
      {
        ...{ name: 'reserve', kind: 'step', state: 'done', tries: 1, failed: [] },
        ...{
          tookMs: 0,
          at: expect.any(Number),
          value: { text: JSON.stringify({ note: HOSTILE }) },
        },
      },
      {
        ...{ name: 'delivered', kind: 'signal', state: 'waiting', signal: 'delivered' },
        ...{ until: expect.any(Number), value: null },
      },
    ]);
  });

  it('B-20 show a wait without a limit, which is no step yet', async () => {
    const { ask } = await runs(['any']);
    const { json } = await ask('GET', '/api/v3/workflows/any');
    expect(json.run.steps.at(-1)).toMatchObject({
      ...{ name: 'approved', kind: 'signal', state: 'waiting', at: null, until: null },
    });
  });

  it('B-20 show a call with its type, size, failed tries and error', async () => {
    const { ask, holdfast, clock } = await runs(['call']);
    const get = async () => (await ask('GET', '/api/v3/workflows/call')).json;
    expect((await get()).run.steps[1]).toMatchObject({
      ...{ name: 'SHIP', kind: 'call', state: 'running', tookMs: null },
      ...{ action: { type: 'SHIP', target: 'warehouse', bytes: 10 } },
    });
    const SHIP = () => {
      throw new Error('no truck');
    };
    const options = { name: 'warehouse', role: 'effect', handlers: { SHIP }, tries: 2 } as const;
    const processor = await holdfast.processor(options).start();
    await clock.advance(10_000);
    await processor?.stop();
    expect((await get()).run.steps[1]).toMatchObject({
      ...{ state: 'dead', tries: 2, error: 'no truck', tookMs: expect.any(Number) },
      failed: [{ tries: 1, error: 'no truck', at: expect.any(Number) }],
    });
  });

  it('B-20 show the result of a call, cut off if it is long', async () => {
    const { ask, holdfast, clock } = await runs(['call']);
    const get = async () => (await ask('GET', '/api/v3/workflows/call')).json.run.steps[1];
    expect(await get()).toMatchObject({ name: 'SHIP', state: 'running', result: null });
    const SHIP = () => 'x'.repeat(2_000);
    const options = { name: 'warehouse', role: 'effect', handlers: { SHIP } } as const;
    const processor = await holdfast.processor(options).start();
    await clock.advance(10_000);
    await processor?.stop();
    const step = await get();
    expect(step).toMatchObject({ state: 'done', tries: 1, result: { bytes: 2_002, isCut: true } });
    expect(step.result.text).toHaveLength(500);
    expect(step.value).toMatchObject({ text: '{"to":"x"}', isCut: false });
  });

  it('cut off what is long, and say how long it is', async () => {
    const { ask } = await runs(['large']);
    const { json } = await ask('GET', '/api/v3/workflows/large');
    expect(json.run.result).toMatchObject({ bytes: 50_002, isCut: true });
    expect(json.run.result.text).toHaveLength(16_384);
  });

  it('have events of their own in the history', async () => {
    const { ask, clock } = await runs(['ok', 'fail']);
    await clock.advance(1_000);
    const { json } = await ask('GET', '/api/v3/history?workflow=ok');
    const events = json.events as { event: string; workflow: string }[];
    expect(events.map(({ event }) => event)).toContain('workflow.completed');
    expect(events.every(({ workflow }) => workflow === 'ok')).toBe(true);
  });
});

describe('the client', () => {
  it('lists, shows, signals and restarts as the server understands it', async () => {
    const { app, clock, holdfast } = await runs(['any', 'fail', 'ok']);
    const { token } = TOKENS.admin;
    const client = new OperatorClient({
      ...{ url: 'http://localhost', token },
      fetch: async (input, init) => app.fetch(new Request(input, init)),
    });
    const { workflows } = await client.workflows({ phase: ['failed', 'done'], function: 'fulfil' });
    expect(workflows.map(({ id, run }) => [id, run?.phase])).toEqual([
      ['fail', 'failed'],
      ['ok', 'done'],
    ]);
    const page = await client.workflows({ limit: 1 });
    expect((await client.workflows({ limit: 1, cursor: page.cursor })).workflows[0]?.id).toBe(
      'fail',
    );
    await client.signalWorkflow('any', { name: 'approved', value: [1] });
    await clock.advance(2_000);
    const { run } = await client.workflow('any');
    expect(run?.steps.at(-1)).toMatchObject({ state: 'done', value: { text: '[1]' } });
    await client.restartWorkflow('fail');
    await expect(client.restartWorkflow('ok')).rejects.toMatchObject({ status: 409 });
    await expect(client.signalWorkflow('no', { name: 'x' })).rejects.toMatchObject({ status: 404 });
    await clock.advance(2_000);
    const { events } = await client.history({ workflow: 'any', event: 'workflow.completed' });
    expect(events).toMatchObject([{ workflow: 'any', instance: holdfast.instanceId }]);
  });
});

describe('POST /api/v3/workflows/{id}/signal', () => {
  const path = (id: string) => `/api/v3/workflows/${id}/signal`;

  it('B-18 sends a signal that the function receives, and is told of', async () => {
    const { ask, clock, holdfast } = await runs(['any']);
    const acts: Events['operator.acted'][] = [];
    holdfast.on('operator.acted', (act) => acts.push(act));
    const body = { name: 'approved', value: { by: 'ada' } };
    const { json } = await ask('POST', path('any'), { token: 'write', body });
    expect(json).toEqual({ workflow: 'any', signal: 'approved', kept: true });
    expect(acts).toMatchObject([{ action: 'workflow.signal', subject: 'any', by: 'api:writer' }]);
    await clock.advance(2_000);
    expect((await holdfast.workflows.get('any'))?.run?.phase).toBe('done');
    const late = await ask('POST', path('any'), { body });
    expect([late.status, late.json.code]).toEqual([409, 'CONFLICT']);
    expect(acts).toHaveLength(1);
  });

  it('finds no workflow that is not there', async () => {
    const { ask } = await serverWorld();
    const got = await ask('POST', path('nothing'), { body: { name: 'x' } });
    expect([got.status, got.json.code]).toEqual([404, 'NOT_FOUND']);
  });

  it.each([{}, { name: '' }, { name: 'a b' }, { name: 'x', more: 1 }, { value: 1 }])(
    'refuses %j before the store is asked',
    async (body) => {
      const { ask, calls } = await serverWorld();
      expect((await ask('POST', path('w'), { body })).status).toBe(400);
      expect(calls).toEqual([]);
    },
  );

  it('is not for who may only read', async () => {
    const { ask, calls } = await serverWorld();
    const sent = { token: 'read', body: { name: 'x' } } as const;
    expect((await ask('POST', path('w'), sent)).status).toBe(403);
    expect(calls).toEqual([]);
  });
});

describe('POST /api/v3/workflows/{id}/restart', () => {
  const path = (id: string) => `/api/v3/workflows/${id}/restart`;

  it('B-19 runs a failed function again, and nothing else', async () => {
    const { ask, holdfast, fn } = await runs(['fail', 'any']);
    await fn.stop();
    const acts: Events['operator.acted'][] = [];
    holdfast.on('operator.acted', (act) => acts.push(act));
    expect((await ask('POST', path('fail'))).json).toEqual({ workflow: 'fail', restarted: true });
    expect(acts).toMatchObject([{ action: 'workflow.restart', subject: 'fail' }]);
    expect((await holdfast.workflows.get('fail'))?.run).toMatchObject({
      phase: 'retrying',
      dueInMs: 0,
    });
    for (const id of ['fail', 'any']) expect((await ask('POST', path(id))).status).toBe(409);
    expect((await ask('POST', path('nothing'))).status).toBe(404);
    expect(acts).toHaveLength(1);
  });

  it('is for administrators', async () => {
    const { ask, calls } = await serverWorld();
    expect((await ask('POST', path('w'), { token: 'write' })).status).toBe(403);
    expect(calls).toEqual([]);
  });
});
