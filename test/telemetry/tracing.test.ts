import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { untraced } from '../../src/core/tracing.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
// The memory store loads it on first use, which takes longer than a clock that is stepped will wait.
import '../../src/store/memory/tables.ts';
import { findTracing } from '../../src/telemetry/open-telemetry.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { readSource } from '../support/source-tree.ts';

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
const program = trace.getTracer('a program');

beforeEach(() => exporter.reset());
afterAll(async () => {
  await provider.shutdown();
  trace.disable();
  context.disable();
});

async function world() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const enter = (name: string) => open(store, { clock, name, history: 'off' });
  return { clock, store, enter, holdfast: await enter('ana') };
}

const named = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);
const parentOf = ({ parentSpanContext }: ReadableSpan) => parentSpanContext?.spanId;
const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId;

/** Everything, stepped until it is over. */
async function close(clock: FakeClock, ...all: Holdfast[]) {
  const closing = Promise.all(all.map((one) => one.close()));
  await clock.advance(60_000);
  await closing;
}

describe('a lease', () => {
  it('that was granted, or refused, is a span: contention is no error', async () => {
    const { holdfast } = await world();
    const got = await holdfast.acquire('a');
    await holdfast.acquire('a');
    const [granted, refused] = named('holdfast.acquire');
    const fence = got.ok ? got.lease.fence : 0;
    expect(granted?.attributes).toMatchObject({
      'holdfast.key': 'a',
      'holdfast.class': 'lease',
      'holdfast.outcome': 'granted',
      'holdfast.fence': fence,
    });
    const holder = got.ok ? got.lease.holder : '';
    expect(refused?.attributes).toMatchObject({
      'holdfast.outcome': 'refused',
      'holdfast.reason': 'held',
      'holdfast.holder': holder,
    });
    expect(refused?.status.code).toBe(SpanStatusCode.UNSET);
  });

  it('is part of what the program traces, with the wait for it, and the work under it is part of the lease', async () => {
    const { clock, holdfast } = await world();
    const first = await holdfast.acquire('a');
    exporter.reset();
    let inside: string | undefined;
    const working = program.startActiveSpan('request', async (request) => {
      const work = () => {
        inside = trace.getActiveSpan()?.spanContext().spanId;
      };
      await holdfast.withLease('a', work, { wait: '10s' });
      request.end();
    });
    await clock.advance(1_000);
    expect(exporter.getFinishedSpans()).toEqual([]);
    if (first.ok) await first.lease.release();
    await clock.advance(1_000);
    await working;
    const [[lease], [acquire], [request]] = [
      named('holdfast.lease'),
      named('holdfast.acquire'),
      named('request'),
    ];
    expect(lease && parentOf(lease)).toBe(idOf(request));
    expect(acquire && parentOf(acquire)).toBe(idOf(lease));
    expect(inside).toBe(idOf(lease));
  });

  it('that is lost is an event of the span of its work, and what the work throws is its error', async () => {
    const { clock, enter, holdfast } = await world();
    const other = await enter('ben');
    const working = holdfast.withLease('a', ({ signal }) => {
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('stopped in the middle'))),
      );
    });
    const failed = expect(working).rejects.toThrow('stopped in the middle');
    await clock.advance(1);
    await other.revoke('a', { reason: 'test', force: true });
    await clock.advance(15_000);
    await failed;
    const [span] = named('holdfast.lease');
    expect(span?.events.map(({ name }) => name)).toEqual(['lease.lost', 'exception']);
    expect(span?.events[0]?.attributes).toMatchObject({
      'holdfast.key': 'a',
      'holdfast.reason': 'revoked',
    });
    expect(span?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'stopped in the middle' });
  });

  it('that was let go of is no loss, and several taken together are one span', async () => {
    const { holdfast } = await world();
    await holdfast.withLease('a', () => {});
    expect(named('holdfast.lease')[0]?.events).toEqual([]);
    await holdfast.acquireAll(['b', 'c']);
    expect(named('holdfast.acquire').map(({ attributes }) => attributes['holdfast.key'])).toEqual([
      'a',
      'b c',
    ]);
  });

  it('of a pool is one span, whatever the number of its slots', async () => {
    const { clock, holdfast } = await world();
    const pool = holdfast.pool('tuners', { slots: 3 });
    const all = await Promise.all([1, 2, 3].map(() => pool.acquire()));
    exporter.reset();
    const working = pool.withSlot(() => 'done', { wait: '5s' });
    await clock.advance(1_000);
    const [first] = all;
    if (first?.ok) await first.lease.release();
    await clock.advance(1_000);
    expect(await working).toBe('done');
    expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual([
      'holdfast.acquire',
      'holdfast.lease',
    ]);
    expect(named('holdfast.acquire')[0]?.attributes).toMatchObject({
      'holdfast.pool': 'tuners',
      'holdfast.outcome': 'granted',
    });
  });
});

describe('a poll', () => {
  it('runs inside its span, which belongs to no other, so that what it does itself is part of it', async () => {
    const { clock, holdfast } = await world();
    const poller = holdfast.poller({
      targets: [{ id: 't' }],
      every: '10s',
      poll: async () => program.startActiveSpan('GET', async (span) => span.end()),
    });
    // What happened to be active when it was started has nothing to do with its polls.
    await program.startActiveSpan('start', async (span) => {
      await poller.start();
      span.end();
    });
    await clock.advance(15_000);
    const [first, second] = named('holdfast.poll');
    expect(first && parentOf(first)).toBeUndefined();
    expect(first?.attributes).toMatchObject({ 'holdfast.target': 't' });
    expect(first?.attributes['holdfast.fence']).toBeGreaterThan(0);
    expect(named('GET').map(parentOf)).toEqual([idOf(first), idOf(second)]);
    // The lease of a target is not asked for by anybody who waits for it.
    expect(named('holdfast.acquire')).toEqual([]);
    await close(clock, holdfast);
  });

  it('that fails has its error', async () => {
    const { clock, holdfast } = await world();
    const poll = async () => {
      throw new Error('no answer');
    };
    await holdfast.poller({ targets: [{ id: 't' }], poll }).start();
    await clock.advance(100);
    const [span] = named('holdfast.poll');
    expect(span?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'no answer' });
    expect(span?.events.map(({ name }) => name)).toEqual(['exception']);
    await close(clock, holdfast);
  });

  it('that takes too long says so', async () => {
    const { clock, holdfast } = await world();
    const poll = (_: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await holdfast.poller({ targets: [{ id: 't' }], poll, timeout: '1s' }).start();
    await clock.advance(1_100);
    const [event] = named('holdfast.poll')[0]?.events ?? [];
    expect(event?.name).toBe('stopped');
    expect(event?.attributes?.['holdfast.why']).toContain('longer than 1 s');
    await close(clock, holdfast);
  });
});

it('a target that is handed over is a span of whoever gives it', async () => {
  const { clock, enter, holdfast } = await world();
  const options = { targets: [{ id: 'a' }, { id: 'b' }], poll: async () => null };
  await holdfast.poller(options).start();
  await clock.advance(1_000);
  const other = await enter('ben');
  await other.poller(options).start();
  await clock.advance(20_000);
  const [span, ...more] = named('holdfast.handover');
  expect(more).toEqual([]);
  expect(span?.attributes).toMatchObject({ 'holdfast.successor': other.instanceId });
  expect(span && parentOf(span)).toBeUndefined();
  expect(span?.status.code).toBe(SpanStatusCode.UNSET);
  await close(clock, holdfast, other);
});

it('an action is a span of whoever does it, linked to the one that it was emitted in', async () => {
  const { clock, enter, holdfast } = await world();
  const other = await enter('ben');
  const handlers = {
    CHARGE: async () => program.startActiveSpan('bank', async (span) => span.end()),
    FAIL: async () => {
      throw new Error('no');
    },
  };
  await other.processor({ name: 'billing', role: 'effect', handlers, tries: 1 }).start();
  await program.startActiveSpan('order', async (order) => {
    const flow = await holdfast.workflows.claim('order-7');
    await flow.emit('CHARGE', { total: 42 }, { target: 'billing' });
    await flow.emit('FAIL', {}, { target: 'billing' });
    order.end();
  });
  await clock.advance(5_000);
  const [charged, failed] = named('holdfast.emit');
  const [action, second] = named('holdfast.action');
  expect(named('holdfast.acquire')[0]?.attributes).toMatchObject({ 'holdfast.class': 'workflow' });
  expect(charged && parentOf(charged)).toBe(idOf(named('order')[0]));
  expect([charged?.kind, action?.kind]).toEqual([SpanKind.PRODUCER, SpanKind.CONSUMER]);
  expect(action && parentOf(action)).toBeUndefined();
  expect(action?.links.map((link) => link.context.spanId)).toEqual([idOf(charged)]);
  expect(action?.links[0]?.context.traceId).toBe(charged?.spanContext().traceId);
  expect(action?.attributes).toMatchObject({
    'holdfast.workflow': 'order-7',
    'holdfast.action_type': 'CHARGE',
    'holdfast.processor': 'billing',
    'holdfast.tries': 1,
    'holdfast.action': charged?.attributes['holdfast.action'],
  });
  expect(named('bank').map(parentOf)).toEqual([idOf(action)]);
  expect(second?.links.map((link) => link.context.spanId)).toEqual([idOf(failed)]);
  expect(second?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'no' });
  await close(clock, holdfast, other);
});

it('a session of a worker is a span, with its leases and its pipeline as parts, and what the pipeline traces in that', async () => {
  const { clock, holdfast } = await world();
  const run = async () => program.startActiveSpan('encode', async (span) => span.end());
  const worker = holdfast.worker({ resources: { tuners: 2 }, pipelines: { live: run } });
  await worker.start();
  const intents = holdfast.intents({ secret: 's'.repeat(32) });
  const requester = { tenant: 'default', client: 'c' };
  await intents.submit({ type: 'stream.start', serviceRef: 'x' }, requester);
  await clock.advance(5_000);
  const [[session], [pipeline], [inner]] = [
    named('holdfast.session'),
    named('holdfast.pipeline'),
    named('encode'),
  ];
  expect(session && parentOf(session)).toBeUndefined();
  expect(named('holdfast.acquire').map(parentOf)).toEqual([idOf(session), idOf(session)]);
  expect(pipeline && parentOf(pipeline)).toBe(idOf(session));
  expect(inner && parentOf(inner)).toBe(idOf(pipeline));
  expect(pipeline?.attributes).toMatchObject({
    'holdfast.kind': 'live',
    'holdfast.outcome': 'completed',
    'holdfast.slot': 'tuner:1',
    'holdfast.session': session?.attributes['holdfast.session'],
  });
  await close(clock, holdfast);
});

it('a session whose lease is lost says so', async () => {
  const { clock, enter, holdfast } = await world();
  const other = await enter('ben');
  const run = (_: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  await holdfast.worker({ resources: { tuners: 2 }, pipelines: { live: run } }).start();
  const intents = holdfast.intents({ secret: 's'.repeat(32) });
  const requester = { tenant: 'default', client: 'c' };
  await intents.submit({ type: 'stream.start', serviceRef: 'x' }, requester);
  await clock.advance(2_000);
  await other.revoke('tuner:1', { reason: 'test', force: true, class: 'resource' });
  await clock.advance(30_000);
  const [session] = named('holdfast.session');
  expect(session?.events.map(({ name }) => name)).toContain('lease.lost');
  await close(clock, holdfast, other);
});

describe('the origin of an action', () => {
  it('is not taken for what it is not', async () => {
    const tracing = await findTracing();
    expect(tracing).not.toBe(untraced);
    expect(tracing.origin()).toBeNull();
    const causes = [null, '', 'x', `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`, '00-1-2-3'];
    for (const cause of causes)
      await tracing.run({ name: 'one', attributes: {}, cause: () => cause }, () => {});
    expect(named('one').map(({ links }) => links)).toEqual(causes.map(() => []));
    await expect(
      (async () =>
        tracing.run({ name: 'odd', attributes: {} }, () => {
          throw Object.create(null);
        }))(),
    ).rejects.toBeDefined();
    expect(named('odd')[0]?.status.code).toBe(SpanStatusCode.ERROR);
  });
});

it('docs/tracing.md names every span and every attribute there is, and no other', () => {
  const sources = [
    'lease/spans',
    'lease/pool/pool',
    'fleet/poll/poll-scheduler',
    'fleet/member/target-leases',
    'worker/session-run',
    'worker/session-leases',
    'workflow/orchestrator',
    'workflow/processor',
    'workflow/workflows',
    'telemetry/open-telemetry',
  ].map((path) => readSource(`src/${path}.ts`).text);
  const used = sources.flatMap((text) => [...text.matchAll(/'(holdfast\.[a-z_]+)'/g)]);
  const written = readSource('docs/tracing.md').text.matchAll(/^\| `(holdfast\.[a-z_]+)`/gm);
  const set = (found: Iterable<RegExpExecArray>) => [
    ...new Set([...found].map(([, name]) => name)),
  ];
  expect(set(written).sort()).toEqual(set(used).sort());
});
