import { describe, expect, it } from 'vitest';
import type { Events } from '../../src/core/events.ts';
import { Emitter } from '../../src/core/events.ts';
import { open } from '../../src/holdfast.ts';
import { METRICS, PREFIX } from '../../src/server/metrics/metric-catalogue.ts';
import { createMetrics, Metrics } from '../../src/server/metrics/metrics.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

/** Metrics of an instance of which nothing is there but its events. */
function counting() {
  const clock = new FakeClock();
  const events = new Emitter();
  const holdfast = {
    on: events.on.bind(events) as Emitter['on'],
    census: () => new Map([['poll', { held: 7, remainingMs: 12_500, ttlMs: 30_000 }]]),
    running: 3,
  };
  const metrics = new Metrics(holdfast, clock);
  const value = async (series: string) => {
    const line = (await metrics.text())
      .split('\n')
      .find((one) => one.startsWith(`${PREFIX}${series} `));
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  };
  return { clock, events, metrics, value };
}

const lease = { leaseClass: 'poll', key: 'k', holder: 'h', fence: 1 };
const action = { workflow: 'w', action: 'a', type: 'T', target: 't', fence: 1 };
const failure = { ...action, tries: 1, why: 'x' };
const taken = {
  target: 't',
  fence: 1,
  from: 'x',
  gapMs: 3_040,
  silentMs: 3_000,
  wakeMs: 30,
  grantMs: 10,
};
const session = { session: 's', tenant: 't' };
const pipeline = { ...session, slot: null, why: null, isGone: true, tookMs: 90_000 };
const violation = {
  workflow: 'w',
  action: null,
  expectedLease: null,
  receivedLease: null,
  actionEpoch: null,
  currentEpoch: null,
};

/** What is emitted, the series that has to show it, and its value then. */
const TOLD: readonly (readonly [keyof Events, object, string, number])[] = [
  ['lease.acquired', { ...lease, waitedMs: 2_000 }, 'leases_acquired_total{class="poll"}', 1],
  [
    'lease.acquired',
    { ...lease, waitedMs: 2_000 },
    'lease_wait_duration_seconds_sum{class="poll"}',
    2,
  ],
  [
    'lease.refused',
    { ...lease, reason: 'held' },
    'leases_refused_total{class="poll",reason="held"}',
    1,
  ],
  [
    'lease.renewed',
    { leaseClass: 'poll', count: 9, tookMs: 4 },
    'lease_renew_duration_seconds_bucket{le="0.005",class="poll"}',
    1,
  ],
  [
    'lease.renewed',
    { leaseClass: 'poll', count: 9, tookMs: 4 },
    'events_total{event="lease.extended"}',
    9,
  ],
  [
    'lease.lost',
    { ...lease, reason: 'taken_over' },
    'leases_lost_total{class="poll",reason="taken_over"}',
    1,
  ],
  ['lease.transferred', lease, 'handovers_total{class="poll"}', 1],
  ['fleet.planned', { members: 3, targets: 40 }, 'fleet_members', 3],
  ['fleet.planned', { members: 3, targets: 40 }, 'fleet_targets', 40],
  ['target.taken', { ...taken, how: 'failover' }, 'failovers_total', 1],
  ['target.taken', { ...taken, how: 'failover' }, 'gap_duration_seconds_sum', 3.04],
  ['target.taken', { ...taken, how: 'handover' }, 'handover_duration_seconds_sum', 3.04],
  ['poll.done', { tookMs: 20 }, 'polls_total{result="done"}', 1],
  ['poll.failed', { tookMs: 20 }, 'poll_duration_seconds_sum{result="failed"}', 0.02],
  [
    'workflow.violation',
    { ...violation, code: 'STALE_EPOCH' },
    'refusals_total{code="STALE_EPOCH"}',
    1,
  ],
  ['result.refused', { target: 't', fence: 1, seen: 2 }, 'refusals_total{code="FENCE_STALE"}', 1],
  ['action.emitted', action, 'actions_emitted_total', 1],
  ['action.done', { ...action, tookMs: 500 }, 'action_duration_seconds_sum', 0.5],
  [
    'action.failed',
    { ...failure, retryInMs: null, isDead: true },
    'actions_total{result="dead"}',
    1,
  ],
  [
    'action.failed',
    { ...failure, retryInMs: 50, isDead: false },
    'actions_total{result="failed"}',
    1,
  ],
  ['intent.refused', { type: 'vod.start' }, 'intents_total{type="vod.start",result="refused"}', 1],
  [
    'session.advanced',
    { ...session, state: 'RUNNING', reason: null },
    'session_transitions_total{state="RUNNING"}',
    1,
  ],
  [
    'session.advanced',
    { ...session, state: 'ENDED', reason: 'R_NO_TUNER' },
    'sessions_ended_total{reason="R_NO_TUNER"}',
    1,
  ],
  ['session.recovered', session, 'sessions_recovered_total', 1],
  [
    'pipeline.ended',
    { ...pipeline, how: 'failed' },
    'pipeline_duration_seconds_sum{how="failed"}',
    90,
  ],
  ['worker.stalled', {}, 'stalled{part="worker"}', 1],
  ['store.disconnected', {}, 'store_disconnections_total', 1],
  ['store.forgot', {}, 'store_forgot_total', 1],
  ['log.dropped', { count: 12 }, 'log_dropped_total', 12],
  ['loop.delayed', { lateMs: 1_500 }, 'loop_blocked_seconds_total', 1.5],
];

describe('the catalogue of metrics', () => {
  it('names seconds where it means seconds, and totals where it counts', () => {
    for (const { name, type, buckets } of METRICS) {
      expect(name.endsWith('_total'), name).toBe(type === 'counter');
      expect(type === 'histogram', name).toBe(buckets !== undefined);
      if (type === 'histogram') expect(name).toMatch(/_seconds$/);
      expect(name).not.toMatch(/_ms(_|$)|milli/);
    }
  });

  it('has bounded labels only: fixed lists, but for routes, statuses and the version', () => {
    const open = METRICS.flatMap(({ labels }) =>
      Object.entries(labels).flatMap(([name, values]) => (values === null ? [name] : [])),
    );
    expect([...new Set(open)].sort()).toEqual(['route', 'status', 'version']);
    const names = new Set(METRICS.flatMap(({ labels }) => Object.keys(labels)));
    for (const id of [
      'key',
      'holder',
      'target',
      'session',
      'client',
      'tenant',
      'workflow',
      'action',
      'member',
    ])
      expect(names).not.toContain(id);
  });
});

describe('metrics', () => {
  const told = TOLD.map(([event, facts, ...shown]) => [event, ...shown, facts] as const);
  it.each(told)('%s feeds %s', async (event, series, expected, facts) => {
    const { events, value } = counting();
    expect(await value(series)).toBe(0);
    events.emit(event, facts as never);
    expect(await value(series)).toBe(expected);
    if (event !== 'lease.renewed') expect(await value(`events_total{event="${event}"}`)).toBe(1);
  });

  it('start at 0 for every value of their labels', async () => {
    const { metrics } = counting();
    const text = await metrics.text();
    for (const { name, type, isServers } of METRICS)
      if (type === 'counter' && !isServers)
        expect(text).toMatch(new RegExp(`^${PREFIX}${name}.* 0$`, 'm'));
    expect(text).toContain('holdfast_leases_lost_total{class="workflow",reason="revoked"} 0');
    expect(text).toContain('holdfast_pipeline_duration_seconds_count{how="stopped"} 0');
  });

  it('make no series from names that a client made up', async () => {
    const { events, metrics, value } = counting();
    for (let i = 0; i < 50; i++)
      events.emit('intent.accepted', { ...session, client: 'c', type: `made-up-${i}` });
    expect(await value('intents_total{type="other",result="accepted"}')).toBe(50);
    expect(await metrics.text()).not.toContain('made-up');
  });

  it('show what is held by class, and how long it is until the first is lost; nothing of a class that has none', async () => {
    const { value } = counting();
    expect(await value('leases_held{class="poll"}')).toBe(7);
    expect(await value('leases_held{class="lease"}')).toBe(0);
    expect(await value('lease_deadline_seconds{class="poll"}')).toBe(12.5);
    expect(await value('lease_ttl_seconds{class="poll"}')).toBe(30);
    expect(await value('lease_deadline_seconds{class="lease"}')).toBeUndefined();
    expect(await value('sessions_running')).toBe(3);
  });

  it('count a quarantine down to 0, however often it is told of', async () => {
    const { clock, events, value } = counting();
    const series = 'store_quarantine_seconds{keyspace="poll"}';
    expect(await value(series)).toBe(0);
    const facts = { store: 's', keyspace: 'poll' };
    events.emit('store.quarantined', { ...facts, leftMs: 30_000 });
    await clock.advance(10_000);
    expect(await value(series)).toBe(20);
    events.emit('store.quarantined', { ...facts, leftMs: 20_000 });
    await clock.advance(15_000);
    expect(await value(series)).toBe(5);
    await clock.advance(60_000);
    expect(await value(series)).toBe(0);
  });

  it('count as failovers, and as unowned, only what had to be taken over', async () => {
    const { events, value } = counting();
    const facts = taken;
    for (const how of ['first', 'handover', 'failover'] as const)
      events.emit('target.taken', { ...facts, how });
    expect(await value('failovers_total')).toBe(1);
    expect(await value('gap_duration_seconds_count')).toBe(1);
    expect(await value('handover_duration_seconds_count')).toBe(1);
  });

  it('say that a part is stalled until it continues', async () => {
    const { events, value } = counting();
    events.emit('fleet.stalled', { error: new Error('away') });
    expect(await value('stalled{part="fleet"}')).toBe(1);
    events.emit('fleet.resumed', { afterMs: 5 });
    expect(await value('stalled{part="fleet"}')).toBe(0);
  });

  it('K-14 say that a processor is stalled while any of them is', async () => {
    const { events, value } = counting();
    events.emit('processor.resumed', { processor: 'c', afterMs: 5 });
    for (const processor of ['a', 'b'])
      events.emit('processor.stalled', { processor, error: new Error('away') });
    expect(await value('stalled{part="processor"}')).toBe(2);
    events.emit('processor.resumed', { processor: 'a', afterMs: 5 });
    expect(await value('stalled{part="processor"}')).toBe(1);
    events.emit('processor.resumed', { processor: 'b', afterMs: 5 });
    expect(await value('stalled{part="processor"}')).toBe(0);
  });

  it('are there for a program without our server, and have nothing of one', async () => {
    const clock = new FakeClock();
    const holdfast = await open('memory:', { clock });
    const metrics = createMetrics(holdfast, { clock });
    await holdfast.acquire('a');
    await holdfast.acquire('b', { ttl: '5s' });
    await clock.advance(1_000);
    const text = await metrics.text();
    expect(metrics.contentType).toMatch(/^text\/plain/);
    expect(text).toContain('holdfast_leases_held{class="lease"} 2');
    expect(text).toContain('holdfast_lease_ttl_seconds{class="lease"} 5');
    expect(text).toMatch(/^holdfast_lease_deadline_seconds\{class="lease"\} 3\.\d+$/m);
    expect(text).toContain('holdfast_leases_acquired_total{class="lease"} 2');
    expect(text).not.toMatch(/holdfast_(http|sse)_/);
    metrics.close();
    await holdfast.acquire('c');
    expect(await metrics.text()).toContain('holdfast_leases_acquired_total{class="lease"} 2');
    expect(() => createMetrics(holdfast, { prefix: 'x' } as never)).toThrow('prefix');
  });
});
