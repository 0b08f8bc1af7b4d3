import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { promtool, requirePrometheus } from '../support/prometheus.ts';
import { readRules } from '../support/rules-file.ts';
import { readSource } from '../support/source-tree.ts';

const RULES = 'docs/alerts/holdfast.rules.yml';
const PATH = fileURLToPath(new URL(`../../${RULES}`, import.meta.url));
const alerts = readRules(readSource(RULES).text).map(({ alert }) => alert);

/** Series in promtool's notation, a sample every 15 s. Ten minutes are 40 samples. */
type Series = Readonly<Record<string, string>>;

interface Incident {
  readonly alert: string;
  readonly what: string;
  readonly series: Series;
  /** When the alert has to fire. */
  readonly at: string;
  /** When it must not fire yet; without it, the moment before the incident is not checked. */
  readonly quietAt?: string;
}

const A = 'job="fleet",instance="a"';
const B = 'job="fleet",instance="b"';

/** Each alert, with what it is for. */
const INCIDENTS: readonly Incident[] = [
  {
    alert: 'HoldfastTargetsUnowned',
    what: 'four of twelve targets have no owner for more than two minutes',
    series: {
      [`holdfast_fleet_targets{${A}}`]: '12x40',
      [`holdfast_leases_held{class="poll",${A}}`]: '8x40',
    },
    at: '3m',
    quietAt: '1m45s',
  },
  {
    alert: 'HoldfastRenewalsSlow',
    what: 'all renewals take between 2.5 and 5 s with a TTL of 20 s',
    series: {
      [`holdfast_lease_ttl_seconds{class="lease",${A}}`]: '20x60',
      ...buckets('lease', { '2.5': 0, '5': 1, '+Inf': 1 }),
    },
    at: '12m',
    quietAt: '4m',
  },
  {
    alert: 'HoldfastMarginSmall',
    what: 'a fifth of the TTL is left',
    series: {
      [`holdfast_lease_ttl_seconds{class="poll",${A}}`]: '30x40',
      [`holdfast_lease_deadline_seconds{class="poll",${A}}`]: '20x20 6x20',
    },
    at: '6m',
    quietAt: '4m',
  },
  {
    alert: 'HoldfastMarginSmall',
    what: 'a twenty-fifth of the TTL of a workflow is left',
    series: {
      [`holdfast_lease_ttl_seconds{class="workflow",${A}}`]: '300x40',
      [`holdfast_lease_deadline_seconds{class="workflow",${A}}`]: '50x20 12x20',
    },
    at: '6m',
    quietAt: '4m',
  },
  {
    alert: 'HoldfastLeasesExpired',
    what: 'an instance lost three leases because it was frozen',
    series: { [`holdfast_leases_lost_total{class="poll",reason="expired",${A}}`]: '0x20 3x20' },
    at: '6m',
    quietAt: '4m',
  },
  {
    alert: 'HoldfastWritesRefused',
    what: 'the store refused one late result',
    series: { [`holdfast_refusals_total{code="FENCE_STALE",${A}}`]: '0x20 1x20' },
    at: '6m',
    quietAt: '4m',
  },
  {
    alert: 'HoldfastStoreAway',
    what: 'the fleet part of an instance has been stalled for a minute',
    series: { [`holdfast_stalled{part="fleet",${A}}`]: '0x20 1x20' },
    at: '6m',
    quietAt: '5m15s',
  },
  {
    alert: 'HoldfastStoreUnsteady',
    what: 'an instance drops a connection every half a minute',
    series: { [`holdfast_store_disconnections_total{${A}}`]: '0+0.5x60' },
    at: '12m',
    quietAt: '2m',
  },
  {
    alert: 'HoldfastQuarantine',
    what: 'the store was emptied',
    series: { [`holdfast_store_quarantine_seconds{keyspace="poll",${A}}`]: '0x20 31 16 1 0x20' },
    at: '5m15s',
    quietAt: '4m',
  },
  {
    alert: 'HoldfastWorkersStalled',
    what: 'a worker has been stalled for two minutes',
    series: { [`holdfast_stalled{part="worker",${A}}`]: '0x20 1x20' },
    at: '7m',
    quietAt: '5m45s',
  },
  ...['poll', 'run', 'pipeline'].map((part) => ({
    alert: 'HoldfastWorkStuck',
    what: `a ${part} ignores its signal`,
    series: { [`holdfast_events_total{event="${part}.stuck",${A}}`]: '0x20 1x20' },
    at: '6m',
    quietAt: '4m',
  })),
  {
    alert: 'HoldfastDeadLetters',
    what: 'an action failed in every try',
    series: { [`holdfast_actions_total{result="dead",${A}}`]: '0x20 1x20' },
    at: '6m',
    quietAt: '4m',
  },
  {
    alert: 'HoldfastLogDropped',
    what: 'an instance dropped 200 events of the shared log',
    series: { [`holdfast_log_dropped_total{${A}}`]: '0x20 200x20' },
    at: '6m',
    quietAt: '4m',
  },
  {
    alert: 'HoldfastLoopBlocked',
    what: 'an event loop was blocked for three seconds',
    series: { [`holdfast_loop_blocked_seconds_total{${A}}`]: '0x20 3x20' },
    at: '6m',
    quietAt: '4m',
  },
  {
    alert: 'HoldfastLoopBlocked',
    what: 'an event loop is late by more than half a second at p99',
    series: { [`holdfast_nodejs_eventloop_lag_p99_seconds{${A}}`]: '0.01x20 0.7x20' },
    at: '6m',
    quietAt: '4m',
  },
];

/** Counters of a histogram: by how much each bucket grows in 15 s. */
function buckets(leaseClass: string, growth: Readonly<Record<string, number>>): Series {
  return Object.fromEntries(
    Object.entries(growth).map(([le, by]) => [
      `holdfast_lease_renew_duration_seconds_bucket{class="${leaseClass}",le="${le}",${A}}`,
      `0+${by}x60`,
    ]),
  );
}

/** An instance is down for a minute: its series end, and its counters begin at 0 again. */
const RESTART = (before: string, after: string) => `${before}x20 _x4 ${after}x40`;

/** `a` restarts, `b` has its targets for that time; then all is as before. */
const ROLLING_RESTART: Series = {
  [`holdfast_fleet_targets{${A}}`]: RESTART('12', '12'),
  [`holdfast_fleet_targets{${B}}`]: '12x64',
  [`holdfast_leases_held{class="poll",${A}}`]: RESTART('6', '6'),
  [`holdfast_leases_held{class="poll",${B}}`]: '6x20 12x4 6x40',
  [`holdfast_lease_ttl_seconds{class="poll",${A}}`]: RESTART('30', '30'),
  [`holdfast_lease_deadline_seconds{class="poll",${A}}`]: RESTART('16', '16'),
  ...buckets('poll', { '0.005': 1, '0.01': 1, '+Inf': 1 }),
  [`holdfast_leases_lost_total{class="poll",reason="expired",${A}}`]: RESTART('0', '0'),
  [`holdfast_leases_lost_total{class="poll",reason="taken_over",${A}}`]: RESTART('2', '0'),
  [`holdfast_refusals_total{code="FENCE_STALE",${A}}`]: RESTART('3', '0'),
  [`holdfast_stalled{part="fleet",${A}}`]: RESTART('0', '0'),
  [`holdfast_stalled{part="worker",${A}}`]: RESTART('0', '0'),
  [`holdfast_store_disconnections_total{${A}}`]: RESTART('9', '1'),
  [`holdfast_store_quarantine_seconds{keyspace="poll",${A}}`]: RESTART('0', '0'),
  [`holdfast_events_total{event="poll.stuck",${A}}`]: RESTART('1', '0'),
  [`holdfast_actions_total{result="dead",${A}}`]: RESTART('4', '0'),
  [`holdfast_log_dropped_total{${A}}`]: RESTART('0', '0'),
  [`holdfast_loop_blocked_seconds_total{${A}}`]: RESTART('2', '0'),
  [`holdfast_nodejs_eventloop_lag_p99_seconds{${A}}`]: RESTART('0.012', '0.02'),
};

/** One test of promtool: which of the alerts fire at each of some times. */
function ruleTest(
  series: Series,
  expected: readonly { alert: string; at: string; fires: boolean }[],
) {
  return {
    interval: '15s',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: expected.map(({ alert, at, fires }) => ({
      expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) > bool 0`,
      eval_time: at,
      exp_samples: fires ? [{ labels: '{}', value: 1 }] : [],
    })),
  };
}

describe('the alert rules', () => {
  let folder = '';
  beforeAll(() => {
    requirePrometheus();
    folder = mkdtempSync(join(tmpdir(), 'holdfast-rules-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const run = (test: ReturnType<typeof ruleTest>) => {
    const path = join(folder, 'test.yml');
    const file = { rule_files: [PATH], evaluation_interval: '15s', tests: [test] };
    writeFileSync(path, JSON.stringify(file));
    return promtool('test', 'rules', path);
  };

  it('are read by Prometheus without a complaint', () => {
    expect(promtool('check', 'rules', PATH)).toMatchObject({ isOk: true });
  });

  it('each have an incident here', () => {
    expect([...new Set(INCIDENTS.map(({ alert }) => alert))].sort()).toEqual([...alerts].sort());
  });

  it.each(INCIDENTS)('$alert fires when $what, and not before', (incident) => {
    const { alert, series, at, quietAt } = incident;
    const before = quietAt === undefined ? [] : [{ alert, at: quietAt, fires: false }];
    const { isOk, output } = run(ruleTest(series, [...before, { alert, at, fires: true }]));
    expect(isOk, output).toBe(true);
  });

  it('stay quiet in a rolling restart', () => {
    const times = ['5m', '5m45s', '6m', '7m', '9m', '14m'];
    const expected = times.flatMap((at) => alerts.map((alert) => ({ alert, at, fires: false })));
    const { isOk, output } = run(ruleTest(ROLLING_RESTART, expected));
    expect(isOk, output).toBe(true);
  });
});
